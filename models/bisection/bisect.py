"""Which node of a model is wrong: log2(n) sessions of the whole model, each with the values of one cut as further
outputs.

Left of a cut at which everything is right nothing needs to be looked for; right of one at which something is wrong,
neither. Only what crosses the cut becomes an output, so that everything else is fused as it was. The node at which
right becomes wrong is then run alone on the values that it received: only one that is wrong there as well is named. If
it is right, it is looked for what makes it wrong (`company`), and whether any other node is (`examination`).

A session that gives no outputs is looked into by models of the nodes before a cut; one whose second run differs, as
wrong values are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import onnx

from epcheck.models.accuracy import closeness
from epcheck.models.bisection.confirmation import confirm, is_wrong_inside
from epcheck.models.bisection.culprit import Culprit, Kind, Place, Point
from epcheck.models.bisection.examination import examine
from epcheck.models.bisection.fusion import name_company
from epcheck.models.bisection.node_judgement import is_random
from epcheck.models.bisection.search import Limits, Search, Spent, Unanswered
from epcheck.models.execution.asking import Answered, Ask
from epcheck.models.execution.session import DONE, Level
from epcheck.models.graph.feed import Feed
from epcheck.models.graph.subgraph import SubgraphError

__all__ = ["Culprit", "Kind", "Limits", "Place", "Point", "error_along", "first_wrong_node"]

FAILURES = {"create": Kind.REFUSED, "run": Kind.REFUSED, "crash": Kind.CRASH, "timeout": Kind.TIMEOUT}
"""Stage of an answer -> what is wrong with the node that brings it about."""

RANDOM = "draws random numbers, so that no two runs need to agree"


def first_wrong_node(
    model: onnx.ModelProto,
    feeds: Mapping[str, Feed],
    candidate: Ask,
    baseline: Ask,
    *,
    level: Level = "all",
    answer: Answered | None = None,
    limits: Limits | None = None,
    folder: Path | None = None,
) -> Culprit:
    """The node, or the fused nodes, that make a candidate's outputs other than a baseline's.

    model: its main graph in topological order; it is not changed. candidate, baseline: see `asking.Ask`;
    `Sessions.run` is one. level: the graph optimisation level at which the candidate is wrong. answer: what the
    candidate has said to the whole model at that level, where it has been asked already. limits: when to give up; what
    is known by then comes back as `unexplained`. folder: where the model's external data is, if it has any. Whatever
    the target does, the result says it; nothing is raised for that.
    """
    return find(Search(model, feeds, candidate, baseline, level, limits or Limits(), folder), answer)


def find(search: Search, answer: Answered | None = None) -> Culprit:
    """`first_wrong_node` of a search, which keeps the values that it has seen."""
    bounds = [0, search.wiring.nodes]
    try:
        said = answer or search.whole()
        if said.stage != DONE:
            return _failing(search, said, bounds)
        search.seen.update(said.outputs)
        if said.repeat_differs:
            return _unsteady(search, bounds)
        return _different(search, said, bounds)
    except (Spent, Unanswered, SubgraphError) as obstacle:
        why = "the limits were reached" if isinstance(obstacle, Spent) else str(obstacle)
        first, *rest = search.places(range(*bounds)) or ("no node",)
        named = f"{first} or one after it, up to {rest[-1]}" if rest else str(first)
        return search.found(Kind.UNEXPLAINED, range(*bounds), f"it is {named}; no more can be said: {why}")


def error_along(
    model: onnx.ModelProto,
    feeds: Mapping[str, Feed],
    candidate: Ask,
    baseline: Ask,
    *,
    level: Level = "all",
    blocks: int = 1,
    limits: Limits | None = None,
    folder: Path | None = None,
) -> tuple[Point, ...]:
    """The error of every value of the graph, in its order: data for a plot.

    blocks: into how many sessions of the candidate the values are divided: in each all nodes but those of one block are
    fused as they were. Empty where a session gives nothing.
    """
    search = Search(model, feeds, candidate, baseline, level, limits or Limits(), folder)
    names = search.tensors()
    size = max(1, -(-len(names) // blocks))
    try:
        for start in range(0, len(names), size):
            part = names[start : start + size]
            said = search.whole(part)
            if said.stage == DONE:
                search.look(part, said)
    except (Spent, Unanswered):
        pass
    return search.found(Kind.RIGHT, (), "").points


def _bisect(search: Search, bounds: list[int], bad: Callable[[int], bool]) -> tuple[int, ...]:
    """The nodes between the last cut that is not bad and the first that is; `bounds` follow on the way."""
    cuts = search.wiring.cuts
    low, high = 0, len(cuts) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bad(cuts[middle]) else (middle, high)
        bounds[:] = cuts[low], cuts[high]
    return tuple(node for node in range(*bounds) if not search.is_constant(node))


def _different(search: Search, said: Answered, bounds: list[int]) -> Culprit:
    outputs = [name for name in search.wiring.outputs if name in search.wiring.producer]
    final = search.look(outputs, said)
    noise = closeness.noise(search.wiring.model, search.expected.values())
    search.tolerance = (noise * min(final, 1.0)) ** 0.5  # half-way between noise and error, as magnitudes
    if final <= noise:
        return examine(search) or search.found(Kind.RIGHT, (), "outputs and nodes agree with the baseline")
    right = set(search.feeds)
    healed: list[int] = []

    def bad(cut: int) -> bool:
        if healed:
            return False
        names = [name for name in search.wiring.frontier(cut) if name not in right]
        now = search.whole(names)
        if now.stage != DONE:
            raise Unanswered(now)
        if search.look(names, now) > search.tolerance:
            return True
        right.update(names)
        if closeness.farthest(search.expected, now.outputs, outputs) <= search.tolerance:
            healed.append(cut)
        return False

    nodes = _bisect(search, bounds, bad)
    if healed:
        return name_company(search, (healed[0] - 1, healed[0]), "an output between them makes it right")
    return _confirmed(search, nodes)


def _confirmed(search: Search, nodes: Sequence[int]) -> Culprit:
    """What is said of the nodes at which right becomes wrong."""
    if any(is_random(search.wiring, node) for node in nodes):
        return search.found(Kind.RANDOM, nodes, f"{', '.join(map(str, search.places(nodes)))} {RANDOM}")
    try:
        confirmed = confirm(search, nodes)
    except Unanswered as failed:
        return _found_failing(search, nodes, failed.answer)
    if confirmed is not None:
        return confirmed
    if is_wrong_inside(search, nodes):
        return name_company(search, nodes, "alone they are right on the values that they received")
    return examine(search) or _accumulated(search, nodes)


def _accumulated(search: Search, nodes: Sequence[int]) -> Culprit:
    words = (
        f"every node is right within its bounds; the error grows along the graph, and passes {search.tolerance:.1e} at "
        f"{search.places(nodes)[-1]}"
    )
    return search.found(Kind.ACCUMULATED, nodes, words)


def _failing(search: Search, said: Answered, bounds: list[int]) -> Culprit:
    """A model without outputs: the first prefix that fails as it does ends with the node that brings it down."""

    def bad(cut: int) -> bool:
        return bool(search.wiring.frontier(cut)) and search.prefix(cut).stage == said.stage

    nodes = _bisect(search, bounds, bad)
    search.reach(nodes)
    alone = search.candidate(*search.part(nodes, search.seen))
    if alone.stage != DONE:
        return _found_failing(search, nodes, alone)
    return name_company(search, nodes, f"alone it does not: {said.message}", said.stage)


def _found_failing(search: Search, nodes: Sequence[int], said: Answered) -> Culprit:
    named = ", ".join(map(str, search.places(nodes)))
    step = f" in {said.during}" if said.during else ""
    does = {
        "create": "is refused in session creation",
        "run": "ends its run with an error",
        "crash": f"brings the process down{step}",
        "timeout": f"does not come to an end{step}",
    }.get(said.stage, said.stage)
    received = search.part(nodes, search.seen)[1]
    words = f"{named} {does}: {said.message}"
    levels = {search.level: said.stage}
    return search.found(
        FAILURES.get(said.stage, Kind.CRASH), nodes, words, difference=said.stage, levels=levels, received=received
    )


def _unsteady(search: Search, bounds: list[int]) -> Culprit:
    right = set(search.feeds)

    def bad(cut: int) -> bool:
        names = [name for name in search.wiring.frontier(cut) if name not in right]
        now = search.whole(names)
        if set(names) & set(now.repeat_differs):
            return True
        right.update(names)
        return False

    nodes = _bisect(search, bounds, bad)
    if any(is_random(search.wiring, node) for node in nodes):
        return search.found(Kind.RANDOM, nodes, f"{', '.join(map(str, search.places(nodes)))} {RANDOM}")
    part, feeds = search.part(nodes, search.seen)
    again = search.candidate(part, feeds)
    where = "alone as well" if again.repeat_differs else "inside the model; alone it does not"
    words = f"a second run of {', '.join(map(str, search.places(nodes)))} differs, {where}"
    return search.found(Kind.UNSTEADY, nodes, words, received=feeds)
