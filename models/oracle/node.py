"""Evaluate one node in float64.

The suite's own oracles come first; mutants and onnx's node tests check them. onnx's ReferenceEvaluator computes what
the suite does not have, where it is not known to be wrong (`reference`). It takes float64, but computes Erf, Gelu,
GridSample and others in float32 inside, is wrong about reverse LSTM, padded MaxPool, LRN and others, and does not know
com.microsoft (docs/zoo.md has the count).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from epcheck.generators import registry, schema
from epcheck.generators.array import Array
from epcheck.generators.error import EpcheckError
from epcheck.generators.node import Node, qualified_name
from epcheck.generators.serialization.node_proto import read_node
from epcheck.generators.truth import Output, Outputs, Refusal, Selection, Truth
from epcheck.models.graph.attributes import read_integer
from epcheck.models.graph.feed import Feed
from epcheck.models.oracle import (
    batch_normalization,
    convolution,
    matmul_n_bits,
    narrow_cast,
    post_transform,
    quantized_mean,
    recurrent,
    reference,
    svm_classifier,
    zip_map,
)

SUITE, REFERENCE, OWN = "epcheck.generators", "onnx.reference", "epcheck.models"
"""Who computed a node."""

RECURRENT = frozenset({"RNN", "GRU", "LSTM", qualified_name(recurrent.QUANTIZED, "com.microsoft")})

MATMUL_N_BITS = qualified_name("MatMulNBits", "com.microsoft")

_WIDENED = (np.dtype(np.float16), np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16))
"""Not the 8-bit floating types: they are levels of a quantisation, which stays."""

_WIDENED_TYPES = frozenset({TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE})

TRAINED = 14
"""The first opset in which an attribute of BatchNormalization, and not the number of its outputs, says that it
trains."""

_TYPE_ATTRIBUTES = ("to", "dtype", "output_datatype", "output_dtype", "stash_type", "softmax_precision")
"""Attributes that name the type of a computation or of an output."""


class OracleError(EpcheckError, ValueError):
    """A model that the oracle cannot evaluate; the message names the node and says why."""


@dataclass(frozen=True)
class Computed:
    """The outputs of a node, one for each name that it has, None for omitted ones. judge: who computed them."""

    values: tuple[Feed, ...]
    judge: str


def widen_value(value: Feed) -> Feed:
    """Floating point as float64, which is exact; a sequence with each of its own; anything else as it is."""
    if isinstance(value, list):
        return [widen_value(element) for element in value]
    if not isinstance(value, np.ndarray | np.generic):
        return value
    return np.asarray(value, np.float64 if is_widened(value.dtype) else value.dtype)


def is_widened(dtype: np.dtype[Any]) -> bool:
    """Whether values of a type are computed in float64 in its place."""
    return dtype in _WIDENED


def evaluate(node: onnx.NodeProto, inputs: Sequence[Feed], opsets: Mapping[str, int]) -> Computed:
    """The outputs of a node that has no graphs in its attributes.

    inputs: widened, one for each name of the node, None for omitted ones. opsets: domain -> version.
    Raises OracleError.
    """
    wide = _with_wide_types(node)
    inputs = _as_runtimes_read(node, inputs)
    try:
        return _compute_node(wide, inputs, opsets)
    except OracleError:
        raise
    except Exception as error:  # of numpy, of onnx, whatever a model makes them do
        if isinstance(error, NotImplementedError) and reference.UNKNOWN in str(error):
            raise OracleError(
                f"{describe_node(node)} has no oracle: neither epcheck nor onnx's reference knows it"
            ) from None
        raise OracleError(f"{describe_node(node)} cannot be computed: {type(error).__name__}: {error}") from error


def _as_runtimes_read(node: onnx.NodeProto, inputs: Sequence[Feed]) -> Sequence[Feed]:
    """The inputs with the shapes that the standard asks for, where exporters write others and all runtimes agree."""
    x, scale, zero, *_ = (*inputs, None, None, None)
    if node.op_type == "STFT" and not node.domain and isinstance(x, np.ndarray) and x.ndim == 2:
        return [x[..., np.newaxis], *inputs[1:]]  # torch.onnx leaves the 1 out
    if node.op_type in ("QuantizeLinear", "DequantizeLinear") and isinstance(zero, np.ndarray):
        steps = np.asarray(scale)
        if zero.size == steps.size == 1 and zero.shape != steps.shape:  # of one element each: for all of x
            return [x, steps.reshape(()), zero.reshape(()), *inputs[3:]]
    return inputs


def describe_node(node: onnx.NodeProto) -> str:
    """A node in a sentence."""
    kind = qualified_name(node.op_type, node.domain)
    return f"node '{node.name}' ({kind})" if node.name else f"the {kind} that writes '{next(iter(node.output), '')}'"


def _compute_node(node: onnx.NodeProto, inputs: Sequence[Feed], opsets: Mapping[str, int]) -> Computed:
    domain = "" if node.domain == "ai.onnx" else node.domain
    if node.op_type == "Constant" and not domain:
        return Computed((widen_value(_constant(node)),), OWN)
    if node.op_type == "Cast" and not domain and read_integer(node, "to") in _WIDENED_TYPES:
        return Computed((np.asarray(inputs[0]).astype(np.float64),), OWN)
    if node.op_type == "Cast" and not domain and read_integer(node, "to") in narrow_cast.TYPES:
        narrowed = narrow_cast.evaluate(_node(node, inputs, domain, opsets))
        if isinstance(narrowed, str):
            raise OracleError(f"{describe_node(node)} has no oracle: {narrowed}")
        return Computed((narrowed,), SUITE)
    if node.op_type in _OPTIONALS and not domain:
        return Computed((_OPTIONALS[node.op_type](*inputs),), OWN)
    _refuse_random(node, inputs, domain, opsets)
    if node.op_type == "BatchNormalization" and not domain and len(node.output) > 1 and opsets.get("", 1) < TRAINED:
        raise OracleError(f"{describe_node(node)} has no oracle: in opset {opsets.get('', 1)} it trains")
    if node.op_type in _ARITHMETIC and not domain and opsets.get("", 1) >= BROADCASTS and all(map(_is_wide, inputs)):
        return Computed((np.asarray(_ARITHMETIC[node.op_type](*inputs)),), OWN)
    if (domain, node.op_type) == ("ai.onnx.ml", "ZipMap"):
        return Computed((zip_map.evaluate(node, inputs),), OWN)
    if _is_of_suite(node, inputs, domain, opsets):
        return Computed(_by_suite(node, inputs, domain, opsets), SUITE)
    if (domain, node.op_type) == ("com.microsoft", "QLinearReduceMean"):
        return Computed((quantized_mean.evaluate(node, inputs),), OWN)
    if (domain, node.op_type) == ("ai.onnx.ml", "SVMClassifier"):
        if why := svm_classifier.explain_distrust(node):
            raise OracleError(f"{describe_node(node)} has no oracle: {why}")
        return Computed(svm_classifier.evaluate(node, inputs), OWN)
    if why := reference.explain_distrust(node):
        raise OracleError(f"{describe_node(node)} has no oracle: {why}")
    if domain == "ai.onnx.ml" and node.op_type in post_transform.OPERATORS:
        (scores,) = reference.evaluate(post_transform.leave_out(node), inputs, opsets)
        return Computed((post_transform.transform_scores(node, np.asarray(scores)),), REFERENCE)
    return Computed(tuple(map(widen_value, reference.evaluate(node, inputs, opsets))), REFERENCE)


BROADCASTS = 7
"""The first opset whose arithmetic broadcasts as numpy's does."""

