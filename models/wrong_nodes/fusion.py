"""Find the nodes that are wrong together and right alone: a fusion, or another effect of a provider on neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from epcheck.models.accuracy import closeness
from epcheck.models.accuracy.deviation import allow_deviation, measure_deviation
from epcheck.models.execution.model_outcome import DONE
from epcheck.models.execution.runner import LEVELS
from epcheck.models.execution.session import Level
from epcheck.models.graph import values
from epcheck.models.graph.feed import shapes
from epcheck.models.graph.subgraph import SubgraphError
from epcheck.models.graph.values import bodies
from epcheck.models.oracle import oracle
from epcheck.models.oracle.node import OracleError
from epcheck.models.oracle.rounding import UNITS, RandomRounding
from epcheck.models.wrong_nodes.culprit import ENDS, Culprit, Kind
from epcheck.models.wrong_nodes.delta_debugging import minimize
from epcheck.models.wrong_nodes.isolated_nodes import find_isolated_nodes
from epcheck.models.wrong_nodes.node_check import kind_of_difference
from epcheck.models.wrong_nodes.search import Search

RUNS = 2
"""Evaluations with random rounding, of which the largest error counts."""

ORACLE_S = 20.0
"""Seconds that each evaluation may take."""


def find_fusion(search: Search, nodes: Sequence[int], why: str, stage: str = DONE) -> Culprit:
    """The smallest set of nodes around these that fails alone on the baseline's values. It is a fusion where it is
    right at a lower level of graph optimisation, and unexplained otherwise.

    why: what makes a fusion likely, for the sentence. stage: at which the whole model's session ends; `done` where its
    values are wrong. Raises LimitsReached and SessionFailed.
    """
    search.expect(search.possible_outputs())

    def fails(part: Sequence[int], level: Level | None = None) -> bool:
        return behave_together(search, part, level, stage) == ("wrong" if stage == DONE else stage)

    window = _failing_window(search, nodes, fails)
    if window is None:
        words = f"the error comes up at {search.named(nodes)}, but {why}, and no part of the model around them shows it"
        return search.culprit(Kind.UNEXPLAINED, nodes, words)
    smallest = minimize(window, fails)
    if stage == DONE and not is_beyond_rounding(search, smallest):
        words = (
            f"the error comes up at {search.named(smallest)}, but {why}: together they are as near to the truth as "
            "their roundings are"
        )
        return search.culprit(Kind.ACCUMULATED, smallest[-1:], words)
    tried = LEVELS[: LEVELS.index(search.options.level) + 1]
    levels = {level: behave_together(search, smallest, level, stage) for level in tried}
    right = [level for level, behaviour in levels.items() if behaviour == "right"]
    received = search.part(smallest, search.expected)[1]
    together = search.named(smallest)
    if not right:
        behaviour = levels[search.options.level]
        words = f"{together}: together {ENDS.get(behaviour, behaviour)} at every optimisation level, and {why}"
        return search.culprit(Kind.UNEXPLAINED, smallest, words, levels=levels, received=received)
    first = LEVELS[LEVELS.index(right[-1]) + 1]
    behaviour = ENDS.get(levels[first], levels[first])
    words = f"{together}: right at level '{right[-1]}', {behaviour} at level '{first}', which fuses them"
    return search.culprit(Kind.FUSION, smallest, words, difference=levels[first], levels=levels, received=received)


def is_beyond_rounding(search: Search, nodes: Sequence[int]) -> bool:
    """Whether nodes together are farther from the truth of what they should receive than MULTIPLE times the baseline,
    or the oracle with random rounding. So they are where no oracle computes them. A single node is judged alone."""
    if len(nodes) == 1 and not any(bodies(search.wiring.model.graph.node[nodes[0]])):
        return any(found.node == nodes[0] for found in find_isolated_nodes(search))
    part, feeds = search.part(nodes, search.expected)
    got, right = search.candidate(part, feeds), search.baseline(part, feeds)
    types = values.of_graph(values.infer_types(part, shapes(feeds)).graph)
    try:
        folder = search.options.folder
        true = oracle.evaluate(part, feeds, max_seconds=ORACLE_S, folder=folder).values
        runs = [oracle.evaluate(part, feeds, max_seconds=ORACLE_S, disturbance=RandomRounding(types, seed),
                                folder=folder).values for seed in range(RUNS)]  # fmt: skip
    except OracleError:
        return True
    if DONE not in (got.stage, right.stage):
        return True
    for name, exact in true.items():
        mine, its = got.outputs.get(name), right.outputs.get(name)
        if not isinstance(mine, np.ndarray) or not isinstance(its, np.ndarray) or not isinstance(exact, np.ndarray):
            return True
        if mine.dtype.name not in UNITS or mine.shape != exact.shape or its.shape != exact.shape:
            if kind_of_difference(its, mine) != "right":
                return True
            continue
        honest = [its, *(np.asarray(run[name]).astype(mine.dtype) for run in runs)]
        bounds = [allow_deviation(value, exact, mine.dtype) for value in honest]
        found = measure_deviation(mine, exact)
        if all(found.exceeds(bound) for bound in bounds):
            return True
    return False


def _failing_window(
    search: Search, nodes: Sequence[int], fails: Callable[[Sequence[int]], bool]
) -> tuple[int, ...] | None:
    """These nodes with as many before and behind them as it takes to fail; None where the whole model does not fail."""
    margin, count = 1, search.wiring.nodes
    while True:
        first, last = max(0, nodes[0] - margin), min(count, nodes[-1] + 1 + margin)
        window = tuple(node for node in range(first, last) if not search.is_constant(node))
        if fails(window):
            return window
        if (first, last) == (0, count):
            return None
        margin *= 2


def behave_together(search: Search, nodes: Sequence[int], level: Level | None, stage: str) -> str:
    """How nodes behave alone on the baseline's values: 'right', 'wrong', the stage at which their session fails, or
    'unknown' where they are no model. Where the whole model fails at a `stage`, a session that does not fail is
    right."""
    try:
        part, feeds = search.part(nodes, search.expected)
    except SubgraphError:
        return "unknown"
    outcome = search.candidate(part, feeds, level)
    if outcome.stage != DONE or stage != DONE:
        return "right" if outcome.stage == DONE else outcome.stage
    names = [output.name for output in part.graph.output if output.name in search.expected]
    return "wrong" if closeness.farthest(search.expected, outcome.outputs, names) > search.tolerance else "right"
