"""The values that a graph input may have, derived from the nodes that use it and from its name.

Sources: the operator pages of ONNX say what an input of a node has to be; names are those of Hugging Face's exporters
(`attention_mask`, `position_ids`), which many models share.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx

from epcheck.generators.array import Array, is_of_ml_dtypes
from epcheck.models.feeds import audio
from epcheck.models.feeds.uses import Use
from epcheck.models.graph.attributes import read_integer
from epcheck.models.graph.skeleton import Shape


@dataclass(frozen=True)
class Whole:
    """Whole numbers from low to high, both included."""

    low: int
    high: int


@dataclass(frozen=True)
class Real:
    """Numbers from low to high, evenly spread."""

    low: float
    high: float


@dataclass(frozen=True)
class Normal:
    """Normally distributed numbers around zero."""

    std: float = 1.0


@dataclass(frozen=True)
class Mask:
    """`kept` up to a random place of the last axis, at least once, and `dropped` behind it."""

    kept: float = 1.0
    dropped: float = 0.0


@dataclass(frozen=True)
class Positions:
    """Consecutive numbers along the last axis, which end where the longest sequence ends; below `rows`."""

    rows: int | None = None


@dataclass(frozen=True)
class Fixed:
    """These values, the first of them repeated in front where there are more elements."""

    values: tuple[float, ...]


@dataclass(frozen=True)
class OneOf:
    """One of these values, the same for all elements."""

    values: tuple[float, ...]


@dataclass(frozen=True)
class Lengths:
    """Whole numbers from half of the longest to the longest, which comes first."""

    longest: int


@dataclass(frozen=True)
class Sound:
    """Samples of sound along an axis, mostly between -1 and 1: tones of random heights, and noise."""

    axis: int


@dataclass(frozen=True)
class Words:
    """Strings: those that the graph knows, and others."""

    known: tuple[str, ...] = ()


LENGTH = re.compile(r"_?(len|lens|length|lengths)$", re.IGNORECASE)
"""The end of the name of an input that has a length for each sample of a batch."""

LAST_IS_TIME = re.compile(r"signal|mel|spec", re.IGNORECASE)
"""Names of inputs of rank 3 whose last axis is time: [batch, channels, time], as NeMo exports them."""

Role = Whole | Real | Normal | Mask | Positions | Fixed | OneOf | Lengths | Sound | Words


@dataclass(frozen=True)
class Known:
    """What is known of the values around the inputs. shapes: value -> sizes. constants: value -> array. sound: input
    that is samples of sound -> the axis of its samples. fed: input -> its shape."""

    shapes: Mapping[str, Shape]
    constants: Mapping[str, Array] = field(default_factory=dict)
    sound: Mapping[str, int] = field(default_factory=dict)
    fed: Mapping[str, Shape] = field(default_factory=dict)

    def size(self, value: str, axis: int) -> int | None:
        """The size of an axis; None where it is not known."""
        shape = self.shapes.get(value, ())
        return shape[axis] if -len(shape) <= axis < len(shape) else None

    def number(self, value: str) -> float | None:
        """The value of a constant with one element."""
        array = self.constants.get(value)
        return (
            float(array.reshape(-1)[0]) if array is not None and array.size == 1 and array.dtype.kind in "fiu" else None
        )


def of_input(name: str, dtype: np.dtype[np.generic] | None, shape: Shape, uses: list[Use], known: Known) -> Role:
    """The role of a graph input. dtype: numpy's; None for strings."""
    if dtype is None:
        return Words(tuple(dict.fromkeys(word for use in uses for word in _words(use))))
    if dtype.kind != "b" and (role := _one_of(name, shape, uses, known)) is not None:
        return role
    if dtype.kind in "biu":
        return _whole(name, dtype, uses, known)
    return _real(name, shape, uses, known)


def _one_of(name: str, shape: Shape, uses: list[Use], known: Known) -> Role | None:
    """A single number that the graph compares with constants is one of them; a sampling rate is the highest."""
    if np.prod([size or 0 for size in shape]) != 1:
        return None
    compared = (known.number(use.input(1 - use.index)) for use in uses if use.node.op_type == "Equal")
    values = tuple(dict.fromkeys(value for value in compared if value is not None))
    if audio.SAMPLE_RATE.match(name):
        return OneOf((max(values, default=float(audio.RATE)),))
    return OneOf(values) if values else None


def _length(name: str, known: Known) -> Role | None:
    """By its name the lengths of the samples of a batch: of the sound, else of the input whose name it has."""
    if len(known.fed.get(name, ())) > 1 or not LENGTH.search(name):
        return None
    axes = dict(known.sound)
    if not axes and (stem := LENGTH.sub("", name).lower()):
        others = {other: shape for other, shape in known.fed.items() if other != name and stem in other.lower()}
        axes = {other: 2 if len(shape) == 3 and LAST_IS_TIME.search(other) else 1 for other, shape in others.items()}
    longest = next((size for other, axis in axes.items() if (size := known.size(other, axis))), None)
    return Lengths(longest) if longest else None