_ARITHMETIC: Mapping[str, np.ufunc] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "MatMul": np.matmul,
}  # fmt: skip
"""What IEEE 754 and numpy define alike: the suite's truth of these has bounds as well, which take most of its time."""


def _is_wide(value: Feed) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == np.float64


_OPTIONALS: Mapping[str, Callable[..., Feed]] = {
    "Optional": lambda value=None: value,
    "OptionalGetElement": lambda value: value,
    "OptionalHasElement": lambda value=None: np.array(value is not None),
}
"""An optional is its element, or None: onnx.reference has it in a list, which it then takes for a sequence."""


def _constant(node: onnx.NodeProto) -> Array:
    attribute = node.attribute[0]
    value = helper.get_attribute_value(attribute)
    match attribute.name:
        case "value":
            return numpy_helper.to_array(value)
        case "value_float" | "value_floats":
            return np.array(value, np.float32)
        case "value_int" | "value_ints":
            return np.array(value, np.int64)
        case "value_string" | "value_strings":
            return np.array([text.decode() for text in value] if isinstance(value, list) else value.decode())
    raise OracleError(f"{describe_node(node)} has the attribute '{attribute.name}', which is not understood")


def _refuse_random(node: onnx.NodeProto, inputs: Sequence[Feed], domain: str, opsets: Mapping[str, int]) -> None:
    try:
        definition = onnx.defs.get_schema(node.op_type, opsets.get(domain, 1), domain)
    except onnx.defs.SchemaError:
        return
    random = onnx.defs.OpSchema.NodeDeterminism.NonDeterministic
    if definition.node_determinism != random:  # type: ignore[attr-defined]  # which onnx's stubs lack
        return
    training = inputs[2] if len(inputs) > 2 else None
    if node.op_type != "Dropout" or (training is not None and np.any(np.asarray(training))):
        raise OracleError(f"{describe_node(node)} draws random numbers, so it has no expected result")


