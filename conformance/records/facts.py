"""The facts of a case that a condition may be about, of its record alone: named values, the same for every operator.

A fact is a yes or a no, a number, or a word. Its name is the phrase that a condition is made of: `a value of steps < 0`
is true or false, `rank of data` is 3, `dtype` is `float16`. What is true of few cases (that an input
contains NaN) is stated of those alone, see `missing`; any other fact that a case does not have is unknown, and no
condition about it holds.
"""

from __future__ import annotations

import math
import operator
import re
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from epcheck.conformance.records.case_facts import CaseFacts, Value

Fact = bool | int | float | str
Facts = Mapping[str, Fact]

ANY, FIRST, RESULT = "any input", "the first input", "the first output"
ALONE = "the node is alone"
MULTIPLES = (2, 4, 8, 16, 32, 64, 128, 256)
"""Sizes that kernels work in."""
PARAMETER = 12
"""Elements of an integer input that is read as a parameter: as many as a preview shows."""
DTYPES = {"float": "float", "bfloat": "float", "int": "signed integer", "uint": "unsigned integer", "bool": "bool"}
"""Beginning of a dtype's name -> its kind."""
BOOL_BITS = 8
"""Bits of an element of bool in memory."""
INFINITE = 1024
"""What an infinity counts as among powers of two: beyond that of every finite float64."""
_WIDTH = re.compile(r"(?:bfloat|float|u?int)(\d+)")
_COUNTS = re.compile("size|group|num|channels")
"""In names of attributes that may count channels."""
_OF_SECOND = re.compile(r"[bBw]_(scale|zero_point)")
"""The names that operators have for the scale and the zero point of their second operand."""
_NUMBERED = re.compile(r"_\d+$")
_INTEGERS = re.compile(r"(?:-?\d{1,20}(?:, -?\d{1,20})*)?")
LONGEST_TEXT = 60
"""Characters of an attribute that is compared as a whole."""


def describe_case(case: CaseFacts) -> dict[str, Fact]:
    """Every fact of the case."""
    return {name: value for *_, pairs in _parts(case) for name, value in pairs()}


def missing(fact: str, is_alone: bool = True) -> Fact | None:
    """The value of a fact that a case does not state; None where that is unknown. is_alone: whether the model has one
    node; else nobody says which inputs the node has. A fact about a size is unknown where `size_of` is."""
    if fact.endswith(" is absent"):
        return True if is_alone else None
    return False if any(word in fact for word in _STATED_WHEN_TRUE) else None


def size_of(fact: str) -> str:
    """The size of which a fact says whether it is a multiple; empty for any other fact."""
    size, multiple, _ = fact.partition(_MULTIPLE)
    return size if multiple else ""


_MULTIPLE = " is a multiple of "
_STATED_WHEN_TRUE = (" contains ", " has ties", " twice", _MULTIPLE, "a size of ", "a pair of ", "beside ",
                     " exceeds ")  # fmt: skip


class FactReader:
    """Reads the facts of many cases as numbers: a pair of name and value is one, and cases that share a part of their
    facts share the work. facts: what each number stands for."""

    def __init__(self) -> None:
        self.facts: list[tuple[str, Fact]] = []
        self._numbers: dict[tuple[str, type, Fact], int] = {}
        self._parts: dict[tuple[Any, ...], int] = {}
        self._expanded: list[bytes] = []

    def read(self, case: CaseFacts) -> bytes:
        """The parts of the case's facts, packed for `expand`: there are many cases."""
        numbers = array("I")
        for key, pairs in _parts(case):
            if key not in self._parts:
                self._parts[key] = len(self._expanded)
                self._expanded.append(array("i", [self._number(*pair) for pair in pairs()]).tobytes())
            numbers.append(self._parts[key])
        return numbers.tobytes()

    def expand(self, parts: bytes) -> array[int]:
        """The facts of a case as numbers; of two with one name the last counts."""
        numbers = array("i")
        for part in array("I", parts):
            numbers.frombytes(self._expanded[part])
        return numbers

    def _number(self, name: str, value: Fact) -> int:
        key = name, type(value), value
        if key not in self._numbers:
            self._numbers[key] = len(self.facts)
            self.facts.append((name, value))
        return self._numbers[key]


