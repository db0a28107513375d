"""What a framework computes of a model's inputs, by the names that these values have in an export of it.

torch.onnx gives the values of an export the names of the FX nodes of the program (`relu`, `linear_1`), and its older
exporter, which traces, those of the modules that make them (`/layer1/layer1.0/conv1/Conv_output_0`). Outputs are at the
same places, whatever their names are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper

from epcheck.generators.array import Array
from epcheck.generators.error import EpcheckError

FX_NODE = "pkg.torch.onnx.fx_node"
"""Property of a node of an export: the FX node that it stands for, with its operator."""


class FrameworkError(EpcheckError, ValueError):
    """A module, its arguments and its export do not belong together; the message names what is missing."""


@dataclass(frozen=True)
class FrameworkValues:
    """inputs, outputs: of the export, by name. values: by the names that they have in it, its outputs among them."""

    inputs: Mapping[str, Array] = field(repr=False)
    values: Mapping[str, Array] = field(repr=False)
    outputs: Mapping[str, Array] = field(repr=False)


def compute_values(
    module: Any, args: Sequence[Any], kwargs: Mapping[str, Any], model: onnx.ModelProto, program: Any = None
) -> FrameworkValues:
    """What a module computes of its arguments.

    module: a torch.nn.Module, a torch.export.ExportedProgram, an estimator or pipeline of scikit-learn, or a function
    of arrays that gives an array or a sequence of them. model: an export of it. program: the ExportedProgram that it
    was made from, of which the values of a torch export have their names; None exports the module again.

    Raises FrameworkError, and what the module itself raises.
    """
    if _is_of_torch(module):
        return _compute_with_torch(module, args, kwargs, model, program)
    if hasattr(module, "predict") or hasattr(module, "transform"):
        outputs = _compute_with_estimator(module, args[0])
    else:
        outputs = _flatten(module(*args, **kwargs))
    arrays = [np.asarray(value) for value in (*args, *kwargs.values())]
    named = _name_outputs(outputs, model)
    return FrameworkValues(_name_inputs(arrays, model), named, named)


def _is_of_torch(module: Any) -> bool:
    return any(base.__module__.partition(".")[0] == "torch" for base in type(module).__mro__)


def _flatten(value: Any) -> list[Any]:
    """The leaves of nested lists, tuples and dictionaries, in their order, without None."""
    if isinstance(value, Mapping):
        return [leaf for element in value.values() for leaf in _flatten(element)]
    if isinstance(value, list | tuple):
        return [leaf for element in value for leaf in _flatten(element)]
    return [] if value is None else [value]


def _name_inputs(arrays: Sequence[Array], model: onnx.ModelProto) -> dict[str, Array]:
    """The arrays by the names of the model's inputs, which are at the same places."""
    weights = {tensor.name for tensor in model.graph.initializer}
    names = [value.name for value in model.graph.input if value.name not in weights]
    if len(names) != len(arrays):
        listed = ", ".join(f"'{name}'" for name in names)
        raise FrameworkError(f"the export has {len(names)} inputs ({listed}), and {len(arrays)} arrays are given: pass "
                             "those that the module was exported with")  # fmt: skip
    return dict(zip(names, arrays, strict=True))


def _name_outputs(outputs: Sequence[Any], model: onnx.ModelProto) -> dict[str, Array]:
    """The arrays of numbers by the names of the model's outputs, which are at the same places."""
    declared = model.graph.output
    if len(declared) != len(outputs):
        raise FrameworkError(f"the export has {len(declared)} outputs, and the module gives {len(outputs)}")
    found = {}
    for value, array in zip(declared, map(np.asarray, outputs), strict=True):
        dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type or onnx.TensorProto.STRING)
        if array.dtype.kind in "fiub" and dtype.kind in "fiub":
            found[value.name] = array.astype(dtype)
    return found


def _compute_with_estimator(estimator: Any, data: Any) -> list[Any]:
    """The outputs of a scikit-learn estimator in the order of skl2onnx: labels, then scores; a regressor's prediction;
    a transformer's result."""
    if not hasattr(estimator, "predict"):
        return [estimator.transform(data)]
    predicted = np.asarray(estimator.predict(data))
    for scores in ("predict_proba", "decision_function"):
        if hasattr(estimator, scores):
            return [predicted, getattr(estimator, scores)(data)]
    return [predicted.reshape(-1, 1) if predicted.ndim == 1 else predicted]


