"""In which release of a provider does a case become wrong, or right?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from epcheck.api.option import Option
from epcheck.api.option_types import JsonFile, Vulkan
from epcheck.api.progress import SILENT, Progress
from epcheck.api.releases.bisected import Bisected as Bisected
from epcheck.api.releases.speed_trier import SpeedTrier
from epcheck.api.suite.speed import SpeedOptions, select_nodes
from epcheck.conformance.cache.cache import Cache, default_path
from epcheck.conformance.records import atomic_file
from epcheck.conformance.records.record import Record
from epcheck.conformance.records.target_facts import base_of
from epcheck.conformance.records.terms import FAILING, FAILURE, FLAKY
from epcheck.conformance.releases import bisection
from epcheck.conformance.releases.bisection import Step
from epcheck.conformance.releases.error import ReleaseError, UnusableReleaseError
from epcheck.conformance.releases.search import STATE_OF, Trial, most_trials
from epcheck.conformance.releases.series import Series, choose, series_of, target_at
from epcheck.conformance.scheduling.plan import Facts, Plan
from epcheck.conformance.scheduling.run import run_plan
from epcheck.conformance.targets.choice import why_no_dml
from epcheck.conformance.targets.config import load_config
from epcheck.conformance.workers.client import TargetDown
from epcheck.generators import suite
from epcheck.generators.case_pattern import matches
from epcheck.generators.suite import SelectionError
from epcheck.reports import StoreError
from epcheck.reports.diff.compared_runs import open_single, run_at


@dataclass(frozen=True)
class BisectOptions:
    """Which cases, over which releases of what. cases: ids, and runs, whose failures are meant. target: None for the
    run's, or the best of this machine. releases: see `epcheck.conformance.releases.series.choose`. patterns: narrow the
    failures of runs. expected: take deviations that are expected as well. speed: the cases are nodes of `epcheck
    speed`, as ids, globs or substrings, and a release is wrong in which one is slower than in the oldest, by more than
    max_slowdown. seconds: for all nodes in each release."""

    cases: Annotated[tuple[str, ...], Option("Case ids, or a run folder or file for all its failures.", argument=True)]
    target: Annotated[
        str | None,
        Option("dml, cpu, or a target of epcheck.toml.", flags=("--target", "-t"), default="the run's, or the best"),
    ] = None
    releases: Annotated[
        str, Option("A..B, A.., ..B, or a list A,B,C.", metavar="A..B", default="all installable releases")
    ] = ""
    patterns: Annotated[
        tuple[str, ...], Option("For a run: only these failures (glob or substring); repeat for more.", flags=("-k",))
    ] = ()
    expected: Annotated[bool, Option("For a run: include expected deviations.", flags=("--expected",))] = False
    speed: Annotated[bool, Option("Bisect the speed of nodes of epcheck speed.", flags=("--speed",))] = False
    max_slowdown: Annotated[
        float | None, Option("With --speed: the factor above which a release is wrong.", minimum=1.0, default="1.02")
    ] = None
    seconds: Annotated[
        float | None,
        Option("With --speed: time for all nodes in a release.", minimum=0.1, default="20 and 10 for each node"),
    ] = None
    vulkan: Vulkan = None
    config: Annotated[Path | None, Option("Use this epcheck.toml.")] = None
    jobs: Annotated[int | None, Option("Most workers.", flags=("--jobs", "-j"), minimum=1)] = None
    json: JsonFile = None


def bisect(options: BisectOptions, *, progress: Progress = SILENT) -> Bisected:
    """Find for each case the first release that is wrong, or right, whichever the two ends of the releases say.

    Both ends are tried, then the releases between them are halved: ceil(log2 n) + 2 runs of a case for n releases.
    Releases are installed as they are needed, and kept. A failure is confirmed as `run` confirms it. The truth is the
    suite's own: no baseline and no expectation takes part.
    Raises ReleaseError where there are no such releases or none could be tried, SelectionError for an unknown case,
    StoreError for a run that cannot be read or has no failure, TargetError.
    """
    config = load_config(options.config)
    case_ids, of_runs = (_node_ids(options), None) if options.speed else _case_ids(options)
    series = series_of(options.target or of_runs or ("cpu" if why_no_dml() else "dml"), config)
    releases = choose(series, options.releases, progress.say)
    progress.say(_plan(series, releases, len(case_ids)))
    trier = (
        SpeedTrier(
            series,
            releases[0],
            config,
            SpeedOptions(max_slowdown=options.max_slowdown, seconds=options.seconds, vulkan=options.vulkan),
            progress,
        )
        if options.speed
        else _Trier(series, options, config, progress)
    )
    found = bisection.bisect(case_ids, releases, trier.run, lambda step: progress.say(_describe_step(series, step)))
    if not any(history.trials for history in found.cases):
        raise ReleaseError(f"no release of {series.package} could be tried; {next(iter(found.left_out.values()))}")
    bisected = Bisected(series.name, series.package, found, trier.facts, options.speed)
    if options.json:
        atomic_file.write_text(options.json, bisected.json() + "\n")
    return bisected


class _Trier:
    """Runs cases on one release after the other. facts: release -> what its worker reported."""

    def __init__(self, series: Series, options: BisectOptions, config: Mapping[str, Any], progress: Progress) -> None:
        self.facts: dict[str, Mapping[str, str]] = {}
        self._series, self._options, self._config, self._progress = series, options, config, progress

    def run(self, release: str, case_ids: Sequence[str]) -> dict[str, Trial]:
        """Raises UnusableReleaseError."""
        with self._progress.installing() as step:
            target = target_at(self._series, release, self._config, step, self._options.vulkan)
        trials: dict[str, Trial] = {}

        def know(facts: Facts) -> None:
            self.facts[release] = facts[target.name]

        cases = tuple(map(suite.case_by_id, case_ids))
        with closing(Cache(default_path())) as cache, self._progress.recording(len(cases), 0) as take_reading:

            def sink(record: Record) -> None:
                trials[record.case_id] = Trial(record.status, record.candidate.message)
                take_reading(record.reading)

            try:
                run_plan(Plan(cases, (target,), jobs=self._options.jobs), sink, know, cache)
            except TargetDown as error:
                raise UnusableReleaseError(str(error)) from error
        return trials


def _node_ids(options: BisectOptions) -> tuple[str, ...]:
    """The nodes of `epcheck speed` that are meant, of both sizes. Raises SelectionError."""
    found: list[str] = []
    for pattern in options.cases:
        exact = [node.id for node in select_nodes(SpeedOptions(patterns=(pattern,)))]
        found += [pattern] if pattern in exact else exact
    return tuple(dict.fromkeys(found))


def _case_ids(options: BisectOptions) -> tuple[tuple[str, ...], str | None]:
    """The ids that are meant, each once, and the target of the first run among the arguments."""
    case_ids: list[str] = []
    target: str | None = None
    for argument in options.cases:
        if not Path(argument).exists():
            case_ids.append(suite.case_by_id(argument).id)
            continue
        compared = open_single(Path(argument), _target_in_run(Path(argument), options.target))
        readings = FAILING if options.expected else (FAILURE, FLAKY)
        failing = [row.case_id for row in compared.rows if row.reading in readings]
        if not failing:
            raise StoreError(f"{argument}: no failure of {compared.target}; name a case instead")
        matching = [case_id for case_id in failing if _matches(case_id, options.patterns)]
        if not matching:
            raise SelectionError(f"{argument}: none of its {len(failing)} failures matches -k")
        case_ids += matching
        target = target or compared.target
    if not case_ids:
        raise SelectionError("name a case of `epcheck list`, or a run")
    return tuple(dict.fromkeys(case_ids)), target


def _target_in_run(path: Path, target: str | None) -> str | None:
    """The run's own name of the target, which may be of a release; None where there is no choice, or none was made."""
    candidates = run_at(path).candidates
    if target is None or len(candidates) == 1:
        return None
    alike = [name for name in candidates if base_of(name) == base_of(target)]
    return alike[0] if len(alike) == 1 else target


def _matches(case_id: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(matches(case_id, pattern) for pattern in patterns)


def _plan(series: Series, releases: Sequence[str], cases: int) -> str:
    most = most_trials(len(releases))
    ends = releases[0] if len(releases) == 1 else f"{len(releases)} releases from {releases[0]} to {releases[-1]}"
    each = "" if cases == 1 else f" of each of {cases:,} cases"
    return f"{series.package}: {ends}, at most {most} run{'' if most == 1 else 's'}{each}"


def _describe_step(series: Series, step: Step) -> str:
    """`dml@1.20.1: 3 right, 1 wrong`; of one case its status."""
    name = f"{series.name}@{step.release}"
    if step.left_out:
        return f"{name}: left out, {step.left_out}"
    if len(step.trials) == 1:
        (trial,) = step.trials.values()
        return f"{name}: {trial.state}" + ("" if trial.status == "pass" else f" ({trial.status})")
    counts = Counter(trial.state for trial in step.trials.values())
    states = (state for state in dict.fromkeys(STATE_OF.values()) if counts[state])
    return f"{name}: " + ", ".join(f"{counts[state]:,} {state}" for state in states)
