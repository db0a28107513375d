"""Attention of ONNX and of ONNX Runtime: masks, causality, a past, groups of heads, scale and soft cap together.

Every mask leaves the first key to each query, and no mask of lengths stands beside a past: what an empty row gives, and
from where lengths count then, the pages leave open.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.case import Binding
from epcheck.generators.declaration.parameter_space import ParameterSpace, Parts, Values
from epcheck.generators.node import Node
from epcheck.generators.operators.attention.attention import AttentionSample, attention_node, multi_head_node
from epcheck.generators.operators.attention.group_query_attention import GroupSample, OnnxSample, group_node, onnx_node

BOTH = (False, True)
FLOAT32 = np.dtype("float32")
ONNX_MASKS = {
    "": {},
    "bool_2d": {"mask": "bool"},
    "float_2d": {"mask": "float"},
    "of_images": {"mask": "float", "mask_axes": 4, "shared": (1,)},
    "of_heads": {"mask": "bool", "mask_axes": 4, "shared": (0,)},
    "float_4d": {"mask": "float", "mask_axes": 4},
}
"""Masks -> the members of a sample: [S, T], [B, 1, S, T], [1, N, S, T] and [B, N, S, T]."""


def spaces() -> Iterator[ParameterSpace]:
    """In a stable order."""
    yield ParameterSpace("Attention", {}, _onnx, {
        "rank": (4, 3),
        "kv_heads": (4, 2, 1),
        "queries": (3, 1),
        "past": (None, 5),
        "mask": tuple(ONNX_MASKS),
        "is_causal": (0, 1),
        "softcap": (None, 0.5),
        "scale": (None, 2.0),
        "qk_matmul_output_mode": (None, 0, 1, 2, 3),
    })  # fmt: skip
    common = {
        "bias": BOTH[::-1],
        "mask": ("", "raw_2d", "raw_3d", "lengths"),
        "past": (None, 4),
        "unidirectional": (0, 1),
        "attention_bias": (None, (True, True), (False, False)),
        "scale": (None, 2.0),
        "value_head": (None, 2, 8),
    }
    yield ParameterSpace(
        "com.microsoft::Attention", {}, partial(_contrib, attention_node), common, is_valid=_is_defined
    )
    yield ParameterSpace("com.microsoft::MultiHeadAttention", {}, partial(_contrib, multi_head_node), common,
                         is_valid=_is_defined)  # fmt: skip
    yield ParameterSpace("com.microsoft::GroupQueryAttention", {}, _grouped, {
        "past": (None, 4),
        "kv_heads": (2, 1, 4),
        "packed": BOTH,
        "rotary": (0, 16, 8),
        "interleaved": (0, 1),
        "softcap": (None, 0.5),
        "scale": (None, 2.0),
    }, is_valid=_is_rotated)  # fmt: skip


def _is_defined(values: Values) -> bool:
    """Beside a past no lengths of keys, and values with heads as long as those of keys."""
    return values["past"] is None or (values["mask"] != "lengths" and values["value_head"] is None)


def _is_rotated(values: Values) -> bool:
    return bool(values["rotary"] or not values["interleaved"])


def _given(values: Values, *names: str) -> tuple[tuple[str, Any], ...]:
    return tuple((name, values[name]) for name in names if values[name])


def _onnx(values: Values, rng: np.random.Generator) -> Parts:
    attributes = _given(values, "is_causal", "softcap", "scale", "qk_matmul_output_mode")
    sample = OnnxSample(name="", rank=values["rank"], kv_heads=values["kv_heads"], sequence=values["queries"],
                        past=values["past"], mode=values["qk_matmul_output_mode"], attributes=attributes,
                        **ONNX_MASKS[values["mask"]])  # type: ignore[arg-type]  # fmt: skip
    return _parts(onnx_node(sample, Binding(25, (FLOAT32,), rng)), ("Y", "present_key", "present_value", "qk"))


def _contrib(write: Any, values: Values, rng: np.random.Generator) -> Parts:
    members = {name: values[name] for name in ("bias", "mask", "past", "attention_bias", "value_head")}
    sample = AttentionSample(name="", sequence=5, attributes=_given(values, "unidirectional", "scale"), **members)
    return _parts(write(sample, Binding(1, (FLOAT32,), rng)), ())


def _grouped(values: Values, rng: np.random.Generator) -> Parts:
    rotary = (("do_rotary", 1), ("rotary_interleaved", values["interleaved"])) if values["rotary"] else ()
    sample = GroupSample(name="", head=32, sequence=5 if values["past"] is None else 1, past=values["past"],
                         kv_heads=values["kv_heads"], packed=values["packed"], rotary=values["rotary"],
                         attributes=(*rotary, *_given(values, "softcap", "scale")))  # fmt: skip
    return _parts(group_node(sample, Binding(1, (FLOAT32,), rng)), ())


def _parts(node: Node, outputs: tuple[str, ...]) -> Parts:
    """outputs: all that the operator has, where not all are asked for."""
    inputs: tuple[Array | None, ...] = tuple(None if operand is None else operand.value for operand in node.inputs)
    parameters = tuple(i for i, operand in enumerate(node.inputs) if operand is not None and operand.parameter)
    asked = tuple(bool(name) for name in node.outputs)
    return Parts(inputs, node.attributes, parameters, asked + (False,) * (len(outputs) - len(asked)))
