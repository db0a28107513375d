"""DirectML's operators that move or repeat elements.

`filling` has those that fill elements in or find them, `gathering` those that gather and scatter them.

One frozen dataclass for each DML_*_OPERATOR_DESC with the members of its C struct in their order; a DML_SCALAR_UNION is
its value in decimal. `evaluate` is the page's definition; `constraints` are the sentences of the page that a table of
tensor support cannot hold.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.directml.constraint import Violation
from epcheck.generators.directml.lowering import Lowering, count_missing, padded_sizes
from epcheck.generators.directml.operator_desc import OperatorDesc
from epcheck.generators.directml.tensor import DataType, TensorDesc


class PaddingMode(Enum):
    """DML_PADDING_MODE (ne-directml-dml_padding_mode)."""

    CONSTANT = 0
    EDGE = 1
    REFLECTION = 2
    SYMMETRIC = 3


class DepthSpaceOrder(Enum):
    """DML_DEPTH_SPACE_ORDER (ne-directml-dml_depth_space_order)."""

    DEPTH_COLUMN_ROW = 0
    COLUMN_ROW_DEPTH = 1


def scalar(value: str, data_type: DataType) -> Any:
    """The value of a DML_SCALAR_UNION."""
    dtype = data_type.dtype
    return dtype.type(int(value)) if dtype.kind in "iu" else dtype.type(float(value))


@dataclass(frozen=True)
class LayoutDesc(OperatorDesc):
    """What the pages of this module have in common."""

    def check_same_type(self, *names: str) -> Iterator[Violation]:
        """The tensors must have one data type."""
        types = [getattr(self, name).data_type for name in names]
        if len(set(types)) > 1:
            yield self.violation("same_data_type", f"{', '.join(names)} are {', '.join(t.name for t in types)}")

    def check_same_sizes(self, *names: str) -> Iterator[Violation]:
        """The tensors must have the same sizes."""
        sizes = [getattr(self, name).sizes for name in names]
        if len(set(sizes)) > 1:
            yield self.violation("same_sizes", f"{', '.join(names)} have sizes {', '.join(map(str, sizes))}")

    def check_same_rank(self, *names: str) -> Iterator[Violation]:
        """The tensors must have as many dimensions."""
        counts = [len(self.sizes_of(name)) for name in names]
        if len(set(counts)) > 1:
            yield self.violation("same_dimension_count", f"{', '.join(names)} have {counts} dimensions")

    def check_count(self, name: str, count: int, member: str) -> Iterator[Violation]:
        """So many last dimensions of a tensor mean something; those in front of them must be 1."""
        sizes = self.sizes_of(name)
        if not 1 <= count <= len(sizes):
            yield self.violation("dimensions_counted", f"{member} is {count}; {name} has {len(sizes)} dimensions")
        elif any(size != 1 for size in sizes[:-count]):
            yield self.violation("dimensions_counted", f"{member} is {count}; {name} has sizes {sizes}")

    def check_right_aligned(self, name: str, meant: tuple[int, ...]) -> Iterator[Violation]:
        """The tensor must have these sizes, behind as many 1s as it has further dimensions."""
        rank = len(self.sizes_of(name))
        if len(meant) > rank and any(size != 1 for size in meant[: len(meant) - rank]):
            yield self.violation(f"{name}_sizes", f"{meant} are more than the {rank} dimensions of {name}")
        else:
            yield from self.check_sizes(name, ((1,) * rank + meant)[-rank:])

    def check_within(self, axis: int, tensor: TensorDesc) -> Iterator[Violation]:
        """The axis must be less than the number of dimensions."""
        if not 0 <= axis < tensor.dimension_count:
            yield self.violation(
                "axis_less_than_dimension_count", f"Axis is {axis}; the tensor has {tensor.dimension_count} dimensions"
            )

    def indices_beside(self, axis: int) -> Iterator[Violation]:
        """IndicesTensor must have the sizes of InputTensor, except along the axis."""
        source, indices = self.sizes_of("input_tensor"), self.sizes_of("indices_tensor")
        if any(size != source[at] for at, size in enumerate(indices) if at != axis):
            yield self.violation(
                "sizes_match_except_axis",
                f"IndicesTensor has sizes {indices}, InputTensor {source}; they may differ in dimension {axis} only",
            )

    def sizes_of(self, name: str) -> tuple[int, ...]:
        """The sizes of a tensor, by the name of its field."""
        tensor: TensorDesc = getattr(self, name)
        return tensor.sizes

    def check_sizes(self, name: str, expected: tuple[int, ...]) -> Iterator[Violation]:
        """The tensor must have these sizes."""
        sizes = getattr(self, name).sizes
        if sizes != expected:
            yield self.violation(f"{name}_sizes", f"{name} has sizes {sizes} instead of {expected}")


@dataclass(frozen=True)
class ElementWiseIdentity(LayoutDesc):
    """Copies each element; `scale_bias` (not used here) would apply x * scale + bias."""

    NAME: ClassVar[str] = "DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC"

    input_tensor: TensorDesc
    output_tensor: TensorDesc
    scale_bias: None = None

    def constraints(self) -> Iterator[Violation]:
        yield from self.check_same_type("input_tensor", "output_tensor")
        yield from self.check_same_sizes("input_tensor", "output_tensor")

    def evaluate(self, input_tensor: Array) -> tuple[Array]:
        """The elements, in the output's order."""
        self.require_defined()
        self.require_arrays(input_tensor=input_tensor)
        return (np.array(input_tensor),)


