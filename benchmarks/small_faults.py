"""How many small faults in models in float16 and int8 epcheck names, and Polygraphy.

    python benchmarks/small_faults.py --folder real-models               # 15 in float16, 15 in int8, two faults each
    python benchmarks/small_faults.py --folder real-models --polygraphy  # Polygraphy on the same faults, too

The models are made of those of `real_models.py`: two are in int8 as published, the others are converted or quantised by
the tools of onnxruntime. A fault changes the result of one node by 0.5 to 10 % (root mean square), as
`fault_injection/small_fault.py` does it; models and faults are the same each time. The target computes on CPU without
graph optimisation, its baseline with all of it, so that right values differ as well. A fault is named where it is among
the nodes that `epcheck validate` finds, alone where no other node is.

Polygraphy compares the outputs of the model, then all values, with several tolerances. It tells a fault where an output
differs, and names it where the first value that differs is that of the node. Without a fault nothing should differ.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).parents[1]))  # a script is given its own folder alone

from benchmarks.fault_injection import small_fault
from benchmarks.fault_injection.narrow_models import build_models
from benchmarks.peers.polygraphy_environment import interpreter
from benchmarks.rates import child_process
from epcheck import api
from epcheck.conformance.test_data import model_file
from epcheck.models.feeds import feed_files, feeds
from epcheck.models.graph import subgraph
from epcheck.models.graph.wiring import wire

TARGET = "python:benchmarks.fault_injection.small_fault:run"
SCRIPT = Path(__file__).parent / "fault_injection" / "polygraphy_small.py"
OF_A_MODEL = 2
LEAST, MOST = 0.005, 0.1
"""Of the root mean square of the node's result."""

MOVES = frozenset({
    "Cast", "Concat", "Constant", "Expand", "Flatten", "Gather", "Identity", "Pad", "Reshape", "Shape", "Slice",
    "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze", "Where",
})  # fmt: skip
"""Operators that compute nothing."""

TOLERANCES = (1e-5, 1e-2)
"""As `polygraphy_small.py` has them."""


@dataclass(frozen=True)
class Answer:
    """What was found of a model with a fault, or without one: '' as output. named: outputs of the nodes that epcheck
    names. status: of the validation. differing: of Polygraphy, for each tolerance the outputs of the model that differ
    and all values that do; empty where it was not run or could not."""

    output: str
    named: tuple[str, ...]
    status: str
    differing: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = ()


def draw_faults(model: onnx.ModelProto, inputs: Mapping[str, Any], seed: str) -> Iterator[dict[str, Any]]:
    """Faults on different nodes, in a random order that the seed gives."""
    rng, wiring = Random(seed), wire(model, inputs)
    names = [
        node.output[0]
        for node in model.graph.node
        if node.op_type not in MOVES and wiring.can_be_output(node.output[0]) and not wiring.is_sequence(node.output[0])
    ]
    marked = subgraph.with_outputs(wiring, names).SerializeToString()
    again = {name: value for name, value in feeds.generate(model, seed=1).items() if value is not None}
    values, others = (small_fault.run_with_fault("", marked, each) for each in (inputs, again))
    rng.shuffle(names)
    for name in names:
        value = values[name]
        if value.size > 1 and not np.array_equal(value, others[name]) and (fault := _draw_fault(name, value, rng)):
            yield fault


def _draw_fault(name: str, value: Any, rng: Random) -> dict[str, Any] | None:
    """A fault of the right size in a value; None where that has none."""
    fault: dict[str, Any] = {"output": name, "dtype": value.dtype.name}
    if value.dtype.kind in "iu" and value.dtype.itemsize == 1:
        error = 1 / max(float(value.astype(float).std()), 1e-9)
        return {**fault, "kind": "step"} if LEAST <= error <= MOST else None
    wide = value.astype(np.float64)
    if value.dtype.kind != "f" or not np.isfinite(wide).all() or not np.abs(wide).max() > 1e-3:
        return None
    wanted = LEAST * (MOST / LEAST) ** rng.random()
    axes = [axis for axis, size in enumerate(value.shape) if size > 1]
    axis = rng.choice(axes)
    index = rng.randrange(value.shape[axis])
    share = float(np.linalg.norm(wide.take(index, axis)) / np.linalg.norm(wide))
    if share < 4 * wanted:  # the slice would have to change by more than a quarter
        return {**fault, "kind": "gain", "factor": 1 + wanted}
    place = {"axis": axis, "index": index, "size": value.shape[axis], "rank": value.ndim}
    return {**fault, "kind": "slice", "factor": 1 + wanted / share, **place}


