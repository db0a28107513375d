"""Nodes that read a large weight: it is widened to float64 a block at a time, never as a whole.

A block is some columns of a product's weight, or the rows that a Gather takes. Each element of the result is the same
sum of the same terms as with the whole weight. BLAS adds them in an order that depends on where the column is in a
group of columns that its kernels compute together: with blocks of whole groups, on one thread, the bits are the same.
Other operators get the whole weight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeGuard

import numpy as np
import onnx

from epcheck.generators.array import Array
from epcheck.generators.node import qualified_name
from epcheck.models.graph.attributes import read_integer
from epcheck.models.graph.feed import Feed
from epcheck.models.oracle.node import Computed, is_widened, widen_value

WHOLE_BYTES = 128 << 20
"""Bytes, in float64, up to which a weight is widened as a whole."""

BLOCK_BYTES = 32 << 20
"""Bytes of a block in float64, of at least one group of columns: more than the 10^6 products up to which OpenBLAS has
kernels of another order."""

GROUP = 384
"""Columns: a multiple of the widths of OpenBLAS's kernels for float64, which are 4, 8, 12, 16 and 24."""

WIDE = np.dtype(np.float64).itemsize

Part = tuple[onnx.NodeProto, list[Feed]]
Compute = Callable[[onnx.NodeProto, Sequence[Feed]], Computed]


def is_large(weight: Array) -> bool:
    """Whether a weight, in the type of the model, is widened in blocks."""
    return is_widened(weight.dtype) and weight.size * WIDE > WHOLE_BYTES


def evaluate(node: onnx.NodeProto, inputs: Sequence[Feed], compute: Compute) -> Computed:
    """The outputs of a node, some of whose inputs are not widened. compute: does one on widened inputs."""
    divide = _DIVIDE.get(qualified_name(node.op_type, node.domain))
    divided = divide(node, inputs) if divide is not None else None
    if divided is None:
        return compute(node, [widen_value(value) for value in inputs])
    axis, parts = divided
    found = [compute(part, [widen_value(value) for value in read]) for part, read in parts]
    values = [np.asarray(each.values[0]) for each in found]
    return Computed((np.concatenate(values, axis) if len(values) > 1 else values[0],), found[0].judge)


Divided = tuple[int, Iterator[Part]] | None
"""The axis at which the results of the parts are joined, and the parts; None where the node is no such one."""


def _of_matmul(node: onnx.NodeProto, inputs: Sequence[Feed]) -> Divided:
    if len(inputs) != 2 or not _is_large_matrix(weight := inputs[1]):
        return None
    x, columns = inputs[0], weight.shape[-1]
    return -1, ((node, [x, weight[..., at]]) for at in _blocks(columns, weight.size // columns))


def _of_gemm(node: onnx.NodeProto, inputs: Sequence[Feed]) -> Divided:
    if len(inputs) < 2 or not _is_large_matrix(weight := inputs[1]) or weight.ndim != 2:
        return None
    by_rows = read_integer(node, "transB")
    columns = weight.shape[0 if by_rows else 1]

    def parts() -> Iterator[Part]:
        for at in _blocks(columns, weight.size // columns):
            bias = [_columns(value, at, columns) for value in inputs[2:]]
            yield node, [inputs[0], weight[at] if by_rows else weight[:, at], *bias]

    return -1, parts()


def _of_gather(node: onnx.NodeProto, inputs: Sequence[Feed]) -> Divided:
    """The same node on the rows that it takes, once each."""
    weight, indices = inputs
    axis = read_integer(node, "axis")
    if not _is_large_matrix(weight) or not isinstance(indices, np.ndarray) or not -weight.ndim <= axis < weight.ndim:
        return None
    count = weight.shape[axis]
    if not indices.size or indices.min() < -count or indices.max() >= count:
        return None
    taken, places = np.unique(np.where(indices < 0, indices + count, indices), return_inverse=True)
    rows = np.take(weight, taken, axis)
    return 0, iter([(node, [rows, places.reshape(indices.shape).astype(indices.dtype)])])


def _of_matmul_n_bits(node: onnx.NodeProto, inputs: Sequence[Feed]) -> Divided:
    """Each column has rows of its own in B, the scales and the zero points."""
    n, k = read_integer(node, "N"), read_integer(node, "K")
    if n * k * WIDE <= WHOLE_BYTES or not all(value is None or isinstance(value, np.ndarray) for value in inputs):
        return None
    b = inputs[1]
    if len(inputs) < 3 or not isinstance(b, np.ndarray) or b.shape[:1] != (n,):
        return None
    by_column = [at for at in (1, 2, 3, 5) if at < len(inputs) and inputs[at] is not None]
    if any(np.asarray(inputs[at]).size % n for at in by_column):
        return None

    def parts() -> Iterator[Part]:
        for at in _blocks(n, k):
            part = onnx.NodeProto()
            part.CopyFrom(node)
            next(each for each in part.attribute if each.name == "N").i = len(range(n)[at])
            read = list(inputs)
            for place in by_column:
                value = np.asarray(inputs[place])
                rows = value if value.shape[0] == n else value.reshape(n, -1)
                read[place] = rows[at] if rows.ndim == value.ndim else rows[at].reshape(-1)
            yield part, read

    return -1, parts()


_DIVIDE: Mapping[str, Callable[[onnx.NodeProto, Sequence[Feed]], Divided]] = {
    "MatMul": _of_matmul,
    "Gemm": _of_gemm,
    "Gather": _of_gather,
    "com.microsoft::MatMulNBits": _of_matmul_n_bits,
}


def _is_large_matrix(value: Feed) -> TypeGuard[Array]:
    return isinstance(value, np.ndarray) and value.ndim > 1 and is_large(value)


def _blocks(columns: int, rows: int) -> Iterator[slice]:
    """The columns in blocks, the last of which has the rest as well: one of a single column is another product."""
    width = max(1, BLOCK_BYTES // (rows * WIDE * GROUP)) * GROUP
    count = max(1, columns // width)
    return (slice(at * width, (at + 1) * width if at + 1 < count else columns) for at in range(count))


def _columns(value: Feed, at: slice, columns: int) -> Feed:
    """These columns of a value that is broadcast to so many."""
    return value[..., at] if isinstance(value, np.ndarray) and value.shape[-1:] == (columns,) else value
