"""How fast two targets run the operators, compared: two releases, drivers or providers."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from epcheck import reports
from epcheck.api.option import JUDGE, MACHINE, OUTPUT, SELECT, Option, OptionError, ask_if_meant, find_nearest
from epcheck.api.option_types import Dtypes, HtmlFile, JsonFile, Operators, Patterns, Vulkan
from epcheck.api.progress import SILENT, Progress
from epcheck.api.suite.executor import resolve_target
from epcheck.api.suite.option_types import ConfigFile
from epcheck.conformance import lab
from epcheck.conformance.records import atomic_file, strict_json
from epcheck.conformance.records.speed import CREATE, FIRST, PHASES, RUN, SpeedReport
from epcheck.conformance.speed.comparison import SpeedTest, compare_nodes, probe_run_s
from epcheck.conformance.speed.timed_target import NotTimedError, TimedTarget
from epcheck.conformance.targets.config import load_config
from epcheck.conformance.targets.target import Target
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.generators.case_pattern import any_matches
from epcheck.generators.registry import all_operators
from epcheck.generators.speed_shapes import LARGE, SMALL, TimedNode, timed_nodes
from epcheck.generators.suite import SelectionError

DEFAULT_ROOT = Path("epcheck-speed")
"""Where comparisons are kept unless the user says otherwise."""

JSON, HTML = "speed.json", "speed.html"
"""Files of the folder of a comparison."""

LEAST_S, EACH_S = 20.0, 10.0
"""Seconds for all nodes, and further ones for each, where the call does not say how many there are."""

FAST_RUN_S = 5e-4
"""A target that multiplies matrices of 512 within so many seconds, 0.5 TFLOP/s, is worth the large sizes."""

PROBE = "MatMul-13/float32/square_512"
"""The node that says so."""


class Size(StrEnum):
    """Which nodes of the table: those that take a CPU milliseconds, or a GPU; AUTO is by a measurement."""

    AUTO = "auto"
    SMALL = SMALL
    LARGE = LARGE


class Phase(StrEnum):
    """Which of the times decides, as `PHASES` names them."""

    CREATION = "creation"
    FIRST_RUN = "first-run"
    RUN = "run"


PHASE_NAMES = {Phase.CREATION: CREATE, Phase.FIRST_RUN: FIRST, Phase.RUN: RUN}


@dataclass(frozen=True)
class SpeedOptions:
    """What is compared, and what fails.

    targets: two, A and B; the same one twice compares it with itself. source: a folder of `harvest`, whose nodes are
    timed in place of the table's. dtypes: empty for float32, float16 where no target is on a CPU, and the dtypes of
    operators that take no floats. seconds: for all nodes together; None for LEAST_S and EACH_S each. max_slowdown: the
    ratio above which a comparison fails; None where none does. phase: what decides. alpha: the probability with which
    any interval misses its ratio. threads: of the runtime within an operator; 0 for its own choice. strict: what is
    undecided, and what a target does not run, fails as well.
    """

    targets: Annotated[
        tuple[str, ...], Option("Target; write two.", flags=("--target", "-t"), metavar="TARGET", panel=SELECT)
    ] = ()
    operators: Operators = ()
    dtypes: Dtypes = ()
    patterns: Patterns = ()
    size: Annotated[Size, Option("Which sizes; auto measures.", panel=SELECT)] = Size.AUTO
    source: Annotated[
        Path | None, Option("Time the nodes of a folder of epcheck harvest.", file=False, panel=SELECT)
    ] = None
    max_slowdown: Annotated[
        float | None,
        Option("Fail if B is slower than A by more than this factor.", metavar="FACTOR", minimum=1.0, panel=JUDGE),
    ] = None
    phase: Annotated[Phase, Option("What decides.", panel=JUDGE)] = Phase.RUN
    alpha: Annotated[float, Option("Error rate of all intervals together.", minimum=1e-9, maximum=0.5, panel=JUDGE)] = (
        0.05
    )
    strict: Annotated[
        bool, Option("Undecided comparisons and nodes that are not run also fail.", flags=("--strict",), panel=JUDGE)
    ] = False
    seconds: Annotated[
        float | None,
        Option("Time for all nodes.", default=f"{LEAST_S:g} and {EACH_S:g} for each node", minimum=0.1, panel=MACHINE),
    ] = None
    threads: Annotated[
        int, Option("Threads within an operator; 0 for the runtime's choice.", minimum=0, panel=MACHINE)
    ] = 1
    vulkan: Vulkan = None
    config: ConfigFile = None
    root: Annotated[Path, Option("Parent folder of the folders.", metavar="FOLDER", panel=OUTPUT)] = DEFAULT_ROOT
    json: JsonFile = None
    html: HtmlFile = None


@dataclass(frozen=True)
class SpeedResult:
    """A comparison. folder: with `speed.json` and `speed.html`."""

    report: SpeedReport
    folder: Path
    strict: bool = False

    @property
    def conforms(self) -> bool:
        """Whether nothing fails: no ratio lies above the allowed one; with `strict`, all are decided."""
        is_open = bool(self.report.open) or any(each.trouble for each in self.report.comparisons)
        return not self.report.too_slow and not (self.strict and is_open)


def compare_speed(options: SpeedOptions, *, progress: Progress = SILENT) -> SpeedResult:
    """Time operators on two targets in turn, A B B A, in warm workers, until each ratio is known or the time is over.

    The folder is written whatever comes out; an interruption (KeyboardInterrupt) leaves none. Raises OptionError and
    SelectionError for options, HarvestError for a folder, TargetError, TargetDown, LabError, RuntimeInstallError for
    targets, StoreError and OSError where the folder cannot be written.
    """
    targets = _resolve_targets(options, progress)
    nodes = select_nodes(options, targets)
    with time_targets(targets, options.threads) as sides:
        if options.size is Size.AUTO and options.source is None:
            size = _choose_size(sides, progress)
            nodes = [node for node in nodes if node.size == size]
            _refuse_nothing(nodes, options)
        report = measure(nodes, sides, options, progress)
    folder = reports.new_run_folder(options.root)
    document = describe(report)
    for path in filter(None, (folder / JSON, options.json)):
        atomic_file.write_text(path, document)
    for path in filter(None, (folder / HTML, options.html)):
        reports.write_speed_page(path, report)
    return SpeedResult(report, folder, options.strict)


def measure(
    nodes: Sequence[TimedNode], sides: tuple[TimedTarget, TimedTarget], options: SpeedOptions, progress: Progress
) -> SpeedReport:
    """Compare both targets on the nodes. Raises TargetDown."""
    judged = (PHASE_NAMES[options.phase],)
    test = SpeedTest(options.alpha / (len(nodes) * len(PHASES)), judged, options.max_slowdown)
    with progress.working() as say:
        compared, notes = compare_nodes(nodes, sides, test, options.seconds or LEAST_S + EACH_S * len(nodes), say)
    a, b = (side.target.name for side in sides)
    facts = {"A": sides[0].facts, "B": sides[1].facts}
    return SpeedReport(a, b, facts, options.alpha, options.threads, judged, options.max_slowdown, compared, notes)


@contextmanager
def time_targets(targets: tuple[Target, Target], threads: int) -> Iterator[tuple[TimedTarget, TimedTarget]]:
    """Both targets with their workers started, within the block. Raises TargetDown."""
    with contextlib.ExitStack() as resources:
        if any(target.in_lab for target in targets):
            resources.enter_context(lab.in_use())
        idle = resources.enter_context(closing(IdleWorkers()))
        # A fork has the places of code and data that its fork server has.
        first, second = (TimedTarget(replace(target, forks=False), idle, threads) for target in targets)
        for side in (first, second):
            resources.callback(side.end)
            side.start()
        yield first, second


def describe(report: SpeedReport) -> str:
    """The report as one JSON document: the fields of `SpeedReport`, seconds and ratios with four digits. It is indented
    and in a stable order, so that two documents can be compared as text."""
    return json.dumps(_round(strict_json.plain(asdict(report))), indent=1) + "\n"


def _round(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.4g}") if math.isfinite(value) else value
    if isinstance(value, Mapping):
        return {key: _round(each) for key, each in value.items()}
    return [_round(each) for each in value] if isinstance(value, list) else value


def select_nodes(options: SpeedOptions, targets: Sequence[Target] = ()) -> list[TimedNode]:
    """The nodes that the options name, of both sizes where that is measured. targets: that they are for. Raises
    OptionError, SelectionError, HarvestError."""
    every = list(timed_nodes(options.source))
    known = sorted({node.operator for node in every})
    for name in options.operators:
        if name not in known:
            if options.source is None and name in all_operators():
                raise SelectionError(f"no shape of {name} is timed; harvest a model that has it, and give --source")
            meant = ask_if_meant(find_nearest(name, known)) or f"Timed are: {', '.join(known)}."
            raise SelectionError(f"unknown operator '{name}'. {meant}")
    dtypes = {node.dtype for node in every}
    for dtype in options.dtypes:
        if dtype not in dtypes:
            raise SelectionError(f"no node is timed in '{dtype}'; there are {', '.join(sorted(dtypes))}")
    on_cpu = any(target.on_cpu or target.is_callable for target in targets)
    chosen = [
        node
        for node in every
        if (not options.operators or node.operator in options.operators)
        and (node.dtype in options.dtypes or (not options.dtypes and not (on_cpu and node.dtype == "float16")))
        and (not options.patterns or any_matches(options.patterns, node.id))
        and (options.source is not None or options.size in (Size.AUTO, node.size))
    ]
    _refuse_nothing(chosen, options)
    return chosen


def _refuse_nothing(nodes: Sequence[TimedNode], options: SpeedOptions) -> None:
    """Raise SelectionError where nothing is left."""
    if not nodes:
        asked = ", ".join((*options.operators, *options.dtypes, *options.patterns, f"--size {options.size}"))
        raise SelectionError(f"no node is left to time of {asked}; `epcheck speed --help` has the options that select")


def _resolve_targets(options: SpeedOptions, progress: Progress) -> tuple[Target, Target]:
    """Raises OptionError, TargetError."""
    if len(options.targets) != 2:
        count = len(options.targets)
        raise OptionError(
            f"--target is given {count} time{'' if count == 1 else 's'}; write --target A --target B, and the same one "
            f"twice to compare it with itself"
        )
    config = load_config(options.config)
    first, second = (resolve_target(name, config, options.vulkan, progress) for name in options.targets)
    for target in (first, second):
        if not target.makes_sessions and not target.is_callable:
            raise OptionError(
                f"target '{target.name}' cannot be timed: it makes no session of ONNX Runtime and calls no function"
            )
    return first, second


def _choose_size(sides: tuple[TimedTarget, TimedTarget], progress: Progress) -> Size:
    """LARGE where both targets compute on a GPU that is one."""
    if any(side.target.on_cpu for side in sides):
        return Size.SMALL
    probe = next(node for node in timed_nodes() if node.id == PROBE)
    try:
        slowest = max(probe_run_s(probe, side) for side in sides)
    except NotTimedError as error:
        progress.say(f"Small sizes, since {PROBE} cannot be timed: {error}")
        return Size.SMALL
    size = Size.LARGE if slowest < FAST_RUN_S else Size.SMALL
    progress.say(f"{size.title()} sizes, since {PROBE} takes {1e3 * slowest:.3g} ms; --size chooses")
    return size