def _is_of_suite(node: onnx.NodeProto, inputs: Sequence[Feed], domain: str, opsets: Mapping[str, int]) -> bool:
    key = qualified_name(node.op_type, domain)
    if key not in registry.all_operators() or not all(value is None or _is_numeric(value) for value in inputs):
        return False
    definition = schema.schema(node.op_type, _since_version(node, domain, opsets), domain)
    return any(name.startswith("tensor") for formal in definition.outputs for name in formal.types)


def _is_numeric(value: Feed) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "biufV"


def _since_version(node: onnx.NodeProto, domain: str, opsets: Mapping[str, int]) -> int:
    versions = [v for v in schema.since_versions(node.op_type, domain) if v <= opsets.get(domain, 1)]
    if not versions:
        raise OracleError(f"{describe_node(node)} is of a later opset than the model")
    return versions[-1]


def _node(proto: onnx.NodeProto, inputs: Sequence[Feed], domain: str, opsets: Mapping[str, int]) -> Node:
    """As the suite's oracles take it."""
    definition = schema.schema(proto.op_type, _since_version(proto, domain, opsets), domain)
    return read_node(proto, definition, [value for value in inputs if value is not None])


def _by_suite(
    proto: onnx.NodeProto, inputs: Sequence[Feed], domain: str, opsets: Mapping[str, int]
) -> tuple[Feed, ...]:
    node = _node(proto, inputs, domain, opsets)
    if (domain, proto.op_type) == ("", "Conv"):
        found_or_rule = convolution.evaluate(node)
        if isinstance(found_or_rule, str):
            raise OracleError(f"{describe_node(proto)} must be refused: {found_or_rule}")
        return (found_or_rule,)
    if (domain, proto.op_type) == ("", "BatchNormalization"):
        normalized = batch_normalization.evaluate(node)
        if normalized is not None:
            return (normalized, *[None] * (len(node.outputs) - 1))
    key = qualified_name(proto.op_type, domain)
    if key == MATMUL_N_BITS and (product := matmul_n_bits.evaluate(node)) is not None:
        return (product,)
    if key in RECURRENT and (states := recurrent.evaluate(node)) is not None:
        return tuple(states[place] if name else None for place, name in zip(states, node.outputs, strict=False))
    found = _by_name(registry.operator_of(key).truth(node), proto)
    return tuple(found[name] if name else None for name in node.outputs)


def _by_name(truth: Truth, proto: onnx.NodeProto) -> dict[str, Array]:
    match truth:
        case Outputs(outputs):
            return {output.name: _take_unrounded_value(output) for output in outputs}
        case Selection(accepted=accepted, names=names):
            return dict(zip(names, accepted[0], strict=True))
        case Refusal(reason):
            raise OracleError(f"{describe_node(proto)} must be refused: {reason}")


def _take_unrounded_value(output: Output) -> Array:
    value = output.value if output.exact is None else output.exact
    return value.astype(np.float64, copy=False) if output.value.dtype.kind == "f" else output.value


def _with_wide_types(node: onnx.NodeProto) -> onnx.NodeProto:
    """A copy in which attributes name float64 in place of narrower types, so that nothing is rounded to them."""
    wide = onnx.NodeProto()
    wide.CopyFrom(node)
    for attribute in wide.attribute:
        if attribute.name in _TYPE_ATTRIBUTES and attribute.i in _WIDENED_TYPES:
            attribute.i = TensorProto.DOUBLE
    return wide
