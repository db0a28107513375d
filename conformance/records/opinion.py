"""One outcome judged against the truth: a status, and every difference from the truth."""

from __future__ import annotations

from dataclasses import dataclass

from epcheck.conformance.records.accuracy import Accuracy


@dataclass(frozen=True)
class Mismatch:
    """One wrong element. expected, got: as text. ulp: distance in ULP of the output dtype; None for integers."""

    at: tuple[int, ...]
    expected: str
    got: str
    ulp: float | None = None


@dataclass(frozen=True)
class Difference:
    """How one output differs from the truth.

    reason: in words. wrong, total: elements. max_ulp, max_abs: over the wrong elements (None where it has no meaning).
    first: the first wrong elements in memory order. heat: rows of the output, squeezed to at most 16 x 48 cells, each
    the share of wrong elements from 0 to 9 (any wrong element gives at least 1).
    """

    output: str
    dtype: str
    shape: tuple[int, ...]
    reason: str
    wrong: int
    total: int
    max_ulp: float | None = None
    max_abs: float | None = None
    first: tuple[Mismatch, ...] = ()
    heat: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class Excused:
    """Elements of an output that are right only because a published floor accepts them.

    elements, total: how many of how many. max_ulp: of the worst, whose bound is `bound` ULP; at, expected, got: of that
    one. floor: who publishes the floor that applies. allowed: what that accepts there, absolute.
    """

    output: str
    elements: int
    total: int
    max_ulp: float
    bound: float
    floor: str
    allowed: float
    at: tuple[int, ...]
    expected: str
    got: str


@dataclass(frozen=True)
class Opinion:
    """What one target said of a case, judged against the truth.

    status: one of STATUSES. stage: where a refusal happened, `create` or `run`. message: the runtime's own words.
    assignment: [provider, operator] of every node, from the session's own record. create_s, run_s: seconds.
    attempts: how often the case was run on the target. shared: cases in its session, among which the seconds are
    shared out. log_tail: the end of the worker's stderr, for failures. remembered: from an earlier run of the same
    target on the same model, feeds and code. accuracy: None where nothing has a bound in ULP, and where all outputs are
    the correctly rounded ones, whose accuracy the case has. excused: of a pass, what only published floors accept.
    """

    target: str
    status: str
    stage: str = ""
    message: str = ""
    differences: tuple[Difference, ...] = ()
    assignment: tuple[tuple[str, str], ...] | None = None
    create_s: float | None = None
    run_s: float | None = None
    attempts: int = 1
    log_tail: str = ""
    shared: int = 1
    remembered: bool = False
    accuracy: Accuracy | None = None
    excused: tuple[Excused, ...] = ()
