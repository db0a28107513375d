"""What a run leaves behind: a record for each case and candidate, and a description of the run. Plain data."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, cached_property, lru_cache
from itertools import zip_longest
from typing import Any, Self, TypeVar

from epcheck.conformance.records import strict_json, typed_json
from epcheck.conformance.records.error import RecordError

SCHEMA = 1
"""The version of the records. A reader refuses a newer one."""

PASS, MISMATCH, UNPLACED, REFUSED, CRASH, TIMEOUT, FLAKY, ORDER_DEPENDENT, SKIPPED = (
    "pass", "mismatch", "unplaced", "refused", "crash", "timeout", "flaky", "order-dependent", "skipped",
)  # fmt: skip
STATUSES = (PASS, MISMATCH, UNPLACED, REFUSED, CRASH, TIMEOUT, FLAKY, ORDER_DEPENDENT, SKIPPED)

NOBODY, CANDIDATE, BASELINE, BOTH, ORACLES_DISAGREE = "", "candidate", "baseline", "both", "oracles-disagree"
BLAMES = (NOBODY, CANDIDATE, BASELINE, BOTH, ORACLES_DISAGREE)

LOWERING, BELOW, UNSUPPORTED, DIFFERENTLY, NOT_CALLED = "lowering", "directml", "unsupported", "differently", ""
"""Whose fault a failure of DirectML's provider is, told by DirectML itself: called directly it is right, so the
lowering is wrong; it fails alike, so DirectML or the driver is wrong; it does not take such an operator, so the
provider should not have called it; it fails in another way; or it was not called."""

OK, FAILURE, EXPECTED, FIXED, NOTED = "ok", "failure", "expected", "fixed", "noted"
READINGS = (OK, FAILURE, EXPECTED, FIXED, NOTED)
"""A status read against the claim and the expectation: `failure` is a conformance failure nobody expected, `expected`
one that is recorded with its reason, `fixed` an expectation that no longer fails, `noted` a remark (a pass where
nothing is claimed, a wrong baseline), `ok` all the rest."""


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


ULP_EDGES = (0.5, *(2.0**power for power in range(24)))
"""The upper ends of the ranges in which an Accuracy counts; one more counts what is beyond."""


@dataclass(frozen=True)
class Accuracy:
    """How far floating-point outputs that have a bound in ULP are from the truth, over all their elements.

    max_ulp: of the worst one, inf where it is NaN or infinite and the truth is not. sum_ulp: of the finite errors.
    counts: elements within each of ULP_EDGES and above the one before; trailing zeros are left out.
    """

    elements: int
    max_ulp: float
    sum_ulp: float
    counts: tuple[int, ...]


def added(one: Accuracy | None, other: Accuracy) -> Accuracy:
    """The accuracy of the elements of both; of the other alone where there is none yet."""
    if one is None:
        return other
    return Accuracy(
        one.elements + other.elements,
        max(one.max_ulp, other.max_ulp),
        one.sum_ulp + other.sum_ulp,
        tuple(a + b for a, b in zip_longest(one.counts, other.counts, fillvalue=0)),
    )


@dataclass(frozen=True)
class Opinion:
    """What one target said of a case, judged against the truth.

    status: one of STATUSES. stage: where a refusal happened, `create` or `run`. message: the runtime's own words.
    assignment: [provider, operator] of every node, from the session's own record. create_s, run_s: seconds.
    attempts: how often the case was run on the target. shared: cases in its session, among which the seconds are
    shared out. log_tail: the end of the worker's stderr, for failures. remembered: from an earlier run of the same
    target on the same model, feeds and code. accuracy: None where nothing has a bound in ULP, and where all outputs are
    the correctly rounded ones, whose accuracy the case has.
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


@dataclass(frozen=True)
class Value:
    """One input or output of the node. where: `input` (of the graph), `initializer`, `output`. preview: its start."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    where: str
    preview: str = ""


@dataclass(frozen=True)
class DirectML:
    """The DirectML operator a node is lowered to: the struct's name, its members as on its page, what it violates."""

    name: str
    members: Mapping[str, Any]
    violations: tuple[str, ...] = ()


@dataclass(frozen=True)
class Expected:
    """The expectation that matched: where it stands, and why the deviation is tolerated for now."""

    case: str
    status: str
    reason: str
    link: str = ""


