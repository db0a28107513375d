"""What a framework computes of a model's inputs, by the names that these values have in an export of it.

torch.onnx gives the values of an export the names of the FX nodes of the program (`relu`, `linear_1`), and its older
exporter, which traces, those of the modules that make them (`/layer1/layer1.0/conv1/Conv_output_0`). Outputs are at the
same places, whatever their names are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
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
    module: Any, args: Sequence[Any], kwargs: Mapping[str, Any], model: onnx.ModelProto
) -> FrameworkValues:
    """What a module computes of its arguments.

    module: a torch.nn.Module, a torch.export.ExportedProgram, an estimator or pipeline of scikit-learn, or a function
    of arrays that gives an array or a sequence of them. model: an export of it.

    Raises FrameworkError, and what the module itself raises.
    """
    if _is_of_torch(module):
        return _compute_with_torch(module, args, kwargs, model)
    inner: Mapping[str, Array] = {}
    if hasattr(module, "predict") or hasattr(module, "transform"):
        outputs, inner = _compute_with_estimator(module, args[0]), _compute_steps(module, args[0], model)
    else:
        outputs = _flatten(module(*args, **kwargs))
    arrays = [np.asarray(value) for value in (*args, *kwargs.values())]
    named = _name_outputs(outputs, model)
    return FrameworkValues(_name_inputs(arrays, model), {**inner, **named}, named)


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
    return cast_inputs(dict(zip(names, arrays, strict=True)), model)


def cast_inputs(arrays: Mapping[str, Array], model: onnx.ModelProto) -> dict[str, Array]:
    """Floating-point arrays in the dtypes of the model's inputs of these names: a stage may be in float16."""
    return {**arrays, **_cast(arrays, model.graph.input, "f")}


def cast_outputs(arrays: Mapping[str, Array], model: onnx.ModelProto) -> dict[str, Array]:
    """The arrays of numbers that are outputs of the model, in their dtypes there."""
    return _cast(arrays, model.graph.output, "fiub")


def _cast(arrays: Mapping[str, Array], ends: Iterable[onnx.ValueInfoProto], kinds: str) -> dict[str, Array]:
    found = {}
    for value in ends:
        dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type or onnx.TensorProto.STRING)
        array = arrays.get(value.name)
        if array is not None and array.dtype.kind in kinds and dtype.kind in kinds:
            found[value.name] = array.astype(dtype)
    return found


def _name_outputs(outputs: Sequence[Any], model: onnx.ModelProto) -> dict[str, Array]:
    """The arrays of numbers by the names of the model's outputs, which are at the same places."""
    declared = model.graph.output
    if len(declared) != len(outputs):
        raise FrameworkError(f"the export has {len(declared)} outputs, and the module gives {len(outputs)}")
    names = [value.name for value in declared]
    return cast_outputs(dict(zip(names, map(np.asarray, outputs), strict=True)), model)


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


def _compute_steps(estimator: Any, data: Any, model: onnx.ModelProto) -> dict[str, Array]:
    """The results of the transformers of a scikit-learn pipeline. skl2onnx calls what a step gives `variable`, with a
    number (`_parse_sklearn_simple_model`, skl2onnx/_parse.py); nothing where the export has more or fewer of them."""
    steps = [step for _, step in getattr(estimator, "steps", ())[:-1] if hasattr(step, "transform")]
    outputs = {value.name for value in model.graph.output}
    made = [name for node in model.graph.node for name in node.output if re.fullmatch(r"variable\d*", name)]
    names = [name for name in made if name not in outputs]
    found: dict[str, Array] = {}
    for name, step in zip(names, steps, strict=True) if len(names) == len(steps) else ():
        data = step.transform(data)
        if not isinstance(data, np.ndarray) or data.dtype.kind != "f":
            break
        found[name] = data.astype(np.float32)
    return found


