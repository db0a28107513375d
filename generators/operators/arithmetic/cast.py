"""Cast and CastLike -> DML_CAST_OPERATOR_DESC.

To bool the DML EP casts to UINT8 and clips that to 0 and 1, two operators without a single description.

Sources: the operator pages Cast and CastLike. What they define: floating point beyond the range of another one
becomes infinity, anything but zero is true, NaN and fractions included, integers beyond the range of another integer
type keep their lower bits. What they leave undefined has no sample: floating point beyond the range of an integer type,
infinities and NaN among it. Fractions are cut off toward zero, as onnx's own reference evaluator does; the page has
examples only. Of `saturate` and `round_mode`, which are about 8-bit floating point, none of these samples expects any
effect; `families/narrow.py` has those of the types that numpy lacks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from epcheck.generators import data, graph, schema
from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.declaration.interaction import ABOVE_GROUPS, DISPATCHED, Interaction, Random
from epcheck.generators.declaration.undefined_sample import Answer, UndefinedSample, UndefinedSamples
from epcheck.generators.directml import TensorDesc
from epcheck.generators.directml.descriptions.elementwise.elementwise import Cast
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.directml.tensor import MAX_RANK
from epcheck.generators.families import narrow
from epcheck.generators.families.broadcasting import Attributes, broadcast
from epcheck.generators.families.narrow import NarrowSample
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import PAIRS_OF_DTYPES, Operator, declare
from epcheck.generators.truth import Exact, Output, Outputs, Refusal, Truth

DECLARES = (
    "Cast",
    "CastLike",
)

Shape = tuple[int, ...]
Rows = tuple[Any, ...]

SHAPES_OF = ("float32", "float16")
"""The pair of dtypes on which shapes are tried."""


@dataclass(frozen=True, kw_only=True)
class CastSample(Sample):
    """values: what is cast; those that the source cannot hold, or whose cast is undefined, are left out.

    Without values: `boundary` the boundary values of the source, otherwise random ones of `shape`.
    sources, targets: the numpy kinds of the dtypes that the sample is about. narrower: the target is a smaller
    floating type. pair: the only dtypes, where there is one. among: one of the dtypes is one of these. like: shape of
    CastLike's second input. only_cast: Cast alone is enough. to: the number of a type that there is not.
    """

    values: Rows = ()
    boundary: str = ""
    shape: Shape = (3, 5)
    sources: str = "fiub"
    targets: str = "fiub"
    narrower: bool = False
    pair: tuple[str, str] | None = None
    among: tuple[str, ...] = ()
    attributes: Attributes = ()
    spread: bool = False
    like: Shape = (1,)
    only_cast: bool = False
    to: int | None = None


def samples(name: str) -> Iterator[CastSample]:
    for sample in (*_values(), *_shapes(), *_attributes()):
        if not sample.only_cast if name == "CastLike" else sample.like == (1,):
            yield sample


def _values() -> Iterator[CastSample]:
    yield CastSample(name="boundary_values", boundary="boundary", every_dtype=True)
    yield CastSample(name="small_numbers", among=("float32", "int64"), every_dtype=True)
    cut = (0.25, 0.5, 0.75, 1.0, 1.5, 2.5, 3.5, 99.9, -0.5, -0.99, -1.5, -2.5, -99.9)
    yield CastSample(name="fractions", values=cut, sources="f", targets="iu", every_dtype=True)
    not_zero = (0.25, -0.25, 0.5, 0.99, 1e-3, -1e-3, math.nan, math.inf, -math.inf, 0.0, -0.0, 256.0, -1.0, 0.75)
    yield CastSample(name="fractions_are_true", values=not_zero, sources="f", targets="b", every_dtype=True)
    no_low_bits = (*(2**bit for bit in (8, 9, 15, 16, 24, 31, 32, 40, 62)), -256, -512, -(2**32), 0, 768)
    yield CastSample(name="no_low_bits_are_true", values=no_low_bits, sources="iu", targets="b", every_dtype=True)
    tiny = (1e-40, -1e-40, 1e-45, 6e-8, -6e-8, 0.0, -0.0)
    yield CastSample(name="denormals_are_true", values=tiny, sources="f", targets="b", every_dtype=True)
    beyond = (1e5, -1e5, 65536.0, 1e30, 1e39, -1e39, 1e300, math.inf, -math.inf)
    yield CastSample(name="overflow", values=beyond, sources="f", targets="f", narrower=True, every_dtype=True)
    yield CastSample(name="nan", values=(math.nan, 1.0, -math.nan), sources="f", targets="f", every_dtype=True)
    yield CastSample(name="denormals", boundary="denormals", sources="f", targets="f", every_dtype=True)
    ties = (1 + 2**-11, 1 + 3 * 2**-11, 1 + 2**-24, 1 + 3 * 2**-24, 2049.0, 2051.0, -2049.0, 1 / 3, 2 / 3, 0.1, 65503.0)
    yield CastSample(
        name="rounding", only_cast=True, values=ties, sources="f", targets="f", narrower=True, every_dtype=True
    )
    yield CastSample(
        name="roundings",
        only_cast=True,
        boundary="roundings",
        sources="f",
        targets="f",
        narrower=True,
        every_dtype=True,
    )
    whole = (2049, 2051, -2049, 2**24 + 1, 2**24 + 3, -(2**24) - 1, 2**53 + 1, 2**53 + 3, 2**62 + 1, 2**64 - 1, 65519)
    yield CastSample(
        name="rounding_of_integers", only_cast=True, values=whole, sources="iu", targets="f", every_dtype=True
    )
    large = (65520 + 64, 70000, 10**6, -(10**6), 2**31 - 1, 2**63 - 1, 2**64 - 1)
    yield CastSample(
        name="integers_beyond_float16",
        only_cast=True,
        values=large,
        sources="iu",
        targets="f",
        narrower=True,
        every_dtype=True,
    )
    edges = tuple(float(sign * 2**bits) for bits in (7, 8, 15, 16, 30, 31, 32, 52, 62, 63) for sign in (1, -1))
    yield CastSample(name="powers_of_two", only_cast=True, values=edges, sources="f", targets="iu", every_dtype=True)
    lower_bits = (200, 300, -129, -200, 32768, 40000, 65535, 65536, 2**31, 2**32 - 1, 2**32 + 5, -(2**31) - 1, 2**63)
    yield CastSample(name="lower_bits", only_cast=True, values=lower_bits, sources="iu", targets="iu", every_dtype=True)


def _shapes() -> Iterator[CastSample]:
    for rank in (*range(9),):
        shape = tuple(2 + axis % 2 for axis in range(rank))
        yield CastSample(name=f"rank_{rank}", rank=rank, shape=shape, pair=SHAPES_OF)
    shapes = {
        "size_0": (0,),
        "size_0_inside": (2, 0, 3),
        "size_1": (1, 1),
        "length_1025": (1025,),
        "length_4097": (4097,),
    }
    for name, shape in shapes.items():
        yield CastSample(name=name, shape=shape, pair=SHAPES_OF)
    for source, target in (("float32", "int32"), ("int64", "float32"), ("float32", "bool"), ("bool", "float32")):
        yield CastSample(
            name=f"length_1025_{source}_to_{target}", shape=(1025,), pair=(source, target), every_dtype=True
        )
    yield CastSample(name="every_way", shape=(4, 3), pair=SHAPES_OF, spread=True)
    yield CastSample(name="like_scalar", like=(), pair=SHAPES_OF)
    yield CastSample(name="like_size_0", like=(0, 2), pair=SHAPES_OF)
    yield CastSample(name="like_of_higher_rank", like=(2, 1, 3, 2), pair=SHAPES_OF)


def _attributes() -> Iterator[CastSample]:
    for value in (0, 1):
        attributes: Attributes = (("saturate", value),)
        beyond = (1e5, -1e5, 1.0, math.inf)
        yield CastSample(name=f"saturate_{value}_of_float16", values=beyond, attributes=attributes, pair=SHAPES_OF)
        yield CastSample(
            name=f"saturate_{value}_of_int8",
            values=(300, -200, 5),
            attributes=attributes,
            pair=("int32", "int8"),
            every_dtype=True,
        )
    for mode in ("up", "down", "nearest"):
        yield CastSample(
            name=f"round_mode_{mode}", values=(0.1, 2049.0, -0.3), attributes=(("round_mode", mode),), pair=SHAPES_OF
        )
    yield expect_refusal(CastSample(name="to_undefined", only_cast=True, to=0, pair=SHAPES_OF))
    yield expect_refusal(CastSample(name="to_no_type", only_cast=True, to=1000, pair=SHAPES_OF))


def bindings(name: str, sample: CastSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """Values for every pair of dtypes that they are about; shapes and attributes for one pair."""
    known = schema.attribute_names(name, since_version)
    if not all(attribute in known for attribute, _ in sample.attributes) or not _is_about(sample, *dtypes):
        return ()
    return (graph.RUNTIME, graph.SYMBOLIC, graph.CONSTANT) if sample.spread else (graph.RUNTIME,)


def _is_about(sample: CastSample, source_name: str, target_name: str) -> bool:
    if sample.pair is not None:
        return (source_name, target_name) == sample.pair
    source, target = np.dtype(source_name), np.dtype(target_name)
    if source.kind not in sample.sources or target.kind not in sample.targets:
        return False
    if sample.among and not {source_name, target_name} & set(sample.among):
        return False
    if sample.narrower and target.itemsize >= source.itemsize:
        return False
    if source == target and not sample.boundary:
        return False
    return not sample.values or _select_defined(sample.values, source, target).size > 0


def _select_defined(values: Rows, source: np.dtype[Any], target: np.dtype[Any]) -> Array:
    """The values, as the source holds them, whose cast is defined."""
    if source.kind in "iu":
        info = np.iinfo(source)
        return np.array([v for v in values if info.min <= v <= info.max and v == int(v)], source)
    with np.errstate(over="ignore", under="ignore"):
        held = np.array(values).astype(source)
    return held[is_defined(held, target)]


def is_defined(values: Array, target: np.dtype[Any]) -> Array:
    """Everything but floating point that does not fit into an integer type after its fraction is cut off."""
    if values.dtype.kind != "f" or target.kind not in "iu":
        return np.ones(values.shape, np.bool_)
    info = np.iinfo(target)
    low, high = float(info.min), float(int(info.max) + 1)  # both are powers of two, or zero
    with np.errstate(invalid="ignore"):
        whole = np.trunc(values.astype(np.float64))
        return np.asarray((whole >= low) & (whole < high))


def node(name: str, sample: CastSample, context: CaseContext) -> Node:
    """input of any shape and dtype T1; `to`, or the dtype of target_type, is T2."""
    source, target = context.dtypes
    if sample.values:
        values = _select_defined(sample.values, source, target)
    elif sample.boundary == "roundings":
        values = _list_roundings(source, target)
    elif sample.boundary:
        edges = data.denormals(source) if sample.boundary == "denormals" else data.boundary(source)
        values = edges[is_defined(edges, target)]
    else:
        values = _small_numbers(sample.shape, source, target, context.rng)
    attributes: dict[str, Attribute] = dict(sample.attributes)
    operands = [Operand("input", values)]
    if name == "CastLike":
        operands.append(Operand("target_type", np.ones(sample.like, target), parameter=True))
    else:
        attributes["to"] = helper.np_dtype_to_tensor_dtype(target) if sample.to is None else sample.to
    return Node(name, "", context.since_version, tuple(operands), ("output",), attributes)


def _list_roundings(source: np.dtype[Any], target: np.dtype[Any]) -> Array:
    """What lies a quarter, half and three quarters between neighbours of the target: denormals, around its smallest
    normal number, around 1, and below its largest number; of both signs. The source holds all of it."""
    info = np.finfo(target)
    near = [0.0, *(float(info.smallest_subnormal) * k for k in (1, 2, 5)), float(info.tiny) / 2, float(info.tiny)]
    near += [1.0, 1 + float(info.eps), 2 - float(info.eps), 1 / 3, 1000.0, float(info.max) / 3]
    low = np.array(near, target)
    step = (np.nextafter(low, np.asarray(np.inf, target)).astype(np.float64) - low)[:, None]
    positive = (low[:, None] + step * [0.25, 0.5, 0.75]).ravel()
    return np.concatenate([positive, -positive]).astype(source)


def _small_numbers(shape: Shape, source: np.dtype[Any], target: np.dtype[Any], rng: np.random.Generator) -> Array:
    """What every dtype can hold: 0 to 100, below 0 where both have a sign, with fractions where the source has them."""
    if source.kind == "b":
        return rng.integers(0, 2, shape).astype(source)
    low = 0 if "u" in (source.kind, target.kind) else -100
    whole = rng.integers(low, 101, shape)
    return (whole + (0.25 * rng.integers(0, 3, shape) if source.kind == "f" else 0)).astype(source)


def target_of(node: Node) -> np.dtype[Any] | None:
    """The dtype T2; None where `to` names no type."""
    like = node.value("target_type")
    if like is not None:
        return like.dtype
    name = TYPES.get(node.integer("to", 0))
    return None if name is None else np.dtype(name)


TYPES = {
    int(helper.np_dtype_to_tensor_dtype(np.dtype(name))): name for name in sorted(set(schema.NUMPY_NAMES.values()))
}
"""TensorProto.DataType -> numpy dtype name."""


KNOWN: dict[int, str] = {number: name for name, number in TensorProto.DataType.items()}
"""TensorProto.DataType -> how ONNX calls it."""


def truth(node: Node) -> Truth:
    """The page's rules; numpy's casts follow them where they define anything.

    Raises NotImplementedError for a type that numpy lacks.
    """
    values, target = node.array("input"), target_of(node)
    if target is None:
        to = node.integer("to", 0)
        if to in KNOWN and to != TensorProto.UNDEFINED:
            raise NotImplementedError(f"to {KNOWN[to].lower()} this oracle does not cast")
        return Refusal(f"to = {to} is no type that a tensor can be cast to")
    with np.errstate(all="ignore"):
        if target.kind != "f":
            return Outputs((Output(node.outputs[0], values.astype(target), Exact()),))
        exact = values.astype(np.longdouble if values.dtype.kind in "iu" else np.float64)
        return Outputs((_round_floating(node.outputs[0], values, exact, target),))


def _round_floating(name: str, values: Array, exact: Array, target: np.dtype[Any]) -> Output:
    """Exact where the target holds every value of the source, otherwise rounded in either direction.

    The page names no rounding; Direct3D rounds toward zero, IEEE 754 to the nearest, which a target that keeps to it
    has to do.
    """
    if _holds_all(target, values.dtype):
        return Output(name, values.astype(target), Exact())
    with np.errstate(all="ignore"):
        bound = replace(bounds.ulp(1.0, (bounds.WEBNN,), target), is_one_rounding=True)
        return Output(name, values.astype(target), bound, exact.astype(np.float64))


def _holds_all(target: np.dtype[Any], source: np.dtype[Any]) -> bool:
    """Whether a floating type holds every value of another type."""
    if source.kind == "f":
        return source.itemsize <= target.itemsize
    bits = 1 if source.kind == "b" else int(np.iinfo(source).max).bit_length()
    return bits <= bounds.finfo(target).nmant + 1 and bits <= bounds.finfo(target).maxexp


def lower(node: Node) -> Lowering | None:
    """One CAST; to bool a CLIP1 follows it."""
    values, target = node.array("input"), target_of(node)
    if target is None or target.kind == "b" or values.size == 0 or values.ndim > MAX_RANK:
        return None
    tensor, feed = broadcast(values, values.shape)
    result = TensorDesc.of(np.empty(0, target), tensor.sizes)
    return Lowering(Cast(tensor, result), (feed,))


class CastOperator(Operator[CastSample | NarrowSample]):
    """Cast, whose types are also those that numpy lacks."""

    def dtypes(self, since_version: int) -> Iterator[tuple[str, ...]]:
        """numpy's types, and then the narrow ones."""
        yield from super().dtypes(since_version)
        yield from narrow.pairs(self.name, since_version)


