"""The dynamic dimensions of a model's inputs: their names, their default sizes, and which follow from others."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product

import onnx

from epcheck.generators.error import EpcheckError
from epcheck.models.feeds import audio

UNNAMED = "{input}[{axis}]"
"""The name of a dimension that the model does not name: `image[2]`."""

_DEFAULTS = (("batch", 1), ("past", 4), ("sample", 1600), ("audio", 1600), ("height", 64), ("width", 64), ("seq", 8),
             ("len", 8))  # fmt: skip
"""Part of a name, in lower case -> the default size; the first part that fits decides."""

BATCH, SPATIAL, OTHER = 1, 64, 8
"""Default sizes for other names: of the first dimension, of the last two of rank 4, of all others."""

OTHER_COUNTS = ("seq", "len", "time", "frame", "past", "step", "token", "chunk", "beam", "head", "layer")
"""Parts of the names of dimensions that do not count the samples of a batch."""

_OPERATIONS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv
}  # fmt: skip


class DimsError(EpcheckError, ValueError):
    """A dimension that the model does not have, or a size that it cannot have; the message names it."""


def of_inputs(model: onnx.ModelProto) -> dict[str, int]:
    """Free dynamic dimension -> its default size, in the order of the inputs.

    A dimension whose name computes others (`past_sequence_length + 1`, as Optimum writes it) is not free, nor is
    `total_X` where `X` and `past_X` are there, as ONNX Runtime GenAI names them.
    """
    names = _defaults(model)
    free = {name: size for name, size in names.items() if not _terms(name)}
    for expression in names:
        for name in _terms(expression):
            free.setdefault(name, _by_name(name, OTHER))
    return {name: size for name, size in free.items() if not _is_total(name, free)}


def combinations(model: onnx.ModelProto, dims: Mapping[str, Sequence[int]]) -> Iterator[dict[str, int]]:
    """Every combination of these sizes, as the `dims` of `feeds.generate`; a single empty one for no dims.

    Raises DimsError for a name that is none of `of_inputs`, before the first combination.
    """
    sizes = [tuple(values) for values in dims.values()]
    for name, values in zip(dims, sizes, strict=True):
        resolve(model, dict.fromkeys([name], min(values, default=0)))
        if not values:
            raise DimsError(f"dimension '{name}' has no size to try")
    return (dict(zip(dims, values, strict=True)) for values in product(*sizes))


def resolve(model: onnx.ModelProto, dims: Mapping[str, int]) -> dict[str, int]:
    """The size of every dynamic dimension, those that follow from others among them. Raises DimsError."""
    free = of_inputs(model)
    for name, size in dims.items():
        if name not in free:
            listed = ", ".join(f"'{dimension}'" for dimension in free) or "none"
            raise DimsError(f"the model's inputs have no free dynamic dimension '{name}'; they have {listed}")
        if size < 0:
            raise DimsError(f"dimension '{name}' cannot have the size {size}")
    known = {**free, **dims}
    for name in _defaults(model):
        if name not in known:
            known[name] = _compute_size(name, known)
            if known[name] < 0:
                raise DimsError(f"dimension '{name}' would have the size {known[name]}")
    return known


def tensor_types(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.TypeProto.Tensor]]:
    """Input name and the type of the tensor it is or holds, of inputs that must be fed."""
    weights = {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        if value.name not in weights:
            yield value.name, tensor_type(value.type)


def tensor_type(kind: onnx.TypeProto) -> onnx.TypeProto.Tensor:
    """The type of the tensors in a sequence or an optional, however deep; an empty one for maps and sparse tensors."""
    while (inner := kind.WhichOneof("value")) in ("sequence_type", "optional_type"):
        kind = getattr(kind, inner).elem_type
    return kind.tensor_type


def name_of(value: str, axis: int, dim: onnx.TensorShapeProto.Dimension) -> str:
    """The name of a dynamic dimension; empty for a static one. A size of -1, as Paddle's exporter writes it, is
    dynamic, as it is for ONNX Runtime; a size of 0 is 0, as it is there."""
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return ""
    return dim.dim_param or UNNAMED.format(input=value, axis=axis)


def _defaults(model: onnx.ModelProto) -> dict[str, int]:
    """Every name that a dimension of an input has, computed ones among them -> its default."""
    found: dict[str, int] = {}
    inputs = dict(tensor_types(model))
    samples = audio.samples(model, inputs)
    for value, tensor in inputs.items():
        rank = len(tensor.shape.dim)
        for axis, dim in enumerate(tensor.shape.dim):
            is_batch = axis == _batch_axis(value, rank)
            otherwise = BATCH if is_batch or axis == 0 else SPATIAL if rank == 4 and axis >= 2 else OTHER
            if name := name_of(value, axis, dim):
                found.setdefault(name, _by_name(name, otherwise))
                found[name] = samples.get((value, axis), found[name])
    return found


def of_batch(model: onnx.ModelProto) -> tuple[str, ...]:
    """The free dimensions that count the samples of a batch: the first of an input of several axes, unless its name
    says that it counts something else."""
    free = of_inputs(model)
    first = [
        name
        for value, tensor in tensor_types(model)
        for axis, dim in enumerate(tensor.shape.dim)
        if (name := name_of(value, axis, dim)) in free
        and ("batch" in name.lower() or (axis == _batch_axis(value, len(tensor.shape.dim)) and not _counts_other(name)))
    ]
    return tuple(name for name in dict.fromkeys(first) if free[name] == BATCH)


def _batch_axis(value: str, rank: int) -> int | None:
    """The axis of the samples of a batch: the first, in the state of a recurrent layer the second; None for rank 1."""
    return None if rank < 2 else 1 if rank == 3 and audio.STATE.match(value) else 0


def _counts_other(name: str) -> bool:
    return any(part in name.lower() for part in OTHER_COUNTS)


def _by_name(name: str, otherwise: int) -> int:
    return next((size for part, size in _DEFAULTS if part in name.lower()), otherwise)


def _expression(name: str) -> ast.expr | None:
    """The parsed name, if it computes: names and whole numbers with + - * //."""
    try:
        parsed = ast.parse(name.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    allowed = (ast.BinOp, ast.Name, ast.Constant, ast.Load, *_OPERATIONS)
    computes = isinstance(parsed, ast.BinOp) and all(
        isinstance(part, allowed) and (not isinstance(part, ast.Constant) or type(part.value) is int)
        for part in ast.walk(parsed)
    )
    return parsed if computes else None


def _terms(name: str) -> tuple[str, ...]:
    """The names in a computing name; none in a plain one."""
    expression = _expression(name)
    return tuple(part.id for part in ast.walk(expression) if isinstance(part, ast.Name)) if expression else ()


def _is_total(name: str, names: Mapping[str, int]) -> bool:
    rest = name.removeprefix("total_")
    return rest != name and rest in names and f"past_{rest}" in names


def _compute_size(name: str, known: Mapping[str, int]) -> int:
    if expression := _expression(name):
        return _evaluate(expression, known)
    rest = name.removeprefix("total_")
    return known[rest] + known[f"past_{rest}"]


def _evaluate(part: ast.expr, known: Mapping[str, int]) -> int:
    match part:
        case ast.Constant(value=int(value)):
            return value
        case ast.Name(id=name):
            return known[name]
        case ast.BinOp(left=left, op=operation, right=right):
            operands = _evaluate(left, known), _evaluate(right, known)
            if isinstance(operation, ast.FloorDiv) and operands[1] == 0:
                raise DimsError("a dimension's name divides by a dimension of size 0")
            return _OPERATIONS[type(operation)](*operands)
    raise DimsError(f"a dimension's name has '{ast.unparse(part)}', which is no arithmetic")
