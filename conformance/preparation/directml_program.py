"""What the target `directml` is sent in the place of a model: a case's DirectML operator, described, fed and bound.

The worker's side is `workers/program/backends/directml/backend.py`, which says what a program holds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.preparation.tensors import Tensor, tensor
from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase
from epcheck.generators.directml import DataType, OperatorDesc, TensorDesc
from epcheck.generators.directml.call import CallError, bound, bound_names, call
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.truth import Outputs, Refusal, Selection

DECLINED = "no DirectML operator is called for it"
"""How the worker's answer begins to say that a case has no program; the judge calls that `unplaced`."""

FOUR_BITS = (DataType.UINT4, DataType.INT4)


TensorOptions = Mapping[str, int]
"""How a tensor is bound beyond its description: `flags` (DML_TENSOR_FLAGS), `offset` (bytes before it in its buffer),
`alignment` (GuaranteedBaseOffsetAlignment), `total_bytes` (TotalTensorSizeInBytes), `bound_bytes` (of its binding)."""


@dataclass(frozen=True)
class Program:
    """A program as JSON, and what is fed to it: the elements of each input's buffer, named by the input's number."""

    text: bytes
    feeds: tuple[Tensor, ...] = ()


class NoProgram(ValueError):  # noqa: N818  (named for what is missing)
    """A case that cannot be run as one DirectML operator; the message says why."""


def of(prepared: PreparedCase) -> Program:
    """The program of a case; one that says why where it has none."""
    try:
        return of_built(prepared.case.build())
    except NoProgram as error:
        return Program(json.dumps({"declined": f"{DECLINED}: {error}"}).encode())


def of_built(built: BuiltCase, flags: int = 0) -> Program:
    """The program of a case that is built. flags: DML_EXECUTION_FLAGS. Raises NoProgram."""
    if isinstance(built.truth, Refusal):
        raise NoProgram("the node is to be refused before anything is called")
    if built.lowering is None:
        raise NoProgram("the provider calls none, or several, or it is not described")
    return of_lowering(built.lowering, _results(built), flags, as_stored=True)


def of_lowering(
    lowering: Lowering,
    results: Mapping[str, Array],
    flags: int = 0,
    options: Mapping[str, TensorOptions] | None = None,
    as_stored: bool = False,
) -> Program:
    """The program of a description. Raises NoProgram.

    results: name -> array of the dtype and shape of each output. flags: DML_EXECUTION_FLAGS. options: the C name of a
    tensor's member -> how it is bound. as_stored: an output whose strides only put its elements in another order is
    answered in that order, the buffer's: where the provider says so, that is the order of the node's output.
    """
    description, name = lowering.description, lowering.description.NAME
    program, inputs, outputs = _describe_program(description, flags, options or {})
    written = [tensor for tensor in outputs if tensor is not None]
    if len(inputs) != len(lowering.feeds):
        raise NoProgram(f"{name} has {len(inputs)} inputs, its feeds are {len(lowering.feeds)}")
    if len(written) != len(results):
        raise NoProgram(f"{name} writes {len(written)} outputs, the node has {len(results)}")
    for desc, (output, array) in zip(written, results.items(), strict=True):
        if desc.element_count != array.size:
            raise NoProgram(f"{name} writes {desc.element_count} elements for the {array.size} of {output}")
    answered = (entry for entry in program["outputs"] if entry is not None)
    for entry, (output, array) in zip(answered, results.items(), strict=True):
        entry.update(name=output, dtype=array.dtype.name, shape=list(array.shape), as_stored=as_stored)
    pairs = zip(inputs, lowering.feeds, strict=True)
    feeds = [
        tensor(str(n), lay_out(desc, _require_values(feed))) for n, (desc, feed) in enumerate(pairs) if desc is not None
    ]
    return Program(json.dumps(program).encode(), tuple(feeds))


def to_create(description: OperatorDesc, flags: int = 0) -> Program:
    """The program that creates and compiles an operator, and does not run it. Raises NoProgram."""
    program, _, _ = _describe_program(description, flags, {})
    return Program(json.dumps({**program, "create_only": True}).encode())


def results_of(description: OperatorDesc) -> dict[str, Array]:
    """The C name of each output -> an array of its sizes and dtype, whatever its values. Raises NoProgram."""
    (_, names), (_, outputs) = bound_names(description), bound(description)
    pairs = zip(names, outputs, strict=True)
    return {name: np.broadcast_to(np.zeros((), desc.data_type.dtype), desc.sizes) for name, desc in pairs if desc}


_Bound = tuple[TensorDesc | None, ...]


def _describe_program(
    description: OperatorDesc, flags: int, options: Mapping[str, TensorOptions]
) -> tuple[dict[str, Any], _Bound, _Bound]:
    """A program without its answers, and the tensors that it binds."""
    try:
        tensors, called = bound(description), call(description)
    except CallError as error:
        raise NoProgram(str(error)) from error
    if any(desc.data_type in FOUR_BITS for descs in tensors for desc in descs if desc is not None):
        raise NoProgram(f"{description.NAME} has tensors of four bits, which are not packed here")
    inputs, outputs = (
        [
            None if desc is None else {**_tensor(desc), **options.get(name, {})}
            for desc, name in zip(descs, names, strict=True)
        ]
        for descs, names in zip(tensors, bound_names(description), strict=True)
    )
    return {"call": called, "flags": flags, "inputs": inputs, "outputs": outputs}, *tensors


def _tensor(desc: TensorDesc) -> dict[str, Any]:
    """A tensor as a program has it."""
    strides = None if desc.strides is None else list(desc.strides)
    return {"data_type": desc.data_type.value, "sizes": list(desc.sizes), "strides": strides}


def lay_out(desc: TensorDesc, values: Array) -> Array:
    """The elements of a tensor's buffer, with 0 in the gaps that strides leave."""
    values = np.asarray(values).astype(desc.data_type.dtype, copy=False)
    if desc.strides is None:
        return np.ascontiguousarray(values).reshape(-1)
    buffer = np.zeros(desc.buffer_element_count, desc.data_type.dtype)
    steps = tuple(stride * buffer.itemsize for stride in desc.strides)
    np.lib.stride_tricks.as_strided(buffer, desc.sizes, steps)[...] = values
    return buffer


def _require_values(values: Array | None) -> Array:
    if values is None:
        raise NoProgram("an input of the description has no values")
    return values


def _results(built: BuiltCase) -> Mapping[str, Array]:
    """Output name -> the true array, whose dtype and shape the answer has to have."""
    match built.truth:
        case Outputs(outputs):
            return {output.name: output.value for output in outputs}
        case Selection(names=names, accepted=accepted):
            return _pairs(names, accepted[0])
    return {}


def _pairs(names: Sequence[str], arrays: Sequence[Array]) -> Mapping[str, Array]:
    return dict(zip(names, arrays, strict=True))
