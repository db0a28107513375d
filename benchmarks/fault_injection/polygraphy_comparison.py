"""Polygraphy on a place of the study: does `run` with every value marked name the node, what does `debug reduce`
leave."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from benchmarks.fault_injection import wrong_node
from benchmarks.fault_injection.wrong_places import Place, Subject
from benchmarks.peers import polygraphy_environment
from benchmarks.rates import child_process
from epcheck.models.graph import subgraph

NO_FAULT = "none\nnone\nnone"
SCRIPT = Path(__file__).with_name("polygraphy_wrong.py")


@dataclass(frozen=True)
class Peer:
    """named: whether the first output that differs is the node's. left: nodes of the reduced model that has the node, 0
    where it lost it or gave none. failed: the last line of what it said where it could not be used."""

    named: bool
    run_s: float
    left: int
    reduce_s: float
    failed: str = ""


def named(places: Sequence[Place], subject: Subject) -> list[str]:
    """The outputs that differ where every value is marked, of a model with these faults, in the order of the graph.
    Raises ChildFailed."""
    environment = {**os.environ, wrong_node.FAULT: "\n".join(place.description for place in places)}
    environment.pop("PYTHONPATH", None)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        onnx.save(subject.model, folder / "model.onnx")
        np.savez(folder / "values.npz", **subject.feeds)
        arguments = [str(polygraphy_environment.interpreter()), str(SCRIPT), "run", "model.onnx", "values.npz"]
        found: list[str] = child_process.run(arguments, environment, folder).report["differing"]
        return found


def measured(place: Place, subject: Subject) -> Peer:
    """Run both on a place."""
    environment = {**os.environ, wrong_node.FAULT: place.description}
    environment.pop("PYTHONPATH", None)
    python = str(polygraphy_environment.interpreter())
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        onnx.save(subject.model, folder / "model.onnx")
        np.savez(folder / "values.npz", **_values(subject))  # type: ignore[arg-type]
        named, run_s, left, reduce_s = False, 0.0, 0, 0.0
        try:
            ran = child_process.run([python, str(SCRIPT), "run", "model.onnx", "values.npz"], environment, folder)
            named, run_s = ran.report["first"] == place.output, ran.seconds
            check = [python, str(SCRIPT), "check", "polygraphy_debug.onnx", "values.npz"]
            shapes = [f"{name}:[{','.join(map(str, value.shape))}]" for name, value in subject.feeds.items()]
            reduced = child_process.run(
                [*polygraphy_environment.command(), "debug", "reduce", "model.onnx", "-o", "reduced.onnx",
                 "--mode=bisect", "--model-input-shapes", *shapes, "--check", *check],
                environment, folder,
            )  # fmt: skip
            reduce_s = reduced.seconds
            nodes = onnx.load(folder / "reduced.onnx").graph.node
            left = len(nodes) if any(place.output in node.output for node in nodes) else 0
        except (child_process.ChildFailed, OSError) as error:
            return Peer(named, run_s, 0, reduce_s, str(error).splitlines()[-1][:200])
    return Peer(named, run_s, left, reduce_s)


def _values(subject: Subject) -> dict[str, np.ndarray]:
    """The feeds and every intermediate tensor on CPU: what the nodes of a part receive."""
    wiring = subject.wiring
    names = [name for name in wiring.producer if wiring.can_be_output(name) and not wiring.is_sequence(name)]
    everything = subgraph.with_outputs(wiring, names)
    found = wrong_node.with_fault(NO_FAULT, everything.SerializeToString(), subject.feeds)
    return {**{n: v for n, v in found.items() if isinstance(v, np.ndarray)}, **subject.feeds}


if __name__ == "__main__":
    sys.exit("run wrong_nodes.py --polygraphy")
