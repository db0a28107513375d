"""DirectML's operators that move, repeat, gather, scatter or fill in elements.

One frozen dataclass for each DML_*_OPERATOR_DESC with the members of its C struct in their order; a DML_SCALAR_UNION is
its value in decimal. `evaluate` is the page's definition; `constraints` are the sentences of the page that a table of
tensor support cannot hold.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from math import prod
from typing import Any, ClassVar

import numpy as np

from epcheck.generators.case import Lowering
from epcheck.generators.directml.constraint import Violation
from epcheck.generators.directml.operator_desc import INT, OperatorDesc
from epcheck.generators.directml.tensor import Array, DataType, TensorDesc


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


RANK_PADDED_TO = 4
"""The DML EP puts leading dimensions of 1 in front of smaller ranks (TensorDesc.cpp)."""


def padded(values: Array, rank: int = RANK_PADDED_TO) -> Array:
    """The same elements with leading dimensions of 1, up to that rank."""
    return values.reshape((1,) * max(0, rank - values.ndim) + values.shape)


def scalar(value: str, data_type: DataType) -> Any:
    """The value of a DML_SCALAR_UNION."""
    dtype = data_type.dtype
    return dtype.type(int(value)) if dtype.kind in "iu" else dtype.type(float(value))


@dataclass(frozen=True)
class LayoutDesc(OperatorDesc):
    """What the pages of this module have in common."""

    def same_type(self, *names: str) -> Iterator[Violation]:
        """The tensors must have one data type."""
        types = [getattr(self, name).data_type for name in names]
        if len(set(types)) > 1:
            yield self.violation("same_data_type", f"{', '.join(names)} are {', '.join(t.name for t in types)}")

    def same_sizes(self, *names: str) -> Iterator[Violation]:
        """The tensors must have the same sizes."""
        sizes = [getattr(self, name).sizes for name in names]
        if len(set(sizes)) > 1:
            yield self.violation("same_sizes", f"{', '.join(names)} have sizes {', '.join(map(str, sizes))}")

    def same_dimension_count(self, *names: str) -> Iterator[Violation]:
        """The tensors must have as many dimensions."""
        counts = [len(self.sizes_of(name)) for name in names]
        if len(set(counts)) > 1:
            yield self.violation("same_dimension_count", f"{', '.join(names)} have {counts} dimensions")

    def counted(self, name: str, count: int, member: str) -> Iterator[Violation]:
        """So many last dimensions of a tensor mean something; those in front of them must be 1."""
        sizes = self.sizes_of(name)
        if not 1 <= count <= len(sizes):
            yield self.violation("dimensions_counted", f"{member} is {count}; {name} has {len(sizes)} dimensions")
        elif any(size != 1 for size in sizes[:-count]):
            yield self.violation("dimensions_counted", f"{member} is {count}; {name} has sizes {sizes}")

    def right_aligned(self, name: str, meant: tuple[int, ...]) -> Iterator[Violation]:
        """The tensor must have these sizes, behind as many 1s as it has further dimensions."""
        rank = len(self.sizes_of(name))
        if len(meant) > rank and any(size != 1 for size in meant[: len(meant) - rank]):
            yield self.violation(f"{name}_sizes", f"{meant} are more than the {rank} dimensions of {name}")
        else:
            yield from self.expected_sizes(name, ((1,) * rank + meant)[-rank:])

    def within(self, axis: int, tensor: TensorDesc) -> Iterator[Violation]:
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

    def expected_sizes(self, name: str, expected: tuple[int, ...]) -> Iterator[Violation]:
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
        yield from self.same_type("input_tensor", "output_tensor")
        yield from self.same_sizes("input_tensor", "output_tensor")

    def evaluate(self, input_tensor: Array) -> tuple[Array]:
        """The elements, in the output's order."""
        self.require_defined()
        self.require_arrays(input_tensor=input_tensor)
        return (np.array(input_tensor),)


