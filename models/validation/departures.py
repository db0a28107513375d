"""Compare a model with what it was made from: the model before export to another opset, optimisation or quantisation,
or the values that a framework computed.

Models are computed in float64. A value of the model is compared with the one of its name in the reference, or of the
node of its name, and the reference's takes its place: so each node is judged on the reference's values, and a fault
shows where it is made, not where it ends. What a target does plays no part in this.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx

from epcheck.conformance.test_data import model_file
from epcheck.generators.array import Array
from epcheck.models.accuracy.deviation import measure_deviation
from epcheck.models.accuracy.thresholds import QUANTISED
from epcheck.models.feeds import feed_files
from epcheck.models.feeds.trials import Trial
from epcheck.models.graph import values
from epcheck.models.graph.feed import Feed
from epcheck.models.graph.inlining import InliningError, inline_functions
from epcheck.models.graph.wiring import Wiring, wire
from epcheck.models.oracle import oracle
from epcheck.models.oracle.node import OracleError, widen_value
from epcheck.models.oracle.rounding import UNITS
from epcheck.models.wrong_nodes.culprit import graph_node

ALLOWED = {"float16": 6 * UNITS["float16"], "bfloat16": 6 * UNITS["bfloat16"]}
"""Element type of a value -> its root mean square error up to which it is the reference's: weights are rounded."""

ALLOWED_FLOAT32 = 3e-5
"""The same for wider types: constants that were folded are rounded once more."""

ALLOWED_QUANTISED = 0.1
"""The same behind a quantisation, or TYPICAL_TIMES the median of all such values, where that is more."""

ALLOWED_GAIN, MANY = 0.04, 256
"""How much larger or smaller than the reference's all values together may be behind a quantisation, of MANY elements:
its noise is not of their sign, a wrong scale is."""

TYPICAL_TIMES, CHANNEL_TIMES = 5.0, 3.0
"""A channel may be CHANNEL_TIMES as far as a whole tensor."""

SECONDS = 90.0
"""Of both evaluations together."""

QUANTISES = (*QUANTISED, "DequantizeLinear", "MatMulNBits", "MatMulBnb4", "GatherBlockQuantized", "QMoE")
"""Beginnings of the names of operators that have quantised values, or quantised weights."""

SUFFIXES = ("_quantized", "_quant")
"""What ONNX Runtime's quantiser appends to the names of values and of nodes."""

VALUES_SUFFIX = ".npz"
"""Of a reference that is no model, but has values."""

SHOWN = 6
"""Nodes of one place that a sentence names at most, the nearest first."""


@dataclass(frozen=True)
class Departure:
    """A value that is not the reference's, on the reference's values in front of it. node: that makes it, in words;
    before: nodes between the values in front and this one. error, allowed: root mean squares, relative to the value.
    place: index of the farthest element; mine, its: there, in the model and in the reference."""

    value: str
    reference_value: str
    node: str
    before: tuple[str, ...]
    error: float
    allowed: float
    place: tuple[int, ...]
    mine: float
    its: float

    @property
    def words(self) -> str:
        """One sentence."""
        where = f"{self.value}{list(self.place)}" if self.place else self.value
        named = f" or a node in front of it ({', '.join(self.before[: -SHOWN - 1 : -1])})" if self.before else ""
        return (
            f"{self.node}{named} departs from the reference: '{where}' is {self.mine:.6g}, and "
            f"{self.its:.6g} in the reference ('{self.reference_value}'); {self.error:.2g} of its size in all elements "
            f"together, where {self.allowed:.2g} is allowed"
        )


@dataclass(frozen=True)
class Comparison:
    """The result. path: of the reference. departures: in the order of the graph. words: a sentence that says how much
    was compared, or why nothing was."""

    path: Path
    departures: tuple[Departure, ...]
    words: str


