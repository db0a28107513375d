"""What every engine of `sources/` offers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from epcheck.generators.case import Case
from epcheck.generators.operator import Operator

HARVESTED, FAULTS_FILE = "harvested", "faults.jsonl"
"""`Case.source` of the cases of a folder that `epcheck harvest` wrote, and its file with what the fuzzer found."""


class CaseSource(Protocol):
    """An engine that makes cases of what an operator declares: a module."""

    @property
    def SOURCE(self) -> str:  # noqa: N802
        """What `Case.source` of its cases says: the name of the module."""

    @property
    def KINDS(self) -> Mapping[str, str]:  # noqa: N802
        """Kind of case -> what it is aimed at."""

    def cases(self, operator: Operator[Any]) -> Iterator[Case]:
        """The cases of the operator in a stable order; nothing is built yet."""
