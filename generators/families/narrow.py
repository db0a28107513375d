"""Casts to and from the types that numpy lacks: 8-bit and 4-bit floating point, bfloat16, integers of 4 and 2 bits.

ONNX Runtime takes and gives no numpy array of these types. A case that casts from one has its input as an initializer;
one that casts to it has a second Cast behind the node under test, to a type that holds every value of the narrow one.

Sources: the Cast page, and ONNX's technical pages on float4 and on integers of 4 and 2 bits. To float8 and float4 a
value is rounded to nearest, ties to even. What is then beyond the largest number, and infinity, becomes that number, or
for float8 without `saturate` infinity or NaN; the FNUZ types have no -0, float4 has no NaN. To float8e8m0, powers of
two, `round_mode` says which neighbour is taken; nearest is up where it is a tie. Floating point is rounded to the
nearest integer of 4 or 2 bits, ties to even (of wider ones Cast takes the integer part); integers keep their lower
bits. How a value is rounded to bfloat16 is said nowhere: it is either neighbour, and the nearest where a target keeps
to IEEE 754. Left out are what is beyond the range of an integer, and what the page leaves open for float8e8m0: 0 and
less than 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import ml_dtypes
import numpy as np
from onnx import helper

from epcheck.generators import graph, schema
from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds
from epcheck.generators.case import CaseContext, Sample
from epcheck.generators.node import Attribute, Node, Operand, Surroundings
from epcheck.generators.oracle_math import quantization
from epcheck.generators.truth import Output, Outputs, Truth

FLOAT8 = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
E8M0 = "float8_e8m0fnu"
FLOAT4 = "float4_e2m1fn"
FLOATS = (*FLOAT8, E8M0, FLOAT4, "bfloat16")
INTEGERS = quantization.NARROW

ONNX_NAMES: Mapping[str, str] = {
    **dict(zip(FLOAT8, ("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"), strict=True)),
    E8M0: "float8e8m0",
    FLOAT4: "float4e2m1",
    **{name: name for name in ("bfloat16", *INTEGERS)},
}
"""numpy name, of ml_dtypes -> ONNX element type."""


@dataclass(frozen=True, kw_only=True)
class NarrowSample(Sample):
    """values: what is cast, a key of `values_of` or, from a narrow type, 'every_code'. types: the narrow types that the
    sample is about. wide: the other types. attributes: of the node."""

    values: str
    types: tuple[str, ...]
    wide: tuple[str, ...]
    from_narrow: bool = False
    attributes: Mapping[str, Attribute] = field(default_factory=dict)


def samples() -> Iterator[NarrowSample]:
    """Of Cast."""
    integers, halves = tuple(INTEGERS), ("float32", "float16")
    yield NarrowSample(name="every_code", values="every_code", types=FLOATS, wide=("float32",), from_narrow=True)
    yield NarrowSample(name="every_code_to_half", values="every_code", types=FLOAT8, wide=halves[1:], from_narrow=True)
    yield NarrowSample(
        name="every_level", values="every_code", types=integers, wide=("float32", "int32", "int8"), from_narrow=True
    )
    yield NarrowSample(name="every_value", values="held", types=(*FLOATS, *integers), wide=("float32",))
    yield NarrowSample(name="every_value_of_half", values="held", types=FLOAT8, wide=halves[1:])
    yield NarrowSample(name="rounding_to_bfloat16", values="quarters", types=("bfloat16",), wide=halves)
    yield NarrowSample(name="narrow_fractions", values="fractions", types=integers, wide=halves)
    yield NarrowSample(name="narrow_halves", values="halves", types=integers, wide=halves)
    yield NarrowSample(name="narrow_lower_bits", values="lower_bits", types=integers, wide=("int32", "int8", "uint8"))
    for values in ("ties", "beside_ties", "zeros"):
        yield NarrowSample(name=f"float_{values}", values=values, types=(*FLOAT8, FLOAT4), wide=("float32",))
    yield NarrowSample(name="float4_beyond", values="beyond", types=(FLOAT4,), wide=halves)
    settings: dict[str, Mapping[str, Attribute]] = {
        "": {},
        "_saturate_1": {"saturate": 1},
        "_saturate_0": {"saturate": 0},
    }
    for suffix, attributes in settings.items():
        yield NarrowSample(
            name=f"float8_beyond{suffix}", values="beyond", types=FLOAT8, wide=halves, attributes=attributes
        )
    for mode in (None, "up", "down", "nearest"):
        yield NarrowSample(
            name=f"float8_power_of_two{f'_round_mode_{mode}' if mode else ''}", values="between", types=(E8M0,),
            wide=("float32",), attributes={"round_mode": mode} if mode else {},
        )  # fmt: skip


def list_allowed(operator: str, since_version: int) -> tuple[str, ...]:
    """The narrow types that a version of an operator has in its schema, in the order of `ONNX_NAMES`."""
    return tuple(name for name, onnx in ONNX_NAMES.items() if schema.allows(operator, since_version, onnx))


def pairs(operator: str, since_version: int) -> Iterator[tuple[str, str]]:
    """T1 and T2 where one is narrow."""
    for name in list_allowed(operator, since_version):
        for wide in ("float32", "float16", *(("int32", "int8", "uint8") if name in INTEGERS else ())):
            yield from ((wide, name), (name, wide))


def is_narrow(dtypes: tuple[str, ...]) -> bool:
    """Whether one of the types is."""
    return any(name in ONNX_NAMES for name in dtypes)


def bindings(sample: NarrowSample, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """What casts from a narrow type has it as an initializer."""
    source, target = dtypes
    narrow, wide = (source, target) if sample.from_narrow else (target, source)
    if narrow not in sample.types or wide not in sample.wide:
        return ()
    return (graph.CONSTANT,) if sample.from_narrow else (graph.RUNTIME,)


def node(sample: NarrowSample, context: CaseContext) -> Node:
    """input: 1-D, of T1. output: of T2, or, where that is narrow, of float32 or int32, from a second Cast."""
    source, target = context.dtypes
    attributes: dict[str, Attribute] = {**sample.attributes, "to": int(helper.np_dtype_to_tensor_dtype(target))}
    if sample.from_narrow:
        return Node("Cast", "", context.since_version, (Operand("input", codes(source)),), ("output",), attributes)
    back = "int32" if target.name in INTEGERS else "float32"
    to = helper.np_dtype_to_tensor_dtype(np.dtype(back))
    around = Surroundings(
        inputs=("input",),
        outputs=("narrow",),
        results={"output": back},
        types={"T1": source.name, "T2": target.name},
        after=(helper.make_node("Cast", ["narrow"], ["output"], name="back", to=to),),
    )
    values = Operand("input", values_of(sample.values, source, target))
    return Node("Cast", "", context.since_version, (values,), ("output",), attributes, around)


def codes(dtype: np.dtype[Any]) -> Array:
    """Every value of a narrow type, 1-D; of bfloat16 each 61st bit pattern and the last."""
    if dtype.name in INTEGERS:
        low, high = INTEGERS[dtype.name]
        return np.arange(low, high + 1).astype(dtype)
    if dtype.name == "bfloat16":
        return np.append(np.arange(0, 2**16, 61), 2**16 - 1).astype(np.uint16).view(dtype)
    return np.arange(16 if dtype.name == FLOAT4 else 256).astype(np.uint8).view(dtype)


def _list_held(dtype: np.dtype[Any]) -> Array:
    """Every value but NaN, infinity and float32's denormals, float64 and sorted; -0 is 0."""
    with np.errstate(invalid="ignore"):
        wide = codes(dtype).astype(np.float32).astype(np.float64)
    return np.unique(wide[np.isfinite(wide) & ((np.abs(wide) >= 2.0**-126) | (wide == 0))] + 0.0)


