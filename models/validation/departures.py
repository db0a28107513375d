"""Compare a model with what it was made from: the model before export to another opset, optimisation or quantisation,
or the values that a framework computed.

Models are computed in float64. A value of the model is compared with the one of its name in the reference, or of the
node of its name, and the reference's takes its place: so each node is judged on the reference's values, and a fault
shows where it is made, not where it ends. What a target does plays no part in this.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
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
from epcheck.models.graph.attributes import read_integer
from epcheck.models.graph.feed import Feed
from epcheck.models.graph.inlining import InliningError, inline_functions
from epcheck.models.graph.values import Type
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

SUFFIXES = ("_quantized", "_quant", "_DequantizeLinear_Output", "_QuantizeLinear_Input")
"""What ONNX Runtime's quantiser appends to the names of values and of nodes."""

STEPS = 2.0
"""So many steps of its scale an element of a weight in 8 bits or more may be off: one is rounded to the nearest, and a
range may lack one at its end."""

QUANTISES = (*QUANTISED, "DequantizeLinear", "MatMulNBits", "MatMulBnb4", "GatherBlockQuantized", "QMoE")
"""Beginnings of the names of operators that have quantised values, or quantised weights."""

LARGEST_FLOAT16, KEPT_FLOAT16 = 65504.0, 9e3
"""Converters to float16 write another number in place of one above the first that is no infinity: as a rule that, or
10,000 (`max_finite_val` of onnxruntime.transformers.float16). With what is added to it, it is at least the second."""

FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE)

VALUES_SUFFIX = ".npz"
"""Of a reference that is no model, but has values."""

SHOWN = 6
"""Nodes of one place that a sentence names at most, the nearest first."""


