"""com.microsoft::Attention, ::QAttention and ::MultiHeadAttention.

The DML EP makes them DML_GEMM_OPERATOR_DESC (Attention) or DML_MATRIX_MULTIPLY_INTEGER_TO_FLOAT_OPERATOR_DESC
(QAttention), with slices and transpositions, and DML_MULTIHEAD_ATTENTION_OPERATOR_DESC.

Not generated: do_rotary, past_present_share_buffer, cache_indirection and the packed index mask of 3 * batch + 2, which
only CUDA kernels define.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.case import CaseContext
from epcheck.generators.declaration.optional_io import OptionalIO, each_alone
from epcheck.generators.declaration.parameter_space import ParameterSpace, Parts, Values
from epcheck.generators.directml.descriptions.attention.multihead_attention import (
    MultiheadAttention,
    MultiheadAttentionMaskType,
)
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.directml.tensor import DataType, TensorDesc
from epcheck.generators.node import Node
from epcheck.generators.operator import GRAPH, Operator, declare
from epcheck.generators.operators.attention.attention.oracle import (
    MASK_FILTER_VALUE,
    attention_truth,
    multi_head_truth,
    quantized_truth,
)
from epcheck.generators.operators.attention.attention.samples import (
    DOMAIN,
    AttentionSample,
    attention_node,
    attention_samples,
    bindings,
    multi_head_bindings,
    multi_head_node,
    multi_head_samples,
    quantized_node,
    quantized_samples,
)
from epcheck.generators.truth import Outputs

DECLARES = (
    "com.microsoft::Attention",
    "com.microsoft::QAttention",
    "com.microsoft::MultiHeadAttention",
)


def multi_head_lower(node: Node) -> Lowering | None:
    """As DmlOperatorMultiHeadAttention.cpp does it: `unidirectional` has no counterpart. None for what it refuses: key
    and value of rank 4, a mask beside a past, an attention_bias that broadcasts; and for tensors without elements."""
    query, key, past_key = node.array("query"), node.value("key"), node.value("past_key")
    mask, bias, heads = node.value("key_padding_mask"), node.value("attention_bias"), node.integer("num_heads", 1)
    truth = multi_head_truth(node)
    assert isinstance(truth, Outputs)
    output, *present = (value.value for value in truth.outputs)
    head = query.shape[-1] if query.ndim == 5 else query.shape[2] // heads
    new = key.shape[1] if key is not None else query.shape[1]
    total = new + (0 if past_key is None else past_key.shape[2])
    whole = (query.shape[0], heads, query.shape[1], total)
    refused = (key is not None and key.ndim == 4) or (mask is not None and past_key is not None)
    if refused or (bias is not None and bias.shape != whole) or (past_key is not None and not past_key.size):
        return None
    mask_type, mask_desc = MultiheadAttentionMaskType.NONE, None
    if mask is not None and mask.ndim == 1:
        mask_type, mask = MultiheadAttentionMaskType.KEY_SEQUENCE_LENGTH, mask.reshape(1, -1)
        mask_desc = TensorDesc.of(mask)
    elif mask is not None:
        strides = (total, 0, 0, 1) if mask.ndim == 2 else (query.shape[1] * total, 0, total, 1)
        mask = np.broadcast_to(mask[:, None, None] if mask.ndim == 2 else mask[:, None], whole)
        mask_type, mask_desc = MultiheadAttentionMaskType.BOOLEAN, TensorDesc(DataType.INT32, whole, strides)
    stacked_qkv, stacked_kv = query.ndim == 5, key is not None and key.ndim == 5
    feeds = (
        None if stacked_qkv else query, None if stacked_kv else key, node.value("value"), None,
        key if stacked_kv else None, query if stacked_qkv else None, node.value("bias"), mask, bias, past_key,
        node.value("past_value"),
    )  # fmt: skip
    described = [
        None if value is None else TensorDesc.of(value) for value in (*feeds, *present, *[None] * (2 - len(present)))
    ]
    desc = MultiheadAttention(
        query_tensor=described[0],
        key_tensor=described[1],
        value_tensor=described[2],
        stacked_query_key_tensor=None,
        stacked_key_value_tensor=described[4],
        stacked_query_key_value_tensor=described[5],
        bias_tensor=described[6],
        mask_tensor=mask_desc,
        relative_position_bias_tensor=described[8],
        past_key_tensor=described[9],
        past_value_tensor=described[10],
        output_tensor=TensorDesc.of(output),
        output_present_key_tensor=described[11],
        output_present_value_tensor=described[12],
        scale=node.number("scale", head**-0.5),
        mask_filter_value=node.number("mask_filter_value", MASK_FILTER_VALUE),
        head_count=heads,
        mask_type=mask_type,
    )
    return Lowering(desc, feeds)


OPTIONAL_IO: Mapping[str, tuple[OptionalIO, ...]] = {
    "com.microsoft::Attention": (
        OptionalIO(
            "past_mask_raw_2d",
            {"attention_bias": (True, True)},
            inputs=each_alone("bias", "mask_index", "past", "attention_bias"),
            never=(("past", "attention_bias"),),  # attention_base.h
            fields_without={
                "bias": {"bias": False},
                "mask_index": {"mask": ""},
                "past": {"past": None},
                "attention_bias": {"attention_bias": None},
            },
        ),
    ),
    "com.microsoft::QAttention": (
        OptionalIO(
            "past_mask_raw_2d",
            inputs=each_alone("mask_index", "input_zero_point", "weight_zero_point", "past"),
            fields_without={"mask_index": {"mask": ""}, "past": {"past": None}},
        ),
    ),
    "com.microsoft::MultiHeadAttention": (
        OptionalIO(
            "past_mask_raw_2d",
            {"attention_bias": (True, True)},
            inputs=(("bias",), ("key_padding_mask",), ("attention_bias",), ("past_key", "past_value")),
            fields_without={
                "bias": {"bias": False},
                "key_padding_mask": {"mask": ""},
                "past_key": {"past": None},
                "past_value": {"past": None},
                "attention_bias": {"attention_bias": None},
            },
        ),
    ),
}


def list_attributes(values: Values, *names: str) -> tuple[tuple[str, Any], ...]:
    """Those of the names that have a value other than 0 and None."""
    return tuple((name, values[name]) for name in names if values[name])


def make_parts(node: Node, outputs: int = 0) -> Parts:
    """The parts of a node. outputs: how many its operator has, where not all are asked for."""
    inputs: tuple[Array | None, ...] = tuple(None if operand is None else operand.value for operand in node.inputs)
    parameters = tuple(i for i, operand in enumerate(node.inputs) if operand is not None and operand.parameter)
    present = tuple(bool(name) for name in node.outputs)
    return Parts(inputs, node.attributes, parameters, present + (False,) * (outputs - len(present)))


def _make_space(write: Callable[[AttentionSample, CaseContext], Node]) -> ParameterSpace:
    """Every mask leaves the first key to each query, and no mask of lengths stands beside a past: what an empty row
    gives, and from where lengths count then, the pages leave open."""

    def make_values(values: Values, rng: np.random.Generator) -> Parts:
        members = {name: values[name] for name in ("bias", "mask", "past", "attention_bias", "value_head")}
        attributes = list_attributes(values, "unidirectional", "scale")
        sample = AttentionSample(name="", sequence=5, attributes=attributes, **members)
        return make_parts(write(sample, CaseContext(1, (np.dtype("float32"),), rng)))

    choices: dict[str, tuple[Any, ...]] = {
        "bias": (True, False),
        "mask": ("", "raw_2d", "raw_3d", "lengths"),
        "past": (None, 4),
        "unidirectional": (0, 1),
        "attention_bias": (None, (True, True), (False, False)),
        "scale": (None, 2.0),
        "value_head": (None, 2, 8),
    }
    return ParameterSpace({}, make_values, choices, is_valid=_is_defined)


def _is_defined(values: Values) -> bool:
    """Beside a past no lengths of keys, and values with heads as long as those of keys."""
    return values["past"] is None or (values["mask"] != "lengths" and values["value_head"] is None)


PARAMETER_SPACES = {
    "com.microsoft::Attention": _make_space(attention_node),
    "com.microsoft::MultiHeadAttention": _make_space(multi_head_node),
}

OPERATORS = declare(
    tuple(
        Operator(name, samples, ways, node, truth, lower, varied, DOMAIN)
        for name, samples, ways, node, truth, lower, varied in (
            ("Attention", attention_samples, bindings, attention_node, attention_truth, GRAPH, ("T",)),
            (
                "QAttention",
                quantized_samples,
                bindings,
                quantized_node,
                quantized_truth,
                GRAPH,
                ("T1", "T2", "T3"),
            ),
            (
                "MultiHeadAttention",
                multi_head_samples,
                multi_head_bindings,
                multi_head_node,
                multi_head_truth,
                multi_head_lower,
                ("T",),
            ),
        )
    ),
    optional_io=OPTIONAL_IO,
    parameter_spaces=PARAMETER_SPACES,
)