_Part = tuple[tuple[Any, ...], Callable[[], Iterator[tuple[str, Fact]]]]


def _parts(case: CaseFacts) -> Iterator[_Part]:
    """What the facts of a case are made of: all that a part depends on, and how it is made."""
    yield (case.dtype, case.since_version, case.domain, *case.types.items()), partial(_of_types, case)
    inputs, _ = _split(case)
    shapes = tuple((v.name, v.where, v.shape, v.preview if _is_small(v) else None) for v in case.values)
    yield (case.operator, str(case.attributes), str(case.defaults), case.beside, shapes), partial(_of_node, case)
    axis = _axis({**(case.defaults or {}), **case.attributes}, len(inputs[0].shape)) if inputs else None
    data = ((_names(case, v), v.where == "output", v.dtype, len(v.shape), v.data, v.preview) for v in case.values)
    yield (axis, case.pairs, *data), partial(_of_all_data, case, axis)
    for value in case.values:
        if names := _names(case, value):
            read = "" if value.data else value.preview
            yield (names, value.dtype, len(value.shape), value.data, read), partial(_of_data, names, value)


def _split(case: CaseFacts) -> tuple[list[Value], list[Value]]:
    """The inputs and the outputs."""
    inputs = [value for value in case.values if value.where != "output"]
    return inputs, [value for value in case.values if value.where == "output"]


def _names(case: CaseFacts, value: Value) -> tuple[str, ...]:
    """What facts call an input or output: as the schema does; the first of each has a name that operators share. Those
    of a graph of several nodes, and those of which there may be any number, have no names of their own."""
    is_output = value.where == "output"
    first = next(other for other in case.values if (other.where == "output") == is_output)
    shared = (RESULT if is_output else FIRST,) if value is first else ()
    if case.beside or _NUMBERED.search(value.name):
        return shared
    if found := _OF_SECOND.fullmatch(value.name):
        shared = (f"the {found[1].replace('_', ' ')} of the second operand", *shared)
    return (f"output {value.name}" if is_output else value.name, *shared)


def _of_types(case: CaseFacts) -> Iterator[tuple[str, Fact]]:
    yield "dtype", case.dtype.partition("-")[0]
    yield from _of_kind("dtype", case.dtype)
    yield "version", case.since_version
    yield "domain", case.domain or "ai.onnx"
    if len(case.types) > 1:
        yield from ((f"type {name}", dtype) for name, dtype in case.types.items())


def _of_kind(name: str, dtype: str) -> Iterator[tuple[str, Fact]]:
    """The kind of a dtype, and the bits of an element; nothing of text."""
    if kind := next((kind for begin, kind in DTYPES.items() if dtype.startswith(begin)), ""):
        yield f"kind of {name}", kind
    if found := _WIDTH.match(dtype):
        yield f"bits of {name}", int(found[1])
    elif dtype.startswith("bool"):
        yield f"bits of {name}", BOOL_BITS


def _of_node(case: CaseFacts) -> Iterator[tuple[str, Fact]]:
    """Attributes, parameters, shapes, bindings, and what stands around the node."""
    inputs, outputs = _split(case)
    parameters: dict[str, Any] = {**(case.defaults or {}), **case.attributes}
    yield from ((f"{name} is absent", name not in case.attributes) for name in parameters)
    yield ALONE, not case.beside
    yield from ((f"beside {other}", True) for other in case.beside)
    if not case.beside:
        parameters |= {value.name: numbers for value in inputs if (numbers := _numbers(value)) is not None}
        parameters |= {value.name: reals for value in inputs[1:] if (reals := _reals(value))}
        if "group" in parameters and len(inputs) > 1 and len(inputs[1].shape) > 2:
            parameters.setdefault("kernel_shape", list(inputs[1].shape[2:]))  # as Conv infers it
        yield from _of_broadcast(inputs, outputs)
    for name, values in parameters.items():
        yield from _of_parameter(name, values)
    yield from _of_relations(parameters, inputs)
    for value in case.values:
        for name in _names(case, value):
            yield from _of_value(name, value)
    yield from _of_any(inputs, outputs)
    yield "number of inputs", len(inputs)
    yield "number of outputs", len(outputs)