def _whole(name: str, dtype: np.dtype[np.generic], uses: list[Use], known: Known) -> Role:
    found = [role for use in uses if (role := _INDICES.get(_key(use), _nothing)(use, known)) is not None]
    whole = [role for role in found if isinstance(role, Whole)]
    role = Whole(max(w.low for w in whole), min(w.high for w in whole)) if whole else next(iter(found), None)
    if "position" in name.lower() and not isinstance(role, Fixed):
        return Positions(role.high + 1 if isinstance(role, Whole) else None)
    if role is None:
        role = _length(name, known)
    if role is not None:
        return role
    if "mask" in name.lower() or any(_makes_a_mask(use, known) for use in uses):
        return Mask()
    if dtype.kind == "b":
        return Whole(0, 1)
    if dtype.itemsize == 1:
        return Whole(int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))  # type: ignore[type-var]
    return Whole(1, 9) if any(_key(use) in (("Div", 1), ("Mod", 1)) for use in uses) else Whole(0, 9)


def _real(name: str, shape: Shape, uses: list[Use], known: Known) -> Role:
    if "mask" in name.lower():
        additive = next((use.node.op_type == "Add" for use in uses if use.node.op_type in ("Add", "Mul", "Sub")), False)
        return Mask(0.0, -10000.0) if additive else Mask()
    if name in known.sound:
        return Sound(known.sound[name])
    for use in uses:
        rule = _REALS.get(_key(use)) or (_INDICES.get(_key(use)) if "Cast" in use.path else None)
        role = (rule or _nothing)(use, known)
        if role is not None:
            return role
    image = len(shape) == 4 and (shape[1] in (1, 3, 4) or shape[3] in (1, 3, 4))
    return Real(0.0, 1.0) if image else Normal()


def _key(use: Use) -> tuple[str, int]:
    return use.node.op_type, use.index


def _makes_a_mask(use: Use, known: Known) -> bool:
    """1 - x, which is then made a bias of scores; x as a truth value."""
    node = use.node
    if node.op_type == "Sub" and use.index == 1 and "Cast" in use.path:
        return known.number(use.input(0)) == 1
    if node.op_type == "Cast":
        return read_integer(node, "to", 0) == onnx.TensorProto.BOOL
    return (node.op_type, use.index) in (("Where", 0), ("And", 0), ("And", 1))


def _words(use: Use) -> Iterator[str]:
    for attribute in use.node.attribute:
        if attribute.name in ("keys_strings", "cats_strings", "pool_strings", "classlabels_strings", "stopwords"):
            yield from (word.decode(errors="replace") for word in attribute.strings)


Rule = Callable[[Use, Known], Role | None]


def _nothing(_use: Use, _known: Known) -> Role | None:
    return None


def _rows(use: Use, known: Known) -> Role | None:
    """Indices along the axis of the data they select from; 0 where the graph computes its size."""
    axis, shape = read_integer(use.node, "axis", 0), known.shapes.get(use.input(0), ())
    if not -len(shape) <= axis < len(shape):
        return None
    size = 1 if shape[axis] is None else shape[axis]
    return Whole(0, size - 1) if size else None


def _rows_of(index: int) -> Rule:
    """Indices of the rows of another input of the node."""

    def rule(use: Use, known: Known) -> Role | None:
        size = known.size(use.input(index), 0)
        return Whole(0, size - 1) if size else None

    return rule


def _everywhere(use: Use, known: Known) -> Role | None:
    """Indices that any axis of the data has."""
    smallest = min((size for size in known.shapes.get(use.input(0), ()) if size is not None), default=0)
    return Whole(0, smallest - 1) if smallest else None


def _below_depth(use: Use, known: Known) -> Role | None:
    depth = known.number(use.input(1))
    return Whole(0, int(depth) - 1) if depth else None


def _up_to(axis: int, attribute: str = "") -> Rule:
    """Lengths of the data along an axis, or the one that an attribute names."""

    def rule(use: Use, known: Known) -> Role | None:
        size = known.size(use.input(0), read_integer(use.node, attribute, axis))
        return Whole(1, size) if size else None

    return rule


def _axes(use: Use, _known: Known) -> Role | None:
    return Fixed((0.0,)) if use.path == () else None


def _fixed_rule(*values: float) -> Rule:
    return lambda _use, _known: Fixed(values)


def _whole_rule(low: int, high: int) -> Rule:
    return lambda _use, _known: Whole(low, high)


