"""An operator of a domain of your own: its schema, its declaration for the suite, and a provider judged by it.

    python custom_operator.py                          # judges `right`, then `forgetful`, which drops the last window

`com.example::WindowSum` adds up neighbours along the last axis: y[i] = x[i] + ... + x[i + width - 1]. The declaration
is what `epcheck.generators` has for each operator of the suite; its docstring explains each part. A target is a
callable here; a provider that has a kernel for the operator is named as every target is (`epcheck list targets`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx.defs import OpSchema, register_schema

from epcheck import api
from epcheck.generators import graph
from epcheck.generators.bounds import bounds
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.node import Node, Operand
from epcheck.generators.operator import NO_KERNEL, Operator
from epcheck.generators.truth import Output, Outputs, Refusal, Truth

DOMAIN = "com.example"

# 1. The schema. Versions and dtypes of the cases follow from it.
_Formal, _Kind = OpSchema.FormalParameter, OpSchema.AttrType
SCHEMA = OpSchema(
    "WindowSum", DOMAIN, 1, inputs=[_Formal("x", "T")], outputs=[_Formal("y", "T")],
    type_constraints=[("T", ["tensor(float)", "tensor(int32)"], "")],
    attributes=[OpSchema.Attribute("width", _Kind.INT, required=True)],
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class WindowSample(Sample):
    """A situation worth testing. shape: of x, rank 1 or more. width: of the window, elements."""

    shape: tuple[int, ...]
    width: int


# 2. The samples: names never change, since they are a part of the case ids.
def samples() -> Iterator[WindowSample]:
    for width in (1, 2, 5):
        yield WindowSample(name=f"width_{width}", shape=(2, 5), width=width, every_dtype=True)
    yield WindowSample(name="rank_1", shape=(4,), width=2)
    yield WindowSample(name="rank_4", shape=(2, 1, 3, 6), width=3)
    yield WindowSample(name="beyond_a_thread_group", shape=(1031,), width=7)
    yield expect_refusal(WindowSample(name="width_0", shape=(4,), width=0))


def bindings(sample: WindowSample, _since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """How x enters the model, and for which dtypes a sample has a case."""
    return (graph.RUNTIME,) if sample.every_dtype or dtypes == ("float32",) else ()


# 3. The node of a sample. Random values come from `context.rng` alone: the case id seeds it.
def node(sample: WindowSample, context: CaseContext) -> Node:
    x = context.rng.integers(-9, 9, sample.shape) + (0.5 if context.dtype.kind == "f" else 0)
    operands = (Operand("x", x.astype(context.dtype)),)
    return Node("WindowSum", DOMAIN, context.since_version, operands, ("y",), {"width": sample.width})


# 4. The truth, in float64 and rounded once. A bound states its source.
def truth(node: Node) -> Truth:
    x, width = node.array("x"), int(node.attributes["width"])  # type: ignore[call-overload]
    if width < 1:
        return Refusal("width must be at least 1")
    if x.dtype.kind == "i":
        return Outputs((Output("y", window_sum(x, width).astype(x.dtype)),))
    y = window_sum(x.astype(np.float64), width)
    bound = bounds.bound_sum(width, x.dtype, window_sum(np.abs(x.astype(np.float64)), width))
    return Outputs((bounds.round_output("y", y, x.dtype, bound),))


def window_sum(x: np.ndarray[Any, Any], width: int) -> np.ndarray[Any, Any]:
    windows = np.lib.stride_tricks.sliding_window_view(x, width, axis=-1)
    return windows.sum(axis=-1)


OPERATOR = Operator("WindowSum", samples, bindings, node, truth, NO_KERNEL, domain=DOMAIN)


# Two providers: callables that take the bytes of a model and its feeds, and give its outputs.
def right(model_bytes: bytes, feeds: Mapping[str, Any]) -> dict[str, Any]:
    (found,) = onnx.load_from_string(model_bytes).graph.node
    width = found.attribute[0].i
    if width < 1:
        raise ValueError("width must be at least 1")
    return {found.output[0]: window_sum(feeds[found.input[0]], width).astype(feeds[found.input[0]].dtype)}


def forgetful(model_bytes: bytes, feeds: Mapping[str, Any]) -> dict[str, Any]:
    outputs = right(model_bytes, feeds)
    return {name: np.concatenate([y[..., :-1], np.zeros_like(y[..., -1:])], axis=-1) for name, y in outputs.items()}


def main() -> int:
    register_schema(SCHEMA)
    for name in ("right", "forgetful"):
        cases = tuple(OPERATOR.cases())
        with api.CaseStream(f"python:custom_operator:{name}", "none", cases) as stream:
            records = [stream.record(case) for case in cases]
        wrong = [record for record in records if record.reading == "failure"]
        print(f"{name}: {len(records) - len(wrong)} of {len(records)} cases are as they should be")
        for record in wrong[:3]:
            print(f"  {record.case_id}: {record.reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
