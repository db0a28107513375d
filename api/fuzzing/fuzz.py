"""Search for faults that no case of the suite shows."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from epcheck.api.fuzzing import fault_files
from epcheck.api.fuzzing.result import FuzzResult as FuzzResult
from epcheck.api.option import Option, OptionError
from epcheck.api.option_types import Operators, Vulkan
from epcheck.api.progress import SILENT, Progress
from epcheck.conformance.fuzzing import examples, graph_search
from epcheck.conformance.fuzzing.baseline import Baseline
from epcheck.conformance.fuzzing.fault import Fault
from epcheck.conformance.fuzzing.graph_search import GraphSearch
from epcheck.conformance.fuzzing.rounds import Rounds, RoundsByLevel
from epcheck.conformance.fuzzing.search import Found, Limits, Search
from epcheck.conformance.records import atomic_file
from epcheck.conformance.scheduling.plan import Plan
from epcheck.conformance.targets.choice import best_choice, default_baseline
from epcheck.conformance.targets.config import load_config
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.target import Target
from epcheck.conformance.workers.client import TargetDown
from epcheck.conformance.workers.idle_workers import IdleWorkers as IdleWorkers
from epcheck.generators import registry, suite
from epcheck.generators.fuzzing.graphs import graph_document
from epcheck.generators.fuzzing.history import SearchHistory
from epcheck.generators.fuzzing.oracle import Open
from epcheck.generators.graphs.node_graph import NodeGraph
from epcheck.generators.operator import Operator
from epcheck.generators.serialization import node_json
from epcheck.generators.serialization.node_json import SerializedNode

EXAMPLES, GRAPHS, RESULT, FAULTS = "examples.jsonl", "graphs.jsonl", "fuzz.json", "faults"
"""The example databases of nodes and of graphs, the result of the last call, and the folder of the faults."""


@dataclass(frozen=True)
class FuzzOptions:
    """What to search, and for how long.

    target: None for the best of this machine. baseline: asked about each failure: what it shows too is no new fault;
    None chooses as `run` does. operators: empty for all. graphs: compose graphs of nodes that the target computes right
    alone. seed: the same seed draws the same nodes, as long as the target says the same. nodes: how many nodes, or
    graphs, to judge at most; None for as many as there is time for. out: the folder with the example databases and the
    faults. json: a further file for the result.
    """

    target: Annotated[str | None, Option("Candidate. Default: the best.", flags=("--target", "-t"))] = None
    baseline: Annotated[str | None, Option("Target to compare each fault with; 'none' for none.")] = None
    operators: Operators = ()
    graphs: Annotated[bool, Option("Graphs of 2 to 12 nodes instead of single nodes.", flags=("--graphs",))] = False
    minutes: Annotated[float, Option("How long to search.", minimum=0.01)] = 1.0
    seed: Annotated[int, Option("Seed of the random nodes.", minimum=0)] = 0
    nodes: Annotated[int | None, Option("Stop after N nodes.", minimum=1)] = None
    out: Annotated[Path, Option("Folder for the example database and the faults.", file=False)] = Path("epcheck-fuzz")
    json: Annotated[Path | None, Option("Also write the result as JSON.", metavar="FILE", folder=False)] = None
    vulkan: Vulkan = None
    config: Annotated[Path | None, Option("Use this epcheck.toml.")] = None
    jobs: Annotated[int | None, Option("Most workers.", flags=("--jobs", "-j"), minimum=1)] = None


@dataclass(frozen=True)
class _Kept:
    """What earlier searches left in the folder."""

    nodes: list[SerializedNode]
    graphs: list[NodeGraph | Open]

    @classmethod
    def of(cls, options: FuzzOptions) -> _Kept:
        """Of the databases in the folder; that of graphs only where it is used. Raises ExamplesError."""
        graphs = examples.read(options.out / GRAPHS, graph_document.decode) if options.graphs else []
        return cls(examples.read(options.out / EXAMPLES, node_json.decode), graphs)


def fuzz(
    options: FuzzOptions,
    *,
    progress: Progress = SILENT,
    workers: IdleWorkers | None = None,
    history: SearchHistory | None = None,
) -> FuzzResult:
    """Replay the examples of earlier calls, draw nodes and judge them until the time is over, make each fault small,
    and write a folder for each. history: of earlier searches; nodes that they judged are not judged again, and this
    search is added to it.

    An interrupted search (KeyboardInterrupt) is closed like any other; what ended it is in the result.
    Raises TargetError, SelectionError, ExamplesError, LabError, RuntimeInstallError and TargetDown before anything ran,
    and OSError when a file cannot be written.
    """
    started = time.monotonic()
    operators = _operators(options.operators)
    kept = _Kept.of(options)
    target, baseline = _targets(options, progress)
    with closing(IdleWorkers()) as own:
        idle = workers or own
        with _compare(options, baseline, idle) as compared:
            if options.graphs:
                found, facts, ended = _search_graphs(options, target, kept, progress, idle, compared)
            else:
                found, facts, ended = _search(options, target, operators, kept, progress, idle, compared, history)
        asked = target if not options.graphs else graph_search.at_level(target, "all")
        faults = tuple(_blame_faults(found.faults.values(), asked, baseline, idle))
    faults = tuple(sorted(faults, key=lambda f: (not f.is_new, bool(f.known), f.cause.symptom.operator, f.cause.id)))
    folders = tuple(fault_files.write(fault, options.out / FAULTS, target.name, facts) for fault in faults)
    result = FuzzResult(
        target=target.name,
        facts=facts,
        seed=options.seed,
        seconds=time.monotonic() - started,
        judged=found.judged,
        rate=found.judged / found.judging_s if found.judging_s else 0.0,
        statuses=dict(found.statuses),
        draws=vars(found.tally),
        replayed=found.replayed,
        open_examples=found.open_examples,
        faults=faults,
        folders=folders,
        out=options.out,
        interrupted=ended,
    )
    _keep(result, kept, operators, options)
    return result


def _operators(names: tuple[str, ...]) -> tuple[Operator[Any], ...]:
    """The operators of these names; all where there are none. Raises SelectionError."""
    if names:
        next(iter(suite.cases(names)))
    known = registry.all_operators()
    return tuple(known[name] for name in dict.fromkeys(names or known))


def _targets(options: FuzzOptions, progress: Progress) -> tuple[Target, Target | None]:
    config = load_config(options.config)
    name = options.target
    if name is None:
        choice = best_choice()
        name = "cpu" if choice.install_lab else choice.specification
        progress.say(f"Candidate: {name}")
    against = options.baseline or default_baseline((name,))
    with progress.installing() as step:
        target = resolve(name, config, step, options.vulkan)
        baseline = None if against == "none" else resolve(against, config, step, options.vulkan)
    if target.calls_directml:
        raise OptionError("--target directml: fuzzing draws ONNX nodes; name a provider, for example --target dml")
    return target, baseline


@contextmanager
def _compare(options: FuzzOptions, baseline: Target | None, workers: IdleWorkers) -> Iterator[Baseline]:
    """The baseline as it is asked about failures: on graphs with all optimisations, as the candidate."""
    level = "all" if options.graphs else ""

    def plan_at(_level: str) -> Plan:
        assert baseline is not None
        return Plan((), (graph_search.at_level(baseline, level) if level else baseline,), jobs=options.jobs)

    with RoundsByLevel(plan_at, workers) as rounds:
        yield Baseline(None if baseline is None else rounds, level)


def _search(
    options: FuzzOptions,
    target: Target,
    operators: tuple[Operator[Any], ...],
    kept: _Kept,
    progress: Progress,
    workers: IdleWorkers,
    baseline: Baseline,
    history: SearchHistory | None,
) -> tuple[Found, Mapping[str, str], str]:
    """What was found, the target's facts, and what ended the search before its time."""
    ended = ""
    with progress.working() as doing, Rounds(Plan((), (target,), jobs=options.jobs), workers) as rounds:
        facts = rounds.facts.get(target.name, {})
        search = Search(rounds, target.narrow(facts), doing, baseline, history)
        try:
            search.run(operators, options.seed, Limits(60 * options.minutes, options.nodes), kept.nodes)
        except KeyboardInterrupt:
            ended = "interrupted"
        except TargetDown as error:
            ended = str(error)
    if not ended and search.found.judged and not search.found.ran:
        counts = ", ".join(f"{count} {status}" for status, count in search.found.statuses.items())
        ended = f"no node ran on {target.name} ({counts})"
    return search.found, facts, ended