def _compute_with_torch(
    module: Any, args: Sequence[Any], kwargs: Mapping[str, Any], model: onnx.ModelProto
) -> FrameworkValues:
    import torch
    from torch.export import ExportedProgram

    tensors = [to_array(leaf) for leaf in _flatten([*args, *kwargs.values()]) if isinstance(leaf, torch.Tensor)]
    inputs = _name_inputs(tensors, model)
    is_traced = any(name.startswith("/") for node in model.graph.node for name in node.output)
    with torch.no_grad():
        runs = module.module() if isinstance(module, ExportedProgram) else module
        outputs = [to_array(leaf) for leaf in _flatten(runs(*args, **kwargs)) if isinstance(leaf, torch.Tensor)]
        if is_traced:
            found = _match_scopes(_record_modules(runs, args, kwargs), model)
        else:
            program, again = _export_again(module, args, kwargs)
            found = dict(_match_nodes(*_record_nodes(program, args, kwargs), model, _read_texts(model, again)))
    named = _name_outputs(outputs, model)
    return FrameworkValues(inputs, {**found, **named}, named)


def to_array(tensor: Any) -> Array:
    """A torch tensor as an array that no later module changes; bfloat16, which numpy has not, as float32."""
    import torch

    tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
    return np.array((tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy())


def _export_again(module: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, onnx.ModelProto | None]:
    """The program of another export of the module, and its model; the program of its decomposition, and None, where
    torch.onnx cannot export it."""
    import torch
    from torch.export import ExportedProgram

    try:
        exported = torch.onnx.export(module, tuple(args), kwargs=dict(kwargs), dynamo=True, verbose=False)
        return exported.exported_program, exported.model_proto
    except Exception:  # whatever the exporter raises of a module that somebody exported with other options
        program = (
            module if isinstance(module, ExportedProgram) else torch.export.export(module, tuple(args), dict(kwargs))
        )
        return program.run_decompositions(), None


def _text_of(node: onnx.NodeProto) -> str:
    """The FX node that a node stands for; empty where the export does not say."""
    return next((entry.value for entry in node.metadata_props if entry.key == FX_NODE), "")


def _read_texts(model: onnx.ModelProto, again: onnx.ModelProto | None) -> dict[str, str]:
    """Value of the model -> the FX node of the node that makes it; empty where the export does not say.

    Where it says so of no node, as tools leave it out, a node has that of the node of the same first output in another
    export of the module, if both have the same operator and read the same values, and all in front of them do so too.
    """
    texts = {name: _text_of(node) for node in model.graph.node for name in node.output}
    if again is None or any(texts.values()):
        return texts
    twins = {name: node for node in again.graph.node for name in node.output[:1]}
    made = texts.keys() | {name for node in again.graph.node for name in node.output}
    others: set[str] = set()
    for node in model.graph.node:
        twin = twins.get(next(iter(node.output), ""))
        read = [name for name in node.input if name in made]
        its = None if twin is None else [each for each in twin.input if each in made]
        if twin is not None and twin.op_type == node.op_type and read == its and others.isdisjoint(read):
            texts.update(dict.fromkeys(node.output, _text_of(twin)))
        else:
            others.update(node.output)
    return texts


def _record_nodes(
    program: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[dict[str, tuple[str, Array]], list[str]]:
    """FX node -> its text, and its value where that is a tensor; and the names of the inputs that are tensors, in their
    order."""
    import torch
    from torch.utils import _pytree

    found: dict[str, tuple[str, Array]] = {}
    inputs: list[str] = []

    class Recorder(torch.fx.Interpreter):  # type: ignore[misc]  # torch need not be installed
        def run_node(self, n: Any) -> Any:
            value = super().run_node(n)
            if n.op == "placeholder" and isinstance(value, torch.Tensor):
                inputs.append(n.name)
            if n.op == "call_function" and isinstance(value, torch.Tensor):
                found[n.name] = n.format_node() or "", to_array(value)
            return value

    leaves, _ = _pytree.tree_flatten((tuple(args), dict(kwargs)))
    Recorder(program.module()).run(*leaves, enable_io_processing=False)
    return found, inputs


def _match_nodes(
    recorded: Mapping[str, tuple[str, Array]], inputs: Sequence[str], model: onnx.ModelProto, texts: Mapping[str, str]
) -> Iterator[tuple[str, Array]]:
    """The values of an export that are those of FX nodes: of the same name, if the export says of the node, and of all
    that it reads, that operators and operands are the same. Other programs give a name to other nodes. inputs: of the
    program, which are those of the export at the same places: a program calls `input` `input_1`. texts: as
    `_read_texts` gives them."""
    exported = {name: (target, operands) for text in texts.values() for name, target, operands in _parse_nodes(text)}
    made = {name: (target, operands) for text, _ in recorded.values() for name, target, operands in _parse_nodes(text)}
    weights = {tensor.name for tensor in model.graph.initializer}
    names = [value.name for value in model.graph.input if value.name not in weights]
    renamed = dict(zip(inputs, names, strict=True)) if len(inputs) == len(names) else {}
    is_same: dict[str, bool] = {}
    for name, (target, operands) in made.items():  # in the order of the program
        node = target, tuple(renamed.get(operand, operand) for operand in operands)
        is_same[name] = exported.get(name, node) == node and all(is_same.get(operand, True) for operand in operands)
    for name in texts:
        if name in recorded and name in exported and is_same[name]:
            yield name, recorded[name][1]


def _parse_nodes(text: str) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """(name, target, names of what it reads) of the FX nodes in a text. Weights that are lifted have `p_` in front,
    others `_` where their name begins with a digit."""
    for line in text.splitlines():
        match = re.match(r"\s*%(\w+) .*?\[target=([^\]]+)\]\((.*)", line)
        if match:
            yield match[1], match[2], tuple(re.findall(r"%(?:[pbc]_)?_?(\w+)", match[3]))


def _record_modules(module: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[tuple[str, Array, Any, Any]]:
    """(scope as a traced export writes it, output, what it read, what it gave) of each call of a module, in the order
    in which they end. A scope is made of the modules that are being called, whoever holds them; another call of the
    same scope has a number (torch/csrc/jit/passes/onnx/naming.cpp)."""
    import torch

    found: list[tuple[str, Array, Any, Any]] = []
    entered, calls = [""], Counter[str]()

    def enter(name: str) -> Any:
        def hook(_module: Any, _read: Any) -> None:
            scope = f"{entered[-1]}/{_last_scope(name)}"
            entered.append(f"{scope}_{calls[scope]}" if calls[scope] else scope)
            calls[scope] += 1

        return hook

    def leave(_module: Any, read: Any, made: Any) -> None:
        scope = entered.pop()
        first = made[0] if isinstance(made, tuple) and made else made  # a recurrent module has its states as well
        if isinstance(first, torch.Tensor):
            found.append((scope, to_array(first), read[0] if read else None, first))

    handles = []
    for name, part in module.named_modules():
        if name:
            handles += [part.register_forward_pre_hook(enter(name)), part.register_forward_hook(leave)]
    try:
        module(*args, **kwargs)
    finally:
        for handle in handles:
            handle.remove()
    return found


def _last_scope(name: str) -> str:
    """`layer1.0.conv1` -> `conv1`, `layer1.0` -> `layer1.0`: a child that has a number is called after its parent."""
    *parents, part = name.split(".")
    return f"{parents[-1]}.{part}" if part.isdecimal() and parents else part


def _match_scopes(recorded: Sequence[tuple[str, Array, Any, Any]], model: onnx.ModelProto) -> dict[str, Array]:
    """The values of a traced export that are outputs of modules: that of the last node of a module, if it is not of a
    module in that one. Where the next module reads it and has no node, it was folded into this one."""
    last = {}
    for node in model.graph.node:
        inner = node.name.rpartition("/")[0]
        for scope in (part for part in accumulate(inner.split("/"), "{}/{}".format) if part):
            last[scope] = node.output[0] if scope == inner else None  # which is of a module in it
    found = {}
    for at, (scope, value, _, made) in enumerate(recorded):
        name = last.get(scope)
        if name is None:
            continue
        for later, its, read, gave in recorded[at + 1 :]:
            if later in last or read is not made:
                break
            value, made = its, gave
        found[name] = value
    return found
