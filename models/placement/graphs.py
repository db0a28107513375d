"""The graphs of a model, main one and bodies, each as a model of its own with what it is fed with in a run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import onnx

from epcheck.models.execution.body_runs import BodyRun, visit
from epcheck.models.execution.model_outcome import ModelOutcome
from epcheck.models.graph.feed import Feed, shapes
from epcheck.models.graph.subgraph import SubgraphError, with_outputs
from epcheck.models.graph.values import bodies
from epcheck.models.graph.wiring import Wiring, wire

Run = Callable[..., ModelOutcome]
"""`run(model, feeds, level=...)` -> outcome; of the baseline, or of the candidate."""


@dataclass(frozen=True)
class Graph:
    """A graph as a model. feeds: of the model, or those of the first execution of the body. index: node name -> its
    index."""

    wiring: Wiring
    feeds: Mapping[str, Feed] = field(repr=False)

    @property
    def index(self) -> dict[str, int]:
        return {node.name: at for at, node in enumerate(self.wiring.model.graph.node)}


class _Reached(Exception):  # noqa: N818  (it ends the executions)
    def __init__(self, run: BodyRun) -> None:
        super().__init__()
        self.run = run


def graphs(
    model: onnx.ModelProto, feeds: Mapping[str, Feed], wanted: Collection[str], baseline: Run
) -> dict[str, Graph]:
    """Scope -> its graph, of the main graph, whose scope is empty, and of each wanted body that the first execution of
    the node that holds it reaches on the baseline. wanted: scopes as in `NodePlacement`; the bodies around them are
    there as well. Raises TargetDown."""
    found = {"": Graph(wire(model, feeds), feeds)}
    pending = [""]
    for scope in pending:  # which grows on the way
        graph = found[scope]
        for at, node in enumerate(graph.wiring.model.graph.node):
            starts = {name: f"{scope}{node.name}.{name}/" for name, _ in bodies(node)}
            if any(each.startswith(start) for each in wanted for start in starts.values()):
                run = _first_run(graph, at, baseline)
                if run is not None:
                    found[starts[run.attribute]] = Graph(wire(run.model, run.feeds), run.feeds)
                    pending.append(starts[run.attribute])
    return found


def read_received_values(
    graph: Graph, nodes: Collection[int], baseline: Run, room: float = float("inf")
) -> dict[str, Feed]:
    """What these nodes of a graph receive on the baseline, beside its feeds; nothing where it does not say. room: bytes
    of the values at most."""
    wiring = graph.wiring
    sizes = wiring.sizes(shapes(graph.feeds))
    names = dict.fromkeys(
        name for at in nodes for name in wiring.list_received_values(at)
        if name not in wiring.inputs and wiring.can_be_output(name)
    )  # fmt: skip
    wanted = []
    for name in names:
        room -= sizes.get(name) or 0
        if room >= 0:
            wanted.append(name)
    if not wanted:
        return dict(graph.feeds)
    outcome = baseline(with_outputs(wiring, wanted), graph.feeds, level="disabled")
    return {**graph.feeds, **(outcome.outputs if outcome.is_done else {})}


def _first_run(graph: Graph, at: int, baseline: Run) -> BodyRun | None:
    """The first execution of a node's bodies; None where there is none, or what it receives is not known."""
    wiring = graph.wiring
    constants = {name: wiring.constant(name) for name in wiring.reads[at] if name in wiring.constants}
    values = {name: value for name, value in constants.items() if value is not None}

    def reach(run: BodyRun) -> Mapping[str, Feed]:
        raise _Reached(run)

    try:
        visit(wiring, at, {**values, **read_received_values(graph, [at], baseline)}, reach)
    except _Reached as reached:
        return reached.run
    except SubgraphError:
        return None
    return None
