"""What operators that work element by element have in common: shapes, kinds of values, bindings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from epcheck.generators import data, graph, schema
from epcheck.generators.array import Array
from epcheck.generators.case import Sample
from epcheck.generators.directml import OperatorDesc, TensorDesc
from epcheck.generators.directml.lowering import Lowering, pad_rank
from epcheck.generators.directml.tensor import MAX_RANK
from epcheck.generators.families import borders
from epcheck.generators.node import Attribute
from epcheck.generators.operator import Operator

S = TypeVar("S", bound=Sample)
Limits = Callable[[Any], Sequence[float]]
"""numpy's finfo of a dtype -> boundary values in it."""

SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0)


@dataclass(frozen=True)
class Domain:
    """Where the values of an operator lie.

    low, high: of ordinary values. least, reach: the magnitudes of values from the whole range; None are the smallest
    normal and the largest finite number. signed: both signs have a meaning there. special: of the values that are no
    ordinary numbers those for which the operator is defined. limits: its own boundary values, by their sample's name.
    """

    low: float = -4.0
    high: float = 4.0
    least: float | None = None
    reach: float | None = None
    signed: bool = True
    special: tuple[float, ...] = SPECIAL
    limits: Mapping[str, Limits] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ElementwiseSample(Sample):
    """values: a name in the domain's limits or a kind, see `values_of`. attributes: of the node, by name.

    every_binding: the sample is worth a case in each way for its inputs to enter the model.
    """

    shape: tuple[int, ...] = (3, 7)
    values: str = "ordinary"
    attributes: tuple[tuple[str, Attribute], ...] = ()
    every_binding: bool = False


INTEGER_KINDS = frozenset({"boundary", "small_integers", "zero"})
"""The values that integers have, in each of their types; the others are those of floating-point types."""


def both_signs(*values: float) -> list[float]:
    """Each value and its opposite."""
    return [signed for value in values for signed in (value, -value)]


def list_small(info: Any) -> list[float]:
    """Where odd functions are nearly linear, and formulas with exp cancel."""
    return both_signs(*(float(info.tiny) * 2.0**k for k in (0, 1, 3)), float(info.eps), float(info.eps) ** 0.5, 0.01)


def shapes() -> Iterator[tuple[str, tuple[int, ...]]]:
    """Ranks 0 to 8, sizes 0 and 1, lengths beside powers of two and beyond a thread group of 1024."""
    yield "scalar", ()
    for rank in range(1, 9):
        yield f"rank_{rank}", tuple(2 + axis % 2 for axis in range(rank))
    yield "size_0", (0,)
    yield "size_0_inside", (2, 0, 3)
    yield "size_1", (1, 1)
    yield "length_255", (255,)
    yield "length_1025", (1025,)
    yield "odd_sizes", (3, 5, 7, 11)
    yield "length_4097", (4097,)


def samples(domain: Domain) -> Iterator[ElementwiseSample]:
    """The samples of an operator of one input without attributes."""
    yield ElementwiseSample(name="ordinary", every_dtype=True, every_binding=True)
    for name, shape in shapes():
        yield ElementwiseSample(name=name, shape=shape, rank=len(shape), every_dtype=name == "length_1025")
    yield from value_samples(domain)
    for size in borders.OF_UNARY:
        yield ElementwiseSample(name=f"length_{size}", shape=(size,))
    for width in borders.WIDTHS:
        yield ElementwiseSample(name=f"special_tail_of_{width}", shape=borders.tail_shape(width), values="special_tail")


def value_samples(domain: Domain, prefix: str = "", **attribute_values: Attribute) -> Iterator[ElementwiseSample]:
    """One sample for each kind of value; with attributes where some are given."""
    attributes = tuple(attribute_values.items())
    kinds = ("whole_range", "special", "denormals", *domain.limits)
    for kind in kinds:
        shape = {"whole_range": (2, 256)}.get(kind, (0,))
        yield ElementwiseSample(
            name=prefix + kind, shape=shape, values=kind, attributes=attributes, every_dtype=True
        )  # fmt: skip


def bindings(sample: ElementwiseSample, _: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """A node of one input has no parameters, so that an initializer would be the constant binding."""
    is_float = np.dtype(dtypes[0]).kind == "f"
    if is_float == (sample.values in INTEGER_KINDS):
        return ()
    if is_float and dtypes != ("float32",) and not sample.every_dtype:
        return ()
    if sample.every_binding and dtypes == ("float32",):
        return (graph.RUNTIME, graph.SYMBOLIC, graph.CONSTANT)
    return (graph.RUNTIME,)


def values_of(sample: ElementwiseSample, domain: Domain, dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    """The values of a sample: ordinary ones in its shape, of the whole range in its shape, boundary values in 1-D."""
    match sample.values:
        case "zero":
            return np.zeros(sample.shape, dtype)
        case "boundary":
            return data.boundary(dtype)
        case "small_integers":
            return rng.permutation(np.arange(0 if dtype.kind == "u" else -60, 60)).astype(dtype)
        case "ordinary":
            return rng.uniform(domain.low, domain.high, sample.shape).astype(dtype)
        case "whole_range":
            return _whole_range(sample.shape, domain, dtype, rng)
        case "special":
            return np.array(domain.special, dtype)
        case "special_tail":
            ordinary = rng.uniform(domain.low, domain.high, sample.shape).astype(dtype)
            return borders.add_tail(ordinary, np.array(domain.special, dtype))
        case "denormals":
            return data.denormals(dtype)
    return np.array(domain.limits[sample.values](np.finfo(dtype)), np.float64).astype(dtype)


def _whole_range(shape: tuple[int, ...], domain: Domain, dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    """Magnitudes whose logarithms are spread evenly between the smallest and the largest."""
    info = np.finfo(dtype)
    least = float(info.tiny) if domain.least is None else domain.least
    reach = min(float(info.max), np.inf if domain.reach is None else domain.reach)
    magnitude = np.exp2(rng.uniform(np.log2(least), np.log2(reach), shape)).clip(least, reach)
    sign = np.where(rng.random(shape) < 0.5, -1.0, 1.0) if domain.signed else 1.0
    return np.asarray(sign * magnitude).astype(dtype)


@dataclass(frozen=True)
class ElementwiseOperator(Operator[S]):
    """An operator whose dtypes are those of its first input, whatever its schema calls their type constraint."""

    def dtypes(self, since_version: int) -> Iterator[tuple[str, ...]]:
        """The dtypes that the schema of that version allows for the first input."""
        constraint = schema.schema(self.name, since_version, self.domain).inputs[0].type_str
        return ((name,) for name in schema.dtypes(self.name, since_version, constraint, self.domain))


def widen_floats(array: Array) -> Array:
    """The values of a floating-point tensor as float64; a scalar stays an array."""
    return np.asarray(array, np.float64)


def lower_tensor(array: Array, describe: Callable[[TensorDesc], OperatorDesc]) -> Lowering | None:
    """The lowering of an operator of one input tensor; None where nothing is executed."""
    if not array.size or array.ndim > MAX_RANK:
        return None
    source = pad_rank(array)
    return Lowering(describe(TensorDesc.of(source)), (source,))
