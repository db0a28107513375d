"""What an architecture of the zoo is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import onnx

from epcheck.generators.error import EpcheckError


@dataclass(frozen=True)
class Architecture:
    """A small model that is true to its kind.

    name: as `epcheck zoo` takes it. kind: what it stands for, in a sentence. build: makes the model, the same one
    each time. dims: dynamic dimension -> the sizes worth trying, small ones that a second on one CPU is enough for.
    """

    name: str
    kind: str
    build: Callable[[], onnx.ModelProto]
    dims: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


class ZooError(EpcheckError, ValueError):
    """The zoo does not have what was asked for, or cannot make it; the message says what to do."""