def values_of(kind: str, source: np.dtype[Any], target: np.dtype[Any]) -> Array:
    """What is cast to a narrow type, 1-D, of the source's dtype."""
    held = _list_held(target)
    middles = (held[:-1] + held[1:]) / 2
    match kind:
        case "held":
            values = held if target.name in INTEGERS else np.append(held, [np.nan] if target.name in FLOAT8 else [])
        case "ties":
            values = middles
        case "beside_ties":
            nearest = middles.astype(np.float32)
            values = np.concatenate([np.nextafter(nearest, np.float32(side)) for side in (-np.inf, np.inf)])
        case "zeros":
            values = np.array([0.0, -0.0, held[held > 0][0] / 4, -held[held > 0][0] / 4])
        case "beyond":
            most = float(held[-1])
            step = most - float(held[-2])
            beyond = np.array(
                [most, most + step / 4, most + step / 2, most + 0.75 * step, most + step, 2 * most, np.inf]
            )
            values = np.concatenate([beyond, -beyond, [np.nan, 1.0]])
        case "between":
            factors = np.array([1.0, 1.125, 1.25, 1.5, 1.75, 1.99])
            values = np.concatenate([factors * 2.0**exponent for exponent in (-100, -3, -1, 0, 1, 7, 100)])
        case "quarters":
            steps = np.array([0, 1, 2, 126, 127]) + np.array([[0.25], [0.5], [0.75]])
            exponents = np.array([-3, 0, 5, 14, *((-120, -30, 60, 120) if source.itemsize > 2 else ())])
            positive = (2.0**exponents)[:, None, None] * (1 + steps / 128)
            values = np.concatenate([positive.ravel(), -positive.ravel()])
        case "fractions":
            low, high = INTEGERS[target.name]
            each = (0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 5.25, 6.75, -0.25, -0.75, -1.25, -1.75, -5.25, -7.75)
            values = np.array([v for v in each if low <= v <= high])
        case "halves":
            low, high = INTEGERS[target.name]
            values = np.arange(low, high) + 0.5
        case _:
            every = (0, 1, 2, 3, 4, 7, 8, 15, 16, 17, 100, 127, -1, -2, -3, -8, -9, -128, 200, 255, 70000, -(2**31))
            info = np.iinfo(source)
            values = np.array([v for v in every if info.min <= v <= info.max])
    with np.errstate(over="ignore"):
        return values.astype(source)