def identity(values: Array, sizes: tuple[int, ...], *, packed: bool = True) -> Lowering:
    """An identity of `values`, an array of the output's sizes; unless packed, with the strides that numpy gave it."""
    target = padded_sizes(sizes)
    strides = None if packed else tuple(step // values.itemsize for step in values.strides)
    full = None if strides is None else (0,) * count_missing(len(sizes)) + strides
    data_type = DataType.of(values.dtype)
    desc = ElementWiseIdentity(TensorDesc(data_type, target, full), TensorDesc(data_type, target))
    return Lowering(desc, (np.ascontiguousarray(values).reshape(target),))


@dataclass(frozen=True)
class Join(LayoutDesc):
    """Puts tensors one after the other along an axis."""

    NAME: ClassVar[str] = "DML_JOIN_OPERATOR_DESC"

    input_count: int = field(init=False)
    input_tensors: tuple[TensorDesc, ...]
    output_tensor: TensorDesc
    axis: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "input_count", len(self.input_tensors))

    def constraints(self) -> Iterator[Violation]:
        yield from self.check_within(self.axis, self.output_tensor)
        if any(t.data_type is not self.output_tensor.data_type for t in self.input_tensors):
            yield self.violation("same_data_type", "all tensors must have one data type")
        sizes = self.output_tensor.sizes
        if any(len(t.sizes) != len(sizes) for t in self.input_tensors):
            yield self.violation("same_dimension_count", "all tensors must have as many dimensions")
            return
        for axis, size in enumerate(sizes):
            of_inputs = [t.sizes[axis] for t in self.input_tensors]
            if (sum(of_inputs) != size) if axis == self.axis else any(part != size for part in of_inputs):
                yield self.violation(
                    "sizes_add_up", f"in dimension {axis} the inputs have {of_inputs}, the output {size}"
                )

    def evaluate(self, *input_tensors: Array) -> tuple[Array]:
        """The inputs, one after the other."""
        self.require_defined()
        return (np.concatenate(input_tensors, self.axis),)


@dataclass(frozen=True)
class Split(LayoutDesc):
    """Cuts a tensor along an axis into several."""

    NAME: ClassVar[str] = "DML_SPLIT_OPERATOR_DESC"

    input_tensor: TensorDesc
    output_count: int = field(init=False)
    output_tensors: tuple[TensorDesc, ...]
    axis: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "output_count", len(self.output_tensors))

    def constraints(self) -> Iterator[Violation]:
        yield from self.check_within(self.axis, self.input_tensor)
        if any(t.data_type is not self.input_tensor.data_type for t in self.output_tensors):
            yield self.violation("same_data_type", "all tensors must have one data type")
        sizes = self.input_tensor.sizes
        if any(len(t.sizes) != len(sizes) for t in self.output_tensors):
            yield self.violation("same_dimension_count", "all tensors must have as many dimensions")
            return
        for axis, size in enumerate(sizes):
            of_outputs = [t.sizes[axis] for t in self.output_tensors]
            if (sum(of_outputs) != size) if axis == self.axis else any(part != size for part in of_outputs):
                yield self.violation(
                    "sizes_add_up", f"in dimension {axis} the outputs have {of_outputs}, the input {size}"
                )

    def evaluate(self, input_tensor: Array) -> tuple[Array, ...]:
        """The parts."""
        self.require_defined()
        self.require_arrays(input_tensor=input_tensor)
        bounds = np.cumsum([tensor.sizes[self.axis] for tensor in self.output_tensors])[:-1]
        return tuple(np.split(input_tensor, bounds, self.axis))


