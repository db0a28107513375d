"""The parameter spaces of windows: Conv, ConvTranspose and pooling share an image and the parameters of a window."""

from __future__ import annotations

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.declaration.parameter_space import ANY_NUMBER, Values
from epcheck.generators.node import Attribute

WINDOW = {
    "kernel_shape": ((3, 3), (1, 1), (2, 1), (1, 4)),
    "strides": (None, (2, 2), (1, 3)),
    "dilations": (None, (2, 2), (1, 2)),
    "padding": ("", "same", "begin", "end", "SAME_UPPER", "SAME_LOWER", "VALID"),
}
PADS = {"same": (1, 1, 1, 1), "begin": (1, 0, 0, 0), "end": (0, 0, 0, 1)}

IMAGE = {"batch": 1, "channels": 2, "filters": 4, "height": 7, "width": 8}

BORDERS = {"width": (16, 17, 33, 65, 129, 1025), "channels": (1, 3, 4, 17, 33, 65), "filters": (1, 3, 17, 33, 65)}

EXTREMES = ("nan", "inf", *ANY_NUMBER)


def draw_image(values: Values, rng: np.random.Generator) -> Array:
    """float32 [batch, channels, height, width]."""
    shape = tuple(values[name] for name in ("batch", "channels", "height", "width"))
    return rng.uniform(-1, 1, shape).astype(np.float32)


def write_window(values: Values) -> dict[str, Attribute]:
    """The attributes of the window."""
    attributes: dict[str, Attribute] = {
        name: values[name] for name in ("kernel_shape", "strides", "dilations") if values[name]
    }
    padding = values["padding"]
    if padding in PADS:
        attributes["pads"] = PADS[padding]
    elif padding:
        attributes["auto_pad"] = padding
    return attributes


def is_window(values: Values) -> bool:
    """auto_pad together with dilations means different things to different readers of the page."""
    return not (values["padding"] in ("SAME_UPPER", "SAME_LOWER", "VALID") and values["dilations"])