def truth(node: Node) -> Truth:
    """Exact; a result that is a denormal may be flushed to zero."""
    values = node.array("input")
    if node.surroundings is None:
        target = helper.tensor_dtype_to_np_dtype(node.integer("to", 0))
        if target.kind != "f":
            return Outputs((Output("output", values.astype(np.int64).astype(target)),))
        with np.errstate(invalid="ignore"):
            exact = values.astype(np.float32).astype(np.float64)
    else:
        target, name = np.dtype(np.float32), node.surroundings.types["T2"]
        if name in INTEGERS:
            return Outputs((Output("output", lower_bits(values, name).astype(np.int32)),))
        if name == "bfloat16":
            return Outputs((_round_to_bfloat16(values.astype(np.float64)),))
        exact = round_values(values.astype(np.float64), name, node)
    return Outputs((widen_output("output", exact, target),))


def _round_to_bfloat16(exact: Array) -> Output:
    """bfloat16 values as float32: either neighbour of what bfloat16 does not hold."""
    nearest = exact.astype(np.float32).astype(ml_dtypes.bfloat16).astype(np.float64)
    if bool(((nearest == exact) | np.isnan(exact)).all()):
        return widen_output("output", exact, np.dtype(np.float32))
    single = np.dtype(np.float32)
    bound = bounds.ulp(float(1 << 16), (bounds.WEBNN.add_remark("1 ULP of bfloat16"),), single)
    return Output("output", nearest.astype(single), replace(bound, is_one_rounding=True), exact)


def widen_output(name: str, exact: Array, target: np.dtype[Any]) -> Output:
    """An output all of whose bits are defined, float64, which `target` holds; denormals may be flushed (D3D)."""
    if not np.any((exact != 0) & (np.abs(exact) < float(bounds.finfo(target).tiny))):
        return Output(name, exact.astype(target))
    return bounds.round_output(name, exact, target, bounds.ulp(0.0, (bounds.DENORMALS,), target))


def lower_bits(values: Array, name: str) -> Array:
    """Rounded to nearest, ties to even, then as many bits as the type has; int64."""
    low, high = INTEGERS[name]
    whole = np.rint(values) if values.dtype.kind == "f" else values
    return np.asarray((whole.astype(np.int64) - low) % (high - low + 1) + low)


def round_values(values: Array, name: str, node: Node) -> Array:
    """The value of the narrow type that each becomes, as float64."""
    if name == E8M0:
        return _power_of_two(values, node.text("round_mode", "up"))
    info = ml_dtypes.finfo(name)  # type: ignore[no-untyped-call]
    most, has_infinity = float(info.max), name == "float8_e5m2"
    with np.errstate(all="ignore"):
        exponent = np.maximum(np.floor(np.log2(np.abs(values))), float(info.minexp))
        step = 2.0 ** (exponent - info.nmant)
        near = np.where(np.isfinite(values), np.rint(values / step) * step, values)
    if name == FLOAT4:
        near = np.where(np.isnan(near), most, near)
    beyond = most if name == FLOAT4 or node.integer("saturate", 1) else np.inf if has_infinity else np.nan
    return np.where(np.abs(near) > most, np.copysign(beyond, values), near) + (0.0 if name.endswith("uz") else -0.0)


def _power_of_two(values: Array, mode: str) -> Array:
    below = 2.0 ** np.floor(np.log2(values))
    up = {"up": values > below, "down": np.zeros(values.shape, bool), "nearest": values >= 1.5 * below}[mode]
    return np.where(up, 2 * below, below)
