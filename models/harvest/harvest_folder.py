"""The folder of harvested nodes: `cases.jsonl` and `faults.jsonl`, which the suite reads, and `left_out.jsonl`, for
people."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from epcheck.conformance.records import atomic_file
from epcheck.generators.harvested import document
from epcheck.generators.harvested.harvested_node import HarvestedNode, digest
from epcheck.generators.sources import case_source, found_faults
from epcheck.generators.sources.harvested import CASES, HarvestError, is_harvest, read_nodes
from epcheck.models.harvest.fuzz_folder import FuzzHarvest, read_files
from epcheck.models.harvest.harvest import HarvestedModel
from epcheck.models.harvest.nodes import NotHarvested

LEFT_OUT = "left_out.jsonl"


@dataclass(frozen=True)
class Kept:
    """What a folder has after a model or faults were written into it. cases: all of it. new: those that it did not
    have."""

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
    _write_left_out(folder, model.name, model.left_out)
    atomic_file.write_text(folder / CASES, _text(lines))
    return Kept(len(lines) + len(_faults(folder)), len(nodes.keys() - set(map(digest, before))))


def write_faults(folder: Path, found: FuzzHarvest) -> Kept:
    """Add what the fuzzer found to that in the folder; what is there stays. Raises HarvestError and OSError."""
    models = read_nodes(folder) if is_harvest(folder) else ()
    before = _faults(folder)
    lines = {**before, **found.lines}
    if len(lines) > found_faults.MOST_LINES:
        raise HarvestError(f"'{folder}' would have {len(lines):,} faults; {found_faults.MOST_LINES:,} are the most")
    _write_left_out(folder, found.name, found.left_out)
    atomic_file.write_text(folder / case_source.FAULTS_FILE, _text([lines[case_id] for case_id in sorted(lines)]))
    return Kept(len(models) + len(lines), len(lines) - len(before))


def _faults(folder: Path) -> Mapping[str, str]:
    """Id -> line of each fault in the folder. Raises HarvestError."""
    path = folder / case_source.FAULTS_FILE
    return read_files(str(folder), (path,)).lines if path.is_file() else {}


def _write_left_out(folder: Path, name: str, left_out: Iterable[NotHarvested]) -> None:
    """Put these in the place of what the file has of that name."""
    others = [line for line in _lines(folder / LEFT_OUT) if json.loads(line).get("model") != name]
    atomic_file.write_text(folder / LEFT_OUT, _text([*others, *map(_left_out_line, left_out)]))


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
