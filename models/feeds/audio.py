"""Which inputs of a model are samples of sound, and how many of them a model wants.

A model of speech cuts the sound into frames: with fewer samples than a frame it fails, or pads what is not there. A
second at 16 kHz is enough for those that take a whole recording. A model that carries a state from call to call takes
one frame at a time, of 512 samples as voice activity detectors have it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import onnx

from epcheck.models.feeds import constants
from epcheck.models.feeds.uses import Use, Uses

RATE = 16_000
"""Samples in a second, where the model does not say otherwise."""

SECOND, FRAME = RATE, 512
"""Default number of samples, of a model without and with a state."""

KERNEL = 8
"""The least length of a kernel that listens to samples; a shorter one smooths another series."""

SOUND = re.compile(r"wave|audio|pcm|speech|sound", re.IGNORECASE)
NO_SOUND = re.compile(r"feat|mel|spec|embed|mask|len|token|state|cache", re.IGNORECASE)
SAMPLE_RATE = re.compile(r"^(sr|fs|rate|sample_?rate|sampling_?rate|sample_?freq\w*)$", re.IGNORECASE)
STATE = re.compile(r"^([hc](_?[0n0-9])?|.*state.*|.*hidden.*|context|.*cache.*)$", re.IGNORECASE)

Inputs = Mapping[str, onnx.TypeProto.Tensor]
"""Name -> type of the inputs that must be fed."""


def inputs_of_sound(model: onnx.ModelProto, inputs: Inputs) -> dict[str, int]:
    """Input -> the axis of its samples. An input is sound by its name, because the model has a sampling rate beside it,
    or because it is what a convolution of one channel or a Fourier transform reads."""
    possible = {name: axis for name, tensor in inputs.items() if (axis := _axis(tensor)) is not None}
    found = {name: axis for name, axis in possible.items() if SOUND.search(name) and not NO_SOUND.search(name)}
    rest = [name for name in possible if not found and not STATE.match(name) and not NO_SOUND.search(name)]
    if rest and any(SAMPLE_RATE.match(name) for name in inputs):
        return {rest[0]: possible[rest[0]]}
    if rest:
        uses, shapes = Uses(model), constants.shapes(model)
        found = {name: possible[name] for name in rest if any(_hears(use, shapes) for use in uses.of(name))}
    return found


def samples(model: onnx.ModelProto, inputs: Inputs) -> dict[tuple[str, int], int]:
    """(input, axis) -> the default number of samples there, of the inputs that are sound."""
    count = FRAME if any(STATE.match(name) for name in inputs) else SECOND
    return dict.fromkeys(inputs_of_sound(model, inputs).items(), count)


def _axis(tensor: onnx.TypeProto.Tensor) -> int | None:
    """The axis of the samples, where a tensor can be sound at all: one, or a batch of one channel, of dynamic length or
    of a frame at least."""
    sizes = [dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else None for dim in tensor.shape.dim]
    floating = tensor.elem_type in (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE)
    if not floating or not 1 <= len(sizes) <= 3:
        return None
    axis = len(sizes) - 1
    if len(sizes) == 3 and sizes[1] != 1:
        if sizes[2] != 1:
            return None
        axis = 1
    size = sizes[axis]
    return axis if size is None or size >= FRAME // 2 else None


def _hears(use: Use, shapes: Mapping[str, tuple[int, ...]]) -> bool:
    if use.index or use.node.op_type not in ("Conv", "STFT", "DFT"):
        return False
    weights = shapes.get(use.input(1), ())
    return use.node.op_type != "Conv" or (len(weights) == 3 and weights[1] == 1 and weights[2] >= KERNEL)
