"""Where the cases of a run run: on this machine, or on those of a cluster."""

from __future__ import annotations

import contextlib
import json
import sys
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from epcheck.api.progress import Progress
from epcheck.api.suite.run_options import RunOptions
from epcheck.conformance import lab
from epcheck.conformance.cache.cache import Cache, default_path
from epcheck.conformance.cluster.node import ClusterError, Line, Order
from epcheck.conformance.records import atomic_file
from epcheck.conformance.records.record import Record, encode
from epcheck.conformance.records.target_facts import base_of
from epcheck.conformance.releases.error import ReleaseError
from epcheck.conformance.releases.package_index import releases_of
from epcheck.conformance.scheduling.plan import Facts, Plan
from epcheck.conformance.scheduling.run import run_plan
from epcheck.conformance.scheduling.trace import Trace
from epcheck.conformance.scheduling.used_cases import choose_of_all, choose_sample
from epcheck.conformance.targets import claim_file, expectation_file
from epcheck.conformance.targets.choice import Choice, best_choice, default_baseline
from epcheck.conformance.targets.config import load_config
from epcheck.conformance.targets.environments import find_package
from epcheck.conformance.targets.expectation import Expectation
from epcheck.conformance.targets.specification import NEED_LAB, describe_target, direct_of, resolve
from epcheck.conformance.targets.target import DML, Target, TargetError
from epcheck.conformance.targets.variants import USES, UsedCases, variants_of
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.generators.case import Case

FILES = ("expectations", "claims")
"""Keys of a target's table that name files of this machine."""

Take = Callable[[Line], None]
Greeted = Callable[[Facts], None]


class Executor(Protocol):
    """What runs the cases of a run.

    candidates, baseline: names of targets. notes: sentences for the reader of the report.
    """

    @property
    def candidates(self) -> tuple[str, ...]: ...
    @property
    def baseline(self) -> str | None: ...
    @property
    def notes(self) -> tuple[str, ...]: ...

    def run(self, cases: Sequence[Case], done: Collection[tuple[str, str]], take: Take, greeted: Greeted) -> None:
        """Run the cases. done: (candidate, case id) pairs that are recorded already. take: gets each record's line.
        greeted: gets the facts once the targets have started. Raises TargetDown or ClusterError."""

    def expectations(self) -> Iterable[tuple[str, Expectation]]:
        """(candidate, expectation) of all that apply to the candidates as they ran."""


def open_executor(
    options: RunOptions, progress: Progress, workers: IdleWorkers | None = None, first: int = 0
) -> AbstractContextManager[Executor]:
    """The executor that the options name. workers: keep this machine's workers for the next run. first: as in `Plan`.

    Raises TargetError, ExpectationError, LabError, RuntimeInstallError, ClusterError, some of them when it is entered.
    """
    return _cluster(options, progress) if options.scheduler else _Here(options, progress, workers, first)


def refuse_early(options: RunOptions) -> None:
    """Raise TargetError for what can be seen to be wrong before cases are listed, and a lab or a runtime installed."""
    if options.scheduler:  # its machines have targets and drivers of their own
        return
    config = load_config(options.config)
    baseline = () if options.baseline in (None, "none") else (options.baseline,)
    for specification in (*options.targets, *baseline, *options.context_from):
        describe_target(specification, config)
    if options.vulkan and not options.vulkan.is_file():
        raise TargetError(f"no such Vulkan driver: {options.vulkan}; name the driver's ICD file (JSON)")