def _numbers(value: Value) -> list[int] | None:
    """The elements of a small integer input; None of any other."""
    if "int" not in value.dtype or math.prod(value.shape) > PARAMETER or not _INTEGERS.fullmatch(value.preview):
        return None
    if not value.preview:
        return None if math.prod(value.shape) else []
    return [int(text) for text in value.preview.split(", ")]


def _is_small(value: Value) -> bool:
    """Whether the preview may show every element of a parameter."""
    return "int" in value.dtype or (len(value.shape) < 2 and math.prod(value.shape) <= PARAMETER)


def _reals(value: Value) -> list[float]:
    """The elements of a small input of floats with a name that is a word, as `scales` and `min`; none of any other."""
    if "int" in value.dtype or not value.preview or not _is_small(value) or len(value.name) < 2:
        return []
    try:
        numbers = [float(text) for text in value.preview.split(", ")]
    except ValueError:
        return []
    return numbers if all(map(math.isfinite, numbers)) else []


def _of_parameter(name: str, values: Any) -> Iterator[tuple[str, Fact]]:
    """Facts of an attribute in effect, or of the values of a small integer input."""
    if isinstance(values, str | int | float):
        yield name, values
        if name == "equation":
            yield from _of_equation(str(values))
        return
    if not isinstance(values, Sequence) or not all(isinstance(item, int | float | str) for item in values):
        return
    text = ", ".join(map(str, values))
    if len(values) == 1 or (len(text) <= LONGEST_TEXT and not any(isinstance(item, float) for item in values)):
        yield name, values[0] if len(values) == 1 else f"[{text}]"
    yield f"number of values of {name}", len(values)
    numbers = [item for item in values if not isinstance(item, str)]
    if not numbers or len(numbers) < len(values):
        return
    yield f"a value of {name} < 0", min(numbers) < 0
    yield f"a value of {name} = 0", 0 in numbers
    yield f"a value of {name} ≠ 0", any(numbers)
    yield f"a value of {name} > 1", max(numbers) > 1
    yield f"largest value of {name}", max(numbers)
    yield f"smallest value of {name}", min(numbers)
    yield f"first value of {name}", numbers[0]
    yield f"last value of {name}", numbers[-1]
    yield f"two values of {name} > 1", sum(number > 1 for number in numbers) > 1
    yield f"two values of {name} ≠ 0", sum(number != 0 for number in numbers) > 1
    if len(numbers) > 1:
        yield f"all values of {name} are equal", len(set(numbers)) == 1
        yield f"the values of {name} ascend", list(numbers) == sorted(numbers)
        yield f"a value of {name} is there twice", len(set(numbers)) < len(numbers)
        half = len(numbers) // 2
        if name == "pads" and len(numbers) % 2 == 0:
            yield "pads are symmetric", numbers[:half] == numbers[half:]


def _of_equation(equation: str) -> Iterator[tuple[str, Fact]]:
    """Facts of the operands and the result that Einsum's equation names."""
    operands, arrow, _ = equation.replace(" ", "").replace("...", "").partition("->")
    yield "equation has an arrow", bool(arrow)
    yield "equation has an ellipsis", "..." in equation
    yield "an operand of equation has a label twice", any(len(set(term)) < len(term) for term in operands.split(","))


