"""Products and windows: MatMul, Gemm, Conv, ConvTranspose, pooling."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.declaration.parameter_space import (
    ANY_NUMBER,
    ANY_VALUE,
    ParameterSpace,
    Parts,
    Values,
)
from epcheck.generators.node import Attribute

SIZES = (1, 7, 16, 17, 33, 65, 129, 257)
"""Of a side of a matrix: beside the tiles of 8, 16, 32, 64, 128 and 256."""

DEEP = (513, 4097)
"""Of the side over which products are added."""

WINDOW = {
    "kernel_shape": ((3, 3), (1, 1), (2, 1), (1, 4)),
    "strides": (None, (2, 2), (1, 3)),
    "dilations": (None, (2, 2), (1, 2)),
    "padding": ("", "same", "begin", "end", "SAME_UPPER", "SAME_LOWER", "VALID"),
}
PADS = {"same": (1, 1, 1, 1), "begin": (1, 0, 0, 0), "end": (0, 0, 0, 1)}


def spaces() -> Iterator[ParameterSpace]:
    """In a stable order."""
    sides = {"m": (*SIZES, 1025), "n": (*SIZES, 1025), "k": (*SIZES, *DEEP)}
    yield ParameterSpace(
        "MatMul", {"m": 3, "n": 5, "k": 4}, _matmul, borders=sides, empty=("m", "n"), row="k", extremes=ANY_VALUE
    )
    yield ParameterSpace(
        "Gemm",
        {"m": 3, "n": 5, "k": 4},
        _gemm,
        {
            "transA": (0, 1),
            "transB": (0, 1),
            "alpha": (1.0, 0.5, -2.0),
            "beta": (1.0, 0.25, 0.0),
            "C": ("row", "", "scalar", "column", "matrix", "one"),
        },
        sides,
        ("m", "n"),
        row="k",
        extremes=ANY_VALUE,
    )
    image = {"batch": 1, "channels": 2, "filters": 4, "height": 7, "width": 8}
    extents = {"width": (16, 17, 33, 65, 129, 1025), "channels": (1, 3, 4, 17, 33, 65), "filters": (1, 3, 17, 33, 65)}
    choices: dict[str, tuple[Any, ...]] = {**WINDOW, "group": (1, 2), "bias": (True, False)}
    defined = ("nan", "inf", *ANY_NUMBER)
    yield ParameterSpace("Conv", image, _convolution, choices, extents, ("batch",), _is_conv, "width", defined)
    transposed = {**image, "height": 4, "width": 5}
    padded = {**choices, "output_padding": (None, (1, 0), (0, 1))}
    yield ParameterSpace(
        "ConvTranspose", transposed, _transposed, padded, extents, ("batch",), _is_transposed, "width", defined
    )
    pooled = {"width": extents["width"], "channels": (3, 17, 65)}
    for name, own in (
        ("AveragePool", {"count_include_pad": (0, 1)}),
        ("MaxPool", {"indices": (False, True), "storage_order": (0, 1)}),
        ("LpPool", {"p": (2, 1)}),
    ):
        choices = {**WINDOW, "ceil_mode": (0, 1), **own}
        values = ANY_VALUE[1:] if name == "MaxPool" else defined
        is_valid = partial(_is_pool, name)
        yield ParameterSpace(
            name, image, partial(_pooling, name), choices, pooled, ("batch",), is_valid, "width", values
        )


def _matrix(rng: np.random.Generator, *shape: int) -> Array:
    return rng.uniform(-1, 1, shape).astype(np.float32)


def _matmul(values: Values, rng: np.random.Generator) -> Parts:
    m, n, k = (values[name] for name in "mnk")
    return Parts((_matrix(rng, m, k), _matrix(rng, k, n)))


def _gemm(values: Values, rng: np.random.Generator) -> Parts:
    m, n, k = (values[name] for name in "mnk")
    a = _matrix(rng, *((k, m) if values["transA"] else (m, k)))
    b = _matrix(rng, *((n, k) if values["transB"] else (k, n)))
    shapes = {"row": (n,), "scalar": (), "column": (m, 1), "matrix": (m, n), "one": (1,)}
    c = (np.asarray(_matrix(rng, *shapes[values["C"]])),) if values["C"] else ()
    return Parts((a, b, *c), {name: values[name] for name in ("transA", "transB", "alpha", "beta")}, (1,))


def _window(values: Values) -> dict[str, Attribute]:
    found: dict[str, Attribute] = {
        name: values[name] for name in ("kernel_shape", "strides", "dilations") if values[name]
    }
    padding = values["padding"]
    if padding in PADS:
        found["pads"] = PADS[padding]
    elif padding:
        found["auto_pad"] = padding
    return found


def _is_window(values: Values) -> bool:
    """auto_pad together with dilations means different things to different readers of the page."""
    return not (values["padding"] in ("SAME_UPPER", "SAME_LOWER", "VALID") and values["dilations"])


def _is_conv(values: Values) -> bool:
    return _is_window(values)


def _convolution(values: Values, rng: np.random.Generator) -> Parts:
    group, filters = values["group"], values["filters"]
    x = _matrix(rng, values["batch"], values["channels"], values["height"], values["width"])
    w = _matrix(rng, filters, values["channels"] // group, *values["kernel_shape"])
    bias = (_matrix(rng, filters),) if values["bias"] else ()
    return Parts((x, w, *bias), {**_window(values), "group": group}, (1, 2)[: 1 + len(bias)])


def _is_transposed(values: Values) -> bool:
    """An output padding is smaller than stride or dilation; SAME crops, and what is left are elements."""
    strides, dilations = (values[name] or (1, 1) for name in ("strides", "dilations"))
    reach = [(k - 1) * d + 1 for k, d in zip(values["kernel_shape"], dilations, strict=True)]
    extra, padding = values["output_padding"] or (0, 0), values["padding"]
    if any(e >= max(s, d) for e, s, d in zip(extra, strides, dilations, strict=True) if e):
        return False
    if padding.startswith("SAME") and any(r + e < s for r, e, s in zip(reach, extra, strides, strict=True)):
        return False
    return _is_window(values)


def _transposed(values: Values, rng: np.random.Generator) -> Parts:
    group, filters = values["group"], values["filters"]
    x = _matrix(rng, values["batch"], values["channels"], values["height"], values["width"])
    w = _matrix(rng, values["channels"], filters // group, *values["kernel_shape"])
    bias = (_matrix(rng, filters),) if values["bias"] else ()
    extra = {"output_padding": values["output_padding"]} if values["output_padding"] else {}
    return Parts((x, w, *bias), {**_window(values), **extra, "group": group}, (1, 2)[: 1 + len(bias)])


def _is_pool(name: str, values: Values) -> bool:
    """Padding has to be smaller than the kernel, and ceil_mode is about pads that are given."""
    kernel, padding = values["kernel_shape"], values["padding"]
    if padding in PADS and any(pad >= side for pad, side in zip(PADS[padding], kernel * 2, strict=True)):
        return False
    if values["ceil_mode"] and (padding not in ("", *PADS) or name == "LpPool"):
        return False
    return _is_window(values)


def _pooling(name: str, values: Values, rng: np.random.Generator) -> Parts:
    x = _matrix(rng, values["batch"], values["channels"], values["height"], values["width"])
    own = {key: values[key] for key in ("ceil_mode", "count_include_pad", "storage_order", "p") if key in values}
    outputs = (True, values["indices"]) if name == "MaxPool" else ()
    return Parts((x,), {**_window(values), **own}, (), outputs)