class _Here:
    """This machine."""

    def __init__(self, options: RunOptions, progress: Progress, workers: IdleWorkers | None, first: int) -> None:
        self._options = options
        self._first = first
        self._say = progress.say
        self._workers = workers
        config = load_config(options.config)
        self._targets, self._baseline, self._reference = _targets(options, config, progress)
        self._below = _below(self._targets) if options.explain else {}
        uses = USES if options.uses is not UsedCases.NONE else ()
        compilers = [
            resolve_target(name, config, options.vulkan, progress) for name in dict.fromkeys(options.context_from)
        ]
        self._variants = variants_of(self._targets, tuple(dict.fromkeys((*options.variants, *uses))), compilers)
        self._notes: tuple[str, ...] = ()
        self._facts: Facts = {}

    def __enter__(self) -> Self:
        self._cache = Cache(default_path() if self._options.cache else None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._cache.close()

    @property
    def candidates(self) -> tuple[str, ...]:
        return tuple(target.name for target in self._targets)

    @property
    def baseline(self) -> str | None:
        return self._baseline.name if self._baseline else None

    @property
    def notes(self) -> tuple[str, ...]:
        return (*self._notes, self._cache.trouble) if self._cache.trouble else self._notes

    def _choose_used(self, cases: Sequence[Case]) -> Mapping[str, frozenset[str]] | None:
        """Axis of use, or variant -> the ids of the cases whose sessions are used so."""
        if self._options.uses is UsedCases.SAMPLE:
            return choose_sample(cases)
        return choose_of_all(cases) if self._variants else None

    def run(self, cases: Sequence[Case], done: Collection[tuple[str, str]], take: Take, greeted: Greeted) -> None:
        jobs, pack, varied = self._options.jobs, self._options.pack, self._variants
        plan = Plan(
            cases, self._targets, self._baseline, self._reference, done, jobs, pack, self._below, varied, self._first,
            self._choose_used(cases),
        )  # fmt: skip

        def sink(item: Record) -> None:
            take((encode(item), item.reading))

        def know(facts: Facts) -> None:
            self._facts = facts
            greeted(facts)

        trace = Trace() if self._options.trace else None
        try:
            with closing(self._cache):  # what goes wrong with it at the end is to be noted, too
                self._notes = run_plan(plan, sink, know, self._cache, self._workers, trace, self._say)
        finally:
            if self._options.trace and trace:
                atomic_file.write_text(self._options.trace, json.dumps(trace.trace_events()))

    def expectations(self) -> Iterable[tuple[str, Expectation]]:
        narrowed = [target.narrow(self._facts.get(target.name, {})) for target in self._targets]
        return ((target.name, entry) for target in narrowed for entry in target.expectations)


def _targets(
    options: RunOptions, config: dict[str, Any], progress: Progress
) -> tuple[tuple[Target, ...], Target | None, Target | None]:
    specifications = tuple(dict.fromkeys(options.targets)) or (_best(progress),)
    extra = tuple(entry for path in options.expect for entry in expectation_file.load(path))
    candidates = claim_file.with_tables(
        [
            replace(found, expectations=(*found.expectations, *extra))
            for found in (resolve_target(s, config, options.vulkan, progress) for s in specifications)
        ],
        options.claims,
    )
    chosen = options.baseline or default_baseline(specifications)
    baseline = None if chosen == "none" else resolve_target(chosen, config, options.vulkan, progress)
    reference = resolve("reference") if options.reference else None
    return candidates, baseline, reference


def _refuse_unknown_release(specification: str) -> None:
    """Raise TargetError where the package index says that there is no such release; it may not be reachable."""
    _, _, version = specification.partition("@")
    if not version or lab.is_pinned(version):
        return
    package, number = find_package(version)
    with contextlib.suppress(ReleaseError):
        known = releases_of(package, windows=True)
        if not any(release.startswith(number) for release in known):
            newest = ", ".join(known[-3:])
            raise TargetError(f"target '{specification}': {package} has no such release; the newest are {newest}")


def _below(candidates: Sequence[Target]) -> dict[str, Target]:
    """What explains the failures of each candidate that has DirectML's provider. Raises TargetError where none has."""
    found = {target.name: direct_of(target) for target in candidates if target.provider == DML}
    if not found:
        raise TargetError("--explain needs a candidate with DirectML's provider")
    return found


def resolve_target(specification: str, config: dict[str, Any], vulkan: Path | None, progress: Progress) -> Target:
    """The target of a specification; the lab, or a runtime, that it needs is installed first. Raises TargetError,
    LabError, RuntimeInstallError."""
    if sys.platform != "win32" and base_of(specification) in NEED_LAB and not lab.status().installed:
        obstacle = lab.can_install()
        if obstacle:
            raise TargetError(f"target '{specification}': {obstacle}")
        _refuse_unknown_release(specification)
        _install_lab(progress)
    with progress.installing() as step:
        return resolve(specification, config, step, vulkan)


def _best(progress: Progress) -> str:
    """The best candidate this machine offers; says which and why when it is not DirectML."""
    choice = best_choice()
    if choice.install_lab:
        try:
            _install_lab(progress)
        except lab.LabError as error:
            choice = Choice("cpu", f"the DirectML lab cannot be installed: {error}")
    if choice.specification == "cpu":
        progress.say(f"Candidate: the CPU provider against the oracles, because {choice.reason}")
    else:
        progress.say(f"Candidate: {choice.specification} ({choice.reason.removesuffix(', which is installed first')})")
    return choice.specification


def _install_lab(progress: Progress) -> None:
    progress.say(f"Installing the DirectML lab into {lab.default_folder()}: 1 GB, about a minute, once, without root")
    with progress.installing() as step:
        lab.install(progress=step)


def _cluster(options: RunOptions, progress: Progress) -> AbstractContextManager[Executor]:
    if options.trace:
        raise ClusterError("--trace measures this machine; leave out --scheduler")
    if options.explain:
        raise ClusterError("--explain runs on this machine; leave out --scheduler")
    if options.variants or options.uses is not UsedCases.NONE:
        raise ClusterError("--variants and --uses run on this machine; leave out --scheduler")
    if not options.targets:
        raise ClusterError("--scheduler needs --target")
    try:
        from epcheck.conformance.cluster import cluster
    except ModuleNotFoundError as error:
        if error.name not in ("dask", "distributed"):
            raise
        raise ClusterError("--scheduler needs dask.distributed; run: pip install 'epcheck[distributed]'") from None
    return cluster.Cluster(options.scheduler or "", _orders(options), progress.say, options.may_differ)


def _orders(options: RunOptions) -> tuple[Order, ...]:
    """What the machines of a cluster have to know: one order for each candidate."""
    names = tuple(dict.fromkeys(options.targets))
    tables: Mapping[str, Mapping[str, Any]] = load_config(options.config).get("targets", {})
    baseline = options.baseline or default_baseline(names)
    common = Order(
        run=uuid.uuid4().hex,
        candidate="",
        baseline=None if baseline == "none" else baseline,
        reference=options.reference,
        tables={name: {k: v for k, v in table.items() if k not in FILES} for name, table in tables.items()},
        vulkan=str(options.vulkan) if options.vulkan else None,
        jobs=options.jobs,
        pack=options.pack,
        cache=options.cache,
    )
    return tuple(
        replace(
            common,
            candidate=name,
            expectations=_expectations(options, tables.get(name, {})),
            claim_tables=_claim_tables(options, tables.get(name, {})),
        )
        for name in names
    )


def _claim_tables(options: RunOptions, table: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """(name, text) of this machine's files, which the machines of a cluster do not have. Raises TableError."""
    own = [Path(table["claims"])] if "claims" in table else []
    return tuple((str(path), claim_file.text_of(path)) for path in (*own, *options.claims))


def _expectations(options: RunOptions, table: Mapping[str, Any]) -> tuple[Expectation, ...]:
    """Those of this machine's files, which the machines of a cluster do not have."""
    own = [Path(table["expectations"])] if "expectations" in table else []
    return tuple(entry for path in (*own, *options.expect) for entry in expectation_file.load(path))
