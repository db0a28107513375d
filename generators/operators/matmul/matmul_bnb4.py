"""com.microsoft::MatMulBnb4: A times a matrix of 4-bit floats, FP4 or NF4, with a scale for each block.

Sources: ONNX Runtime's ContribOperators.md; for the values of the 16 codes, which it does not have, what it names: NF4
is that of QLoRA (https://arxiv.org/abs/2305.14314, appendix E), FP4 that of bitsandbytes, whose first element of a byte
is in the high bits, and whose blocks go on over the ends of rows: B is flattened first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from epcheck.generators import graph
from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.declaration.parameter_space import ParameterSpace, Parts, Values
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import NO_KERNEL, Operator, declare, spread
from epcheck.generators.oracle_math.packing import pack_levels, unpack_levels
from epcheck.generators.truth import Outputs, Refusal, Truth

DECLARES = ("com.microsoft::MatMulBnb4",)

MICROSOFT = "com.microsoft"
FP4, NF4 = 0, 1

_MAGNITUDES = (0.0, 1 / 192, 2 / 3, 1.0, 1 / 3, 1 / 2, 1 / 6, 1 / 4)
CODES: Mapping[int, Array] = {
    FP4: np.array([*_MAGNITUDES, *(-each for each in _MAGNITUDES)]),
    NF4: np.array([
        -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
        -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634,
        0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
    ]),
}  # fmt: skip
"""quant_type -> the value of each code before it is scaled."""


@dataclass(frozen=True, kw_only=True)
class BnbSample(Sample):
    """A [..., k], or [..., n] where B is not transposed; B [n, k]. fill: the code of every element; None is random.

    positive: nothing is below 0, so that no sum cancels and its bound is a small part of it. attributes: instead of
    those that follow; None leaves one out.
    """

    rows: tuple[int, ...] = (3,)
    k: int = 64
    n: int = 6
    block: int = 16
    quant_type: int = NF4
    transposed: bool = True
    fill: int | None = None
    positive: bool = False
    attributes: Mapping[str, Attribute | None] = field(default_factory=dict)


def samples() -> Iterator[BnbSample]:
    for name, quant_type in (("fp4", FP4), ("nf4", NF4)):
        at = BnbSample(name=name, quant_type=quant_type)
        yield replace(at, every_dtype=True)
        yield replace(at, name=f"{name}_not_transposed", transposed=False, every_dtype=True)
        for block in (32, 64, 128):
            yield replace(at, name=f"{name}_block_{block}", k=256, block=block, every_dtype=block == 64)
        yield replace(at, name=f"{name}_block_over_rows", k=24, block=64)
        yield replace(at, name=f"{name}_odd_elements", k=15, n=3)
        yield replace(at, name=f"{name}_part_of_a_block", k=17, n=5)
        yield replace(at, name=f"{name}_batch", rows=(2, 3))
        for code in range(16):
            yield replace(at, name=f"{name}_code_{code}", fill=code)
        for block in (16, 32, 64):
            yield replace(at, name=f"{name}_block_{block}_positive", block=block, positive=True, every_dtype=True)
    for rows in ((), (1,), (1, 1), (2, 1, 3), (33,)):
        yield BnbSample(name=f"rows_{'_'.join(map(str, rows)) or 'none'}", rows=rows)
    yield BnbSample(name="one_column", n=1)
    yield BnbSample(name="columns_257", n=257)
    yield BnbSample(name="inner_1024", k=1024, rows=(2,), block=128)
    yield BnbSample(name="trans_b_default", attributes={"transB": None})
    yield BnbSample(name="training_mode", attributes={"training_mode": 1})
    yield expect_refusal(BnbSample(name="k_differs", attributes={"K": 32}))
    yield expect_refusal(BnbSample(name="quant_type_2", attributes={"quant_type": 2}))


def bindings(sample: BnbSample, _since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """The page: B is a constant."""
    chosen = spread(sample, first=dtypes == ("float32",), newest=True)
    return tuple(v for v in chosen if v != graph.CONSTANT and (v != graph.RUNTIME or sample.every_dtype))


def node(sample: BnbSample, context: CaseContext) -> Node:
    """A of T1; B uint8 [n k / 2]; absmax of T1 [n k / block]; Y of T1."""
    rng, count = context.rng, sample.n * sample.k
    codes = rng.permutation(np.resize(np.arange(16), count))
    if sample.fill is not None:
        codes[:] = sample.fill
    if sample.positive:
        codes = np.where(CODES[sample.quant_type][codes] < 0, codes ^ 8, codes)
    # pack_levels has the first element in the low bits; here it is in the high ones.
    packed = pack_levels(np.pad(codes, (0, count % 2)).reshape(-1, 2)[:, ::-1].ravel(), 4)
    inner = sample.k if sample.transposed else sample.n
    operands = (
        Operand("A", rng.uniform(0.25 if sample.positive else -1, 1, (*sample.rows, inner)).astype(context.dtype)),
        Operand("B", packed, parameter=True),
        Operand("absmax", rng.uniform(0.5, 2, -(-count // sample.block)).astype(context.dtype), parameter=True),
    )
    attributes: dict[str, Attribute | None] = {
        "K": sample.k,
        "N": sample.n,
        "block_size": sample.block,
        "quant_type": sample.quant_type,
        "transB": int(sample.transposed),
        **sample.attributes,
    }
    present = {name: value for name, value in attributes.items() if value is not None}
    return Node("MatMulBnb4", MICROSOFT, context.since_version, operands, ("Y",), present)


def truth(node: Node) -> Truth:
    """A times B, or its transpose, in float64."""
    a, packed, scales = node.array("A"), node.array("B"), node.array("absmax").astype(np.float64)
    k, n, block = node.integer("K", 0), node.integer("N", 0), node.integer("block_size", 0)
    quant_type, transposed = node.integer("quant_type", 0), node.integer("transB", 1)
    if quant_type not in CODES:
        return Refusal(f"quant_type must be 0 for FP4 or 1 for NF4, not {quant_type}")
    if a.shape[-1] != (k if transposed else n):
        return Refusal(f"A has {a.shape[-1]} columns; K is {k}, N is {n}")
    codes = unpack_levels(packed, 4).reshape(-1, 2)[:, ::-1].ravel()[: n * k]
    weights = CODES[quant_type][codes] * scales[np.arange(n * k) // block]
    b = weights.reshape(n, k)
    b = b.T if transposed else b
    wide = a.astype(np.float64)
    bound = bounds.bound_sum(b.shape[0], a.dtype, abs(wide) @ abs(b), roundings=3)
    return Outputs((bounds.round_output("Y", wide @ b, a.dtype, bound),))


def _make_parts(values: Values, rng: np.random.Generator) -> Parts:
    sample = BnbSample(
        name="",
        rows=(values["rows"],),
        k=values["k"],
        n=values["n"],
        block=values["block_size"],
        quant_type=values["quant_type"],
        transposed=values["transB"] == 1,
    )
    made = node(sample, CaseContext(1, (np.dtype(np.float32),), rng))
    return Parts(tuple(operand.value for operand in made.inputs if operand), dict(made.attributes), (1, 2))


KEY = "com.microsoft::MatMulBnb4"
SPACE = ParameterSpace(
    {"rows": 3, "k": 48, "n": 6},
    _make_parts,
    {"quant_type": (NF4, FP4), "transB": (1, 0), "block_size": (16, 64, 256)},
    {"rows": (1, 17, 257), "k": (1, 16, 17, 257, 1024), "n": (1, 17, 257, 1025)},
    (),
)

OPERATORS = declare(
    (Operator("MatMulBnb4", samples, bindings, node, truth, NO_KERNEL, varied=("T1",), domain=MICROSOFT),),
    parameter_spaces={KEY: SPACE},
)