def _of_relations(parameters: Mapping[str, Any], inputs: Sequence[Value]) -> Iterator[tuple[str, Fact]]:
    """How parameters stand to the first input's shape, and to each other."""
    if not inputs:
        return
    first = inputs[0].shape
    axis = _axis(parameters, len(first))
    if not first and parameters.get("axis") == 0:
        yield "axis is the first one", True
    if axis is not None:
        yield "axis is the last one", axis == len(first) - 1
        yield "axis is the first one", axis == 0
        yield "size of the axis", first[axis]
        yield from _of_size("size of the axis", first[axis])
        for value in inputs[1:]:
            if len(value.shape) == 1:
                yield f"number of elements of {value.name} < the size of the axis", value.shape[0] < first[axis]
    yield from _of_axes(parameters.get("axes"), len(first))
    if "keepdims" in parameters and "axis" not in parameters:
        yield from _of_reduced(parameters, first)
    yield from _of_sizes(parameters, inputs)
    for name, values in parameters.items():
        numbers = [values] if isinstance(values, int) else values
        if not isinstance(numbers, list | tuple) or not all(isinstance(item, int) for item in numbers):
            continue
        is_input = any(value.name == name for value in inputs)
        if axis is not None and len(numbers) == 1 and (name == "k" or (is_input and name != "axes")):
            shared = "K" if name == "k" else name  # an input of TopK, an attribute of its first version
            yield f"{shared} = the size of the axis", numbers[0] == first[axis]
            yield f"{shared} > the size of the axis", numbers[0] > first[axis]
        if values is numbers:
            yield f"number of values of {name} < rank of {FIRST}", len(numbers) < len(first)
        if len(numbers) == len(first) and len(first) > 1:
            yield f"a value of {name} > its dimension", any(n > size for n, size in zip(numbers, first, strict=True))
            if sorted(numbers) == list(range(len(first))):
                yield f"{name} moves the last axis", numbers[-1] != len(first) - 1
                yield f"{name} moves the first axis", numbers[0] != 0
        if len(numbers) == 2 * len(first) and first:
            yield (
                f"a value of {name} = its dimension less 1",
                any(n == size - 1 for n, size in zip(numbers, [*first, *first], strict=True)),
            )
            yield (
                f"a value of {name} ≥ its dimension",
                any(n >= size for n, size in zip(numbers, [*first, *first], strict=True)),
            )
    yield from _of_lists(parameters)
    kernel, pads = parameters.get("kernel_shape"), parameters.get("pads")
    if kernel and pads and len(pads) == 2 * len(kernel):
        yield "a pad ≥ the kernel", any(pad >= size for pad, size in zip(pads, [*kernel, *kernel], strict=True))


def _of_lists(parameters: Mapping[str, Any]) -> Iterator[tuple[str, Fact]]:
    """How lists of as many numbers stand to each other, number by number."""
    lists = {
        name: values
        for name, values in parameters.items()
        if isinstance(values, list | tuple) and values and all(isinstance(item, int | float) for item in values)
    }
    for name, values in lists.items():
        for other, others in lists.items():
            if name != other and len(values) == len(others):
                yield f"a value of {name} < that of {other}", any(map(operator.lt, values, others))


def _of_axes(axes: Any, rank: int) -> Iterator[tuple[str, Fact]]:
    """Facts of several axes of the first input."""
    if isinstance(axes, list | tuple) and axes and all(isinstance(axis, int) and -rank <= axis < rank for axis in axes):
        last = {axis % rank == rank - 1 for axis in axes}
        yield "one of axes is the last axis", True in last
        yield "one of axes is another than the last axis", False in last
        yield "one of axes is the first axis", any(axis % rank == 0 for axis in axes)


def _of_reduced(parameters: Mapping[str, Any], shape: Sequence[int]) -> Iterator[tuple[str, Fact]]:
    """Facts of the axes that a reduction reduces: all of them where it has none."""
    axes, rank = parameters.get("axes"), len(shape)
    if axes is not None and not isinstance(axes, list | tuple):
        return
    yield "axes is absent or empty", not axes
    reduced = axes or (() if parameters.get("noop_with_empty_axes") else range(rank))
    yield "number of reduced axes", len(reduced)
    if all(isinstance(axis, int) and -rank <= axis < rank for axis in reduced):
        places = {axis % rank for axis in reduced}
        yield "number of elements reduced to one", math.prod(shape[axis] for axis in places)
        if rank:
            yield "the last axis is reduced", rank - 1 in places
            yield "the first axis is reduced", 0 in places
            yield "the reduced axes are adjacent", max(places, default=0) - min(places, default=0) < max(1, len(places))