def _real_rule(low: float, high: float) -> Rule:
    return lambda _use, _known: Real(low, high)


def _own_sizes(use: Use, known: Known) -> Role | None:
    shape = known.shapes.get(use.input(0), ())
    return Fixed(tuple(float(size) for size in shape if size is not None)) if None not in shape else None


_INDICES: Mapping[tuple[str, int], Rule] = {
    ("Gather", 1): _rows,
    ("GatherElements", 1): _rows,
    ("ScatterElements", 1): _rows,
    ("GatherND", 1): _everywhere,
    ("ScatterND", 1): _everywhere,
    ("EmbedLayerNormalization", 0): _rows_of(2),
    ("EmbedLayerNormalization", 1): _rows_of(4),
    ("OneHot", 0): _below_depth,
    ("OneHot", 1): _fixed_rule(8),
    ("RNN", 4): _up_to(0),
    ("GRU", 4): _up_to(0),
    ("LSTM", 4): _up_to(0),
    ("ReverseSequence", 1): _up_to(0, "time_axis"),
    ("TopK", 1): _up_to(-1, "axis"),
    ("Range", 0): _fixed_rule(0),
    ("Range", 1): _whole_rule(1, 8),
    ("Range", 2): _fixed_rule(1),
    ("Slice", 1): _fixed_rule(0),
    ("Slice", 2): _fixed_rule(2**31 - 1),
    ("Slice", 3): _axes,
    ("Slice", 4): _fixed_rule(1),
    ("Squeeze", 1): _axes,
    ("Unsqueeze", 1): _axes,
    ("CumSum", 1): _axes,
    ("Trilu", 1): _fixed_rule(0),
    ("Pad", 1): _fixed_rule(0),
    ("Loop", 0): _whole_rule(1, 4),
    ("Reshape", 1): _fixed_rule(1, -1),
    ("Expand", 1): _fixed_rule(1),
    ("Tile", 1): _fixed_rule(1),
    ("ConstantOfShape", 0): _whole_rule(1, 4),
    ("Resize", 3): _own_sizes,
    ("NonMaxSuppression", 2): _whole_rule(1, 10),
}
"""(operator, index of its input) -> the rule for integers there."""


def _steps(use: Use, known: Known) -> Role | None:
    """What a QuantizeLinear can tell apart: its range, not what saturates."""
    scale = known.number(use.input(1))
    if scale is None or scale <= 0:
        return None
    zero_point = known.constants.get(use.input(2))
    dtype = np.dtype(np.uint8) if zero_point is None else zero_point.dtype
    if dtype.kind not in "iu" or is_of_ml_dtypes(dtype):
        return None
    zero = 0 if zero_point is None else int(zero_point.reshape(-1)[0])
    limits = np.iinfo(dtype)
    return Real((limits.min - zero) * scale, (limits.max - zero) * scale)


def _bytes_divided(use: Use, known: Known) -> Role | None:
    """An image whose values are those of bytes, which the model itself divides by 255 or so."""
    number = known.number(use.input(1 - use.index)) if len(use.node.input) == 2 else None
    if number is None or number <= 0:
        return None
    factor = number if use.node.op_type == "Mul" else 1 / number
    return Real(0.0, 255.0) if 1 / 300 <= factor <= 1 / 100 else None


_REALS: Mapping[tuple[str, int], Rule] = {
    ("QuantizeLinear", 0): _steps,
    ("Div", 0): _bytes_divided,
    ("Mul", 0): _bytes_divided,
    ("Mul", 1): _bytes_divided,
    ("Log", 0): _real_rule(0.1, 4.0),
    ("Sqrt", 0): _real_rule(0.0, 4.0),
    ("Reciprocal", 0): _real_rule(0.25, 4.0),
    ("Div", 1): _real_rule(0.25, 4.0),
    ("Acos", 0): _real_rule(-1.0, 1.0),
    ("Asin", 0): _real_rule(-1.0, 1.0),
    ("Atanh", 0): _real_rule(-0.9, 0.9),
    ("Acosh", 0): _real_rule(1.0, 4.0),
    ("Resize", 2): _fixed_rule(1),
    ("Upsample", 1): _fixed_rule(1),
    ("Range", 0): _fixed_rule(0),
    ("Range", 1): _fixed_rule(4),
    ("Range", 2): _fixed_rule(1),
    ("Dropout", 1): _fixed_rule(0.5),
    ("NonMaxSuppression", 3): _real_rule(0.4, 0.6),
    ("NonMaxSuppression", 4): _real_rule(0.0, 0.1),
    ("QuantizeLinear", 1): _real_rule(0.01, 0.1),
    ("DequantizeLinear", 1): _real_rule(0.01, 0.1),
}
"""(operator, index of its input) -> the rule for floating-point numbers there."""