@dataclass(frozen=True)
class CaseFacts:
    """What was asked: the case as a reader of the record sees it, the same for every target and every run.

    types: type constraint -> numpy dtype name. expects: `the true result`, or which refusal. repro: the command line
    that writes the case out. rounded: how far the correctly rounded outputs are from the truth; None where nothing has
    a bound in ULP.
    """

    case_id: str
    operator: str
    domain: str
    since_version: int
    opset: int
    dtype: str
    sample: str
    variant: str
    types: Mapping[str, str]
    attributes: Mapping[str, Any]
    values: tuple[Value, ...]
    directml: DirectML | None
    expects: str
    repro: str
    rounded: Accuracy | None = None

    @property
    def operator_key(self) -> str:
        """How a user names the operator: `Slice`, `com.microsoft::Gelu`."""
        return f"{self.domain}::{self.operator}" if self.domain else self.operator

    @cached_property
    def text(self) -> str:
        """The facts as one JSON object."""
        return strict_json.dumps(to_json(self))

    @classmethod
    def from_text(cls, case_id: str, text: str) -> Self:
        """The facts of the case that `text` holds, as `text` gave them. It is read when somebody asks for more than
        the id: a run writes the text on, ten thousand times a second, and looks at few of the facts."""
        facts = cls.__new__(cls)
        facts.__dict__.update(case_id=case_id, text=text)
        return facts

    @classmethod
    def from_fields(cls, fields: Any) -> Self:
        """The facts in an object of JSON that may hold more. Lists and objects among them are looked into when somebody
        asks for them: few do, and only then a RecordError tells that one is damaged.

        Raises TypeError when a fact is missing or of another kind.
        """
        known = typed_json.read_fields(typed_json.fields(CaseFacts, typed_json.outline), fields)
        facts = cls.__new__(cls)
        facts.__dict__.update(_unread={name: known.pop(name, None) for name in _NESTED_FACTS}, **known)
        return facts

    def __getattr__(self, name: str) -> Any:
        known = self.__dict__
        if name not in self.__dataclass_fields__ or known.keys().isdisjoint(("text", "_unread")):
            raise AttributeError(name)
        if "_unread" not in known:
            known.update(from_json(CaseFacts, strict_json.loads(self.text)).__dict__)
        if name not in known:
            known[name] = self._read(name)
        return known[name]

    def _read(self, name: str) -> Any:
        field = next(field for field in typed_json.fields(CaseFacts) if field.name == name)
        try:
            return field.read(self._unread[name])
        except TypeError as error:
            raise RecordError(f"case '{self.case_id}': not a CaseFacts: {name}: {error}") from error


delattr(CaseFacts, "rounded")  # a default that stands in the class would be found before what is read when asked for
_NESTED_FACTS = ("types", "attributes", "values", "directml", "rounded")


@dataclass(frozen=True)
class Direct:
    """What DirectML does with the node's operator when it is called without the provider, and who is then to blame.

    blame: LOWERING, BELOW, UNSUPPORTED, DIFFERENTLY or NOT_CALLED.
    """

    blame: str
    opinion: Opinion


@dataclass(frozen=True)
class Record:
    """One case on one candidate: what was asked, what each target said, and the verdict.

    oracles: oracle name -> `agrees`, `disagrees` or `cannot: why`, each against the suite's own oracle.
    claimed: whether the candidate's documentation claims the operator, version and dtypes; None without a claim table.
    reason: the verdict in words. direct: of a failure that was explained (`epcheck run --explain`).
    In JSON the case's facts stand beside the other fields, in one object.
    """

    case: CaseFacts
    candidate: Opinion
    baseline: Opinion | None
    oracles: Mapping[str, str]
    status: str
    blame: str
    reading: str
    reason: str
    claimed: bool | None
    expectation: Expected | None = None
    direct: Direct | None = None

    @classmethod
    def from_fields(cls, fields: Any) -> Self:
        """The record in an object of JSON. Raises TypeError when a part is missing or of another kind."""
        case = CaseFacts.from_fields(fields)
        return cls(case=case, **typed_json.read_fields(typed_json.fields(Record)[1:], fields))

    @property
    def case_id(self) -> str:
        """The id of the case."""
        return self.case.case_id


@dataclass(frozen=True)
class Share:
    """What a run's cases are of the whole selection: all of it, or shard `index` of `count`.

    cases, digest: how many cases the whole has, and what tells their ids from others. cut: what tells in which shard
    each of them is; empty where there are none. stale: expectations that match no case of the whole.
    """

    cases: int
    digest: str
    index: int = 1
    count: int = 1
    cut: str = ""
    stale: tuple[str, ...] = ()