def identity(values: Array, sizes: tuple[int, ...], *, packed: bool = True) -> Lowering:
    """An identity of `values`, an array of the output's sizes; unless packed, with the strides that numpy gave it."""
    rank = max(RANK_PADDED_TO, len(sizes))
    target = (1,) * (rank - len(sizes)) + sizes
    strides = None if packed else tuple(step // values.itemsize for step in values.strides)
    full = None if strides is None else (0,) * (rank - len(sizes)) + strides
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
        yield from self.within(self.axis, self.output_tensor)
        if any(t.data_type is not self.output_tensor.data_type for t in self.input_tensors):
            yield self.violation("same_data_type", "all tensors must have one data type")
        sizes = self.output_tensor.sizes
        if any(len(t.sizes) != len(sizes) for t in self.input_tensors):
            yield self.violation("same_dimension_count", "all tensors must have as many dimensions")
            return
        for axis, size in enumerate(sizes):
            of_inputs = [t.sizes[axis] for t in self.input_tensors]
            if (sum(of_inputs) != size) if axis == self.axis else any(one != size for one in of_inputs):
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
        yield from self.within(self.axis, self.input_tensor)
        if any(t.data_type is not self.input_tensor.data_type for t in self.output_tensors):
            yield self.violation("same_data_type", "all tensors must have one data type")
        sizes = self.input_tensor.sizes
        if any(len(t.sizes) != len(sizes) for t in self.output_tensors):
            yield self.violation("same_dimension_count", "all tensors must have as many dimensions")
            return
        for axis, size in enumerate(sizes):
            of_outputs = [t.sizes[axis] for t in self.output_tensors]
            if (sum(of_outputs) != size) if axis == self.axis else any(one != size for one in of_outputs):
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
        yield from self.same_type("input_tensor", "output_tensor")
        if not len(self.input_tensor.sizes) == len(self.start_padding) == len(self.end_padding):
            yield self.violation(
                "arrays_have_dimension_count", f"{self.dimension_count} values for {self.input_tensor}"
            )
            return
        pairs = zip(self.start_padding, self.input_tensor.sizes, self.end_padding, strict=True)
        yield from self.expected_sizes("output_tensor", tuple(start + size + end for start, size, end in pairs))

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
        yield from self.same_type("input_tensor", "output_tensor")
        if self.repeats_count != self.input_tensor.dimension_count:
            yield self.violation("repeats_count", f"RepeatsCount {self.repeats_count} must be the dimension count")
            return
        pairs = zip(self.input_tensor.sizes, self.repeats, strict=True)
        yield from self.expected_sizes("output_tensor", tuple(size * count for size, count in pairs))

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
        yield from self.same_type("input_tensor", "output_tensor")
        if self.input_tensor.dimension_count != 4:
            yield self.violation("four_dimensions", f"InputTensor has sizes {self.input_tensor.sizes}")
            return
        n, c, h, w = self.input_tensor.sizes
        b = self.block_size
        if b < 1 or c % (b * b):
            yield self.violation("blocks_are_whole", f"BlockSize is {b}; InputTensor has sizes {(n, c, h, w)}")
            return
        yield from self.expected_sizes("output_tensor", (n, c // (b * b), h * b, w * b))

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
        yield from self.same_type("input_tensor", "output_tensor")
        if self.input_tensor.dimension_count != 4:
            yield self.violation("four_dimensions", f"InputTensor has sizes {self.input_tensor.sizes}")
            return
        n, c, h, w = self.input_tensor.sizes
        b = self.block_size
        if b < 1 or h % b or w % b:
            yield self.violation("blocks_are_whole", f"BlockSize is {b}; InputTensor has sizes {(n, c, h, w)}")
            return
        yield from self.expected_sizes("output_tensor", (n, c * b * b, h // b, w // b))

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
        yield from self.same_type("input_tensor", "output_tensor")
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
        yield from self.expected_sizes("output_tensor", tuple(-(-size // stride) for size, stride in windows))

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
        yield from self.same_type("input_tensor", "output_tensor")
        yield from self.same_sizes("input_tensor", "output_tensor")
        yield from self.within(self.axis, self.input_tensor)
        if self.sequence_lengths_tensor.data_type not in (DataType.UINT32, DataType.UINT64):
            yield self.violation("lengths_unsigned", "SequenceLengthsTensor must be UINT32 or UINT64")
        sizes = self.input_tensor.sizes
        yield from self.expected_sizes("sequence_lengths_tensor", (*sizes[: self.axis], 1, *sizes[self.axis + 1 :]))

    def evaluate(self, input_tensor: Array, sequence_lengths_tensor: Array) -> tuple[Array]:
        """Element t becomes element length - 1 - t where t is below the sequence's length."""
        self.require_defined()
        self.require_arrays(input_tensor=input_tensor, sequence_lengths_tensor=sequence_lengths_tensor)
        length, lengths = self.input_tensor.sizes[self.axis], sequence_lengths_tensor.astype(np.int64)
        at = np.arange(length).reshape([-1 if a == self.axis else 1 for a in range(input_tensor.ndim)])
        source = np.where(at < lengths, lengths - 1 - at, at)
        return (np.take_along_axis(input_tensor, source, self.axis),)


@dataclass(frozen=True)
class FillValueConstant(LayoutDesc):
    """Fills a tensor with one value."""

    NAME: ClassVar[str] = "DML_FILL_VALUE_CONSTANT_OPERATOR_DESC"

    output_tensor: TensorDesc
    value_data_type: DataType
    value: str

    def constraints(self) -> Iterator[Violation]:
        if self.value_data_type is not self.output_tensor.data_type:
            yield self.violation("value_data_type", "ValueDataType must be the data type of OutputTensor")

    def evaluate(self) -> tuple[Array]:
        """The value everywhere."""
        self.require_defined()
        return (np.full(self.output_tensor.sizes, scalar(self.value, self.value_data_type)),)


@dataclass(frozen=True)
class FillValueSequence(LayoutDesc):
    """Fills a tensor with ValueStart, ValueStart + ValueDelta, and so on."""

    NAME: ClassVar[str] = "DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC"

    output_tensor: TensorDesc
    value_data_type: DataType
    value_start: str
    value_delta: str

    def constraints(self) -> Iterator[Violation]:
        if self.value_data_type is not self.output_tensor.data_type:
            yield self.violation("value_data_type", "ValueDataType must be the data type of OutputTensor")

    def evaluate(self) -> tuple[Array]:
        """Start + i delta, rounded once."""
        self.require_defined()
        start, delta = (scalar(text, self.value_data_type) for text in (self.value_start, self.value_delta))
        wide = object if self.value_data_type.dtype.kind in "iu" else np.float64
        steps = np.arange(prod(self.output_tensor.sizes)).astype(wide)
        values = start.item() + steps * delta.item()
        return (np.asarray(values).astype(self.value_data_type.dtype).reshape(self.output_tensor.sizes),)


@dataclass(frozen=True)
class DiagonalMatrix(LayoutDesc):
    """A value on one diagonal, 0 elsewhere."""

    NAME: ClassVar[str] = "DML_DIAGONAL_MATRIX_OPERATOR_DESC"

    output_tensor: TensorDesc
    offset: int = field(metadata=INT)
    value: float

    def evaluate(self) -> tuple[Array]:
        """The value where column - row is Offset."""
        self.require_defined()
        sizes = self.output_tensor.sizes
        rows, columns = np.indices(sizes[-2:])
        matrix = np.where(columns - rows == self.offset, self.value, 0).astype(self.output_tensor.data_type.dtype)
        return (np.broadcast_to(matrix, sizes),)


@dataclass(frozen=True)
class DiagonalMatrix1(LayoutDesc):
    """A value on the diagonals from DiagonalFillBegin up to, and without, DiagonalFillEnd; the input elsewhere."""

    NAME: ClassVar[str] = "DML_DIAGONAL_MATRIX1_OPERATOR_DESC"

    input_tensor: TensorDesc | None
    output_tensor: TensorDesc
    value_data_type: DataType
    value: str
    diagonal_fill_begin: int = field(metadata=INT)
    diagonal_fill_end: int = field(metadata=INT)

    def constraints(self) -> Iterator[Violation]:
        if self.value_data_type is not self.output_tensor.data_type:
            yield self.violation("value_data_type", "ValueDataType must be the data type of OutputTensor")
        if self.input_tensor is not None:
            yield from self.same_type("input_tensor", "output_tensor")
            yield from self.same_sizes("input_tensor", "output_tensor")

    def evaluate(self, input_tensor: Array | None) -> tuple[Array]:
        """The value where column - row lies in the range; elsewhere the input, or 0 without one."""
        self.require_defined()
        self.require_arrays(input_tensor=input_tensor)
        rows, columns = np.indices(self.output_tensor.sizes[-2:])
        diagonal = columns - rows
        filled = (diagonal >= self.diagonal_fill_begin) & (diagonal < self.diagonal_fill_end)
        value = scalar(self.value, self.value_data_type)
        if input_tensor is not None and input_tensor.dtype == bool:
            value = np.bool_(value)
        rest = np.zeros(self.output_tensor.sizes, value.dtype) if input_tensor is None else input_tensor
        return (np.where(filled, value, rest),)


@dataclass(frozen=True)
class OneHot(LayoutDesc):
    """values[1] where the place along the axis is the index, values[0] elsewhere."""

    NAME: ClassVar[str] = "DML_ONE_HOT_OPERATOR_DESC"

    indices_tensor: TensorDesc
    values_tensor: TensorDesc
    output_tensor: TensorDesc
    axis: int

    def constraints(self) -> Iterator[Violation]:
        yield from self.same_type("values_tensor", "output_tensor")
        yield from self.within(self.axis, self.output_tensor)
        sizes = self.output_tensor.sizes
        yield from self.expected_sizes("indices_tensor", (*sizes[: self.axis], 1, *sizes[self.axis + 1 :]))

    def evaluate(self, indices_tensor: Array, values_tensor: Array) -> tuple[Array]:
        """Negative indices count from the back; those out of range select nothing."""
        self.require_defined()
        self.require_arrays(indices_tensor=indices_tensor, values_tensor=values_tensor)
        rank, classes = indices_tensor.ndim, self.output_tensor.sizes[self.axis]
        places = np.arange(classes).reshape([-1 if a == self.axis else 1 for a in range(rank)])
        exact = indices_tensor.astype(object)
        hot = ((places == exact) | (places - classes == exact)).astype(bool)
        off, on = values_tensor.reshape(-1)[:2]
        return (np.where(hot, on, off),)


@dataclass(frozen=True)
class NonzeroCoordinates(LayoutDesc):
    """The coordinates of the elements that are not 0, with their number.

    The page wants tensors of one dimension count; the provider's are not (DmlOperatorNonZero.cpp), and DirectML takes
    them, so that this is not demanded here.
    """

    NAME: ClassVar[str] = "DML_NONZERO_COORDINATES_OPERATOR_DESC"

    input_tensor: TensorDesc
    output_count_tensor: TensorDesc
    output_coordinates_tensor: TensorDesc

    def constraints(self) -> Iterator[Violation]:
        yield from self.right_aligned("output_count_tensor", (1,))
        sizes, written = self.input_tensor.sizes, self.output_coordinates_tensor.sizes
        effective_rank = len(sizes) - next((at for at, size in enumerate(sizes) if size != 1), len(sizes))
        if not effective_rank <= written[-1] <= len(sizes):
            yield self.violation("coordinates_fit_rank", f"{written[-1]} coordinates for sizes {sizes}")
        yield from self.right_aligned("output_coordinates_tensor", (self.input_tensor.element_count, written[-1]))
        for name in ("output_count_tensor", "output_coordinates_tensor"):
            tensor: TensorDesc = getattr(self, name)
            if tensor.data_type is not DataType.UINT32:
                yield self.violation("output_data_type", f"{name} is {tensor.data_type.name} instead of UINT32")


def _positions(indices: Array, length: int) -> Array:
    wide = indices.astype(np.int64)
    return np.where(wide < 0, wide + length, wide)


@dataclass(frozen=True)
class Gather(LayoutDesc):
    """Slices along an axis, at the indices."""

    NAME: ClassVar[str] = "DML_GATHER_OPERATOR_DESC"

    input_tensor: TensorDesc
    indices_tensor: TensorDesc
    output_tensor: TensorDesc
    axis: int
    index_dimensions: int

    def constraints(self) -> Iterator[Violation]:
        yield from self.same_type("input_tensor", "output_tensor")
        yield from self.same_dimension_count("input_tensor", "indices_tensor", "output_tensor")
        sizes, indices = self.input_tensor.sizes, self.indices_tensor.sizes
        if not (0 <= self.axis < len(sizes) and self.index_dimensions <= len(indices)):
            yield from self.within(self.axis, self.input_tensor)
            yield self.violation("dimensions_counted", f"IndexDimensions is {self.index_dimensions}")
            return
        meaningless = len(indices) - self.index_dimensions
        if any(size != 1 for size in indices[:meaningless]):
            yield self.violation("dimensions_counted", f"IndexDimensions is {self.index_dimensions} of {indices}")
        meant = (*sizes[: self.axis], *indices[meaningless:], *sizes[self.axis + 1 :])
        yield from self.right_aligned("output_tensor", meant)

    def evaluate(self, input_tensor: Array, indices_tensor: Array) -> tuple[Array]:
        """The last IndexDimensions dimensions of the indices take the place of the axis."""
        self.require_defined()
        self.require_arrays(input_tensor=input_tensor, indices_tensor=indices_tensor)
        shape = indices_tensor.shape[indices_tensor.ndim - self.index_dimensions :]
        places = _positions(indices_tensor, input_tensor.shape[self.axis]).reshape(shape)
        return (input_tensor.take(places, self.axis).reshape(self.output_tensor.sizes),)


@dataclass(frozen=True)
class GatherElements(LayoutDesc):
    """One element for each index."""

    NAME: ClassVar[str] = "DML_GATHER_ELEMENTS_OPERATOR_DESC"

    input_tensor: TensorDesc
    indices_tensor: TensorDesc
    output_tensor: TensorDesc
    axis: int

    def constraints(self) -> Iterator[Violation]:
        yield from self.same_type("input_tensor", "output_tensor")
        yield from self.within(self.axis, self.input_tensor)
        yield from self.same_sizes("indices_tensor", "output_tensor")
        if self.input_tensor.dimension_count != self.indices_tensor.dimension_count:
            yield from self.same_dimension_count("input_tensor", "indices_tensor")
            return
        yield from self.indices_beside(self.axis)

    def evaluate(self, input_tensor: Array, indices_tensor: Array) -> tuple[Array]:
        """The index stands for the coordinate along the axis; that is defined for smaller sizes beside it, too."""
        self.require_defined("sizes_match_except_axis")
        self.require_arrays(input_tensor=input_tensor, indices_tensor=indices_tensor)
        places: list[Array] = list(np.indices(indices_tensor.shape, sparse=True))
        places[self.axis] = _positions(indices_tensor, input_tensor.shape[self.axis])
        return (input_tensor[tuple(places)],)


@dataclass(frozen=True)
class _Indexed(LayoutDesc):
    """What the operators have in common whose indices are tuples, the last dimension of the tensor of indices."""

    def indexed(self, name: str, batches: int) -> Iterator[Violation]:
        """The slices that the tuples name, and their tensor: it must have the sizes of the indices without the tuples,
        then those of a slice. The page's formula counts the slice's dimensions as if they were a tuple's; its example
        is followed here."""
        counts = {"input_tensor": "input_dimension_count", "indices_tensor": "indices_dimension_count"}
        wrong = [v for of, member in counts.items() for v in self.counted(of, getattr(self, member), member)]
        yield from wrong
        if wrong:
            return
        inputs, indices = (self.sizes_of(of)[-getattr(self, member) :] for of, member in counts.items())
        depth = indices[-1]
        if batches + depth > len(inputs) or batches >= len(indices):
            yield self.violation("tuples_fit_input", f"{batches} batches of tuples of {depth} in {inputs}")
            return
        if inputs[:batches] != indices[:batches]:
            yield self.violation("same_batches", f"the batches are {inputs[:batches]} and {indices[:batches]}")
        yield from self.right_aligned(name, (*indices[:-1], *inputs[batches + depth :]))


@dataclass(frozen=True)
class GatherND1(_Indexed):
    """Slices that index tuples name, batch by batch."""

    NAME: ClassVar[str] = "DML_GATHER_ND1_OPERATOR_DESC"

    input_tensor: TensorDesc
    indices_tensor: TensorDesc
    output_tensor: TensorDesc
    input_dimension_count: int
    indices_dimension_count: int
    batch_dimension_count: int

    def constraints(self) -> Iterator[Violation]:
        yield from self.same_type("input_tensor", "output_tensor")
        yield from self.same_dimension_count("input_tensor", "indices_tensor", "output_tensor")
        yield from self.indexed("output_tensor", self.batch_dimension_count)

    def evaluate(self, input_tensor: Array, indices_tensor: Array) -> tuple[Array]:
        """The last dimensions count, as many as the dimension counts say."""
        self.require_defined()
        self.require_arrays(input_tensor=input_tensor, indices_tensor=indices_tensor)
        values = input_tensor.reshape(input_tensor.shape[input_tensor.ndim - self.input_dimension_count :])
        indices = indices_tensor.reshape(indices_tensor.shape[indices_tensor.ndim - self.indices_dimension_count :])
        batches = self.batch_dimension_count
        shape, depth = values.shape[batches:], indices_tensor.shape[-1]
        places = [_positions(indices[..., i], shape[i]) for i in range(depth)]
        grid = list(np.indices(indices.shape[:-1], sparse=True))[:batches]
        gathered: Array = values[(*grid, *places)]
        return (gathered.reshape(self.output_tensor.sizes),)


@dataclass(frozen=True)
class Scatter(LayoutDesc):
    """A copy of the input with one element replaced for each index."""

    NAME: ClassVar[str] = "DML_SCATTER_OPERATOR_DESC"

    input_tensor: TensorDesc
    indices_tensor: TensorDesc
    updates_tensor: TensorDesc
    output_tensor: TensorDesc
    axis: int

    def constraints(self) -> Iterator[Violation]:
        yield from self.same_type("input_tensor", "updates_tensor", "output_tensor")
        yield from self.same_sizes("input_tensor", "output_tensor")
        yield from self.same_sizes("indices_tensor", "updates_tensor")
        yield from self.within(self.axis, self.input_tensor)
        yield from self.indices_beside(self.axis)

    def evaluate(self, input_tensor: Array, indices_tensor: Array, updates_tensor: Array) -> tuple[Array]:
        """The index stands for the coordinate along the axis; that is defined for smaller sizes beside it, too."""
        self.require_defined("sizes_match_except_axis")
        self.require_arrays(input_tensor=input_tensor, indices_tensor=indices_tensor, updates_tensor=updates_tensor)
        places: list[Array] = list(np.indices(indices_tensor.shape, sparse=True))
        places[self.axis] = _positions(indices_tensor, input_tensor.shape[self.axis])
        result = input_tensor.copy()
        result[tuple(np.broadcast_arrays(*places))] = updates_tensor
        return (result,)


@dataclass(frozen=True)
class ScatterND(_Indexed):
    """A copy of the input with a slice replaced for each index tuple."""

    NAME: ClassVar[str] = "DML_SCATTER_ND_OPERATOR_DESC"

    input_tensor: TensorDesc
    indices_tensor: TensorDesc
    updates_tensor: TensorDesc
    output_tensor: TensorDesc
    input_dimension_count: int
    indices_dimension_count: int

    def constraints(self) -> Iterator[Violation]:
        yield from self.same_type("input_tensor", "updates_tensor", "output_tensor")
        yield from self.same_sizes("input_tensor", "output_tensor")
        yield from self.same_dimension_count("input_tensor", "indices_tensor", "updates_tensor")
        yield from self.indexed("updates_tensor", 0)

    def evaluate(self, input_tensor: Array, indices_tensor: Array, updates_tensor: Array) -> tuple[Array]:
        """The last dimensions count, as many as the dimension counts say."""
        self.require_defined()
        self.require_arrays(input_tensor=input_tensor, indices_tensor=indices_tensor, updates_tensor=updates_tensor)
        values = input_tensor.reshape(input_tensor.shape[input_tensor.ndim - self.input_dimension_count :]).copy()
        indices = indices_tensor.reshape(indices_tensor.shape[indices_tensor.ndim - self.indices_dimension_count :])
        shape, depth = values.shape, indices_tensor.shape[-1]
        places = tuple(_positions(indices[..., i], shape[i]) for i in range(depth))
        values[places] = updates_tensor.reshape(indices.shape[:-1] + values.shape[depth:])
        return (values.reshape(self.output_tensor.sizes),)