@dataclass(frozen=True)
class Padding1(LayoutDesc):
    """Adds elements at both ends of each dimension."""

    NAME: ClassVar[str] = "DML_PADDING1_OPERATOR_DESC"

    input_tensor: TensorDesc
    output_tensor: TensorDesc
    padding_mode: PaddingMode
    padding_value_data_type: DataType
    padding_value: str
    dimension_count: int = field(init=False)
    start_padding: tuple[int, ...]
    end_padding: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimension_count", len(self.start_padding))

    def constraints(self) -> Iterator[Violation]:
        yield from self.check_same_type("input_tensor", "output_tensor")
        if not len(self.input_tensor.sizes) == len(self.start_padding) == len(self.end_padding):
            yield self.violation(
                "arrays_have_dimension_count", f"{self.dimension_count} values for {self.input_tensor}"
            )
            return
        pairs = zip(self.start_padding, self.input_tensor.sizes, self.end_padding, strict=True)
        yield from self.check_sizes("output_tensor", tuple(start + size + end for start, size, end in pairs))

    def evaluate(self, input_tensor: Array) -> tuple[Array]:
        """The value, or the mode's elements, around the input."""
        self.require_defined()
        self.require_arrays(input_tensor=input_tensor)
        pads = list(zip(self.start_padding, self.end_padding, strict=True))
        if self.padding_mode is PaddingMode.CONSTANT:
            value = scalar(self.padding_value, self.padding_value_data_type)
            return (np.pad(input_tensor, pads, constant_values=value),)
        modes = {PaddingMode.EDGE: "edge", PaddingMode.REFLECTION: "reflect", PaddingMode.SYMMETRIC: "symmetric"}
        return (np.pad(input_tensor, pads, modes[self.padding_mode]),)  # type: ignore[call-overload]


@dataclass(frozen=True)
class Tile(LayoutDesc):
    """Repeats a tensor along each dimension."""

    NAME: ClassVar[str] = "DML_TILE_OPERATOR_DESC"

    input_tensor: TensorDesc
    output_tensor: TensorDesc
    repeats_count: int
    repeats: tuple[int, ...]

    def constraints(self) -> Iterator[Violation]:
        yield from self.check_same_type("input_tensor", "output_tensor")
        if self.repeats_count != self.input_tensor.dimension_count:
            yield self.violation("repeats_count", f"RepeatsCount {self.repeats_count} must be the dimension count")
            return
        pairs = zip(self.input_tensor.sizes, self.repeats, strict=True)
        yield from self.check_sizes("output_tensor", tuple(size * count for size, count in pairs))

    def evaluate(self, input_tensor: Array) -> tuple[Array]:
        """The input, again and again."""
        self.require_defined()
        self.require_arrays(input_tensor=input_tensor)
        return (np.tile(input_tensor, self.repeats),)


