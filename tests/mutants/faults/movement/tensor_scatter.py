"""Mutants of TensorScatter: indices shared, ignored or cut, a cache that is not kept, an axis misread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase
from epcheck.generators.families.movement import RefusedError
from epcheck.generators.node import Node
from epcheck.generators.operators.movement import tensor_scatter
from tests.mutants.mutant import Mutant, attribute, inputs, misread, outputs_of

OPERATOR = "TensorScatter"


def without_indices(node: Node) -> Node:
    """Every sample is written from the first position on."""
    return replace(node, inputs=node.inputs[:2])


def always_circular(built: BuiltCase) -> Mapping[str, Array] | None:
    """What does not fit into the cache wraps around."""
    node = built.node
    try:
        return {
            "present_cache": tensor_scatter.scatter_update(
                replace(node, attributes={**node.attributes, "mode": "circular"})
            )
        }
    except RefusedError:
        return None


def clamped(built: BuiltCase) -> Mapping[str, Array] | None:
    """An index from which the update does not fit is moved back."""
    node, right = built.node, outputs_of(built.truth)
    if right is not None or "beyond_the_end" not in built.case.sample:
        return right
    cache, update, indices = (node.array(name) for name in ("past_cache", "update", "write_indices"))
    fitting = np.minimum(indices, cache.shape[2] - update.shape[2])
    operands = (*node.inputs[:2], replace(node.inputs[2], value=fitting))  # type: ignore[type-var]
    return {"present_cache": tensor_scatter.scatter_update(replace(node, inputs=operands))}


MUTANTS = [
    attribute(OPERATOR, "axis", None),
    attribute(OPERATOR, "mode", None),
    misread(OPERATOR, "write_indices is ignored", without_indices),
    inputs(
        OPERATOR,
        "all samples have the first index",
        lambda n, v: np.full_like(v, v[0]) if n == "write_indices" and v.size else v,
    ),
    inputs(OPERATOR, "indices are one less", lambda n, v: np.maximum(v - 1, 0) if n == "write_indices" else v),
    inputs(
        OPERATOR,
        "indices are cut to 32 bits",
        lambda n, v: v.astype(np.int32).astype(np.int64) + (v > 2**31) if n == "write_indices" else v,
    ),
    inputs(OPERATOR, "the cache is cleared first", lambda n, v: np.zeros_like(v) if n == "past_cache" else v),
    inputs(OPERATOR, "the update is read from its end", lambda n, v: v[:, ::-1] if n == "update" else v),
    inputs(
        OPERATOR,
        "denormals become 0",
        lambda _, v: np.where(np.abs(v) < np.finfo(v.dtype).tiny, v.dtype.type(0), v) if v.dtype.kind == "f" else v,
    ),
    Mutant(OPERATOR, "what does not fit wraps around", always_circular),
    Mutant(OPERATOR, "what does not fit is moved back", clamped),
]
