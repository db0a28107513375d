"""What a certificate says of a provider, made of the records of one run and of what its workers observed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from epcheck.conformance.records import terms
from epcheck.conformance.records.case_facts import qualified_name
from epcheck.conformance.records.contract import BROKEN, Contract, Kernel, Mustpass, Rule
from epcheck.conformance.records.record import Record
from epcheck.conformance.records.run import Run, digest_of
from epcheck.reports.runs.accuracy import AccuracyProfile, AccuracySuspicion
from epcheck.reports.runs.causes import find_causes_of_run
from epcheck.reports.runs.headline import describe_problem
from epcheck.reports.runs.run_folder import StoreError, read_records, read_run
from epcheck.reports.runs.summary import NOT_RUN, Cell, Tally, TargetSummary
from epcheck.reports.text import format_count, format_share

SCHEMA = 1
"""The version of a certificate. A reader refuses a newer one."""

NO_LEVEL, PART = "none", "a part"
"""In place of a level, and of the name of a list, where there is none."""

WITH_EXCLUSIONS = " with exclusions"
"""What follows the name of a list where failures are tolerated, each with its reason."""

PROVEN, WRONG, UNTAKEN, UNPROVEN = "proven", "wrong", "never taken", "without a case"
"""What the run says of a registered kernel's operator: every case that the provider takes is right; some are not; there
are cases, and it takes none; the suite has none."""

SAME_FACTS = ("onnxruntime", "execution_provider", "plugin", "plugin_library", "DirectML.dll")
"""What the workers of the run and those of the contract report alike."""

NAMED_OPERATORS = 3
"""Operators of a cause that are named."""

EXAMPLES = 20
"""Failures, uses and exclusions that are listed at most with an example."""


@dataclass(frozen=True)
class Group:
    """Cases that fail for one cause, or are excluded for one reason. example: the smallest, or the first by its id."""

    text: str
    cases: int
    statuses: dict[str, int]
    example: str
    repro: str = ""
    link: str = ""


@dataclass(frozen=True)
class Use:
    """A way in which sessions were used. same: cases whose answer is right and the same. differs, of them excluded:
    cases with another one. skipped: cases that cannot be used so. example: one that differs, and why."""

    variant: str
    same: int = 0
    differs: int = 0
    excluded: int = 0
    unsteady: int = 0
    skipped: int = 0
    example: str = ""
    reason: str = ""

    @property
    def axis(self) -> str:
        return self.variant.partition("=")[0]


@dataclass(frozen=True)
class OperatorClaim:
    """A registered operator against the run. untaken: dtypes of its kernels of which there are cases, none taken."""

    operator: str
    state: str
    right: int
    taken: int
    cases: int
    untaken: tuple[str, ...] = ()

    @property
    def not_right(self) -> int:
        """How many cases gave a result that is not right."""
        return self.taken - self.right


@dataclass(frozen=True)
class Values:
    """Cases by what became of them. taken: those that gave a result. claimed: those that a claim table promises, and
    how many of them are right."""

    cases: int
    right: int
    taken: int
    failing: int
    flaky: int
    excluded: int
    claimed: int
    claimed_right: int

    @property
    def rate(self) -> float | None:
        """The share of right cases among those that gave a result; None where none did."""
        return self.right / self.taken if self.taken else None


@dataclass(frozen=True)
class Certificate:
    """One page about a provider. level: the name of a list, with WITH_EXCLUSIONS where failures are tolerated, or
    NO_LEVEL. why: sentences that say what keeps it from a level. suite: SHA-256 of the code that made it. list: the one
    whose cases these are, or PART. strangers: operators that the provider takes without a registered kernel."""

    target: str
    provider: str
    level: str
    why: tuple[str, ...]
    list: str
    run_id: str
    started: str
    seconds: float
    versions: dict[str, str]
    suite: str
    cases_digest: str
    values: Values
    failures: tuple[Group, ...]
    exclusions: tuple[Group, ...]
    uses: tuple[Use, ...]
    claims: tuple[OperatorClaim, ...]
    accuracy: tuple[AccuracyProfile, ...]
    suspicions: tuple[AccuracySuspicion, ...]
    contract: Contract
    strangers: tuple[str, ...] = ()
    schema: int = field(default=SCHEMA)

    @property
    def headline(self) -> str:
        """The certificate in one sentence."""
        values = self.values
        rate = (
            "nothing gave a result" if values.rate is None else f"{format_share(values.rate)} of its results are right"
        )
        level = "no level" if self.level == NO_LEVEL else f"level {self.level}"
        return f"{self.target}: {level}; {rate} ({values.right:,} of {values.taken:,}, of {values.cases:,} cases)."

    def rules(self, state: str) -> tuple[Rule, ...]:
        """Those of the contract in this state."""
        return tuple(rule for rule in self.contract.rules if rule.state == state)


def make_certificate(folder: Path, contract: Contract, lists: Sequence[Mustpass], suite: str) -> Certificate:
    """The certificate of a run with one candidate. lists: those that a level may be about. Raises StoreError."""
    run = read_run(folder)
    _check_same_provider(folder, run, contract)
    tally, counted = Tally(find_causes_of_run(folder)), _Counted()
    for record in read_records(folder):
        tally.add(record)
        counted.add(record)
    summary = tally.summary(run)
    target = summary.targets[0]
    digest = digest_of(counted.ids)
    found = next((each.name for each in lists if each.digest == digest and _is_of(each, run)), PART)
    certificate = Certificate(
        target=contract.target,
        provider=contract.provider,
        level=NO_LEVEL,
        why=(),
        list=found,
        run_id=run.run_id,
        started=run.started,
        seconds=run.duration_s,
        versions=dict(run.versions),
        suite=suite,
        cases_digest=digest,
        values=_count_values(target, counted),
        failures=tuple(_list_failures(target)),
        exclusions=tuple(counted.list_exclusions()),
        uses=tuple(counted.list_uses()),
        claims=tuple(_compare_kernels(contract.kernels, target.matrix)),
        accuracy=tuple(profile for profile in target.accuracy if profile.candidate is not None),
        suspicions=target.suspicions,
        contract=contract,
        strangers=tuple(_list_strangers(contract, target.matrix)),
    )
    problem = describe_problem(run, summary)
    why = tuple(_list_obstacles(certificate, problem, lists, run))
    level = NO_LEVEL if why else found + (WITH_EXCLUSIONS if certificate.exclusions else "")
    return replace(certificate, why=why, level=level)


def _check_same_provider(folder: Path, run: Run, contract: Contract) -> None:
    """Refuse a run of another provider than the contract's, or of several. Raises StoreError."""
    if run.candidates != (contract.target,):
        ran = ", ".join(run.candidates) or "nothing"
        raise StoreError(f"{folder}: its run is of {ran}, and its contract of {contract.target}")
    facts = run.targets.get(contract.target, {})
    for name in SAME_FACTS:
        if facts.get(name, "") != contract.facts.get(name, ""):
            raise StoreError(
                f"{folder}: its run is of {name} {facts.get(name, 'none')}, and its contract of "
                f"{contract.facts.get(name, 'none')}; certify again"
            )