def _of_sizes(parameters: Mapping[str, Any], inputs: Sequence[Value]) -> Iterator[tuple[str, Fact]]:
    """How attributes that are sizes stand to each other, and to the channels of a convolution."""
    sizes = {name: value for name, value in parameters.items() if type(value) is int and value > 0}
    for name, size in sizes.items():
        for other, divisor in sizes.items():
            if name != other and divisor > 1:
                yield f"{name} is divisible by {other}", size % divisor == 0
                if name < other:
                    yield f"{name} and {other} are equal", size == divisor
    if inputs and len(inputs[0].shape) > 2:
        for name in filter(_COUNTS.search, sizes):
            yield f"{name} is the number of input channels", sizes[name] == inputs[0].shape[1]
            yield f"{name} is above the number of input channels", sizes[name] > inputs[0].shape[1]
    for value in inputs[1:]:
        if "len" in value.name and inputs[0].shape and (numbers := _numbers(value)):
            yield f"a value of {value.name} < the first size of {FIRST}", min(numbers) < inputs[0].shape[0]
    if "group" in sizes and len(inputs) > 1 and inputs[1].shape:
        yield "group is the number of output channels", sizes["group"] == inputs[1].shape[0]


def _axis(parameters: Mapping[str, Any], rank: int) -> int | None:
    """The one axis of the first input that the node works along; None where there is none."""
    axis = parameters.get("axis", parameters.get("axes"))
    axis = axis[0] if isinstance(axis, list | tuple) and len(axis) == 1 else axis
    if not isinstance(axis, int) or not -rank <= axis < rank:
        return None
    return axis % rank


def _of_value(name: str, value: Value) -> Iterator[tuple[str, Fact]]:
    """Facts of the shape and the binding of an input or output."""
    shape = value.shape
    yield f"rank of {name}", len(shape)
    yield f"number of elements of {name}", math.prod(shape)
    yield from _of_size(f"number of elements of {name}", math.prod(shape))
    if 1 in shape:
        yield f"a size of {name} = 1", True
    if 0 in shape:
        yield f"a size of {name} = 0", True
    if shape:
        yield f"last size of {name}", shape[-1]
        yield f"first size of {name}", shape[0]
        yield from _of_size(f"last size of {name}", shape[-1])
    if len(shape) > 2:
        yield f"second size of {name}", shape[1]
        if name in (FIRST, RESULT):
            yield from _of_size(f"second size of {name}", shape[1])
    if len(shape) == 2:
        yield f"{name} is square", shape[0] == shape[1]
    elif len(shape) > 2 and name == FIRST:
        yield f"{name} is square in its last two axes", shape[-1] == shape[-2]
    if name not in (FIRST, RESULT):
        yield f"{name} is absent", False
        if value.where != "output":
            yield f"{name} is an initializer", value.where == "initializer"


def _of_size(name: str, size: int) -> Iterator[tuple[str, Fact]]:
    yield from ((f"{name}{_MULTIPLE}{multiple}", True) for multiple in MULTIPLES if size % multiple == 0)


def _of_data(names: tuple[str, ...], value: Value) -> Iterator[tuple[str, Fact]]:
    """Facts of the dtype and the elements of an input or output."""
    words = _words(value)
    for name in names:
        if name not in (FIRST, RESULT):
            yield f"dtype of {name}", value.dtype
            yield from _of_kind(f"the dtype of {name}", value.dtype)
        yield from _of_words(name, value, words)


def _of_words(name: str, value: Value, words: set[str]) -> Iterator[tuple[str, Fact]]:
    yield from ((f"{name} contains {CONTAINED[word]}", True) for word in _with_signs(words) if word in CONTAINED)
    if words & {"inf", "-inf"}:
        yield f"{name} contains an infinity", True
    if (power := _read_power(words, "positive 2^")) is None and "positive" in words:
        power = _read_power(words, "2^")
    if power is not None:
        yield f"largest power of two of a positive value in {name}", power
    if {word for word in words if not _TIES.fullmatch(word)} == {"zero"}:
        yield f"{name} contains zeros only", True
    if "zero_point" in value.name and value.where != "output":
        yield f"a value of {name} ≠ 0", bool(words & {"negative", "positive"})
    for kind, phrase in TIES.items():
        axes = {int(found[2]) for word in words if (found := _TIES.fullmatch(word)) and found[1] == kind}
        if axes:
            yield f"{name} has {phrase}", True
            yield from ((f"{name} has {phrase} along axis {axis}", True) for axis in axes)
            if len(value.shape) - 1 in axes:
                yield f"{name} has {phrase} along its last axis", True
    for begin, which in (("2^", "largest"), ("least 2^", "smallest")):
        if (power := _read_power(words, begin)) is not None:
            yield f"{which} power of two in {name}", power
            if which == "smallest" and power < 0:
                yield f"{name} contains a nonzero magnitude below 1", True
    most = INFINITE if words & {"inf", "-inf"} else _read_power(words, "2^")
    if most is not None:
        yield f"largest power of two in {name} with infinities", most