def compare_with_reference(model: onnx.ModelProto, trial: Trial, path: Path, folder: Path | None = None) -> Comparison:
    """The values of a model beside those of its reference. path: of another model, or of an .npz with values by their
    names in this one. folder: where the model has its large weights, if they are not in it. Raises ModelFileError and
    FeedError for a file that cannot be read."""
    if path.suffix == VALUES_SUFFIX:
        return compare_with_values(model, trial, feed_files.read_arrays(path), path, folder)
    until = time.monotonic() + SECONDS
    try:
        parsed = model_file.parse(path)
        reference = inline_functions(model_file.embed_data(parsed, path, model_file.MAPPED_BYTES))
        known = _evaluate_reference(reference, path.parent, _feeds_of(reference, model, trial), until)
        pairs = _map_values(model, reference, known)
        return _compare(model, trial, (path, folder), known, pairs, until)
    except (OracleError, InliningError, _Unlike) as error:
        return Comparison(path, (), f"nothing was compared with the reference: {error}")


def compare_with_values(
    model: onnx.ModelProto, trial: Trial, found: Mapping[str, Feed], path: Path, folder: Path | None = None
) -> Comparison:
    """The values of a model beside those that something else computed of the same feeds. found: by the names that they
    have in the model. path: the name of what computed them. folder: as of `compare_with_reference`."""
    known = {
        name: widen_value(value)
        for name, value in found.items()
        if isinstance(value, np.ndarray) and value.dtype.kind in "fiubV"
    }
    made = {name for node in model.graph.node for name in node.output if name}
    if not made & known.keys():
        return Comparison(path, (), "nothing was compared with the reference: it has no value that the model has")
    try:
        pairs = {name: name for name in known if name in made}
        return _compare(model, trial, (path, folder), known, pairs, time.monotonic() + SECONDS)
    except OracleError as error:
        return Comparison(path, (), f"nothing was compared with the reference: {error}")


def _compare(
    model: onnx.ModelProto,
    trial: Trial,
    where: tuple[Path, Path | None],
    known: Mapping[str, Feed],
    pairs: Mapping[str, str],
    until: float,
) -> Comparison:
    """The values of `pairs`, of the model and of the reference, where `known` has the latter. where: the path of the
    reference, and the folder of the model. Raises OracleError."""
    path, folder = where
    targets = {name: known[other] for name, other in pairs.items()}
    forcing = _Forcing(pairs, targets, _parameters(model), _find_clipped(model))
    oracle.evaluate(model, trial.inputs, max_seconds=until - time.monotonic(), disturbance=forcing,
                    substitutes=forcing.targets, folder=folder)  # fmt: skip
    found = tuple(_departures(model, trial, pairs, forcing.seen))
    made = sum(node.op_type != "Constant" for node in model.graph.node)
    words = f"{len(forcing.seen)} values of {made} nodes were compared with those of the reference '{path.name}'"
    return Comparison(path, found, words)


class _Unlike(Exception):  # noqa: N818  (it ends the comparison)
    """The models do not have the same inputs."""


def _feeds_of(reference: onnx.ModelProto, model: onnx.ModelProto, trial: Trial) -> dict[str, Feed]:
    """The feeds by the names of the reference's inputs: the same, or those at the same places."""
    wanted, mine = wire(reference).inputs, wire(model, trial.inputs).inputs
    if set(wanted) <= trial.inputs.keys():
        return {name: trial.inputs[name] for name in wanted}
    if len(wanted) != len(mine):
        raise _Unlike(f"it has {len(wanted)} inputs ({', '.join(wanted)}), and the model {len(mine)}")
    return {its: trial.inputs[own] for its, own in zip(wanted, mine, strict=True) if own in trial.inputs}


