"""Pad-2 ... 25 -> DML_PADDING1_OPERATOR_DESC.

Sources: the operator pages; the modes are numpy.pad's: `reflect` goes to and fro where it needs more elements than
there are, `wrap` (from 19 on) goes round. Negative pads remove elements; what is added is taken from what is left.
Left out, because the pages do not define it: reflect of a single element, wrap and removal on one axis, any mode but
constant on an axis of length 0, repeated axes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.case import expect_refusal
from epcheck.generators.declaration.interaction import ABOVE_GROUPS, DISPATCHED, Arange, Interaction, Literal, int64s
from epcheck.generators.declaration.optional_io import OptionalIO, each_alone
from epcheck.generators.declaration.parameter_space import Parts, Values
from epcheck.generators.directml.descriptions.movement.layout import Padding1, PaddingMode
from epcheck.generators.directml.lowering import Lowering, pad_rank
from epcheck.generators.directml.tensor import DataType, TensorDesc
from epcheck.generators.families import movement
from epcheck.generators.families.contrib_twin import make_twin
from epcheck.generators.families.movement import (
    Argument,
    Drawn,
    MovementSample,
    RefusedError,
    Typed,
    first_input,
    normalize_axis,
    parameter,
)
from epcheck.generators.node import Node
from epcheck.generators.operator import declare

DECLARES = ("Pad", "com.microsoft::Pad")

WRAP = 19
"""The first version with the mode wrap."""

NUMPY_MODES = {"constant": "constant", "reflect": "reflect", "edge": "edge", "wrap": "wrap"}
CONSTANT = Drawn((), parameter=True)


def _pad(name: str, shape: tuple[int, ...], pads: tuple[int, ...], since: int = 1, until: int = 10**6,
         every_dtype: bool = False, special: bool = False, kinds: str = "bfiu",
         **arguments: Argument) -> MovementSample:  # fmt: skip
    return MovementSample(
        name=name, shape=shape, arguments={"pads": pads, **arguments}, since=since, until=until,
        every_dtype=every_dtype, special=special, kinds=kinds,
    )  # fmt: skip


def samples() -> Iterator[MovementSample]:
    yield from _constant()
    yield from _modes()
    yield from _ranks()
    yield from _axes()
    yield from map(expect_refusal, _list_refused())


def _constant() -> Iterator[MovementSample]:
    yield _pad("defaults", (2, 3), (1, 2, 0, 1))
    yield _pad("special_values", (3, 5), (0, 1, 0, 1), every_dtype=True, special=True)
    yield _pad("constant", (2, 3), (0, 1, 1, 2), every_dtype=True, constant_value=CONSTANT)
    yield _pad("constant_mode_named", (2, 3), (1, 0, 0, 1), mode="constant", constant_value=Typed(7))
    for name, value in {"nan": np.nan, "minus_inf": -np.inf, "minus_0": -0.0, "denormal": 1e-45}.items():
        yield _pad(f"constant_{name}", (2, 3), (1, 0, 0, 2), kinds="f", constant_value=Typed(value))
    yield _pad("value_attribute", (2, 3), (1, 0, 0, 2), every_dtype=True, value=1.5)
    yield _pad("nothing", (2, 3), (0, 0, 0, 0))
    yield _pad("begin_only", (2, 3), (2, 1, 0, 0))
    yield _pad("end_only", (2, 3), (0, 0, 2, 1))
    yield _pad("beyond_the_length", (2, 3), (5, 0, 0, 9))
    yield _pad("negative_begin", (4, 5), (-1, -2, 0, 0))
    yield _pad("negative_end", (4, 5), (0, 0, -2, -1))
    yield _pad("negative_and_positive", (4, 5), (-1, 2, 1, -2))
    yield _pad("negative_to_size_0", (4, 5), (-2, 0, -2, 0))
    yield _pad("size_0_to_2", (0, 3), (1, 0, 1, 0), constant_value=Typed(1))
    yield _pad("size_0_stays", (0, 3), (0, 1, 0, 1))
    yield replace(_pad("scalar", (), ()), rank=0)
    yield _pad("more_than_a_thread_group", (3, 401), (1, 7, 0, 2))


def _modes() -> Iterator[MovementSample]:
    for mode, since in (("reflect", 1), ("edge", 1), ("wrap", WRAP)):
        yield _pad(mode, (3, 4), (1, 2, 2, 3), since, every_dtype=mode == "reflect", mode=mode)
        yield _pad(f"{mode}_special_values", (16,), (3, 3), since, special=True, mode=mode)
        yield _pad(f"{mode}_last_axis", (2, 3, 5), (0, 0, 2, 0, 0, 1), since, mode=mode)
        yield _pad(f"{mode}_nothing", (2, 3), (0, 0, 0, 0), since, mode=mode)
        yield _pad(f"{mode}_length_2", (2,), (1, 1), since, mode=mode)
        yield _pad(f"{mode}_beyond_the_length", (3, 4), (0, 7, 0, 9), since, mode=mode)
        yield _pad(f"{mode}_4d", (1, 2, 3, 4), (0, 0, 1, 1, 0, 0, 2, 2), since, mode=mode)
        yield _pad(f"{mode}_more_than_a_thread_group", (2, 1031), (0, 5, 0, 3), since, mode=mode)
        if mode != "wrap":
            yield _pad(f"{mode}_negative", (4, 6), (-1, 0, 0, -2), since, mode=mode)
            yield _pad(f"{mode}_removed_and_added", (6,), (-1, 2), since, mode=mode)
    yield _pad("edge_length_1", (1,), (2, 3), mode="edge")
    yield _pad("wrap_length_1", (1,), (2, 3), WRAP, mode="wrap")
    yield _pad("reflect_ignores_the_constant", (4,), (1, 2), mode="reflect", constant_value=Typed(9))


def _ranks() -> Iterator[MovementSample]:
    for rank in range(1, 9):
        shape = movement.shape_of_rank(rank)
        pads = tuple((1 if axis in (0, rank - 1) else 0) for axis in range(rank)) + (0,) * (rank - 1) + (1,)
        yield replace(_pad(f"rank_{rank}", shape, pads), rank=rank)
        if rank in (3, 5, 8):
            yield replace(_pad(f"rank_{rank}_edge", shape, pads, mode="edge"), rank=rank)


def _axes() -> Iterator[MovementSample]:
    yield _pad("axes_last", (2, 3, 4), (1, 2), axes=(2,))
    yield _pad("axes_reversed", (2, 3, 4), (1, 2, 3, 0), axes=(2, 0))
    yield _pad("axes_negative", (2, 3, 4), (1, 2), axes=(-2,))
    yield _pad("axes_int32", (2, 3, 4), (1, 0, 0, 2), axes=np.array([0, -1], np.int32))
    yield _pad("axes_all", (2, 3), (1, 0, 2, 3), axes=(0, 1), constant_value=CONSTANT)
    yield _pad("axes_edge", (2, 3, 4), (2, 1), mode="edge", axes=(1,))
    yield _pad("axes_reflect", (2, 3, 4), (2, 1), mode="reflect", axes=(1,))
    yield expect_refusal(_pad("axis_at_rank", (2, 3), (1, 1), axes=(2,)))
    yield expect_refusal(_pad("pads_for_all_axes", (2, 3), (1, 1, 1, 1), axes=(1,)))


def _list_refused() -> Iterator[MovementSample]:
    yield _pad("too_few_pads", (2, 3), (1, 1))
    yield _pad("odd_pads", (2, 3), (1, 1, 1))
    yield _pad("more_removed_than_there_is", (2, 3), (-2, 0, -1, 0))
    yield _pad("unknown_mode", (2, 3), (1, 1, 1, 1), mode="mirror")
    yield _pad("wrap", (3, 4), (1, 1, 1, 1), until=WRAP - 1, mode="wrap")


def _pads(node: Node) -> list[tuple[int, int]]:
    """(begin, end) of every axis of the input. Raises RefusedError."""
    rank, pads, axes = first_input(node).ndim, parameter(node, "pads") or (), parameter(node, "axes")
    axes = tuple(range(rank)) if axes is None else tuple(normalize_axis(axis, rank) for axis in axes)
    if len(pads) != 2 * len(axes):
        raise RefusedError(f"pads has {len(pads)} values for {len(axes)} axes; it must have two for each")
    by_axis = dict(zip(axes, zip(pads[: len(axes)], pads[len(axes) :], strict=True), strict=True))
    return [by_axis.get(axis, (0, 0)) for axis in range(rank)]


def _constant_of(node: Node) -> Any:
    value = node.value("constant_value")
    return first_input(node).dtype.type(node.number("value", 0.0)) if value is None else value.reshape(())[()]


def pad_values(node: Node) -> Array:
    """numpy.pad in the mode of that name, after negative pads have removed their elements."""
    values, pads, mode = first_input(node), _pads(node), node.text("mode", "constant")
    if mode not in NUMPY_MODES or (mode == "wrap" and node.since_version < WRAP):
        raise RefusedError(f"mode '{mode}' is none of those that the page lists")
    if any(size + min(begin, 0) + min(end, 0) < 0 for size, (begin, end) in zip(values.shape, pads, strict=True)):
        raise RefusedError("more elements are removed than the axis has")
    kept = values[tuple(slice(max(-begin, 0), size - max(-end, 0))
                        for size, (begin, end) in zip(values.shape, pads, strict=True))]  # fmt: skip
    added = [(max(begin, 0), max(end, 0)) for begin, end in pads]
    if not pads:
        return values
    more = {"constant_values": _constant_of(node)} if mode == "constant" else {}
    return np.pad(kept, added, NUMPY_MODES[mode], **more)  # type: ignore[call-overload, no-any-return]


def lower(node: Node, outputs: tuple[Array, ...]) -> Lowering | None:
    """Rank padded to four; DirectML adds elements only, and does not go round."""
    pads, mode = _pads(node), node.text("mode", "constant")
    if mode == "wrap" or any(count < 0 for pair in pads for count in pair):
        return None
    values, result = pad_rank(first_input(node)), pad_rank(outputs[0])
    filled = [(0, 0)] * (values.ndim - len(pads)) + pads
    desc = Padding1(
        input_tensor=TensorDesc.of(values),
        output_tensor=TensorDesc.of(result),
        padding_mode={"constant": PaddingMode.CONSTANT, "edge": PaddingMode.EDGE, "reflect": PaddingMode.REFLECTION}[
            mode
        ],
        padding_value_data_type=DataType.of(values.dtype),
        padding_value=str(_constant_of(node) if values.dtype.kind != "b" else int(_constant_of(node))),
        start_padding=tuple(begin for begin, _ in filled),
        end_padding=tuple(end for _, end in filled),
    )
    return Lowering(desc, (values,))


INTERACTIONS: Mapping[str, tuple[Interaction, ...]] = {
    "Pad": (
        Interaction("wrap_what_is_left", (Arange((7,)), int64s(-3, 3)), {"mode": "wrap"}),
        Interaction(ABOVE_GROUPS, (Arange((DISPATCHED, 62)), int64s(0, 1, 0, 1)), {"mode": "edge"}, "int32"),
        Interaction("negative_axis_and_value", (Arange((2, 3)), int64s(1, 1), Literal(7.0), int64s(-1))),
        Interaction("both_ends_cropped", (Arange((5,)), int64s(-1, -1))),
        Interaction("edge_of_one_element_far_away", (Arange((1, 1)), int64s(0, 9, 0, 0)), {"mode": "edge"}),
    ),
}  # fmt: skip

OPTIONAL_IO: Mapping[str, tuple[OptionalIO, ...]] = {
    "Pad": (OptionalIO("axes_all", inputs=each_alone("constant_value", "axes"), versions=(23, 24, 25)),),
}


EDGES = ((0, 0), (1, 0), (0, 2), (3, 1))
"""Of pads, before and after."""


def _list_edges(values: Values) -> tuple[tuple[int, int], ...]:
    return tuple(values[name] for name in ("first", "second", "third"))


def _is_valid(values: Values) -> bool:
    """Reflection has no more elements than the axis less one."""
    sizes = zip(_list_edges(values), (2, 5, 3), strict=True)
    return values["mode"] != "reflect" or all(max(edges) < size for edges, size in sizes)


def _make_parts(values: Values, _: np.random.Generator) -> Parts:
    edges = _list_edges(values)
    pads = np.array([begin for begin, _ in edges] + [end for _, end in edges], np.int64)
    constant = (np.array(-7, np.float32),) if values["mode"] == "constant" else ()
    inputs = (movement.make_ramp(values), pads, *constant)
    return Parts(inputs, {"mode": values["mode"]}, (1, 2)[: 1 + len(constant)])


PARAMETER_SPACES = {
    "Pad": movement.make_movement_space(
        _make_parts,
        {"mode": ("constant", "edge", "reflect"), "first": EDGES[:2], "second": EDGES[::-1], "third": EDGES},
        (),
        _is_valid,
    )
}

PAD = movement.movement("Pad", samples, pad_values, lower)

OPERATORS = declare(
    (PAD, make_twin(PAD, 11)),
    interactions=INTERACTIONS,
    optional_io=OPTIONAL_IO,
    parameter_spaces=PARAMETER_SPACES,
)
