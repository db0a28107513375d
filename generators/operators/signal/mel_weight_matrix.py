"""MelWeightMatrix-17: triangular filters that take a linear spectrum to the mel scale.

Source: the operator's page, and its example for what the text leaves open: the corners of the triangles are evenly
spaced in mel, num_mel_bins + 2 of them in steps of the range divided by their number, and each is rounded down to a
bin, (dft_length + 1) * hertz / sample_rate. Where the first two corners of a triangle are one bin, its value there is
1. A corner that a rounding could move to the next bin has no case. The bound is that of a division that may be a
product with a reciprocal. Of integer outputs the page does not say how fractions are rounded: their triangles have
none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto, helper

from epcheck.generators import schema
from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import NO_KERNEL, Operator, spread
from epcheck.generators.truth import Output, Outputs, Refusal, Truth

DECLARES = ("MelWeightMatrix",)

DIVISION = bounds.OPENCL.add_remark("division is 2.5")
SETTLED = 1e-5
"""How far a corner must be from a whole bin, relative to 10^(mel / 2595): twice the 16 ULP of pow, and the 3 ULP of
log10 times the exponent (OpenCL C), both in float32."""


@dataclass(frozen=True, kw_only=True)
class MelSample(Sample):
    """edges: in hertz. datatype: of the output; False leaves the attribute out, which is float."""

    bins: int = 8
    length: int = 64
    rate: int = 16000
    edges: tuple[float, float] = (0.0, 8000.0)
    datatype: bool = True
    unknown: int = 0


def samples() -> Iterator[MelSample]:
    yield MelSample(name="defaults", datatype=False, every_dtype=True)
    yield MelSample(name="output_datatype")
    yield MelSample(name="narrow", bins=3, length=6, rate=8192, edges=(0.0, 4096.0), every_dtype=True)
    for bins in (1, 2, 5, 20, 40):
        yield MelSample(name=f"bins_{bins}", bins=bins, length=256, rate=8192, edges=(0.0, 4096.0))
    for length in (1, 2, 3, 7, 16, 65, 512, 1023, 2048):
        yield MelSample(name=f"dft_length_{length}", bins=6, length=length)
    for rate in (8000, 22050, 44100, 48000):
        yield MelSample(name=f"sample_rate_{rate}", rate=rate, edges=(20.0, 3800.0), length=400)
    for low, high in ((300.0, 3400.0), (125.0, 7500.0), (4000.0, 6000.0), (0.0, 100.0), (27.5, 4186.0)):
        yield MelSample(name=f"from_{low:g}_to_{high:g}".replace(".", "_"), edges=(low, high), length=512)
    yield MelSample(name="many_bins", bins=128, length=2048, edges=(50.0, 7600.0))
    yield MelSample(name="more_than_1024_lines", bins=10, length=4096, edges=(4000.0, 7900.0))
    yield MelSample(name="more_bins_than_lines", bins=30, length=16)
    yield expect_refusal(MelSample(name="output_string", unknown=TensorProto.STRING))
    yield expect_refusal(MelSample(name="output_bool", unknown=TensorProto.BOOL))


def bindings(sample: MelSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    first = tuple(schema.dtypes("MelWeightMatrix", since_version, name)[0] for name in ("T1", "T2", "T3"))
    if dtypes[2] != "float32" and not sample.datatype:
        return ()
    if dtypes[1] == "float16" and max(sample.edges) > 4096:
        return ()
    known = spread(sample, first=dtypes == first, newest=dtypes == first, scalar=True)
    wanted = ("initializer", "runtime") if dtypes == first else ("initializer",)  # constant is initializer: all are
    return tuple(way for way in known if way in wanted)


def node(sample: MelSample, context: CaseContext) -> Node:
    """Five scalars: three of the first dtype, two of the second; the output has the third."""
    whole, real, result = context.dtypes
    numbers = (("num_mel_bins", sample.bins), ("dft_length", sample.length), ("sample_rate", sample.rate))
    edges = zip(("lower_edge_hertz", "upper_edge_hertz"), sample.edges, strict=True)
    operands = (
        *(Operand(name, np.array(value, whole), parameter=True) for name, value in numbers),
        *(Operand(name, np.array(value, real), parameter=True) for name, value in edges),
    )
    attributes: dict[str, Attribute] = {}
    if sample.datatype:
        attributes["output_datatype"] = sample.unknown or int(helper.np_dtype_to_tensor_dtype(result))
    return Node("MelWeightMatrix", "", context.since_version, operands, ("output",), attributes)


def corners(node: Node) -> Array:
    """The bins of the corners of the triangles, int64 [num_mel_bins + 2]."""
    bins, length, rate = (int(node.array(name)) for name in ("num_mel_bins", "dft_length", "sample_rate"))
    low, high = (
        2595 * np.log10(1 + float(node.array(name)) / 700) for name in ("lower_edge_hertz", "upper_edge_hertz")
    )
    mel = np.arange(bins + 2) * ((high - low) / (bins + 2)) + low
    power = 10 ** (mel / 2595)
    scale = (length + 1) * 700 / rate
    exact = scale * (power - 1)
    settled = np.abs(exact - np.rint(exact)) > SETTLED * scale * power
    assert settled[mel > 0].all(), "a rounding would move a corner"
    found: Array = np.floor(np.where(mel > 0, exact, 0)).astype(np.int64)
    return found


def truth(node: Node) -> Truth:
    datatype = node.integer("output_datatype", TensorProto.FLOAT)
    if datatype in (TensorProto.STRING, TensorProto.BOOL):
        return Refusal(f"output_datatype {datatype} is not a type that the output may have")
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(datatype))
    places, lines = corners(node), int(node.array("dft_length")) // 2 + 1
    exact = np.zeros((lines, len(places) - 2))
    for column, (left, center, right) in enumerate(zip(places, places[1:], places[2:], strict=False)):
        for line in range(left, right):
            rising = line <= center and center > left
            exact[line, column] = (line - left) / (center - left) if rising else (right - line) / (right - center)
        exact[center, column] = 1
    if dtype.kind != "f":
        assert (exact == np.rint(exact)).all(), "an integer result must be whole"
        return Outputs((Output("output", exact.astype(dtype)),))
    return Outputs((bounds.round_output("output", exact, dtype, bounds.ulp(2.5, (DIVISION,), dtype)),))


OPERATORS = (Operator("MelWeightMatrix", samples, bindings, node, truth, NO_KERNEL, varied=("T1", "T2", "T3")),)
