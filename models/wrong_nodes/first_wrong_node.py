"""Find the wrong node of a model in log2(n) sessions of the whole model. Each returns the values that cross one cut.

Where every value of a cut is right, the nodes before it are right; where one is wrong, a node before it is wrong. Only
the values of the cut become outputs, so that ONNX Runtime fuses all other nodes as it did before. The node at which
right becomes wrong then runs alone on the values that it received. It is named only if it is wrong there as well.
Otherwise a fusion is looked for (`fusion`), and any other wrong node (`isolated_nodes`).

A session that returns nothing is searched by models of the nodes before a cut. A session whose second run differs is
searched like one with wrong values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import onnx

from epcheck.conformance.workers.session_result import OUT_OF_MEMORY
from epcheck.models.accuracy import closeness
from epcheck.models.execution.model_outcome import DONE
from epcheck.models.execution.runner import LEVELS, Runner, RunResult
from epcheck.models.execution.session import Level
from epcheck.models.graph import feed
from epcheck.models.graph.feed import Feed
from epcheck.models.graph.subgraph import SubgraphError
from epcheck.models.wrong_nodes.confirmation import confirm, is_wrong_inside
from epcheck.models.wrong_nodes.culprit import Culprit, ErrorPoint, Kind
from epcheck.models.wrong_nodes.fusion import behave_together, find_fusion
from epcheck.models.wrong_nodes.isolated_nodes import check_isolated_nodes
from epcheck.models.wrong_nodes.node_check import is_random
from epcheck.models.wrong_nodes.options import SearchOptions
from epcheck.models.wrong_nodes.search import LimitsReached, Search, SessionFailed

FAILURES = {"create": Kind.REFUSED, "run": Kind.REFUSED, "crash": Kind.CRASH, "timeout": Kind.TIMEOUT}
"""Stage at which a session fails -> what is wrong with the node at fault."""

FEW_BYTES = 1 << 26
"""Of the values of nodes up to which a session that speaks of memory did not lack it."""

RANDOM = "draws random numbers, so that no two runs need to agree"


def first_wrong_node(
    model: onnx.ModelProto,
    feeds: Mapping[str, Feed],
    candidate: Runner,
    baseline: Runner,
    options: SearchOptions | None = None,
    outcome: RunResult | None = None,
) -> Culprit:
    """The node, or the fused nodes, that make a candidate's outputs differ from a baseline's.

    model: its main graph in topological order; it is not changed. candidate, baseline: see `runner.Runner`;
    `Sessions.run` is one. outcome: of the whole model on the candidate at the level of the options, where it is known.
    Whatever a target does is part of the result; nothing is raised for it. Where a limit is reached, the result is
    `unexplained` and names the nodes that are left.
    """
    return find(Search(model, feeds, candidate, baseline, options or SearchOptions()), outcome)


def find(search: Search, outcome: RunResult | None = None) -> Culprit:
    """`first_wrong_node` of a search, which keeps the values that it meets."""
    bounds = [0, search.wiring.nodes]
    try:
        outcome = outcome or search.run_whole()
        if outcome.stage != DONE:
            return _failing(search, outcome, bounds)
        search.candidate_values.update(outcome.outputs)
        if outcome.repeat_differs:
            return _unsteady(search, bounds)
        return _different(search, outcome, bounds)
    except (LimitsReached, SessionFailed, SubgraphError) as obstacle:
        why = "search limit reached" if isinstance(obstacle, LimitsReached) else str(obstacle)
        first, *rest = search.graph_nodes(range(*bounds)) or ("no node",)
        named = f"{first} or one after it, up to {rest[-1]}" if rest else str(first)
        return search.culprit(Kind.UNEXPLAINED, range(*bounds), f"it is {named}; it cannot be narrowed down: {why}")


def error_along(
    model: onnx.ModelProto,
    feeds: Mapping[str, Feed],
    candidate: Runner,
    baseline: Runner,
    options: SearchOptions | None = None,
    blocks: int = 1,
) -> tuple[ErrorPoint, ...]:
    """The error of every value of the graph, in the order of the graph: data for a plot.

    blocks: the number of sessions of the candidate among which the values are divided. In each session all nodes but
    those of one block are fused as in the whole model. Values of a session that fails are left out.
    """
    search = Search(model, feeds, candidate, baseline, options or SearchOptions())
    names = search.possible_outputs()
    size = max(1, -(-len(names) // blocks))
    try:
        for start in range(0, len(names), size):
            block = names[start : start + size]
            outcome = search.run_whole(block)
            if outcome.stage == DONE:
                search.compare(block, outcome)
    except (LimitsReached, SessionFailed):
        pass
    return search.culprit(Kind.RIGHT, (), "").points


def _narrow(search: Search, bounds: list[int], bad: Callable[[int], bool]) -> tuple[int, ...]:
    """The nodes between the last cut that is not bad and the first that is. `bounds` is kept up to date."""
    cuts = search.wiring.cuts
    low, high = 0, len(cuts) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bad(cuts[middle]) else (middle, high)
        bounds[:] = cuts[low], cuts[high]
    return tuple(node for node in range(*bounds) if not search.is_constant(node))


def _different(search: Search, outcome: RunResult, bounds: list[int]) -> Culprit:
    """The culprit of a session whose outputs may differ from the baseline's."""
    outputs = [name for name in search.wiring.outputs if name in search.wiring.producer]
    final = search.compare(outputs, outcome)
    noise = closeness.noise(search.wiring.model, search.expected.values())
    search.tolerance = (noise * min(final, 1.0)) ** 0.5  # the geometric mean of noise and error
    if final <= noise:
        return check_isolated_nodes(search) or search.culprit(
            Kind.RIGHT, (), "outputs and nodes agree with the baseline"
        )
    right = set(search.feeds)
    healed: list[int] = []

    def bad(cut: int) -> bool:
        if healed:
            return False
        names = [name for name in search.wiring.frontier(cut) if name not in right]
        current = search.run_whole(names)
        if current.stage != DONE:
            raise SessionFailed(current)
        if search.compare(names, current) > search.tolerance:
            return True
        right.update(names)
        if closeness.farthest(search.expected, current.outputs, outputs) <= search.tolerance:
            healed.append(cut)
        return False

    nodes = _narrow(search, bounds, bad)
    if healed:
        return find_fusion(search, (healed[0] - 1, healed[0]), "an output between them makes it right")
    return _confirm_culprit(search, nodes)


