"""The cases of a folder that `epcheck harvest` wrote: nodes of models, and what the fuzzer found (`found_faults`).

    Conv-11/float32/harvest_1x3x224x224_1f2e3d4c5b6a[initializer]

The digest is that of how the node computes, not of its values (`harvested_node.digest`); those are made from the id and
the spread, so the same folder gives the same case on every machine.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from epcheck.generators import graph, schema
from epcheck.generators.case import BuiltCase, Case
from epcheck.generators.error import EpcheckError
from epcheck.generators.harvested import document
from epcheck.generators.harvested.harvested_node import HarvestedNode, digest
from epcheck.generators.operator import Operator, build_case, random_source
from epcheck.generators.registry import all_operators
from epcheck.generators.serialization.node_json import DocumentError
from epcheck.generators.sources.case_source import FAULTS_FILE, HARVESTED

CASES = "cases.jsonl"
"""The file of a folder with one harvested node on each line."""

PREFIX = "harvest_"
"""What the names of samples begin with that come from such a folder."""


class HarvestError(EpcheckError, ValueError):
    """A folder of harvested nodes cannot be read, or a model cannot be harvested; the message says why."""


def is_harvest(folder: Path) -> bool:
    """Whether `epcheck harvest` wrote the folder."""
    return any((folder / name).is_file() for name in (CASES, FAULTS_FILE))


def read_nodes(folder: Path) -> tuple[HarvestedNode, ...]:
    """The nodes of models in a folder, in their order. Raises HarvestError."""
    path = folder / CASES
    if not path.exists() and is_harvest(folder):
        return ()
    try:
        stat = path.stat()
        return _read(path, stat.st_mtime_ns, stat.st_size)
    except FileNotFoundError:
        raise HarvestError(f"'{folder}' has no {CASES}; make it: epcheck harvest model.onnx --out {folder}") from None
    except (OSError, UnicodeError) as error:
        raise HarvestError(f"'{path}' cannot be read: {error}") from None


@lru_cache(maxsize=8)
def _read(path: Path, _modified_ns: int, _size: int) -> tuple[HarvestedNode, ...]:
    found = []
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                found.append(document.decode(line))
            except DocumentError as error:
                raise HarvestError(f"{path}, line {number}: {error}") from None
    return tuple(found)


def cases(folder: Path) -> Iterator[Case]:
    """A case for each node of the folder, then one for each fault that was found. Raises HarvestError."""
    seen: set[str] = set()
    for number, node in enumerate(read_nodes(folder), 1):
        operator = all_operators().get(node.operator)
        if operator is None or not schema.has(node.op_type, node.since_version, node.domain):
            raise HarvestError(
                f"{folder / CASES}, line {number}: this suite has no {node.operator} of version {node.since_version}; "
                f"harvest the model again"
            )
        case = case_of(node, operator, folder)
        if case.id not in seen:
            seen.add(case.id)
            yield case
    if not (folder / FAULTS_FILE).is_file():
        return
    from epcheck.generators.sources import found_faults  # it loads the oracles of every family

    try:
        yield from found_faults.cases(folder)
    except DocumentError as error:
        raise HarvestError(str(error)) from None
    except OSError as error:
        raise HarvestError(f"'{folder / FAULTS_FILE}' cannot be read: {error}") from None


def case_of(node: HarvestedNode, operator: Operator[Any], folder: Path | None = None) -> Case:
    """The case of a node. folder: where it comes from, for the command that reproduces it."""
    binding = graph.INITIALIZER if any(each.parameter for each in node.present) else graph.RUNTIME
    shape = "x".join(map(str, node.present[0].shape)) if node.present else ""
    sample = f"{PREFIX}{shape or 'scalar'}_{digest(node)}"
    dtype = "-".join(node.dtypes)
    builder = partial(_build, operator, node)
    place = "" if folder is None else str(folder)
    return Case(node.op_type, node.domain, node.since_version, dtype, sample, binding, builder, place, source=HARVESTED)


def _build(operator: Operator[Any], harvested: HarvestedNode, case: Case) -> BuiltCase:
    """The case with its model. A node that DirectML's description has no words for has no lowering."""
    node = harvested.node(random_source(case.id))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        truth = operator.truth(node)
        try:
            return build_case(operator, node, truth, case)
        except Exception:  # of `lower`, which no sample prepared for such a node
            return build_case(replace(operator, lower=_lower_nothing), node, truth, case)


def _lower_nothing(_node: object) -> None:
    return None
