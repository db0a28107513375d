"""What a DirectML page demands of a description, and which of it a description breaks."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    """One constraint that a description does not meet.

    `constraint` is a short name that stays the same from release to release (`window_within_input`), `message`
    a sentence with the actual numbers, `source` the page that states the constraint
    (`ns-directml-dml_slice1_operator_desc`).
    """

    constraint: str
    message: str
    source: str

    def __str__(self) -> str:
        return f"{self.constraint}: {self.message} [{self.source}]"


class ConstraintViolation(ValueError):  # noqa: N818 - it holds `Violation`s
    """A description was evaluated although constraints that its formula rests on do not hold."""

    def __init__(self, name: str, violations: Iterable[Violation]) -> None:
        self.name = name
        self.violations = tuple(violations)
        super().__init__(f"{name} has no defined result: " + "; ".join(map(str, self.violations)))