def _confirm_culprit(search: Search, nodes: Sequence[int]) -> Culprit:
    """The culprit, where right becomes wrong at these nodes."""
    if any(is_random(search.wiring, node) for node in nodes):
        return search.culprit(Kind.RANDOM, nodes, f"{search.named(nodes)} {RANDOM}")
    try:
        confirmed = confirm(search, nodes)
    except SessionFailed as failed:
        return _session_fails(search, nodes, failed.outcome)
    if confirmed is not None:
        return confirmed
    if is_wrong_inside(search, nodes):
        return find_fusion(search, nodes, "alone they are right on the values that they received")
    return check_isolated_nodes(search) or _blame_accumulation(search, nodes)


def _blame_accumulation(search: Search, nodes: Sequence[int]) -> Culprit:
    """No node, as each is right. levels: of the whole model: nodes that are fused many times are each within their
    bounds together, and add up."""
    every = [node for node in range(search.wiring.nodes) if not search.is_constant(node)]
    level = search.options.level
    levels = {level: "wrong"}
    for lower in reversed(LEVELS[: LEVELS.index(level)]):
        try:
            levels[lower] = behave_together(search, every, lower, DONE)
        except LimitsReached:
            break
    right = next((lower for lower, behaviour in levels.items() if behaviour == "right"), None)
    by_fusions = f"; at level '{right}' the outputs are right: what '{_next(right)}' fuses adds up" if right else ""
    words = (
        f"every node is right within its bounds; the error grows along the graph, and passes {search.tolerance:.1e} at "
        f"{search.graph_nodes(nodes)[-1]}{by_fusions}"
    )
    return search.culprit(Kind.ACCUMULATED, nodes, words, levels=levels)


