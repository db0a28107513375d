"""What was measured of cases that share a session: which of a sample end otherwise than alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Difference(NamedTuple):
    """A case of the sample that ends otherwise in a pack."""

    case_id: str
    alone: str
    packed: str


class Parity(NamedTuple):
    """What was measured. cases: how many the sample has. differences: those that end otherwise in a pack than alone,
    by their status."""

    cases: int
    differences: Sequence[Difference]
