"""DFT (17, 20) and STFT (17): shaders of the DML EP, no DirectML operators to lower to.

Sources: the operator pages. The truth is the defining sum in float64. The bound admits every sensible algorithm:
direct summation (gamma(n)), a fast transform (Higham, theorem 24.2: log2(n) roundings of butterflies, relative to the
norm), and Bluestein's, which makes three transforms of less than four times the length. Each is relative to
sqrt(n) * ||x||, the norm of the spectrum; the sum of the magnitudes is no greater (Cauchy and Schwarz).

The pages write floor(n / 2) + 1 as the last index of a one-sided spectrum and as its length; the length is meant. What
the imaginary part of the first and the middle value of a one-sided spectrum does to its inverse is open: they are 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from epcheck.generators import graph, schema
from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.citation import Citation, CitationKind, Publisher
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import SHADERS, Operator, spread
from epcheck.generators.truth import Outputs, Refusal, Truth

DECLARES = (
    "DFT",
    "STFT",
)

SOURCES = (
    bounds.HIGHAM,
    Citation(CitationKind.DERIVED, "theorem 24.2: fast Fourier transform", Publisher.HIGHAM, "24.2"),
)
ROUNDINGS = 8
"""Of one butterfly: a complex product with a computed twiddle factor, and a sum."""


@dataclass(frozen=True, kw_only=True)
class DftSample(Sample):
    """shape: of the input, its last dimension 1 (real) or 2 (complex). length: dft_length; None leaves it out.

    axis: None leaves it out. length_dtype: of dft_length. values: `distinct`, `impulse`, `constant`, `wave`, `zeros`,
    or `spectrum`, one that a real signal of `length` has.
    """

    shape: tuple[int, ...] = (2, 10, 1)
    length: int | None = None
    length_dtype: str = "int64"
    axis: int | None = None
    inverse: int | None = None
    onesided: int | None = None
    values: str = "distinct"


def dft_samples() -> Iterator[DftSample]:
    for parts, name in ((1, "real"), (2, "complex")):
        yield DftSample(name=name, shape=(2, 10, parts), every_dtype=True)
        yield DftSample(name=f"{name}_inverse", shape=(2, 10, parts), inverse=1, every_dtype=parts == 2)
        yield from _lengths(name, parts)
        yield from _axes(name, parts)
        for values in ("impulse", "constant", "wave", "zeros"):
            for inverse in (0, 1):
                yield DftSample(name=f"{name}_{values}{'_inverse' if inverse else ''}", shape=(3, 12, parts),
                                inverse=inverse, values=values)  # fmt: skip
    yield from _list_onesided()
    yield from map(expect_refusal, _list_refused_dfts())


def _lengths(name: str, parts: int) -> Iterator[DftSample]:
    for size in (1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 64, 100, 127, 128, 257, 1024, 1031):
        shape = (1, size, parts) if size > 100 else (2, size, parts)
        yield DftSample(name=f"{name}_of_{size}", shape=shape, every_dtype=size in (16, 17))
        if parts == 2:
            yield DftSample(name=f"{name}_of_{size}_inverse", shape=shape, inverse=1)
    for length in (1, 4, 7, 10, 13, 16, 32, 37):
        for inverse in (0, 1):
            yield DftSample(
                name=f"{name}_length_{length}{'_inverse' if inverse else ''}",
                shape=(2, 10, parts),
                length=length,
                inverse=inverse,
                every_dtype=length == 7 and not inverse,
            )
    for length in (6, 14):
        yield DftSample(name=f"{name}_length_{length}_int32", shape=(2, 10, parts), length=length, length_dtype="int32")


def _axes(name: str, parts: int) -> Iterator[DftSample]:
    for axis in (0, 1, 2, -2, -3, -4):
        for length in (None, 6):
            yield DftSample(
                name=f"{name}_axis_{'minus_' if axis < 0 else ''}{abs(axis)}" + (f"_length_{length}" if length else ""),
                shape=(3, 4, 5, parts),
                axis=axis,
                length=length,
                every_dtype=axis == 0 and length is None,
            )
        yield DftSample(name=f"{name}_axis_{'minus_' if axis < 0 else ''}{abs(axis)}_inverse", shape=(3, 4, 5, parts),
                        axis=axis, inverse=1)  # fmt: skip
    yield DftSample(name=f"{name}_default_axis_of_rank_4", rank=4, shape=(3, 4, 5, parts))
    for rank in (2, 3, 5, 6):
        shape = (*(2 + axis % 2 for axis in range(rank - 1)), parts)
        yield DftSample(name=f"{name}_rank_{rank}_first_axis", rank=rank, shape=shape, axis=0)
        yield DftSample(name=f"{name}_rank_{rank}_last_axis", rank=rank, shape=shape, axis=-2)


def _list_onesided() -> Iterator[DftSample]:
    for size in (1, 2, 3, 8, 9, 10, 16, 17, 33):
        yield DftSample(name=f"onesided_of_{size}", shape=(2, size, 1), onesided=1, every_dtype=size in (8, 9))
    for length in (4, 7, 16, 17):
        yield DftSample(name=f"onesided_length_{length}", shape=(2, 10, 1), onesided=1, length=length)
        yield DftSample(name=f"onesided_0_length_{length}", shape=(2, 10, 1), onesided=0, length=length)
    yield DftSample(name="onesided_axis_0", shape=(9, 2, 3, 1), onesided=1, axis=0)
    yield DftSample(name="onesided_axis_2", shape=(2, 3, 8, 1), onesided=1, axis=2)
    for length in (2, 3, 8, 9, 16, 17):
        yield DftSample(name=f"onesided_inverse_length_{length}", shape=(2, length // 2 + 1, 2), onesided=1, inverse=1,
                        length=length, values="spectrum", every_dtype=length == 9)  # fmt: skip
    for bins in (2, 5, 9):
        yield DftSample(
            name=f"onesided_inverse_of_{bins}", shape=(2, bins, 2), onesided=1, inverse=1, values="spectrum"
        )


def _list_refused_dfts() -> Iterator[DftSample]:
    yield DftSample(name="last_axis", shape=(3, 4, 5, 1), axis=3)
    yield DftSample(name="axis_minus_1", shape=(3, 4, 5, 1), axis=-1)
    yield DftSample(name="axis_beyond_rank", shape=(3, 4, 5, 1), axis=4)
    yield DftSample(name="three_parts", shape=(2, 10, 3))
    yield DftSample(name="length_0", length=0)
    yield DftSample(name="negative_length", length=-4)
    yield DftSample(name="onesided_complex", shape=(2, 10, 2), onesided=1)


def dft_bindings(sample: DftSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    newest = since_version == schema.since_versions("DFT")[-1]
    if (
        sample.onesided
        and sample.inverse
        and "IRFFT" not in schema.schema("DFT", since_version).attributes["onesided"].description
    ):
        return ()
    found = spread(sample, first=dtypes == ("float32",), newest=newest and sample.every_dtype)
    has_parameters = sample.length is not None or (sample.axis is not None and newest)
    return found if has_parameters else tuple(binding for binding in found if binding != graph.RUNTIME)


def dft_node(sample: DftSample, context: CaseContext) -> Node:
    """input [..., 1 or 2] of any float dtype, dft_length a scalar, axis a scalar (an attribute in DFT-17)."""
    inputs: list[Operand | None] = [Operand("input", _signal(sample, context))]
    settings = {"axis": sample.axis, "inverse": sample.inverse, "onesided": sample.onesided}
    attributes: dict[str, Attribute] = {name: value for name, value in settings.items() if value is not None}
    axis_is_input = len(schema.schema("DFT", context.since_version).inputs) > 2
    if sample.length is not None:
        inputs.append(Operand("dft_length", np.array(sample.length, sample.length_dtype), parameter=True))
    if axis_is_input and "axis" in attributes:
        axis = Operand("axis", np.array(attributes.pop("axis"), np.int64), parameter=True)
        inputs += [None] * (2 - len(inputs)) + [axis]
    return Node("DFT", "", context.since_version, tuple(inputs), ("output",), attributes)


def _signal(sample: DftSample, context: CaseContext) -> Array:
    values = context.rng.uniform(-1, 1, sample.shape)
    match sample.values:
        case "impulse":
            values[:] = 0
            values[:, 1] = 1
        case "constant":
            values[:] = 0.75
        case "zeros":
            values[:] = 0
        case "wave":
            values[:] = np.cos(2 * np.pi * 3 * np.arange(sample.shape[1]) / sample.shape[1])[None, :, None]
        case "spectrum":
            length = 2 * (sample.shape[1] - 1) if sample.length is None else sample.length
            values[:, 0, 1] = 0
            if length % 2 == 0:
                values[:, -1, 1] = 0
    return values.astype(context.dtype)


def dft_truth(node: Node) -> Truth:
    """The page's sums, on a signal that is cut or padded with zeros to dft_length."""
    x = node.array("input")
    default = 1 if len(schema.schema("DFT", node.since_version).inputs) < 3 else -2
    given_axis = node.value("axis")
    axis = node.integer("axis", default) if given_axis is None else int(given_axis)
    inverse, onesided = (bool(node.integer(name, 0)) for name in ("inverse", "onesided"))
    if not -x.ndim <= axis < x.ndim or axis % x.ndim == x.ndim - 1:
        return Refusal(f"axis {axis} must be a signal dimension of an input of rank {x.ndim}")
    if x.shape[-1] not in (1, 2):
        return Refusal(f"the last dimension is 1 for real and 2 for complex input, not {x.shape[-1]}")
    axis %= x.ndim
    if onesided and not inverse and x.shape[-1] == 2:
        return Refusal("a one-sided spectrum needs real input")
    padded_length = node.value("dft_length")
    natural = 2 * (x.shape[axis] - 1) if inverse and onesided else x.shape[axis]
    length = natural if padded_length is None else int(padded_length)
    if length < 1:
        return Refusal(f"dft_length must be at least 1, not {length}")
    rows = np.moveaxis(_complex(x), axis, -1)
    if inverse and onesided:
        rows = _mirror_spectrum(rows, length)
    found, floor = transform_rows(rows, length, x.dtype, inverse=inverse)
    if onesided and not inverse:
        found, floor = found[..., : length // 2 + 1], floor[..., : length // 2 + 1]
    parts = [found.real] if inverse and onesided else [found.real, found.imag]
    exact = np.moveaxis(np.stack(parts, -1), -2, axis)
    floors = np.moveaxis(np.stack([floor] * len(parts), -1), -2, axis)
    return Outputs((bounds.round_output("output", exact, x.dtype, bounds.ulp(2.0, SOURCES, x.dtype, floors)),))


def _complex(x: Array) -> Array:
    wide = x.astype(np.float64)
    return wide[..., 0] + 1j * wide[..., 1] if x.shape[-1] == 2 else wide[..., 0].astype(np.complex128)


def _mirror_spectrum(half: Array, length: int) -> Array:
    """The whole spectrum of a real signal from its first floor(length / 2) + 1 values."""
    bins = length // 2 + 1
    kept = half[..., :bins]
    rest = np.conj(kept[..., 1 : length - bins + 1])[..., ::-1]
    return np.concatenate([kept, rest], axis=-1)


def transform_rows(rows: Array, length: int, dtype: np.dtype[np.float64], *, inverse: bool) -> tuple[Array, Array]:
    """The transform of the last axis and the error that a provider may make, both [..., length]."""
    kept = rows[..., :length]
    index = np.arange(length)
    turns = np.outer(np.arange(kept.shape[-1]), index) % length / length
    angles = (2 if inverse else -2) * np.pi * turns
    matrix = np.cos(angles) + 1j * np.sin(angles)  # complex exp is the C library's, another on each system
    found = kept @ matrix
    norm = np.sqrt((np.abs(kept) ** 2).sum(axis=-1, keepdims=True) * length)
    unit = float(bounds.finfo(dtype).eps) / 2
    steps = (length + ROUNDINGS * 3 * np.ceil(np.log2(4 * length))) * unit
    error = np.broadcast_to((steps / (1 - steps) if steps < 0.5 else 2 * steps) * norm, found.shape)
    return (found / length, error / length) if inverse else (found, error)


@dataclass(frozen=True, kw_only=True)
class StftSample(Sample):
    """shape: of the signal. window: its length; None leaves it out. frame: frame_length; None leaves it out."""

    shape: tuple[int, ...] = (2, 32, 1)
    step: int = 4
    window: int | None = None
    frame: int | None = 8
    onesided: int | None = None
    length_dtype: str = "int64"
    window_values: str = "random"


def stft_samples() -> Iterator[StftSample]:
    yield StftSample(name="frame_length", every_dtype=True)
    yield StftSample(name="window", window=8, frame=None, every_dtype=True)
    yield StftSample(name="window_and_frame_length", window=8, every_dtype=True)
    yield StftSample(name="neither_window_nor_frame_length", frame=None)
    for value in (0, 1):
        for parts in (1, 2) if not value else (1,):
            for window in (None, 8, 9):
                yield StftSample(
                    name=f"onesided_{value}_{'complex' if parts == 2 else 'real'}"
                    + (f"_window_{window}" if window else ""),
                    shape=(2, 32, parts),
                    window=window,
                    frame=window or 8,
                    onesided=value,
                    every_dtype=window == 9,
                )
    for step in (1, 2, 3, 5, 8, 9, 16, 24, 25, 100):
        yield StftSample(name=f"step_{step}", step=step, window=8)
        yield StftSample(name=f"step_{step}_without_window", step=step)
    for frame in (1, 2, 3, 7, 16, 17, 31, 32):
        yield StftSample(name=f"frame_length_{frame}", frame=frame)
        yield StftSample(name=f"frame_length_{frame}_with_window", frame=frame, window=frame)
        yield StftSample(name=f"window_{frame}_all_bins", frame=None, window=frame, onesided=0)
    for values in ("ones", "zeros", "hann"):
        yield StftSample(name=f"window_{values}", window=8, window_values=values)
    for name, shape in {"batch_1": (1, 32, 1), "batch_5": (5, 16, 1), "long_signal": (1, 1500, 1),
                        "odd_length": (2, 37, 1)}.items():  # fmt: skip
        yield StftSample(name=name, shape=shape, window=8, step=50 if name == "long_signal" else 4)
    yield StftSample(name="long_frame", shape=(1, 1200, 1), frame=513, window=513, step=300)
    yield StftSample(name="int32_lengths", window=8, length_dtype="int32")
    yield expect_refusal(StftSample(name="window_differs", window=7))
    yield expect_refusal(StftSample(name="step_0", step=0))
    yield expect_refusal(StftSample(name="negative_step", step=-2))
    yield expect_refusal(StftSample(name="frame_longer_than_signal", frame=40))
    yield expect_refusal(StftSample(name="onesided_complex", shape=(2, 32, 2), onesided=1))
    yield expect_refusal(StftSample(name="three_parts", shape=(2, 32, 3), onesided=0))


def stft_bindings(sample: StftSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    del since_version
    if dtypes == ("float32",) and not sample.every_dtype:
        return (graph.INITIALIZER, graph.RUNTIME)
    return spread(sample, first=dtypes == ("float32",), newest=True)


def stft_node(sample: StftSample, context: CaseContext) -> Node:
    """signal [batch, length, 1 or 2], frame_step and frame_length scalars, window [frame_length]."""
    inputs: list[Operand | None] = [
        Operand("signal", context.rng.uniform(-1, 1, sample.shape).astype(context.dtype)),
        Operand("frame_step", np.array(sample.step, sample.length_dtype), parameter=True),
        None if sample.window is None else Operand("window", _window(sample, context), parameter=True),
        None
        if sample.frame is None
        else Operand("frame_length", np.array(sample.frame, sample.length_dtype), parameter=True),
    ]
    while inputs[-1] is None:
        inputs.pop()
    attributes: dict[str, Attribute] = {} if sample.onesided is None else {"onesided": sample.onesided}
    return Node("STFT", "", context.since_version, tuple(inputs), ("output",), attributes)


def _window(sample: StftSample, context: CaseContext) -> Array:
    assert sample.window is not None
    positions = np.arange(sample.window)
    values = {
        "ones": np.ones(sample.window),
        "zeros": np.zeros(sample.window),
        "hann": 0.5 - 0.5 * np.cos(2 * np.pi * positions / sample.window),
    }
    return values.get(sample.window_values, context.rng.uniform(0.1, 1, sample.window)).astype(context.dtype)


def stft_truth(node: Node) -> Truth:
    """The transform of each frame times the window; one rounding for that product is part of the bound."""
    signal, window, frame_length = node.array("signal"), node.value("window"), node.value("frame_length")
    step, onesided = int(node.array("frame_step")), bool(node.integer("onesided", 1))
    if signal.shape[-1] not in (1, 2):
        return Refusal(f"the last dimension is 1 for real and 2 for complex input, not {signal.shape[-1]}")
    size = signal.shape[1]
    frame = int(frame_length) if frame_length is not None else size if window is None else len(window)
    if window is not None and len(window) != frame:
        return Refusal(f"window has {len(window)} elements where frame_length is {frame}")
    if step < 1 or not 1 <= frame <= size:
        return Refusal(f"frame_step {step} and frame_length {frame} do not make a frame of {size} values")
    if onesided and signal.shape[-1] == 2:
        return Refusal("a one-sided spectrum needs a real signal")
    starts = np.arange((size - frame) // step + 1) * step
    frames = _complex(signal)[:, starts[:, None] + np.arange(frame)]
    if window is not None:
        frames = frames * window.astype(np.float64)
    found, floor = transform_rows(frames, frame, signal.dtype, inverse=False)
    if onesided:
        found, floor = found[..., : frame // 2 + 1], floor[..., : frame // 2 + 1]
    exact, floors = np.stack([found.real, found.imag], -1), np.stack([floor, floor], -1)
    return Outputs(
        (bounds.round_output("output", exact, signal.dtype, bounds.ulp(2.0, SOURCES, signal.dtype, floors)),)
    )


OPERATORS = (
    Operator("DFT", dft_samples, dft_bindings, dft_node, dft_truth, SHADERS, varied=("T1",), propagates=("NaN",)),
    Operator("STFT", stft_samples, stft_bindings, stft_node, stft_truth, SHADERS, varied=("T1",), propagates=("NaN",)),
)