def _is_of(each: Mustpass, run: Run) -> bool:
    """Whether a list is that of the release that made the run."""
    return each.suite == run.versions.get("epcheck")


def _list_obstacles(certificate: Certificate, problem: str, lists: Sequence[Mustpass], run: Run) -> Iterator[str]:
    """What keeps a certificate from a level, in sentences."""
    values = certificate.values
    if problem:
        yield problem
    if certificate.list == PART:
        known = [f"{each.name} {each.cases:,}" for each in lists if _is_of(each, run)]
        yield (
            f"Its {values.cases:,} cases are no list of suite {run.versions.get('epcheck', 'unknown')} "
            f"({', '.join(known) or 'of which no list is known'})."
        )
    if not values.right:
        yield "No case is right."
    if values.failing:
        yield f"{format_count(values.failing, 'case fails', 'cases fail')} without an exclusion."
    if values.flaky:
        yield f"{format_count(values.flaky, 'case is', 'cases are')} flaky."
    if missing := [
        axis for axis in terms.USES if not any(use.axis == axis and use.same + use.differs for use in certificate.uses)
    ]:
        yield f"No case was used on {', '.join(missing)}."
    for rule in certificate.rules(BROKEN):
        yield f"Contract, {rule.name}: {rule.found}."


class _Counted:
    """What is counted of the records besides their summary."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.claimed = self.claimed_right = 0
        self._uses: dict[str, Counter[str]] = {}
        self._examples: dict[str, tuple[str, str]] = {}
        self._exclusions: dict[tuple[str, str], tuple[Counter[str], str]] = {}

    def add(self, record: Record) -> None:
        """Count a record."""
        self.ids.append(record.case_id)
        self.claimed += record.claimed is True
        self.claimed_right += record.claimed is True and record.status == terms.PASS
        if record.reading == terms.EXPECTED and record.expectation is not None:
            key = record.expectation.reason, record.expectation.link
            statuses, example = self._exclusions.get(key, (Counter[str](), record.case_id))
            statuses[record.status] += 1
            self._exclusions[key] = statuses, min(example, record.case_id)
        for result in record.variants:
            if result.variant.partition("=")[0] not in terms.USES:
                continue
            counts = self._uses.setdefault(result.variant, Counter())
            counts[result.state] += 1
            if result.state == terms.DIFFERS:
                counts[terms.EXPECTED] += record.reading == terms.EXPECTED
                found = record.case_id, result.reason
                self._examples[result.variant] = min(self._examples.get(result.variant, found), found)

    def list_exclusions(self) -> Iterator[Group]:
        """The reasons of expectations that were needed, those of most cases first."""
        found = sorted(self._exclusions.items(), key=lambda item: (-item[1][0].total(), item[0]))
        for (reason, link), (statuses, example) in found:
            yield Group(reason, statuses.total(), dict(sorted(statuses.items())), example, link=link)

    def list_uses(self) -> Iterator[Use]:
        """The ways of use, by axis."""
        for variant in sorted(self._uses, key=lambda name: (terms.USES.index(name.partition("=")[0]), name)):
            counts = self._uses[variant]
            example, reason = self._examples.get(variant, ("", ""))
            yield Use(
                variant,
                counts[terms.SAME] + counts[terms.CLOSE],
                counts[terms.DIFFERS],
                counts[terms.EXPECTED],
                counts[terms.UNSTEADY],
                counts[terms.NOT_RUN],
                example,
                reason,
            )


def _count_values(target: TargetSummary, counted: _Counted) -> Values:
    readings = target.by_reading
    return Values(
        cases=target.recorded,
        right=target.by_status.get(terms.PASS, 0),
        taken=target.recorded - readings.get(NOT_RUN, 0),
        failing=readings.get(terms.FAILURE, 0),
        flaky=readings.get(terms.FLAKY, 0),
        excluded=readings.get(terms.EXPECTED, 0),
        claimed=counted.claimed,
        claimed_right=counted.claimed_right,
    )


def _list_failures(target: TargetSummary) -> Iterator[Group]:
    for reading in (terms.FAILURE, terms.FLAKY):
        for cause in target.causes_of(reading):
            more = len(cause.operators) - NAMED_OPERATORS
            named = ", ".join(cause.operators[:NAMED_OPERATORS]) + (f" and {more} more" if more > 0 else "")
            statuses = dict(sorted(cause.statuses.items()))
            yield Group(f"{named}: {cause.full_title}", cause.cases, statuses, cause.smallest, cause.repro, cause.link)


def _compare_kernels(kernels: Iterable[Kernel], matrix: Iterable[Cell]) -> Iterator[OperatorClaim]:
    """Each registered operator, those that are wrong and those that are never taken first."""
    cells: dict[str, list[Cell]] = {}
    for cell in matrix:
        cells.setdefault(qualified_name(cell.operator, cell.domain), []).append(cell)
    registered: dict[str, list[Kernel]] = {}
    for kernel in kernels:
        registered.setdefault(kernel.operator, []).append(kernel)
    found = [_compare_operator(name, own, cells.get(name, [])) for name, own in registered.items()]
    order = (WRONG, UNTAKEN, UNPROVEN, PROVEN)
    yield from sorted(found, key=lambda claim: (order.index(claim.state), claim.operator))


def _compare_operator(name: str, kernels: Iterable[Kernel], cells: Sequence[Cell]) -> OperatorClaim:
    right, cases = sum(cell.passes for cell in cells), sum(cell.total for cell in cells)
    taken = cases - sum(cell.not_run for cell in cells)
    bad = any(cell.worst in terms.FAILING for cell in cells)
    state = UNPROVEN if not cases else WRONG if bad else PROVEN if right else UNTAKEN
    untaken = set()
    for kernel in kernels:
        first, last = kernel.versions or (1, None)
        of_kernel = [c for c in cells if first <= c.since_version and (last is None or c.since_version <= last)]
        for dtype in kernel.dtypes:
            own = [cell for cell in of_kernel if cell.dtype == dtype]
            if own and taken and all(cell.not_run == cell.total for cell in own):
                untaken.add(dtype)
    return OperatorClaim(name, state, right, taken, cases, tuple(sorted(untaken)))


def _list_strangers(contract: Contract, matrix: Iterable[Cell]) -> Iterator[str]:
    """Operators of which cases are right, and no kernel is registered: the provider compiles them, or its library does
    not name them."""
    known = {kernel.operator for kernel in contract.kernels}
    yield from (
        sorted({qualified_name(cell.operator, cell.domain) for cell in matrix if cell.passes} - known) if known else ()
    )