def _with_signs(words: set[str]) -> set[str]:
    """The words, with the signs of infinities, which the record says of finite elements only."""
    return words | {sign for infinity, sign in (("inf", "positive"), ("-inf", "negative")) if infinity in words}


def _words(value: Value) -> set[str]:
    """What the record says of the elements; of a small integer input, which says it with its preview, the same."""
    numbers = None if value.data or len(value.shape) > 1 else _numbers(value)
    if not numbers:
        return set(value.data)
    largest = max(map(abs, numbers))
    power = {f"2^{largest.bit_length() - 1}"} if largest else set[str]()
    words = {
        "negative": min(numbers) < 0,
        "positive": max(numbers) > 0,
        "zero": 0 in numbers,
        "ties 0": len(set(numbers)) < len(numbers),
    }
    return power | {word for word, holds in words.items() if holds}


POWERS = {
    "int4": 3, "uint4": 4, "int8": 7, "uint8": 8, "int16": 15, "uint16": 16, "int32": 31, "uint32": 32, "int64": 63,
    "uint64": 64, "float16": 16, "bfloat16": 128, "float32": 128,
}  # fmt: skip
"""dtype -> the least power of two that is beyond its range."""
_POWER = re.compile(r"-?\d{1,5}")
_TIES = re.compile(r"(ties|highest twice|lowest twice) (\d{1,2})")
CONTAINED = {
    "NaN": "NaN", "inf": "inf", "-inf": "-inf", "-0": "-0", "true": "a true value", "false": "a false value",
    "negative": "a negative value", "positive": "a positive value", "zero": "a zero",
    "denormal": "a denormal", "half": "a fraction of one half",
    "fraction": "a fraction", "negative fraction": "a negative fraction",
    "lowest": "the lowest value of its dtype", "highest": "the highest value of its dtype",
}  # fmt: skip


TIES = {"ties": "ties", "highest twice": "its largest value twice", "lowest twice": "its smallest value twice"}
PAIRS = {"signs": "the signs differ", "equal": "the values are equal", "less": "the first is less",
         "greater": "the first is greater"}  # fmt: skip


def _of_any(inputs: Sequence[Value], outputs: Sequence[Value]) -> Iterator[tuple[str, Fact]]:
    """Facts that operators share whatever their inputs are called."""
    if any(0 in value.shape for value in inputs):
        yield f"a size of {ANY} = 0", True
    if any(1 in value.shape for value in inputs):
        yield f"a size of {ANY} = 1", True
    yield f"{ANY} has no dimensions", any(not value.shape for value in inputs)
    yield f"{ANY} is an initializer", any(value.where == "initializer" for value in inputs)
    yield "largest rank of the inputs", max((len(value.shape) for value in inputs), default=0)
    if any(0 in value.shape for value in outputs):
        yield "a size of an output = 0", True


