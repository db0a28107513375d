"""Values of whole models as tensors: sequences, maps, text and optionals."""

from __future__ import annotations

from typing import Any

import numpy as np


def name_outputs(names: list[str], values: list[Any]) -> dict[str, Any]:
    """The outputs of a session by name, without those for which it gave nothing.

    A runtime gives None where a fusion has removed the output that was asked for (onnxruntime-directml 1.20.1,
    docs/findings/graphs/several_nodes.md); who judges the outputs finds it missing.
    """
    return {name: value for name, value in zip(names, values) if value is not None}


def flatten_values(values: dict[str, Any]) -> dict[str, Any]:
    """Every tensor in what a session gives: those of a sequence `s` as `s[0]`, ..., of a map `m` as `m.keys` and
    `m.values`, text as bytes; an optional that is empty has none."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if value is None:
            continue
        if isinstance(value, list):
            found.update(flatten_values({f"{name}[{index}]": each for index, each in enumerate(value)}))
            continue
        if isinstance(value, dict):
            keys = np.array(list(value))
            if keys.dtype.kind == "i":
                keys = keys.astype(np.int64)  # numpy 1 on Windows makes int32 of Python's int
            found.update(flatten_values({f"{name}.keys": keys, f"{name}.values": np.array(list(value.values()))}))
            continue
        array = np.asarray(value)
        found[name] = text_as_bytes(array) if array.dtype.kind in "OSU" else array
    return found


def text_as_bytes(text: Any) -> Any:
    """An array of text as uint8 of one more axis: UTF-8, padded with zeros."""
    encoded = np.char.encode(text.astype(str), "utf-8")
    width = max(encoded.dtype.itemsize, 1)
    return np.ascontiguousarray(encoded).astype(f"S{width}").reshape(*text.shape, 1).view(np.uint8)


def model_feeds(request: dict[str, Any], tensors: dict[str, Any]) -> dict[str, Any]:
    """The feeds of a whole model, by the names of its inputs: tensors, sequences, text and None.

    tensors: those of the frame after the model; those of sequences are taken out.
    """
    texts = {name: np.array(values, dtype=object).reshape(shape) for name, (shape, values) in request["texts"].items()}
    sequences = {
        name: [tensors.pop(f"{name}[{index}]") for index in range(length)]
        for name, length in request["sequences"].items()
    }
    return {**tensors, **sequences, **texts, **dict.fromkeys(request["absent"])}


def differing(first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    """Names of what is not the same to the last bit in both."""
    before, after = flatten_values(first), flatten_values(second)
    return [
        name
        for name in sorted({*before, *after})
        if name not in before
        or name not in after
        or (before[name].shape, before[name].tobytes()) != (after[name].shape, after[name].tobytes())
    ]
