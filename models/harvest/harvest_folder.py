"""The folder of harvested nodes: `cases.jsonl`, which the suite reads, and `left_out.jsonl`, for people."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from epcheck.conformance.records import atomic_file
from epcheck.generators.harvested import document
from epcheck.generators.harvested.harvested_node import HarvestedNode, digest
from epcheck.generators.sources.harvested import CASES, is_harvest, read_nodes
from epcheck.models.harvest.harvest import HarvestedModel
from epcheck.models.harvest.nodes import NotHarvested

LEFT_OUT = "left_out.jsonl"


@dataclass(frozen=True)
class Kept:
    """What a folder has after a model was written into it. cases: all of it. new: those that it did not have."""

    cases: int
    new: int


def write(folder: Path, model: HarvestedModel) -> Kept:
    """Add the nodes of a model to those in the folder; what the folder had of a model of this name goes. Nodes that
    compute alike are one case. Raises HarvestError and OSError."""
    before = read_nodes(folder) if is_harvest(folder) else ()
    nodes = {digest(node): node for node in _without(before, model.name)}
    for node in model.nodes:
        name = digest(node)
        nodes[name] = nodes[name].join(node) if name in nodes else node
    lines = [document.encode(node) for node in sorted(nodes.values(), key=_order)]
    others = [line for line in _lines(folder / LEFT_OUT) if json.loads(line).get("model") != model.name]
    atomic_file.write_text(folder / LEFT_OUT, _text([*others, *map(_left_out_line, model.left_out)]))
    atomic_file.write_text(folder / CASES, _text(lines))
    return Kept(len(lines), len(nodes.keys() - set(map(digest, before))))


def _without(nodes: Iterable[HarvestedNode], name: str) -> Iterable[HarvestedNode]:
    for node in nodes:
        models = {model: count for model, count in node.models.items() if model != name}
        if models:
            yield replace(node, models=models)


def _order(node: HarvestedNode) -> tuple[str, int, str]:
    return node.operator, node.since_version, digest(node)


def _left_out_line(left_out: NotHarvested) -> str:
    return json.dumps(dataclasses.asdict(left_out), ensure_ascii=True)


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.is_file() else []


def _text(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