def _search_graphs(
    options: FuzzOptions, target: Target, kept: _Kept, progress: Progress, workers: IdleWorkers, baseline: Baseline
) -> tuple[Found, Mapping[str, str], str]:
    """The same for graphs."""
    ended = ""

    def plan_at(level: str) -> Plan:
        return Plan((), (graph_search.at_level(target, level),), jobs=options.jobs)

    with (
        progress.working() as doing,
        Rounds(Plan((), (target,), jobs=options.jobs), workers) as plain,
        RoundsByLevel(plan_at, workers) as levels,
    ):
        facts = plain.facts.get(target.name, {})
        search = GraphSearch(plain, levels, doing, target.narrow(facts).claims, baseline)
        graphs = [graph for graph in kept.graphs if isinstance(graph, NodeGraph)]
        search.found.open_examples = len(kept.graphs) - len(graphs)
        try:
            search.run(options.operators, options.seed, 60 * options.minutes, options.nodes, graphs)
        except KeyboardInterrupt:
            ended = "interrupted"
        except TargetDown as error:
            ended = str(error)
    if not ended and not search.found.ran:
        ended = f"no graph ran on {target.name}"
    return search.found, facts, ended


def _blame_faults(
    faults: Iterable[Fault], target: Target, baseline: Target | None, workers: IdleWorkers
) -> Iterable[Fault]:
    """The faults with records that say what baseline and reference make of the smallest nodes. One that does not come
    again is kept with its own record."""
    found = list(faults)
    if not found or baseline is None:
        return found
    reference = None if baseline.name == "reference" else resolve("reference")
    try:
        with Rounds(Plan((), (target,), baseline, reference), workers) as rounds:
            records = {record.case_id: record for record in rounds.judge(fault.case for fault in found)}
    except TargetDown:
        return found
    asked = [replace(fault, record=records.get(fault.record.case_id, fault.record)) for fault in found]
    return [new if new.record.status == old.record.status else old for new, old in zip(asked, found, strict=True)]


def _keep(result: FuzzResult, kept: _Kept, operators: tuple[Operator[Any], ...], options: FuzzOptions) -> None:
    """Write the database and the result: examples of other operators stay, those that pass now go; all stay where the
    search ended early."""
    lines = [fault.line for fault in result.faults]
    if options.graphs:
        graphs = [graph_document.encode(g) for g in kept.graphs if isinstance(g, NodeGraph) and result.interrupted]
        examples.write(options.out / GRAPHS, [*lines, *graphs])
    else:
        searched = {operator.key for operator in operators}
        others = [w for w in kept.nodes if w.operator not in searched or result.interrupted]
        examples.write(options.out / EXAMPLES, [*lines, *map(node_json.encode, others)])
    text = fault_files.document_text(result)
    for path in (options.out / RESULT, options.json):
        if path is not None:
            atomic_file.write_text(path, text)