def _next(level: Level) -> Level:
    return LEVELS[LEVELS.index(level) + 1]


def _failing(search: Search, outcome: RunResult, bounds: list[int]) -> Culprit:
    """The culprit of a session without outputs: the first prefix of the model that fails alike ends with it."""

    def bad(cut: int) -> bool:
        return bool(search.wiring.frontier(cut)) and search.run_prefix(cut).stage == outcome.stage

    nodes = _narrow(search, bounds, bad)
    search.note_received(nodes)
    alone = search.candidate(*search.part(nodes, search.candidate_values))
    if alone.stage != DONE:
        return _session_fails(search, nodes, alone)
    return find_fusion(search, nodes, f"alone it does not: {outcome.message}", outcome.stage)


def _session_fails(search: Search, nodes: Sequence[int], outcome: RunResult) -> Culprit:
    step = f" in {outcome.during}" if outcome.during else ""
    does = {
        "create": "is refused in session creation",
        "run": "ends its run with an error",
        "crash": f"brings the process down{step}",
        "timeout": f"does not come to an end{step}",
    }.get(outcome.stage, outcome.stage)
    return search.culprit(
        FAILURES.get(outcome.stage, Kind.CRASH),
        nodes,
        f"{search.named(nodes)} {does}: {outcome.message}{_explain_memory(search, nodes, outcome)}",
        difference=outcome.stage,
        levels={search.options.level: outcome.stage},
        received=search.part(nodes, search.candidate_values)[1],
    )


def _explain_memory(search: Search, nodes: Sequence[int], outcome: RunResult) -> str:
    """Whether memory was short, where the provider says so of an allocation that it refuses: DirectML answers 8007000E,
    whose text is `Out of memory`, to a size that its provider computed wrongly. Empty where that is not known."""
    if OUT_OF_MEMORY.search(outcome.message) is None:
        return ""
    made = [name for node in nodes for name in search.wiring.list_outputs(node)]
    received = [name for node in nodes for name in search.wiring.list_received_values(node) if name not in made]
    try:
        known = {**search.candidate_values, **search.expect(made)}
    except (LimitsReached, SessionFailed):
        return ""
    if not known.keys() >= {*made, *received}:
        return ""
    size = sum(tensor.nbytes for name in (*made, *received) for tensor in feed.tensors(known[name]))
    if size > FEW_BYTES:
        return f" Its values have {size:,} bytes"
    return f" (no lack of memory: its values have {size:,} bytes; the provider asks for a size that it gets wrong)"


def _unsteady(search: Search, bounds: list[int]) -> Culprit:
    """The culprit of a session whose second run gives other outputs."""
    right = set(search.feeds)

    def bad(cut: int) -> bool:
        names = [name for name in search.wiring.frontier(cut) if name not in right]
        outcome = search.run_whole(names)
        if set(names) & set(outcome.repeat_differs):
            return True
        right.update(names)
        return False

    nodes = _narrow(search, bounds, bad)
    if any(is_random(search.wiring, node) for node in nodes):
        return search.culprit(Kind.RANDOM, nodes, f"{search.named(nodes)} {RANDOM}")
    part, feeds = search.part(nodes, search.candidate_values)
    alone = search.candidate(part, feeds)
    where = "alone as well" if alone.repeat_differs else "inside the model; alone it does not"
    words = f"a second run of {search.named(nodes)} differs, {where}"
    return search.culprit(Kind.UNSTEADY, nodes, words, received=feeds)