def _cast_samples() -> Iterator[CastSample | NarrowSample]:
    yield from samples("Cast")
    yield from narrow.samples()


def _cast_bindings(sample: CastSample | NarrowSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    if isinstance(sample, NarrowSample):
        known = schema.attribute_names("Cast", since_version)
        return narrow.bindings(sample, dtypes) if sample.attributes.keys() <= known else ()
    return () if narrow.is_narrow(dtypes) else bindings("Cast", sample, since_version, dtypes)


def _cast_node(sample: CastSample | NarrowSample, context: CaseContext) -> Node:
    return narrow.node(sample, context) if isinstance(sample, NarrowSample) else node("Cast", sample, context)


def _is_narrow(node: Node) -> bool:
    return node.surroundings is not None or node.array("input").dtype.name in narrow.ONNX_NAMES


def _cast_truth(node: Node) -> Truth:
    return narrow.truth(node) if _is_narrow(node) else truth(node)


def _cast_lower(node: Node) -> Lowering | None:
    """DirectML's CAST has none of the narrow types."""
    return None if _is_narrow(node) else lower(node)


BEYOND = "Cast: a float out of the range of an integer, or NaN: undefined by the page's table"


def _undefined_casts() -> UndefinedSamples:
    x = np.array((1.5, np.nan, np.inf, -np.inf, 3e38, -3e38, 100.0, -0.5), np.float32)
    for name, code in {"int8": 3, "uint8": 2, "int32": 6, "uint32": 12, "int64": 7, "uint64": 13}.items():
        info = np.iinfo(name)
        bad = ~((x >= 0 if info.min == 0 else x > -info.max) & (x < info.max)) & (x != np.float32(-0.5))
        answer = Answer(np.where(bad, 0, np.trunc(x)).astype(name), bad)
        yield UndefinedSample("beyond_the_integers", f"float32-{name}", BEYOND, (x,), (answer,), {"to": code})


UNDEFINED = {"Cast": _undefined_casts}

OPERATORS = declare(
    (
        CastOperator(
            "Cast",
            _cast_samples,
            _cast_bindings,
            _cast_node,
            _cast_truth,
            _cast_lower,
            varied=("T1", "T2"),
            without_rank_dtypes=PAIRS_OF_DTYPES,
        ),
        Operator(
            "CastLike",
            partial(samples, "CastLike"),
            partial(bindings, "CastLike"),
            partial(node, "CastLike"),
            truth,
            lower,
            ("T1", "T2"),
            without_rank_dtypes=PAIRS_OF_DTYPES,
        ),
    ),
    interactions={
        "Cast": (
            Interaction(ABOVE_GROUPS, (Random((DISPATCHED, 64)),), {"to": int(TensorProto.FLOAT16)}, "float32-float16"),
        ),
    },
    undefined=UNDEFINED,
)