def _evaluate_reference(
    reference: onnx.ModelProto, folder: Path, feeds: Mapping[str, Feed], until: float
) -> Mapping[str, Feed]:
    """Every value of the reference that is a tensor of numbers."""
    names = [name for node in reference.graph.node for name in node.output if name]
    left = until - time.monotonic()
    found = oracle.evaluate(reference, feeds, names, max_seconds=left, substitutes={}, folder=folder).values
    return {
        name: value for name, value in found.items() if isinstance(value, np.ndarray) and value.dtype.kind in "fiub"
    }


def _map_values(model: onnx.ModelProto, reference: onnx.ModelProto, known: Mapping[str, Feed]) -> dict[str, str]:
    """Value of the model -> value of the reference: of the same name, or of a node of the same name and operator;
    outputs also by their place."""
    nodes = {node.name: node for node in reference.graph.node if node.name}
    pairs = {}
    for node in model.graph.node:
        twin = nodes.get(_plain(node.name))
        for at, name in enumerate(node.output):
            if _plain(name) in known:
                pairs[name] = _plain(name)
            elif (
                twin is not None and twin.op_type in node.op_type and at < len(twin.output) and twin.output[at] in known
            ):
                pairs[name] = twin.output[at]
    for mine, its in zip(model.graph.output, reference.graph.output, strict=False):
        if len(model.graph.output) == len(reference.graph.output) and its.name in known:
            pairs.setdefault(mine.name, its.name)
    return pairs


def _plain(name: str) -> str:
    return next((name.removesuffix(suffix) for suffix in SUFFIXES if name.endswith(suffix)), name)


def _parameters(model: onnx.ModelProto) -> dict[str, tuple[float, int]]:
    """Quantised value -> its scale and zero point, where ONNX Runtime's quantiser stored them for the whole tensor."""
    wiring = wire(model)
    found = {}
    for name in wiring.producer:
        parts = [wiring.constant(f"{_plain(name)}_{part}") for part in ("scale", "zero_point")]
        if name != _plain(name) and all(part is not None and part.size == 1 for part in parts):
            scale, zero = (part.reshape(-1)[0] for part in parts if part is not None)
            found[name] = float(scale), int(zero)
    return found


def _find_clipped(model: onnx.ModelProto) -> set[str]:
    """Values that are only quantised, with a zero point that is the least of its type: what is below 0 becomes 0, so
    that ONNX Runtime's quantiser leaves a Relu in front of them out."""
    wiring = wire(model)
    read_otherwise: set[str] = {value.name for value in model.graph.output}
    clipped: set[str] = set()
    for at, node in enumerate(model.graph.node):
        zero = wiring.constant(node.input[2]) if node.op_type == "QuantizeLinear" and len(node.input) == 3 else None
        if zero is not None and zero.size and zero.dtype.kind in "iu" and (zero == np.iinfo(zero.dtype).min).all():
            clipped.add(node.input[0])
        else:
            read_otherwise.update(wiring.reads[at])
    return clipped - read_otherwise


@dataclass
class _Forcing:
    """A disturbance of the oracle that compares values with the reference's, and puts those in their place. pairs:
    value -> value of the reference. targets: value -> what it is in the reference. parameters: of quantised values.
    clipped: values that lose what is below 0. seen: value -> (what the model made of it, what it is in the reference),
    both without quantisation."""

    pairs: Mapping[str, str]
    targets: dict[str, Feed]
    parameters: Mapping[str, tuple[float, int]]
    clipped: set[str]
    seen: dict[str, tuple[Array, Array]] = field(default_factory=dict)

    def operands(self, node: onnx.NodeProto, inputs: Sequence[Feed]) -> Sequence[Feed]:  # noqa: ARG002
        return inputs

    def results(self, node: onnx.NodeProto, values: Sequence[Feed]) -> Sequence[Feed]:
        if node.op_type == "DequantizeLinear" and node.input[0] in self.parameters:  # it was compared before it
            return [self.targets.get(name, value) for name, value in zip(node.output, values, strict=False)]
        return [self._force(name, value) for name, value in zip(node.output, values, strict=False)]

    def _force(self, name: str, value: Feed) -> Feed:
        true = self.targets.get(name)
        if not isinstance(true, np.ndarray) or not isinstance(value, np.ndarray) or true.shape != value.shape:
            return value
        if name in self.parameters and value.dtype.kind in "iu":
            scale, zero = self.parameters[name]
            limits = np.iinfo(value.dtype)
            right = np.maximum(true, 0) if zero == limits.min else true  # it stands for a Relu as well
            self.seen[name] = (value.astype(np.float64) - zero) * scale, right
            return np.asarray(np.clip(np.rint(true / scale) + zero, limits.min, limits.max), value.dtype)
        if value.dtype.kind != true.dtype.kind:
            return value
        is_of_a_relu = name in self.clipped and not (true < 0).any()
        self.seen[name] = np.maximum(value, 0) if is_of_a_relu else value, true
        return true