def _of_all_data(case: CaseFacts, axis: int | None) -> Iterator[tuple[str, Fact]]:
    words = _with_signs(set[str]().union(*(value.data for value in case.values if value.where != "output")))
    for word in ("NaN", "denormal", "-0", "negative", "zero"):
        if word in words:
            yield f"{ANY} contains {CONTAINED[word]}", True
    if words & {"inf", "-inf"}:
        yield f"{ANY} contains an infinity", True
    inputs, outputs = _split(case)
    if len(inputs) > 1:
        yield "the first two inputs have one dtype", inputs[0].dtype == inputs[1].dtype
    if inputs and outputs and _exceeds(_words(inputs[0]), outputs[0].dtype):
        yield f"a value of {FIRST} exceeds the dtype of {RESULT}", True
    for value in case.values:
        of_value = _words(value)
        for kind, phrase in TIES.items():
            if f"{kind} {axis}" in of_value:
                yield from ((f"{name} has {phrase} along the axis", True) for name in _names(case, value))
    yield from (
        (f"in a pair of elements of the first two inputs {PAIRS[word]}", True) for word in case.pairs if word in PAIRS
    )
    beside = (word for word in case.pairs if word.startswith(("equal to ", "above ", "below ")))
    yield from ((f"{FIRST} contains a value {word}", True) for word in beside)


def _exceeds(words: set[str], dtype: str) -> bool:
    """Whether elements of which the record says these words are beyond the range of a dtype."""
    power = _read_power(words, "2^")
    is_beyond = power is not None and dtype in POWERS and power >= POWERS[dtype]
    return is_beyond or ("negative" in words and dtype.startswith("uint"))


def _read_power(words: set[str], begin: str) -> int | None:
    """The number of the word that begins so; None where there is none, or no number that a record may hold."""
    text = next((word.removeprefix(begin) for word in words if word.startswith(begin)), "")
    return int(text) if _POWER.fullmatch(text) else None


def _of_broadcast(inputs: Sequence[Value], outputs: Sequence[Value]) -> Iterator[tuple[str, Fact]]:
    """How inputs and outputs stand to each other."""
    if outputs:
        for place, value in enumerate(inputs):
            if not _NUMBERED.search(value.name):
                yield f"rank of {value.name} < rank of the first output", len(value.shape) < len(outputs[0].shape)
                if place > 1:
                    yield f"{value.name} is broadcast", value.shape != outputs[0].shape
    if inputs and outputs:
        yield from _of_changed_sizes(inputs[0].shape, outputs[0].shape)
    if len(outputs) > 1:
        yield "the outputs have one shape", len({value.shape for value in outputs}) == 1
    if len(inputs) < 2 or not outputs:
        return
    result = outputs[0].shape
    first, second = inputs[0].shape, inputs[1].shape
    yield "the first two inputs have one shape", first == second
    yield "all inputs have one shape", len({value.shape for value in inputs}) == 1
    for value in inputs[2:]:
        if (inputs[0].name, value.name) in (("a", "b"), ("A", "B")):  # behind scale and zero point of the first
            yield f"{value.name} has the shape of {inputs[0].name}", value.shape == first
    yield "the first two inputs have one rank", len(first) == len(second)
    if max(len(first), len(second)) > 2:
        yield "the first two inputs have one shape but for the last two sizes", first[:-2] == second[:-2]
    if inputs[1].name == "indices" and second:
        yield f"last size of indices < rank of {FIRST}", second[-1] < len(first)
    for place, which in ((0, "first"), (1, "second"), (-1, "last")):
        if min(len(first), len(second)) > max(place, 0):
            yield f"the first two inputs have one {which} size", first[place] == second[place]
    yield "the second input is an initializer", inputs[1].where == "initializer"
    yield "the first input has the lower rank", len(first) < len(second)
    yield "the second input has the lower rank", len(second) < len(first)
    yield "the first input is broadcast", first != result
    yield "the second input is broadcast", second != result
    yield "the first two inputs are broadcast", result not in (first, second)
    yield "smallest rank of the first two inputs", min(len(first), len(second))
    yield "least number of elements of the first two inputs", min(math.prod(first), math.prod(second))


def _of_changed_sizes(before: Sequence[int], after: Sequence[int]) -> Iterator[tuple[str, Fact]]:
    """How the sizes of the first output differ from those of the first input, where both have one rank."""
    if not before or len(before) != len(after):
        return
    pairs = list(zip(before, after, strict=True))
    yield f"{RESULT} has a size < that of {FIRST}", any(new < old for old, new in pairs)
    yield f"{RESULT} has a size > that of {FIRST}", any(new > old for old, new in pairs)
    yield f"{RESULT} has a size that differs by an odd number", any((new - old) % 2 for old, new in pairs)
