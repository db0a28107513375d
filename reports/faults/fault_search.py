"""A search for faults that no case shows, as a night reports it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FoundFault:
    """A fault. id: of its cause. status, blame, reason: of the smallest node or graph that shows it. known: the
    recorded deviation that it resembles; empty where there is none. replayed: an earlier search found it. folder: its
    files. shared: the baseline fails in the same way."""

    id: str
    operator: str
    status: str
    blame: str
    reason: str
    known: str
    replayed: bool
    folder: str
    shared: bool = False

    @property
    def is_new(self) -> bool:
        """Whether it resembles nothing that is recorded, and the baseline does not show it too."""
        return not self.known and not self.shared


@dataclass(frozen=True)
class FaultSearch:
    """A search on one target. what: `nodes` or `graphs`. judged: how many of them; rate: of these a second. replayed:
    examples of earlier searches. seed: which draws the same ones again. ended: why the search ended early, in words;
    empty where it did not. out: its folder. seconds: how long it took. repeated: nodes that were drawn and not judged,
    since an earlier search judged them. problem: with the history of searches, in words; empty for none."""

    target: str
    what: str
    seed: int
    judged: int
    rate: float
    replayed: int
    ended: str
    out: str
    faults: tuple[FoundFault, ...]
    seconds: float = 0.0
    repeated: int = 0
    problem: str = ""

    @property
    def new(self) -> tuple[FoundFault, ...]:
        """Those that no earlier search found, that resemble nothing that is recorded, and that are the candidate's."""
        return tuple(fault for fault in self.faults if not fault.replayed and fault.is_new)

    @property
    def again(self) -> tuple[FoundFault, ...]:
        """Those that an earlier search found and that still fail."""
        return tuple(fault for fault in self.faults if fault.replayed and fault.is_new)

    @property
    def title(self) -> str:
        """A heading."""
        return f"Fuzzing {self.target}: {self.what}"

    @property
    def sentences(self) -> str:
        """What was found, and how much was searched."""
        if self.ended and not self.judged:
            return f"Not searched: {self.ended}."
        ended = f" It ended early: {self.ended}." if self.ended else ""
        ended += f" {self.problem}." if self.problem else ""
        repeated = f", {self.repeated:,} more judged in earlier searches" if self.repeated else ""
        shared = sum(fault.shared for fault in self.faults)
        known = sum(bool(fault.known) for fault in self.faults)
        alike = f", {shared} that the baseline shows too" if shared else ""
        return (
            f"{_count(len(self.new), 'new fault')}, {len(self.again)} found before and still failing, {known} "
            f"similar to recorded deviations{alike}. {self.judged:,} {self.what} judged in {self.seconds:,.0f} s, "
            f"{self.rate:,.0f} a second{repeated}, {_count(self.replayed, 'example')} replayed first; "
            f"seed {self.seed}.{ended}"
        )


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"