def _departures(
    model: onnx.ModelProto, trial: Trial, pairs: Mapping[str, str], seen: Mapping[str, tuple[Array, Array]]
) -> Iterator[Departure]:
    wiring = wire(model, trial.inputs)
    types = values.of_graph(values.infer_types(model, trial.shapes).graph)
    regions = {name: _nodes_between(wiring, wiring.producer[name], seen) for name in seen}
    quantised = {
        name
        for name, nodes in regions.items()
        if any(model.graph.node[at].op_type.startswith(QUANTISES) for at in nodes)
    }
    unknown = max((ALLOWED.get(each.dtype, ALLOWED_FLOAT32) for each in types.values()), default=ALLOWED_FLOAT32)
    found = {name: measure_deviation(mine.astype(np.float64), its) for name, (mine, its) in seen.items()}
    usual = float(np.median([found[name].typical for name in quantised])) if quantised else 0.0
    for name, deviation in found.items():
        mine, its = seen[name]
        dtype = types.get(name, values.UNKNOWN).dtype
        allowed = ALLOWED.get(dtype, ALLOWED_FLOAT32) if dtype else unknown  # behind an operator that onnx has not
        if name in quantised:
            allowed = max(ALLOWED_QUANTISED, TYPICAL_TIMES * usual)
        error = max(deviation.typical, deviation.channel / CHANNEL_TIMES)
        if name in quantised and error <= allowed and (gain := _gain(mine, its)) > ALLOWED_GAIN:
            error, allowed = gain, ALLOWED_GAIN
        if mine.dtype.kind != "f":
            error = 0.0 if np.array_equal(mine, its) else math.inf
        if error <= allowed:
            continue
        *before, last = regions[name]
        apart = np.abs(mine.astype(np.float64) - its.astype(np.float64))
        place = tuple(map(int, np.unravel_index(int(np.argmax(np.nan_to_num(apart, nan=math.inf))), apart.shape)))
        named = tuple(str(graph_node(model, at)) for at in before)
        yield Departure(name, pairs[name], str(graph_node(model, last)), named, float(error), allowed, place,
                        float(mine[place]), float(its[place]))  # fmt: skip


def _gain(mine: Array, its: Array) -> float:
    """By which share of itself the reference's value is larger or smaller, by least squares."""
    power = float(np.sum(np.square(its, dtype=np.float64)))
    if mine.size < MANY or not power or not np.isfinite(mine).all():
        return 0.0
    return abs(float(np.sum(mine.astype(np.float64) * its)) / power - 1)


def _nodes_between(wiring: Wiring, node: int, seen: Mapping[str, object]) -> list[int]:
    """The node and those in front of it back to values that were compared, in the order of the graph."""
    found, pending = set(), [node]
    while pending:
        at = pending.pop()
        found.add(at)
        pending += (wiring.producer[name] for name in wiring.list_received_values(at)
                    if name in wiring.producer and name not in seen and wiring.producer[name] not in found)  # fmt: skip
    return sorted(found)