def _compute_with_torch(
    module: Any, args: Sequence[Any], kwargs: Mapping[str, Any], model: onnx.ModelProto, program: Any
) -> FrameworkValues:
    import torch
    from torch.export import ExportedProgram

    tensors = [to_array(leaf) for leaf in _flatten([*args, *kwargs.values()]) if isinstance(leaf, torch.Tensor)]
    inputs = _name_inputs(tensors, model)
    is_traced = any(name.startswith("/") for node in model.graph.node for name in node.output)
    with torch.no_grad():
        if isinstance(module, ExportedProgram):
            program, module = program or module, module.module()
        outputs = [to_array(leaf) for leaf in _flatten(module(*args, **kwargs)) if isinstance(leaf, torch.Tensor)]
        if is_traced:
            found = _match_scopes(_record_modules(module, args, kwargs), model)
        elif program is not None:
            found = dict(_match_nodes([_record_nodes(program, args, kwargs)], model))
        else:
            again = torch.export.export(module, tuple(args), dict(kwargs))
            recorded = [_record_nodes(made, args, kwargs) for made in (again, again.run_decompositions())]
            found = dict(_match_nodes(recorded, model, is_another=True))
    named = _name_outputs(outputs, model)
    return FrameworkValues(inputs, {**found, **named}, named)


def to_array(tensor: Any) -> Array:
    """A torch tensor as an array; bfloat16, which numpy has not, as float32."""
    import torch

    tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
    return np.asarray((tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy())


def _record_nodes(program: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, tuple[str, Array]]:
    """FX node -> its operator, and its value where that is a tensor."""
    import torch
    from torch.utils import _pytree

    found: dict[str, tuple[str, Array]] = {}

    class Recorder(torch.fx.Interpreter):  # type: ignore[misc]  # torch need not be installed
        def run_node(self, n: Any) -> Any:
            value = super().run_node(n)
            if n.op == "call_function" and isinstance(value, torch.Tensor):
                found[n.name] = str(n.target), to_array(value)
            return value

    leaves, _ = _pytree.tree_flatten((tuple(args), dict(kwargs)))
    Recorder(program.module()).run(*leaves, enable_io_processing=False)
    return found


def _match_nodes(
    recorded: Sequence[Mapping[str, tuple[str, Array]]], model: onnx.ModelProto, is_another: bool = False
) -> Iterator[tuple[str, Array]]:
    """The values of an export that are those of FX nodes: of the same name, and, as far as the export says it, of the
    same operator. recorded: of the program, or of each of its forms. is_another: the export was made of another
    program, in which a name that it does not explain may be that of another node."""
    for node in model.graph.node:
        says = next((entry.value for entry in node.metadata_props if entry.key == FX_NODE), "")
        for name in node.output:
            is_explained = f"%{name} " in says
            candidates = [values[name] for values in recorded if name in values]
            fitting = [value for target, value in candidates if (target in says if is_explained else not is_another)]
            if fitting:
                yield name, fitting[0]


def _record_modules(module: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[tuple[str, Array, Any, Any]]:
    """(scope as a traced export writes it, output, what it read, what it gave) of each module with one output, in the
    order in which they end."""
    import torch

    found: list[tuple[str, Array, Any, Any]] = []

    def note(scope: str) -> Any:
        def hook(_module: Any, read: Any, made: Any) -> None:
            if isinstance(made, torch.Tensor):
                found.append((scope, to_array(made), read[0] if read else None, made))

        return hook

    handles = [part.register_forward_hook(note(_scope(name))) for name, part in module.named_modules() if name]
    try:
        module(*args, **kwargs)
    finally:
        for handle in handles:
            handle.remove()
    return found


def _scope(name: str) -> str:
    """`layer1.0.conv1` -> `/layer1/layer1.0/conv1`: a child that has a number is called after its parent."""
    scopes: list[str] = []
    parts = name.split(".")
    for at, part in enumerate(parts):
        scopes.append(f"{parts[at - 1]}.{part}" if part.isdecimal() and at else part)
    return "/" + "/".join(scopes)


def _match_scopes(recorded: Sequence[tuple[str, Array, Any, Any]], model: onnx.ModelProto) -> dict[str, Array]:
    """The values of a traced export that are outputs of modules which ran once: that of the last node of a module.
    Where the next module reads it and has no node, it was folded into this one."""
    last = {node.name.rpartition("/")[0]: node.output[0] for node in model.graph.node if node.name.startswith("/")}
    scopes = [scope for scope, *_ in recorded]
    found = {}
    for at, (scope, value, _, made) in enumerate(recorded):
        if scopes.count(scope) > 1 or scope not in last:
            continue
        for later, its, read, gave in recorded[at + 1 :]:
            if later in last or read is not made:
                break
            value, made = its, gave
        found[last[scope]] = value
    return found
