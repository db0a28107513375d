"""What a provider may use of DirectML and no ONNX model can say: flags of execution, layouts of tensors, ownership.

A probe is one call with its exact result. Its values are small integers, which every precision that the flags allow
holds exactly, so whatever differs is wrong. The worked examples of the pages are probes as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.directml.descriptions.attention.multihead_attention import (
    MultiheadAttention1,
    MultiheadAttentionMaskType,
)
from epcheck.generators.directml.descriptions.convolution_pooling.convolution import (
    Convolution,
    ConvolutionDirection,
    ConvolutionMode,
)
from epcheck.generators.directml.descriptions.elementwise.elementwise import ElementWiseAdd
from epcheck.generators.directml.descriptions.matmul.matrix_multiply import Gemm, MatrixTransform
from epcheck.generators.directml.descriptions.movement.filling import NonzeroCoordinates
from epcheck.generators.directml.descriptions.movement.slice1 import Slice1
from epcheck.generators.directml.descriptions.normalization.normalization import MeanVarianceNormalization
from epcheck.generators.directml.descriptions.quantized.quantized_linear_convolution import QuantizedLinearConvolution
from epcheck.generators.directml.descriptions.reduction.top_k1 import TopK1
from epcheck.generators.directml.enumerations import AxisDirection
from epcheck.generators.directml.operator_desc import OperatorDesc
from epcheck.generators.directml.tensor import DataType, TensorDesc

FLAGS = {
    "none": 0, "half_precision_allowed": 1, "metacommands_disabled": 2, "both": 3, "descriptors_volatile": 4,
}  # fmt: skip
"""Names of DML_EXECUTION_FLAGS that are probed."""

OWNED_BY_DML = 1
"""DML_TENSOR_FLAG_OWNED_BY_DML: the tensor is bound when the operator is initialised, and not when it runs."""

Options = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class Probe:
    """One call of DirectML and its result.

    group: `example`, `uncalled`, `layout`, `binding` or `flags`. feeds: an array for each input tensor. flags:
    DML_EXECUTION_FLAGS. options: the C name of a tensor's member -> `flags`, `offset`, `alignment` and `total_bytes`
    of its binding. expected: an array for each output, exact. rest_undefined: they hold the first elements of the
    outputs, and the page says that the others are undefined.
    """

    group: str
    name: str
    description: OperatorDesc
    feeds: tuple[Array | None, ...]
    expected: tuple[Array, ...]
    flags: int = 0
    options: Options = field(default_factory=dict)
    rest_undefined: bool = False

    @property
    def id(self) -> str:
        """`layout/SLICE1/transposed_input`."""
        operator = self.description.NAME.removeprefix("DML_").removesuffix("_OPERATOR_DESC")
        return f"{self.group}/{operator}/{self.name}"


def probes() -> Iterator[Probe]:
    """All of them, in a stable order."""
    yield from examples()
    yield from list_uncalled()
    yield from layouts()
    yield from bindings()
    yield from list_flags()


def examples() -> Iterator[Probe]:
    """The examples of ns-directml-dml_slice1_operator_desc and ns-directml-dml_top_k1_operator_desc, and one of a
    quantised convolution, whose page has none: (1 - 1) * 2 + (3 - 1) * 1 = 2 and so on, worked out by hand."""
    data = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
    source, target = TensorDesc.of(data), TensorDesc(DataType.FLOAT32, (1, 1, 2, 2))
    for number, stride, values in ((1, 2, [[2, 4], [10, 12]]), (2, -2, [[14, 16], [6, 8]])):
        desc = Slice1(source, target, (0, 0, 0, 1), (1, 1, 4, 3), (1, 1, stride, 2))
        yield Probe("example", f"example_{number}", desc, (data,), (np.array([[values]], np.float32),))
    first = np.array([[[[0, 1, 10, 11], [3, 2, 9, 8], [4, 5, 6, 7]]]], np.float32)
    second = np.array([[[[1, 2, 2, 3], [3, 4, 5, 5], [6, 6, 6, 6]]]], np.float32)
    down, up = AxisDirection.DECREASING, AxisDirection.INCREASING
    for number, (values_in, axis, direction, values_out, indices) in enumerate(
        (
            (first, 3, down, [[11, 10], [9, 8], [7, 6]], [[3, 2], [2, 3], [3, 2]]),
            (first, 2, down, [[4, 5, 10, 11], [3, 2, 9, 8]], [[2, 2, 0, 0], [1, 1, 1, 1]]),
            (second, 3, down, [[3, 2, 2], [5, 5, 4], [6, 6, 6]], [[3, 1, 2], [2, 3, 1], [0, 1, 2]]),
            (second, 3, up, [[1, 2, 2], [3, 4, 5], [6, 6, 6]], [[0, 1, 2], [0, 1, 2], [0, 1, 2]]),
        ),
        start=1,
    ):
        best, at = np.array([[values_out]], np.float32), np.array([[indices]], np.uint32)
        top = TopK1(TensorDesc.of(values_in), TensorDesc.of(best), TensorDesc.of(at), axis, best.shape[axis], direction)
        yield Probe("example", f"example_{number}", top, (values_in,), (best, at))
    x, w = np.array([[[[1, 2, 3]]]], np.uint8), np.array([[[[2, 1, 1]]]], np.int8)
    scale, zero = np.full((1, 1, 1, 1), 1, np.float32), np.full((1, 1, 1, 1), 1, np.uint8)
    y = np.array([[[[4]]]], np.int8)  # 0 * 2 + 1 * 1 + 2 * 1 = 3, and the zero point 1
    feeds = (x, scale, zero, w, scale, None, None, scale, y[:, :, :, :1] * 0 + 1)
    tensors = [None if feed is None else TensorDesc.of(feed) for feed in feeds]
    quantised = QuantizedLinearConvolution(*tensors, TensorDesc.of(y), (1, 1), (1, 1), (0, 0), (0, 0), 1)  # type: ignore[arg-type, call-arg]
    yield Probe("example", "by_hand", quantised, feeds, (y,))


def list_uncalled() -> Iterator[Probe]:
    """The operators that the provider uses and no case's description is: NONZERO_COORDINATES, with the example of
    ns-directml-dml_nonzero_coordinates_operator_desc, the first MEAN_VARIANCE_NORMALIZATION, and
    MULTIHEAD_ATTENTION1, where the softmax of one key is 1."""
    sparse = np.array([[[[1, 0, 0, 2], [-0.0, 3.5, 0, -5.2]]]], np.float32)
    count, coordinates = (TensorDesc(DataType.UINT32, sizes) for sizes in ((1, 1, 1, 1), (1, 1, 8, 3)))
    found = np.array([[0, 0, 0], [0, 0, 3], [0, 1, 1], [0, 1, 3]], np.uint32)
    nonzero = NonzeroCoordinates(TensorDesc.of(sparse), count, coordinates)
    yield Probe("uncalled", "example", nonzero, (sparse,), (np.array([4], np.uint32), found), rest_undefined=True)
    x = np.array([[[[1, 3]], [[5, 7]]]], np.float32)
    tensor = TensorDesc.of(x)
    for name, across, variance, expected in (
        ("each_channel", False, True, [[[[-1, 1]], [[-1, 1]]]]),
        ("across_channels", True, False, [[[[-3, -1]], [[1, 3]]]]),
    ):
        mean = MeanVarianceNormalization(tensor, None, None, tensor, across, variance, 0.0)
        yield Probe("uncalled", name, mean, (x, None, None), (np.array(expected, np.float32),))
    query, value = np.arange(16, dtype=np.float32).reshape(1, 2, 8), np.array([[[1, 2, 3, 4]]], np.float32)
    of_query, of_value = TensorDesc.of(query), TensorDesc.of(value)
    attention = MultiheadAttention1(
        of_query, of_value, of_value, *(None,) * 9, of_query, None, None, 1.0, -10000.0, 4, 2,
        MultiheadAttentionMaskType.NONE,
    )  # fmt: skip
    shared = np.array([[[1, 2, 1, 2, 3, 4, 3, 4]] * 2], np.float32)
    yield Probe("uncalled", "two_heads_share", attention, (query, value, value, *(None,) * 9), (shared,))


def layouts() -> Iterator[Probe]:
    """Strides that transpose, repeat, and leave gaps, of inputs and of outputs."""
    a = np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4)
    b = np.arange(12, 24, dtype=np.float32).reshape(1, 1, 3, 4)
    packed, total = TensorDesc.of(a), a + b
    transposed = TensorDesc(DataType.FLOAT32, a.shape, (12, 12, 1, 3))
    padded = TensorDesc(DataType.FLOAT32, a.shape, (64, 32, 8, 1))
    every_other = TensorDesc(DataType.FLOAT32, a.shape, (32, 32, 8, 2))
    row = TensorDesc(DataType.FLOAT32, a.shape, (0, 0, 0, 1))
    yield Probe("layout", "transposed_input", ElementWiseAdd(transposed, packed, packed), (a, b), (total,))
    yield Probe("layout", "padded_input", ElementWiseAdd(padded, packed, packed), (a, b), (total,))
    yield Probe("layout", "every_other_element", ElementWiseAdd(packed, every_other, packed), (a, b), (total,))
    repeated = np.broadcast_to(b[:, :, :1], b.shape)
    yield Probe("layout", "repeated_row", ElementWiseAdd(packed, row, packed), (a, repeated), (a + repeated,))
    yield Probe("layout", "transposed_output", ElementWiseAdd(packed, packed, transposed), (a, b), (total,))
    yield Probe("layout", "padded_output", ElementWiseAdd(packed, packed, padded), (a, b), (total,))
    window = Slice1(transposed, TensorDesc(DataType.FLOAT32, (1, 1, 2, 2)), (0, 0, 0, 1), (1, 1, 3, 3), (1, 1, -2, 2))
    yield Probe("layout", "transposed_input", window, (a,), (a[:, :, ::-2, 1::2],))
    square = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    turned = TensorDesc(DataType.FLOAT32, square.shape, (16, 16, 1, 4))
    yield Probe("layout", "transposed_b", gemm(packed, turned, packed), (a, square, None), (a @ square,))


def bindings() -> Iterator[Probe]:
    """Tensors that begin later in their buffer, are larger than they need to be, and belong to DirectML."""
    a = np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4)
    packed, feeds, total = TensorDesc.of(a), (a, a), (a + a,)
    add = ElementWiseAdd(packed, packed, packed)
    for offset in (16, 256, 65536):
        options: Options = {"BTensor": {"offset": offset}, "OutputTensor": {"offset": offset}}
        yield Probe("binding", f"offset_{offset}", add, feeds, total, options=options)
    yield Probe("binding", "aligned", add, feeds, total, options={"ATensor": {"alignment": 256}})
    yield Probe("binding", "larger_than_needed", add, feeds, total, options={"ATensor": {"total_bytes": 4096}})
    owned = {"flags": OWNED_BY_DML}
    square = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    product = gemm(packed, TensorDesc.of(square), packed)
    yield Probe("binding", "owned_b", product, (a, square, None), (a @ square,), options={"BTensor": owned})
    convolution, operands, result = make_convolution(np.float32)
    for names in (("FilterTensor",), ("FilterTensor", "BiasTensor")):
        options = dict.fromkeys(names, owned)
        name = "owned_" + "_and_".join(tensor.removesuffix("Tensor").lower() for tensor in names)
        yield Probe("binding", name, convolution, operands, result, options=options)
    yield Probe("binding", "owned_a", add, feeds, total, options={"ATensor": owned})


def list_flags() -> Iterator[Probe]:
    """Every flag on products and convolutions, which have metacommands and half-precision kernels."""
    for dtype in (np.float32, np.float16):
        a: Array = np.arange(12, dtype=dtype).reshape(1, 1, 3, 4)
        square: Array = np.arange(16, dtype=dtype).reshape(1, 1, 4, 4)
        product = gemm(TensorDesc.of(a), TensorDesc.of(square), TensorDesc.of(a))
        convolution, operands, result = make_convolution(dtype)
        for name, flags in FLAGS.items():
            title = f"{np.dtype(dtype).name}_{name}"
            yield Probe("flags", title, product, (a, square, None), (a @ square,), flags)
            yield Probe("flags", title, convolution, operands, result, flags)


def gemm(a: TensorDesc, b: TensorDesc, output: TensorDesc) -> Gemm:
    """The plain product of two matrices."""
    return Gemm(a, b, None, output, MatrixTransform.NONE, MatrixTransform.NONE, 1.0, 0.0, None)


def make_convolution(dtype: type) -> tuple[Convolution, tuple[Array, Array, Array], tuple[Array]]:
    """A convolution of two channels into two, its operands and its result."""
    x: Array = np.arange(2 * 4 * 4, dtype=dtype).reshape(1, 2, 4, 4)
    w: Array = (np.arange(2 * 2 * 3 * 3, dtype=dtype).reshape(2, 2, 3, 3) % 3 - 1).astype(dtype)
    bias: Array = np.array([1, -2], dtype).reshape(1, 2, 1, 1)
    output = TensorDesc(DataType.of(dtype), (1, 2, 2, 2))
    ones, zeros = (1, 1), (0, 0)
    desc = Convolution(
        TensorDesc.of(x), TensorDesc.of(w), TensorDesc.of(bias), output, ConvolutionMode.CROSS_CORRELATION,
        ConvolutionDirection.FORWARD, ones, ones, zeros, zeros, zeros, 1, None,
    )  # fmt: skip
    (result,) = desc.evaluate(x, w, bias)
    return desc, (x, w, bias), (result,)
