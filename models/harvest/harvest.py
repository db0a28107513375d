"""The nodes of a model that make cases: the model runs once on each trial, and every value that a session can return is
looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx

from epcheck.conformance.test_data import model_file
from epcheck.conformance.workers import heartbeat
from epcheck.generators.harvested.harvested_node import HarvestedNode
from epcheck.generators.sources.harvested import HarvestError
from epcheck.models.execution.runner import RunResult
from epcheck.models.execution.session import ModelSessions
from epcheck.models.feeds.trials import Feeding, Trial, trials
from epcheck.models.graph.values import bodies
from epcheck.models.graph.wiring import wire
from epcheck.models.harvest.nodes import NotHarvested, deduplicate_nodes, harvest_node, not_harvested, why_not_judged
from epcheck.models.harvest.values import known_values
from epcheck.models.validation.runnable import RunnableModel, runnable

Say = Callable[[str], None]


@dataclass(frozen=True)
class HarvestedModel:
    """What a model gives. name: of its file. total: its nodes, those in bodies as well. nodes: those that compute alike
    as one. left_out: each node that makes no case, with the reason."""

    name: str
    total: int
    nodes: tuple[HarvestedNode, ...]
    left_out: tuple[NotHarvested, ...]


def harvest_model(path: Path, name: str, feeding: Feeding, sessions: ModelSessions, say: Say) -> HarvestedModel:
    """The nodes of a model file. name: by which its nodes are known. sessions: of the target that runs it.

    Raises ModelFileError, FeedError, DimsError, HarvestError, and TargetDown.
    """
    parsed = model_file.parse(path)
    model_file.external_data(parsed, path)
    model = runnable(path, parsed)
    found: list[HarvestedNode] = []
    left_out: dict[tuple[str, str], NotHarvested] = {}
    for trial in trials(model.graph, feeding):
        say(f"{name}: it runs with {trial.name}")
        for each in _of_trial(model, name, trial, sessions):
            if isinstance(each, HarvestedNode):
                found.append(each)
            else:
                left_out.setdefault((each.node, each.why), each)
    kept = []
    unique = deduplicate_nodes(found)
    for number, node in enumerate(unique, 1):
        heartbeat.beat()
        say(f"{name}: the oracle looks at node {number} of {len(unique)}")
        if why := why_not_judged(node):
            left_out[node.operator, str(number)] = NotHarvested(name, f"{node.models[name]} alike", node.operator, why)
        else:
            kept.append(node)
    return HarvestedModel(name, _nodes(model.graph.graph), tuple(kept), tuple(left_out.values()))


def _of_trial(
    model: RunnableModel, name: str, trial: Trial, sessions: ModelSessions
) -> Iterator[HarvestedNode | NotHarvested]:
    feeds = {key: value for key, value in trial.inputs.items() if value is not None}
    wiring = wire(model.graph, feeds)

    def run(changed: onnx.ModelProto) -> RunResult:
        return sessions.run(changed, feeds, level="disabled", folder=model.data_folder)

    try:
        known = known_values(wiring, feeds, run, model.data_folder)
    except HarvestError as error:
        if trial.instead is None:
            raise HarvestError(f"{name} with {trial.name}: {error}") from None
        yield from _of_trial(model, name, trial.instead, sessions)
        return
    for index, proto in enumerate(model.graph.graph.node):
        yield harvest_node(name, wiring, index, known)
        for _, body in bodies(proto):
            yield from _inside(name, body, proto.op_type)


def _inside(name: str, body: onnx.GraphProto, operator: str) -> Iterator[NotHarvested]:
    """The nodes of a body, whose values no session returns."""
    for proto in body.node:
        yield not_harvested(name, proto, f"it is in the body of {operator}, whose values no session returns")
        for _, inner in bodies(proto):
            yield from _inside(name, inner, operator)


def _nodes(graph: onnx.GraphProto) -> int:
    return sum(1 + sum(_nodes(body) for _, body in bodies(node)) for node in graph.node)