@dataclass(frozen=True)
class Run:
    """One run: who ran what, where, when. Times are UTC, ISO 8601; durations are seconds.

    targets: target name -> facts (the fingerprint). planned: records that a complete run has.
    status: `running`, `complete`, `interrupted` or `failed: why`. stale: expectations that matched no case; of a shard
    only its share knows. notes: sentences for the reader of the report. worse: candidates that a night found worse than
    before, so that no later night is held against them.
    """

    run_id: str
    started: str
    command: tuple[str, ...]
    candidates: tuple[str, ...]
    baseline: str | None
    targets: Mapping[str, Mapping[str, str]]
    planned: int
    selection: Mapping[str, Any]
    versions: Mapping[str, str]
    status: str = "running"
    finished: str = ""
    duration_s: float = 0.0
    stale: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    share: Share | None = None
    worse: tuple[str, ...] = ()
    schema: int = field(default=SCHEMA)


def now() -> str:
    """This moment as a run tells it. To the microsecond, because a store orders runs by it and tests begin two in one
    second.
    """
    return datetime.now(UTC).isoformat(timespec="microseconds")


def accuracy_of(case: CaseFacts, opinion: Opinion) -> Accuracy | None:
    """How far the outputs of which the opinion is are from the truth; None where there is nothing to measure."""
    return opinion.accuracy or (case.rounded if opinion.status == PASS else None)


def encode(record: Record) -> str:
    """The record as one line of JSON. Raises nothing: what JSON has no type for is written as strict_json does."""
    opinions = f'"candidate":{_opinion_text(record.candidate)},"baseline":{_opinion_text(record.baseline)}'
    rest = {f.name: to_json(value) for f in _fields(Record)[3:] if (value := getattr(record, f.name)) != f.default}
    return f"{record.case.text[:-1]},{opinions},{strict_json.dumps(rest)[1:]}"


@lru_cache(maxsize=256)
def _opinion_text(opinion: Opinion | None) -> str:
    """An opinion as JSON; the cases of a session that all pass share theirs."""
    return strict_json.dumps(to_json(opinion))


def decode(line: bytes | str) -> Record:
    """The record that `encode` was given. Raises ValueError, RecursionError for absurd nesting."""
    return from_json(Record, strict_json.loads(line))


_PLAIN = frozenset((str, int, float, bool, type(None)))


def to_json(value: Any) -> Any:
    """A record as JSON's own types; fields that hold their default are left out."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Record):
        return strict_json.loads(encode(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            f.name: to_json(item)
            for f in _fields(type(value))
            if (item := getattr(value, f.name)) != f.default or f.name == "schema"
        }
    if isinstance(value, Mapping):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_json(item) for item in value]
    return value


INCIDENTAL = ("interpreter",)
"""Facts of a target that say where it is installed, not what it is."""


def differing_facts(
    one: Mapping[str, str], other: Mapping[str, str], may_differ: Collection[str] = ()
) -> list[tuple[str, str, str]]:
    """(fact, its value in one, its value in the other) of everything in which two machines' targets are not the same.

    may_differ: facts that do not count, besides the INCIDENTAL ones.
    """
    names = [name for name in {**one, **other} if name not in INCIDENTAL and name not in may_differ]
    return [(n, one.get(n, ""), other.get(n, "")) for n in names if one.get(n) != other.get(n)]


def tell_apart(different: Iterable[tuple[str, str, str]]) -> str:
    """What `differing_facts` found, in words."""
    return ", ".join(f"{fact} is '{one}' and '{other}'" for fact, one, other in different)


def allowing(different: Iterable[tuple[str, str, str]]) -> str:
    """The options that let what `differing_facts` found differ."""
    return " ".join(f"--may-differ {fact}" for fact, _, _ in different)


def varying_facts(told: Sequence[Mapping[str, str]]) -> list[str]:
    """The facts in which several machines' targets are not the same."""
    return list(dict.fromkeys(fact for facts in told for fact, _, _ in differing_facts(told[0], facts)))


def joined_facts(told: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """The facts that several machines told, in one: where they differ, each value once, with ` | ` between."""
    values: dict[str, dict[str, None]] = {}
    for facts in told:
        for name, value in facts.items():
            values.setdefault(name, {})[value] = None
    return {name: " | ".join(different) for name, different in values.items()}


R = TypeVar("R")


def from_json(cls: type[R], data: Any) -> R:
    """The dataclass that `to_json` was given. Raises RecordError when something is missing or of another kind."""
    if cls is Run and isinstance(data, dict) and type(schema := data.get("schema")) is int and schema > SCHEMA:
        raise RecordError(f"schema {schema} is newer than this epcheck reads ({SCHEMA}); upgrade epcheck")
    try:
        return typed_json.read(cls, data)
    except TypeError as error:
        raise RecordError(f"not a {cls.__name__}: {error}") from error


@cache
def _fields(cls: type[Any]) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(cls)