@dataclass(frozen=True)
class Departure:
    """A value that is not the reference's, on the reference's values in front of it. node: that makes it, in words;
    before: nodes between the values in front and this one. error, allowed: root mean squares, relative to the value, or
    the largest error of an element in steps of its scale (in_steps). place: index of the farthest element; mine, its:
    there, in the model and in the reference."""

    value: str
    reference_value: str
    node: str
    before: tuple[str, ...]
    error: float
    allowed: float
    place: tuple[int, ...]
    mine: float
    its: float
    in_steps: bool = False

    @property
    def words(self) -> str:
        """One sentence."""
        where = f"{self.value}{list(self.place)}" if self.place else self.value
        named = f" or a node in front of it ({', '.join(self.before[: -SHOWN - 1 : -1])})" if self.before else ""
        if self.in_steps:
            far = f"{self.error:.3g} steps of its scale, where {self.allowed:g} are allowed"
        else:
            far = f"{self.error:.2g} of its size in all elements together, where {self.allowed:.2g} is allowed"
        return (
            f"{self.node}{named} departs from the reference: '{where}' is {self.mine:.6g}, and "
            f"{self.its:.6g} in the reference ('{self.reference_value}'); {far}"
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
        known = {**_list_weights(reference), **known}
        pairs = _map_values(model, reference, known)
        compared = _compare(model, trial, (path, folder), known, pairs, until)
        weights = tuple(_weight_departures(wire(model, folder=folder), reference))
        named = {departure.node for departure in weights}
        others = (departure for departure in compared.departures if departure.node not in named)
        return replace(compared, departures=(*weights, *others))
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
    types = values.of_graph(values.infer_types(model, trial.shapes).graph)
    outputs = {value.name for value in model.graph.output}
    narrow = {name for name in pairs.keys() - outputs if types.get(name, values.UNKNOWN).dtype == "float16"}
    forcing = _Forcing(pairs, targets, _parameters(model), _find_quantised(model), narrow)
    oracle.evaluate(model, trial.inputs, max_seconds=until - time.monotonic(), disturbance=forcing,
                    substitutes=forcing.targets, folder=folder)  # fmt: skip
    found = tuple(_departures(model, trial, pairs, forcing.seen, types))
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


def _list_weights(reference: onnx.ModelProto) -> dict[str, Feed]:
    """The reference's weights of floats, which a quantised model dequantises."""
    return {
        tensor.name: widen_value(model_file.array_of(tensor, Path()))
        for tensor in reference.graph.initializer
        if tensor.data_type in FLOATS and tensor.data_location != onnx.TensorProto.EXTERNAL
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


def _find_quantised(model: onnx.ModelProto) -> set[str]:
    """Values that are only quantised. Where what is below 0 becomes 0 by it, ONNX Runtime's quantiser leaves out a Relu
    in front of them; what is not clipped shows behind it."""
    wiring = wire(model)
    read_otherwise: set[str] = {value.name for value in model.graph.output}
    quantised: set[str] = set()
    for at, node in enumerate(model.graph.node):
        (quantised if node.op_type == "QuantizeLinear" else read_otherwise).update(wiring.reads[at])
    return quantised - read_otherwise


@dataclass
class _Forcing:
    """A disturbance of the oracle that compares values with the reference's, and puts those in their place. pairs:
    value -> value of the reference. targets: value -> what it is in the reference. parameters: of quantised values.
    quantised: values that are only quantised. narrow: inner values in float16. seen: value -> (what the model made of
    it, what it is in the reference), both without quantisation."""

    pairs: Mapping[str, str]
    targets: dict[str, Feed]
    parameters: Mapping[str, tuple[float, int]]
    quantised: Set[str]
    narrow: Set[str]
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
        if name in self.narrow:
            # The nodes behind get what the model has, so that they depart where it matters.
            is_kept = (np.abs(true) > LARGEST_FLOAT16) & (value * np.sign(true) >= KEPT_FLOAT16)
            true = np.where(is_kept, value, true)
        if name not in self.quantised or (true < 0).any():
            self.seen[name] = value, true
            return true
        self.seen[name] = np.maximum(value, 0), true  # a Relu may be left out: what clips it gets what it has to clip
        return np.where((value < 0) & (true == 0), value, true)


def _departures(
    model: onnx.ModelProto,
    trial: Trial,
    pairs: Mapping[str, str],
    seen: Mapping[str, tuple[Array, Array]],
    types: Mapping[str, Type],
) -> Iterator[Departure]:
    wiring = wire(model, trial.inputs)
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


def _weight_departures(wiring: Wiring, reference: onnx.ModelProto) -> Iterator[Departure]:
    """Weights that ONNX Runtime's quantiser stored as `NAME_quantized`, and that are not the reference's NAME through
    the scale, the zero point and the axis with which their node reads them."""
    weights = {tensor.name: tensor for tensor in reference.graph.initializer if tensor.data_type in FLOATS}
    for stored in wiring.model.graph.initializer:
        name = stored.name.removesuffix("_quantized")
        if name == stored.name or name not in weights or weights[name].data_location == onnx.TensorProto.EXTERNAL:
            continue
        true = model_file.array_of(weights[name], Path()).astype(np.float64)
        reader = next((at for at, reads in enumerate(wiring.reads) if stored.name in reads), None)
        levels = wiring.constant(stored.name)
        if reader is None or levels is None or levels.dtype.kind not in "iu" or levels.shape != true.shape:
            continue
        node = wiring.model.graph.node[reader]
        scale = _spread_parameter(wiring, node, stored.name, "scale", true.shape)
        zero = _spread_parameter(wiring, node, stored.name, "zero_point", true.shape)
        if scale is None or zero is None:
            continue
        mine = (levels.astype(np.float64) - zero) * scale
        steps = np.abs(mine - true) / (np.abs(scale) + ALLOWED_FLOAT32 / STEPS * np.abs(true) + np.finfo(float).tiny)
        if steps.size and not steps.max() <= STEPS:
            place = tuple(map(int, np.unravel_index(int(np.argmax(np.nan_to_num(steps, nan=math.inf))), steps.shape)))
            value = node.output[0] if node.op_type == "DequantizeLinear" else stored.name
            yield Departure(value, name, str(graph_node(wiring.model, reader)), (), float(steps[place]), STEPS, place,
                            float(mine[place]), float(true[place]), in_steps=True)  # fmt: skip


def _spread_parameter(
    wiring: Wiring, node: onnx.NodeProto, stored: str, part: str, shape: tuple[int, ...]
) -> Array | None:
    """The scale or the zero point of a stored weight, so that it is broadcast to the weight's shape along the axis that
    the node means; None where that cannot be told. A bias has one of its own name."""
    names: Sequence[str] = (f"{stored}_{part}", f"{stored.removesuffix('_quantized')}_{part}")
    if node.op_type == "DequantizeLinear":
        names = node.input[1:2] if part == "scale" else node.input[2:3]
    found = next((value for value in map(wiring.constant, names) if value is not None), None)
    if found is None or found.size == 1:
        without = np.zeros(()) if part == "zero_point" and not names else None
        return without if found is None else found.reshape(-1)[0].astype(np.float64)
    if not shape or read_integer(node, "block_size"):
        return None
    if node.op_type == "DequantizeLinear":
        axis = read_integer(node, "axis", 1) % len(shape)
    else:
        axis = (
            len(shape) - 1 if "MatMul" in node.op_type else min(1, len(shape) - 1) if "Transpose" in node.op_type else 0
        )
    if found.ndim != 1 or shape[axis] != found.size:
        return None
    return np.expand_dims(found.astype(np.float64), tuple(at for at in range(len(shape)) if at != axis))


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
