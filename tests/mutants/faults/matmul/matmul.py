"""Faults of the matrix products in floating point: MatMul, Gemm, their fused forms, Einsum, MatMulNBits."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.node import Node
from tests.mutants.mutant import Mutant, attribute, inputs, misread, outputs, swapped

MICROSOFT, DML = "com.microsoft::", "com.microsoft.dml::"


def without(operator: str, name: str) -> Mutant:
    """The provider does not read an optional input."""

    def change(node: Node) -> Node:
        return replace(node, inputs=tuple(None if o is not None and o.name == name else o for o in node.inputs))

    return misread(operator, f"{name} is not read", change)


def _last_term_lost(name: str, value: Array) -> Array:
    if name != "A" or not value.size:
        return value
    shorter = value.copy()
    shorter[..., -1] = 0
    return shorter


def _column(name: str, value: Array) -> Array:
    return value[:, None] if name == "B" and value.ndim == 1 else value


def _first_batch(name: str, value: Array) -> Array:
    return np.broadcast_to(value[:1], value.shape).copy() if name == "B" and value.ndim > 2 else value


def _no_nan(_name: str, value: Array) -> Array:
    return np.nan_to_num(value, posinf=np.inf, neginf=-np.inf) if value.dtype.kind == "f" else value


def _finite(_name: str, value: Array) -> Array:
    return np.clip(value, np.finfo(value.dtype).min, np.finfo(value.dtype).max) if value.dtype.kind == "f" else value


def _transposed_c(name: str, value: Array) -> Array:
    return value[:, None] if name == "C" and value.ndim == 1 else value


def _equation(what: str, old: str, new: str) -> Mutant:
    def change(node: Node) -> Node:
        return replace(node, attributes={"equation": node.text("equation", "").replace(old, new)})

    return misread("Einsum", what, change)


def _nibbles_swapped(what: str, wanted: str) -> Mutant:
    def change(name: str, value: Array) -> Array:
        return (value >> 4 | value << 4) if name == wanted and value.dtype == np.uint8 else value

    return inputs(f"{MICROSOFT}MatMulNBits", what, change)


def _case_folded(node: Node) -> Node:
    return replace(node, attributes={"equation": node.text("equation", "").lower()})


def _plain(activation: str, side: str, node: Node) -> Node:
    """Without its activation, where that is this one and the side is transposed."""
    if node.text("activation", "") != activation or not node.integer(side, 0):
        return node
    return replace(node, attributes={k: v for k, v in node.attributes.items() if not k.startswith("activation")})


MUTANTS = (
    inputs("MatMul", "the last term of every sum is lost", _last_term_lost),
    inputs("MatMul", "a vector on the right leaves a dimension of 1", _column),
    inputs("MatMul", "every batch of B is the first", _first_batch),
    inputs("MatMul", "NaN becomes 0", _no_nan),
    inputs("MatMul", "infinity becomes the largest number", _finite),
    swapped("MatMul"),
    *(attribute(f"{MICROSOFT}FusedMatMul", name, None)
      for name in ("alpha", "transA", "transB", "transBatchA", "transBatchB")),
    inputs(f"{MICROSOFT}FusedMatMul", "the last term of every sum is lost", _last_term_lost),
    *(attribute(f"{MICROSOFT}FusedMatMulActivation", name, None)
      for name in ("activation_axis", "alpha", "activation", "transA")),
    attribute(f"{DML}DmlFusedMatMul", "fused_alpha", None),
    attribute(f"{DML}DmlFusedMatMul", "fused_activation", None),
    attribute(f"{DML}DmlFusedMatMul", "fused_activation", "Relu"),
    *(attribute("Gemm", name, None) for name in ("alpha", "beta", "transA", "transB")),
    without("Gemm", "C"),
    inputs("Gemm", "a vector C is added to columns", _transposed_c),
    inputs("Gemm", "NaN becomes 0", _no_nan),
    *(attribute(f"{DML}DmlFusedGemm", name, None) for name in ("alpha", "beta", "transA", "transB")),
    *(attribute(f"{DML}DmlFusedGemm", f"fused_{name}", None) for name in ("activation", "alpha", "beta", "gamma")),
    *(attribute(f"{MICROSOFT}FusedGemm", name, None) for name in ("alpha", "beta", "transA", "transB", "activation")),
    *(attribute(f"{MICROSOFT}FusedGemm", f"activation_{name}", None) for name in ("alpha", "beta", "gamma")),
    without(f"{MICROSOFT}FusedGemm", "C"),
    *(
        misread(f"{MICROSOFT}FusedGemm", f"{name} is lost where {side} is transposed", partial(_plain, name, side))
        for name in ("LeakyRelu", "Elu", "HardSigmoid", "Tanh") for side in ("transA", "transB")
    ),
    *(attribute(f"{MICROSOFT}TransposeMatMul", name, None) for name in ("alpha", "transA", "transB")),
    inputs(f"{MICROSOFT}TransposeMatMul", "the first matrix of B is that of all", _first_batch),
    swapped("Einsum"),
    outputs("Einsum", "the result is transposed", np.transpose),
    misread("Einsum", "upper and lower case are one", _case_folded),
    _equation("a repeated label is not a diagonal", "ii", "ij"),
    _nibbles_swapped("the first level is in the upper bits", "B"),
    _nibbles_swapped("the first zero point is in the upper bits", "zero_points"),
    without(f"{MICROSOFT}MatMulNBits", "zero_points"),
    without(f"{MICROSOFT}MatMulNBits", "bias"),
)  # fmt: skip
