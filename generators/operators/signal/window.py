"""HannWindow, HammingWindow and BlackmanWindow (17).

Sources: the operator pages, whose formula is the function body that ONNX gives each, and the paper that they name
(F. J. Harris, On the use of windows for harmonic analysis, 1978): a0 - a1 cos(x) + a2 cos(2 x), x = 2 pi i / N, with
N = size of a periodic window and size - 1 of a symmetric one. Of Hamming's a0 the body has 25 / 46 and the paper 0.54
as well: what lies between the two is accepted. A symmetric window of one element divides by 0, and a window of none
is refused by the inference of shapes alone: no case has them. The body computes in float32 and casts to the type of
the output; an integer is what is left of a float that may be 1 or less.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto, helper

from epcheck.generators import graph
from epcheck.generators.bounds import bounds, elementary, estimate
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import NO_KERNEL, Operator, spread
from epcheck.generators.truth import OneStep, Output, Outputs, Refusal, Truth

DECLARES = (
    "HannWindow",
    "HammingWindow",
    "BlackmanWindow",
)

COEFFICIENTS = {
    "HannWindow": (0.5, 0.5, 0.0),
    "HammingWindow": (25 / 46, 21 / 46, 0.0),
    "BlackmanWindow": (0.42, 0.5, 0.08),
}
BETWEEN = {"HammingWindow": 25 / 46 - 0.54}
"""How far a0 may be below that of the body, and a1 above."""
FIRST = ("int32", "float32")
SINGLE = np.dtype(np.float32)
SCALAR = "size is a scalar"


@dataclass(frozen=True, kw_only=True)
class WindowSample(Sample):
    """periodic, datatype: of the attributes; None leaves them out. shape: of `size`."""

    size: int = 10
    periodic: int | None = None
    datatype: bool = True
    unknown: int = 0
    shape: tuple[int, ...] = ()


def samples() -> Iterator[WindowSample]:
    yield WindowSample(name="defaults", datatype=False)
    for periodic, name in ((None, "default"), (1, "periodic"), (0, "symmetric")):
        yield WindowSample(name=name, periodic=periodic, every_dtype=True)
        yield WindowSample(name=f"{name}_odd", size=11, periodic=periodic, every_dtype=periodic == 0)
        for size in (2, 3, 4, 5, 64, 257, 1025, 65537):
            yield WindowSample(name=f"{name}_of_{size}", size=size, periodic=periodic)
    yield WindowSample(name="periodic_of_1", size=1, periodic=1)
    yield expect_refusal(WindowSample(name="output_string", unknown=TensorProto.STRING))
    yield expect_refusal(WindowSample(name="output_bool", unknown=TensorProto.BOOL))
    yield expect_refusal(WindowSample(name="sizes_of_two", shape=(2,)))


def bindings(sample: WindowSample, _version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    if dtypes[1] != "float32" and not sample.datatype:
        return ()
    known = spread(sample, first=dtypes == FIRST, newest=dtypes == FIRST, scalar=True)
    return tuple(way for way in known if way in (graph.INITIALIZER, graph.RUNTIME)) if dtypes == FIRST else known[:1]


def make_node(name: str, sample: WindowSample, context: CaseContext) -> Node:
    """size of the first dtype, the output of the second."""
    size = Operand("size", np.full(sample.shape, sample.size, context.dtype), parameter=True)
    attributes: dict[str, Attribute] = {} if sample.periodic is None else {"periodic": sample.periodic}
    if sample.datatype:
        attributes["output_datatype"] = sample.unknown or int(helper.np_dtype_to_tensor_dtype(context.dtypes[1]))
    return Node(name, "", context.since_version, (size,), ("output",), attributes)


def truth(node: Node) -> Truth:
    datatype = node.integer("output_datatype", TensorProto.FLOAT)
    if datatype in (TensorProto.STRING, TensorProto.BOOL):
        return Refusal(f"output_datatype {datatype} is not a type that the output may have")
    if node.array("size").ndim:
        return Refusal("size must be a scalar")
    dtype, size = np.dtype(helper.tensor_dtype_to_np_dtype(datatype)), int(node.array("size"))
    assert size > (node.integer("periodic", 1) == 0), "a window of no element, or a symmetric one of one"
    angle = 2 * np.pi * np.arange(size) / max(size if node.integer("periodic", 1) else size - 1, 1)
    a0, a1, a2 = COEFFICIENTS[node.op_type]
    exact = np.asarray(a0 - a1 * np.cos(angle) + a2 * np.cos(2 * angle))
    cosine = elementary.bound_of("cos", angle, np.cos(angle), SINGLE)
    turned = 5 * bounds.finfo(SINGLE).eps * angle  # four roundings of an angle, and that of tau
    error = a1 * (cosine.floor + turned) + a2 * (cosine.floor + 2 * turned) + 4 * bounds.finfo(SINGLE).eps
    error = error + BETWEEN.get(node.op_type, 0.0) * (1 + np.cos(angle))
    if dtype.kind != "f":
        whole = np.floor(np.where(exact > 1 - 1e-9, 1.0, np.maximum(exact, 0))).astype(dtype)
        return Outputs((Output("output", whole, OneStep(exact + error >= 1), whole.astype(np.float64)),))
    bound = bounds.ulp(2.0, (estimate.SOURCE,), dtype, np.asarray(error))
    return Outputs((bounds.round_output("output", exact, dtype, bound),))


def _operator(name: str) -> Operator[WindowSample]:
    def node(sample: WindowSample, context: CaseContext) -> Node:
        return make_node(name, sample, context)

    return Operator(name, samples, bindings, node, truth, NO_KERNEL, ("T1", "T2"), without_rank_dtypes=SCALAR)


OPERATORS = tuple(map(_operator, COEFFICIENTS))