def measure(path: Path, polygraphy: bool) -> Iterator[Answer]:
    """A model without a fault, then with each of its faults."""
    model = model_file.load(path)
    inputs = {name: value for name, value in feeds.generate(model, seed=0).items() if value is not None}
    described = [""]
    for fault in draw_faults(model, inputs, path.name):
        described.append(json.dumps(fault))
        if len(described) > OF_A_MODEL:
            break
    with tempfile.TemporaryDirectory() as temporary:
        stored = Path(temporary) / "feeds.npz"
        feed_files.write_arrays(stored, inputs)
        differing = ask_polygraphy(path, stored, described) if polygraphy else [()] * len(described)
        for description, each in zip(described, differing, strict=True):
            os.environ[small_fault.FAULT] = description
            page = Path(temporary) / "page.html"
            options = api.ValidateOptions((path,), (TARGET,), feeds=stored, advice=False, html=page)
            found = api.validate(options).validation
            nodes = {node.outputs[0] for culprit in (*found.wrong_nodes, *found.culprits) for node in culprit.nodes}
            names = tuple(sorted(nodes))
            output = json.loads(description)["output"] if description else ""
            yield Answer(output, names, found.status, each)


def ask_polygraphy(path: Path, stored: Path, faults: Sequence[str]) -> list[tuple[Any, ...]]:
    """`Answer.differing` of each fault."""
    listed = stored.with_name("faults.json")
    listed.write_text(json.dumps(faults), encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    arguments = [str(interpreter()), str(SCRIPT), str(path.absolute()), str(stored), str(listed)]
    try:
        answers = child_process.run(arguments, environment).report["answers"]
    except (child_process.ChildFailed, OSError) as error:
        print(f"{path.name}: Polygraphy: {str(error).splitlines()[-1]}", file=sys.stderr)
        return [()] * len(faults)
    return [tuple(zip(*each, strict=True)) if None not in each else () for each in answers]


def summarise(answers: Sequence[Answer]) -> Iterator[str]:
    """Sentences with the counts."""
    planted, clean = [each for each in answers if each.output], [each for each in answers if not each.output]
    named = [each for each in planted if each.output in each.named]
    alone = sum(len(each.named) == 1 for each in named)
    noisy, wrong = sum(bool(each.named) for each in clean), sum(each.status == "wrong" for each in clean)
    yield (
        f"epcheck: {len(named)} of {len(planted)} faults named, {alone} of them alone; "
        f"{sum(each.status == 'wrong' for each in planted)} make the outputs wrong; without a fault {noisy} of "
        f"{len(clean)} models have a node that is named, {wrong} are wrong"
    )
    usable, right = [each for each in planted if each.differing], [each for each in clean if each.differing]
    for at, tolerance in enumerate(TOLERANCES) if usable else ():
        outputs = sum(bool(each.differing[at][0]) for each in usable)
        first = sum(each.differing[at][1][:1] == [each.output] for each in usable)
        alarms = [sum(bool(each.differing[at][which]) for each in right) for which in (0, 1)]
        yield (
            f"Polygraphy, {tolerance:g}: of {len(usable)} faults the outputs differ with {outputs}, the first value "
            f"that differs is the node's with {first}; without a fault outputs of {alarms[0]} of {len(right)} models "
            f"differ, inner values of {alarms[1]}; it could not be run on {len(clean) - len(right)} models"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("real-models"))
    parser.add_argument("--only", default="", help="part of a file's name")
    parser.add_argument("--polygraphy", action="store_true", help="run Polygraphy on the same faults, too")
    options = parser.parse_args()
    every: list[Answer] = []
    for path in build_models(options.folder):
        if options.only not in path.name:
            continue
        for answer in measure(path, options.polygraphy):
            every.append(answer)
            print(path.name, answer, flush=True)
    for line in summarise(every):
        print(line)


if __name__ == "__main__":
    main()
