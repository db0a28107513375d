"""The cases of magnitudes: their samples' names begin with `overflow_`. Inputs and results fit their dtype, and what an
operator computes on the way does not: a square, a sum before it is divided, an exponential, a partial sum.

The true result is a number. A provider that keeps such an intermediate in the dtype of the data gives infinity, NaN or
0: layer normalization in float16 of values around 1,000, a mean of values around 60,000, softmax without subtracting
the largest element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from epcheck.generators import graph
from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase, Case, CaseContext
from epcheck.generators.claims import newest_claimed_version
from epcheck.generators.node import Operand
from epcheck.generators.operator import Operator, build_case, random_source

SOURCE = "magnitudes"
KIND = "overflow"
KINDS = {KIND: "inputs and results that fit the dtype, and intermediate values that do not"}
"""What these cases are called -> what they are aimed at."""

WIDE = frozenset({"exponentials", "cubes"})
"""What leaves the range of float32, too, for numbers that occur; the others do at 1e19, where nobody computes."""
MOST_SAMPLES = 2
LEAST_ELEMENTS = 6
"""Of the data, so that a sum has several terms."""

Draw = Callable[[tuple[int, ...], float, np.random.Generator], Array]
"""(shape, largest number of the dtype, random source) -> float64 values."""


def _draw_squares(shape: tuple[int, ...], largest: float, rng: np.random.Generator) -> Array:
    return np.asarray(np.sqrt(largest) * rng.uniform(1.5, 3, shape) * rng.choice([-1, 1], shape))


def _draw_sums(shape: tuple[int, ...], largest: float, rng: np.random.Generator) -> Array:
    return np.asarray(largest * rng.uniform(0.55, 0.9, shape))


def _draw_exponentials(shape: tuple[int, ...], largest: float, rng: np.random.Generator) -> Array:
    return np.asarray(3 * np.log(largest) - rng.uniform(0, 3, shape))


def _draw_cubes(shape: tuple[int, ...], largest: float, rng: np.random.Generator) -> Array:
    return np.asarray(np.cbrt(largest) * rng.uniform(1.2, 2, shape) * rng.choice([-1, 1], shape))


def _draw_products(shape: tuple[int, ...], largest: float, rng: np.random.Generator) -> Array:
    """The first half of each row is positive, the rest negative: half of a sum of products with `_draw_weights` is too
    large, and the whole is not."""
    signs = np.where(np.arange(shape[-1]) < shape[-1] // 2, 1.0, -1.0)
    return np.asarray(np.sqrt(largest) * signs * rng.uniform(0.98, 1.0, shape))


def _draw_weights(shape: tuple[int, ...], largest: float, rng: np.random.Generator) -> Array:
    return np.asarray(np.sqrt(largest) * rng.uniform(0.98, 1.0, shape) * 0.6)


DRAWS: Mapping[str, Draw] = {
    "squares": _draw_squares,
    "sums": _draw_sums,
    "exponentials": _draw_exponentials,
    "cubes": _draw_cubes,
    "products": _draw_products,
}
"""What leaves the range, of `Operator.magnitudes` -> the data for it."""


def cases(operator: Operator[Any]) -> Iterator[Case]:
    """Those of each of the operator's magnitudes, in the version that is tried in every way."""
    if not operator.magnitudes:
        return
    version = newest_claimed_version(operator.name, operator.domain)
    for dtypes in operator.dtypes(version):
        if dtypes[0] not in ("float16", "float32") or len(set(dtypes)) > 1:
            continue
        for sample, binding in _choose_samples(operator, version, dtypes):
            for magnitude in (m for m in operator.magnitudes if dtypes[0] == "float16" or m in WIDE):
                yield Case(
                    operator.name,
                    operator.domain,
                    version,
                    "-".join(dtypes),
                    f"{KIND}_{magnitude}_{sample.name}",
                    binding,
                    partial(_build, operator, sample, magnitude),
                    kind=KIND,
                    source=SOURCE,
                )


def _choose_samples(operator: Operator[Any], version: int, dtypes: tuple[str, ...]) -> Iterator[tuple[Any, str]]:
    """The first samples that have a case in these dtypes, with its binding, and enough data; of MOST_SAMPLES ranks."""
    ranks: set[int] = set()
    context = CaseContext(version, tuple(map(np.dtype, dtypes)), random_source(operator.key))
    for sample in operator.samples():
        bindings = () if sample.refused else operator.bindings(sample, version, dtypes)
        if not bindings or bindings[0] == graph.SYMBOLIC:
            continue
        data = operator.node(sample, context).inputs[0]
        if data is None or data.value.size < LEAST_ELEMENTS or data.value.ndim in ranks:
            continue
        ranks.add(data.value.ndim)
        yield sample, bindings[0]
        if len(ranks) == MOST_SAMPLES:
            return


def _build(operator: Operator[Any], sample: Any, magnitude: str, case: Case) -> BuiltCase:
    rng, dtypes = random_source(case.id), tuple(map(np.dtype, case.dtype.split("-")))
    node = operator.node(sample, CaseContext(case.since_version, dtypes, rng))
    largest = float(np.finfo(dtypes[0]).max)
    operands = list(node.inputs)

    def put(index: int, draw: Draw) -> None:
        operand = operands[index]
        assert isinstance(operand, Operand)
        operands[index] = replace(operand, value=draw(operand.value.shape, largest, rng).astype(dtypes[0]))

    put(0, DRAWS[magnitude])
    if magnitude == "products":
        put(1, _draw_weights)
    node = replace(node, inputs=tuple(operands))
    return build_case(operator, node, operator.truth(node), case)
