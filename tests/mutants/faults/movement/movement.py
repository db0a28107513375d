"""Faults of operators that move data: an attribute not seen, an index misread, an order of the elements exchanged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.node import Attribute, Node, Operand
from tests.mutants.mutant import Mutant, attribute, inputs, misread, outputs, swapped


def default(operator: str, name: str, value: Attribute) -> Mutant:
    """The provider takes another value where the attribute is left out."""

    def change(node: Node) -> Node:
        return node if name in node.attributes else replace(node, attributes={**node.attributes, name: value})

    return misread(operator, f"{name} is {value} by default", change)


def left_out(operator: str, name: str) -> Mutant:
    """The provider does not see an optional input."""

    def change(node: Node) -> Node:
        kept = tuple(None if o is not None and o.name == name else o for o in node.inputs)
        return replace(node, inputs=kept)

    return misread(operator, f"the input {name} is not seen", change)


def of_input(operator: str, what: str, name: str, change: object) -> Mutant:
    """The provider misreads one input."""
    return inputs(operator, what, lambda n, v: change(v) if n == name else v)  # type: ignore[operator, no-any-return]


def absolute(values: Array) -> Array:
    """-1 is read as 1."""
    return np.abs(values)


def clamped(values: Array) -> Array:
    """Negative ones are read as 0."""
    return np.maximum(values, 0)


def reordered(node: Node) -> Node:
    """The inputs from the last to the first."""
    names = [operand.name for operand in node.inputs if operand is not None]
    values = [operand.value for operand in node.inputs if operand is not None]
    return replace(node, inputs=tuple(Operand(n, v) for n, v in zip(names, reversed(values), strict=True)))


def flushed(values: Array) -> Array:
    """Denormals become 0."""
    if values.dtype.kind != "f":
        return values
    return np.where(np.abs(values) < np.finfo(values.dtype).tiny, values.dtype.type(0), values)


def unsigned_zero(values: Array) -> Array:
    """-0 becomes +0."""
    return values + values.dtype.type(0) if values.dtype.kind == "f" else values


def through_float32(values: Array) -> Array:
    """Integers of 64 bits take a way through float32."""
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8:
        return values
    info = np.iinfo(values.dtype)
    rounded = np.clip(values.astype(np.float32).astype(np.float64), float(info.min), float(info.max) * (1 - 1e-9))
    return rounded.astype(values.dtype)


def as_wide_as_32_bits(values: Array) -> Array:
    """The upper half of 64-bit elements is lost."""
    return (values & values.dtype.type(0xFFFFFFFF)) if values.dtype.name in ("int64", "uint64") else values


def only_1024(values: Array) -> Array:
    """Nothing is written beyond the first thread group."""
    flat = values.copy().reshape(-1)
    flat[1024:] = 0
    return flat.reshape(values.shape)


def transposed_result(values: Array) -> Array:
    """The last two dimensions of the result are filled in the other order."""
    if values.ndim < 2:
        return values
    exchanged = np.swapaxes(values, -1, -2)
    return np.ascontiguousarray(exchanged).reshape(values.shape)


def negative_axis_is_absolute(operator: str, name: str = "axis") -> Mutant:
    """Axis -2 is read as axis 2."""

    def change(node: Node) -> Node:
        if name not in node.attributes:
            return node
        return replace(node, attributes={**node.attributes, name: abs(node.integer(name, 0))})

    return misread(operator, f"{name} is read without its sign", change)


def remainder_first(node: Node) -> Node:
    """The first part is the smaller one."""
    if "num_outputs" not in node.attributes:
        return node
    (data, *_), count = node.inputs, node.integer("num_outputs", 1)
    assert data is not None
    length = data.value.shape[node.integer("axis", 0)]
    chunk = -(-length // count)
    lengths = np.array([length - chunk * (count - 1), *(chunk,) * (count - 1)])
    others = {key: value for key, value in node.attributes.items() if key != "num_outputs"}
    return replace(node, inputs=(data, Operand("split", lengths)), attributes=others)


MOVERS = (
    "Concat", "Split", "Pad", "Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Expand", "Tile",
    "DepthToSpace", "SpaceToDepth", "Crop", "ReverseSequence", "Gather", "GatherElements", "GatherND", "Scatter",
    "ScatterElements", "ScatterND",
)  # fmt: skip

CARRIED = tuple(
    outputs(operator, what, change)
    for operator in MOVERS
    for what, change in (
        ("denormals become 0", flushed),
        ("-0 becomes +0", unsigned_zero),
        ("only 1024 elements are written", only_1024),
    )
) + tuple(
    outputs(operator, "64-bit integers take a way through float32", through_float32)
    for operator in MOVERS
    if operator != "Crop"
)
"""What every operator that moves data can do to the elements on their way."""

MUTANTS = (
    *CARRIED,
    attribute("Concat", "axis", 0),
    attribute("Concat", "axis", -1),
    negative_axis_is_absolute("Concat"),
    misread("Concat", "the inputs come in reverse", reordered),
    attribute("Split", "axis", None),
    default("Split", "axis", -1),
    of_input("Split", "the lengths come in reverse", "split", lambda v: v[::-1]),
    misread("Split", "the remainder goes to the first part", remainder_first),
    attribute("Pad", "mode", "constant"),
    attribute("Pad", "mode", "edge"),
    default("Pad", "mode", "reflect"),
    left_out("Pad", "constant_value"),
    attribute("Pad", "value", None),
    left_out("Pad", "axes"),
    of_input("Pad", "negative pads count as 0", "pads", clamped),
    of_input("Pad", "begin and end are exchanged", "pads", lambda v: np.roll(v, len(v) // 2)),
    of_input("Pad", "pads are pairs of begin and end", "pads", lambda v: v.reshape(2, -1).T.reshape(-1)),
    attribute("Transpose", "perm", None),
    misread(
        "Transpose",
        "perm says where a dimension goes, not where it comes from",
        lambda node: replace(node, attributes={"perm": tuple(map(int, np.argsort(node.integers("perm", ()))))})
        if "perm" in node.attributes
        else node,
    ),
    outputs("Transpose", "the last two dimensions stay where they are", transposed_result),
    attribute("Reshape", "allowzero", 1),
    attribute("Reshape", "allowzero", None),
    of_input("Reshape", "a 0 is read as -1", "shape", lambda v: np.where(v == 0, -1, v)),
    of_input("Reshape", "a 0 is read as 1", "shape", lambda v: np.where(v == 0, 1, v)),
    attribute("Flatten", "axis", None),
    default("Flatten", "axis", 0),
    negative_axis_is_absolute("Flatten"),
    left_out("Squeeze", "axes"),
    attribute("Squeeze", "axes", None, "the attribute axes is ignored"),
    of_input("Squeeze", "the first axis alone counts", "axes", lambda v: v[:1]),
    of_input("Unsqueeze", "negative axes count the input's dimensions", "axes", lambda v: np.where(v < 0, v - 1, v)),
    of_input("Unsqueeze", "negative axes are read without their sign", "axes", absolute),
    of_input("Unsqueeze", "the first axis alone counts", "axes", lambda v: v[:1]),
    of_input("Expand", "the shape is aligned at the first dimension", "shape",
             lambda v: np.concatenate([v, np.ones(1, v.dtype)]) if v.size == 1 else v),
    of_input("Expand", "a size of 1 is wanted where the input has more", "shape", lambda v: v[:-1]),
    outputs("Expand", "rows and columns are repeated the other way round", transposed_result),
    of_input("Tile", "the repeats come in reverse", "repeats", lambda v: v[::-1]),
    of_input("Tile", "the first repeat is not seen", "repeats", lambda v: np.where(np.arange(v.size) == 0, 1, v)),
    of_input("Tile", "repeats of 0 count as 1", "repeats", lambda v: np.maximum(v, 1)),
    attribute("DepthToSpace", "mode", None),
    default("DepthToSpace", "mode", "CRD"),
    outputs("DepthToSpace", "height and width are exchanged", transposed_result),
    default("SpaceToDepth", "mode", "CRD"),
    outputs("SpaceToDepth", "height and width are exchanged", transposed_result),
    attribute("SpaceToDepth", "mode", None),
    attribute("Crop", "scale", None),
    misread(
        "Crop",
        "border is top, left, bottom, right",
        lambda node: replace(
            node,
            attributes={**node.attributes, "border": tuple(node.integers("border", ())[i] for i in (1, 0, 3, 2))},
        ),
    ),
    attribute("Crop", "border", (0, 0, 0, 0)),
    misread(
        "ReverseSequence",
        "time and batch are exchanged",
        lambda node: replace(
            node,
            attributes={"time_axis": node.integer("batch_axis", 1), "batch_axis": node.integer("time_axis", 0)},
        ),
    ),
    of_input("ReverseSequence", "the whole sequence is reversed", "sequence_lens", lambda v: np.full_like(v, v.max())),
    of_input("ReverseSequence", "one element less is reversed", "sequence_lens", lambda v: np.maximum(v - 1, 0)),
    attribute("Gather", "axis", None),
    negative_axis_is_absolute("Gather"),
    of_input("Gather", "negative indices count as 0", "indices", clamped),
    of_input("Gather", "negative indices lose their sign", "indices", absolute),
    of_input("Gather", "a scalar index keeps a dimension", "indices", lambda v: v.reshape(-1)),
    attribute("GatherElements", "axis", None),
    negative_axis_is_absolute("GatherElements"),
    of_input("GatherElements", "negative indices count as 0", "indices", clamped),
    attribute("GatherND", "batch_dims", None),
    of_input("GatherND", "negative indices count as 0", "indices", clamped),
    of_input("GatherND", "index tuples are read from the back", "indices", lambda v: v[..., ::-1]),
    *(
        fault
        for operator in ("Scatter", "ScatterElements")
        for fault in (
            attribute(operator, "axis", None),
            negative_axis_is_absolute(operator),
            of_input(operator, "negative indices count as 0", "indices", clamped),
        )
    ),
    of_input("ScatterND", "negative indices count as 0", "indices", clamped),
    of_input("ScatterND", "index tuples are read from the back", "indices", lambda v: v[..., ::-1]),
    *(
        fault
        for operator in ("ScatterElements", "ScatterND")
        for fault in (
            attribute(operator, "reduction", None),
            *(attribute(operator, "reduction", reduction) for reduction in ("add", "max")),
        )
    ),
    swapped("ScatterElements", 0, 2),
    attribute("Shape", "start", None),
    attribute("Shape", "end", None),
    negative_axis_is_absolute("Shape", "start"),
    negative_axis_is_absolute("Shape", "end"),
    outputs("Size", "the number of elements of a scalar is 0", lambda v: np.where(v == 1, 0, v).astype(v.dtype)),
    outputs("Size", "the number of elements is never 0", lambda v: np.maximum(v, 1)),
    attribute("ConstantOfShape", "value", None),
    outputs("ConstantOfShape", "the upper half of 64-bit values is lost", as_wide_as_32_bits),
    outputs("ConstantOfShape", "-0 becomes +0", unsigned_zero),
    outputs("ConstantOfShape", "only 1024 elements are written", only_1024),
    attribute("EyeLike", "k", None),
    attribute("EyeLike", "dtype", None),
    negative_axis_is_absolute("EyeLike", "k"),
    outputs("Range", "the limit is the last element, too", lambda v: np.append(v, v[-1:])),
    outputs("Range", "the first element is left out", lambda v: v[1:]),
    of_input("Range", "delta is 1", "delta", np.ones_like),
    of_input("Range", "delta has no sign", "delta", absolute),
    of_input("Range", "delta is rounded up", "delta", np.ceil),
    attribute("OneHot", "axis", None),
    default("OneHot", "axis", 0),
    of_input("OneHot", "off and on are exchanged", "values", lambda v: v[::-1]),
    of_input("OneHot", "negative indices count as 0", "indices", clamped),
    of_input("OneHot", "indices are cut to 32 bits", "indices",
             lambda v: v.astype(np.int32).astype(np.int64) if v.dtype == np.int64 else v),
    of_input("NonZero", "NaN is 0", "X", lambda v: np.nan_to_num(v, nan=0) if v.dtype.kind == "f" else v),
    of_input("NonZero", "denormals are 0", "X", flushed),
    of_input("NonZero", "negative numbers are 0", "X", lambda v: np.maximum(v, 0) if v.dtype.kind in "if" else v),
    outputs("NonZero", "one row for each element, not one column", lambda v: v.T),
    outputs("NonZero", "column-major order", lambda v: v[:, np.lexsort(v)] if v.size else v),
    attribute("Trilu", "upper", None),
    default("Trilu", "upper", 0),
    left_out("Trilu", "k"),
    of_input("Trilu", "k has no sign", "k", absolute),
    outputs("Trilu", "-0 becomes +0", unsigned_zero),
)  # fmt: skip