@dataclass(frozen=True)
class DepthToSpace1(LayoutDesc):
    """Moves blocks of the depth dimension into height and width."""

    NAME: ClassVar[str] = "DML_DEPTH_TO_SPACE1_OPERATOR_DESC"

    input_tensor: TensorDesc
    output_tensor: TensorDesc
    block_size: int
    order: DepthSpaceOrder

    def constraints(self) -> Iterator[Violation]:
        yield from self.check_same_type("input_tensor", "output_tensor")
        if self.input_tensor.dimension_count != 4:
            yield self.violation("four_dimensions", f"InputTensor has sizes {self.input_tensor.sizes}")
            return
        n, c, h, w = self.input_tensor.sizes
        b = self.block_size
        if b < 1 or c % (b * b):
            yield self.violation("blocks_are_whole", f"BlockSize is {b}; InputTensor has sizes {(n, c, h, w)}")
            return
        yield from self.check_sizes("output_tensor", (n, c // (b * b), h * b, w * b))

    def evaluate(self, input_tensor: Array) -> tuple[Array]:
        """Output [n, c, h b + y, w b + x] is the input's depth (y b + x) C + c, or c b b + y b + x."""
        self.require_defined()
        self.require_arrays(input_tensor=input_tensor)
        sizes, b = self.output_tensor.sizes, self.block_size
        n, c, y, x = np.indices(sizes, sparse=True)
        block = y % b * b + x % b
        first = self.order is DepthSpaceOrder.DEPTH_COLUMN_ROW
        depth = block * sizes[1] + c if first else c * b * b + block
        return (input_tensor[n, depth, y // b, x // b],)


@dataclass(frozen=True)
class SpaceToDepth(LayoutDesc):
    """Moves blocks of height and width into the depth dimension."""

    NAME: ClassVar[str] = "DML_SPACE_TO_DEPTH_OPERATOR_DESC"

    input_tensor: TensorDesc
    output_tensor: TensorDesc
    block_size: int

    def constraints(self) -> Iterator[Violation]:
        yield from self.check_same_type("input_tensor", "output_tensor")
        if self.input_tensor.dimension_count != 4:
            yield self.violation("four_dimensions", f"InputTensor has sizes {self.input_tensor.sizes}")
            return
        n, c, h, w = self.input_tensor.sizes
        b = self.block_size
        if b < 1 or h % b or w % b:
            yield self.violation("blocks_are_whole", f"BlockSize is {b}; InputTensor has sizes {(n, c, h, w)}")
            return
        yield from self.check_sizes("output_tensor", (n, c * b * b, h // b, w // b))

    def evaluate(self, input_tensor: Array) -> tuple[Array]:
        """Output depth (y b + x) C + c is the input's channel c at row y and column x of each block."""
        self.require_defined()
        self.require_arrays(input_tensor=input_tensor)
        channels, b = self.input_tensor.sizes[1], self.block_size
        n, depth, row, column = np.indices(self.output_tensor.sizes, sparse=True)
        block = depth // channels
        return (input_tensor[n, depth % channels, row * b + block // b, column * b + block % b],)


@dataclass(frozen=True)
class Slice(LayoutDesc):
    """Copies a window of the input, with strides."""

    NAME: ClassVar[str] = "DML_SLICE_OPERATOR_DESC"

    input_tensor: TensorDesc
    output_tensor: TensorDesc
    dimension_count: int = field(init=False)
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimension_count", len(self.offsets))

    def constraints(self) -> Iterator[Violation]:
        yield from self.check_same_type("input_tensor", "output_tensor")
        if len({len(self.input_tensor.sizes), len(self.offsets), len(self.sizes), len(self.strides)}) > 1:
            yield self.violation(
                "arrays_have_dimension_count", f"{self.dimension_count} values for {self.input_tensor}"
            )
            return
        for axis, (offset, size, length) in enumerate(
            zip(self.offsets, self.sizes, self.input_tensor.sizes, strict=True)
        ):
            if offset + size > length:
                yield self.violation("window_within_input", f"dimension {axis}: {offset} + {size} is beyond {length}")
        if min(self.strides) < 1:
            yield self.violation("strides_positive", f"the strides are {self.strides}")
            return
        windows = zip(self.sizes, self.strides, strict=True)
        yield from self.check_sizes("output_tensor", tuple(-(-size // stride) for size, stride in windows))

    def evaluate(self, input_tensor: Array) -> tuple[Array]:
        """Every stride-th element of the window."""
        self.require_defined()
        self.require_arrays(input_tensor=input_tensor)
        windows = zip(self.offsets, self.sizes, self.strides, strict=True)
        return (input_tensor[tuple(slice(offset, offset + size, stride) for offset, size, stride in windows)],)


@dataclass(frozen=True)
class ReverseSubsequences(LayoutDesc):
    """Reverses the first elements of each sequence along an axis."""

    NAME: ClassVar[str] = "DML_REVERSE_SUBSEQUENCES_OPERATOR_DESC"

    input_tensor: TensorDesc
    sequence_lengths_tensor: TensorDesc
    output_tensor: TensorDesc
    axis: int

    def constraints(self) -> Iterator[Violation]:
        yield from self.check_same_type("input_tensor", "output_tensor")
        yield from self.check_same_sizes("input_tensor", "output_tensor")
        yield from self.check_within(self.axis, self.input_tensor)
        if self.sequence_lengths_tensor.data_type not in (DataType.UINT32, DataType.UINT64):
            yield self.violation("lengths_unsigned", "SequenceLengthsTensor must be UINT32 or UINT64")
        sizes = self.input_tensor.sizes
        yield from self.check_sizes("sequence_lengths_tensor", (*sizes[: self.axis], 1, *sizes[self.axis + 1 :]))

    def evaluate(self, input_tensor: Array, sequence_lengths_tensor: Array) -> tuple[Array]:
        """Element t becomes element length - 1 - t where t is below the sequence's length."""
        self.require_defined()
        self.require_arrays(input_tensor=input_tensor, sequence_lengths_tensor=sequence_lengths_tensor)
        length, lengths = self.input_tensor.sizes[self.axis], sequence_lengths_tensor.astype(np.int64)
        at = np.arange(length).reshape([-1 if a == self.axis else 1 for a in range(input_tensor.ndim)])
        source = np.where(at < lengths, lengths - 1 - at, at)
        return (np.take_along_axis(input_tensor, source, self.axis),)
