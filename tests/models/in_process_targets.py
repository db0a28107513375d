"""Targets in this process: ONNX Runtime on CPU, and the same with arithmetic that is deliberately wrong somewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

Array = np.ndarray[Any, np.dtype[Any]]
Change = Callable[[onnx.NodeProto, Array], Array]
"""(node, what it makes) -> what it makes wrongly."""


@dataclass(frozen=True)
class Outcome:
    stage: str = "done"
    message: str = ""
    outputs: Mapping[str, Array] = field(default_factory=dict)
    repeat_differs: Sequence[str] = ()
    during: str = ""


def session(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> dict[str, Array]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    made = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in made.get_outputs()]
    return dict(zip(names, made.run(names, dict(feeds)), strict=True))


@dataclass
class Cpu:
    """ONNX Runtime's CPU provider. asked: (outputs, level) of each session."""

    asked: list[tuple[tuple[str, ...], str]] = field(default_factory=list)

    def __call__(self, model: onnx.ModelProto, feeds: Mapping[str, Any], *, level: str = "all") -> Outcome:
        self.asked.append((tuple(o.name for o in model.graph.output), level))
        try:
            return Outcome(outputs=session(model, feeds))
        except Exception as error:
            return Outcome("run", str(error))


@dataclass
class Wrong(Cpu):
    """Node by node, and what `change` makes of the results of the nodes of these names."""

    wrong: Mapping[str, Change] = field(default_factory=dict)

    def __call__(self, model: onnx.ModelProto, feeds: Mapping[str, Any], *, level: str = "all") -> Outcome:
        self.asked.append((tuple(o.name for o in model.graph.output), level))
        known: dict[str, Any] = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer} | dict(feeds)
        for node in model.graph.node:
            known |= self.step(model, node, known)
        return Outcome(outputs={output.name: known[output.name] for output in model.graph.output})

    def step(self, model: onnx.ModelProto, node: onnx.NodeProto, known: Mapping[str, Any]) -> dict[str, Any]:
        made = alone(model, node, known)
        if node.name in self.wrong:
            made = {name: self.wrong[node.name](node, value) for name, value in made.items()}
        return made


@dataclass
class AtLevels(Wrong):
    """`Wrong` at these levels of graph optimisation, and right at the others."""

    levels: Sequence[str] = ()

    def __call__(self, model: onnx.ModelProto, feeds: Mapping[str, Any], *, level: str = "all") -> Outcome:
        return (
            super().__call__(model, feeds, level=level) if level in self.levels else Wrong()(model, feeds, level=level)
        )


def alone(model: onnx.ModelProto, node: onnx.NodeProto, known: Mapping[str, Any]) -> dict[str, Array]:
    """One node by ONNX Runtime."""
    feeds = {name: known[name] for name in node.input if name}
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in feeds.items()
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    single = helper.make_model(
        helper.make_graph([node], "one", inputs, outputs),
        opset_imports=model.opset_import,
        ir_version=model.ir_version,
        functions=model.functions,
    )
    return session(single, feeds)


@dataclass
class Fusing(Cpu):
    """Multiplies the result of a Relu by 2 where, at a level that fuses, it directly follows an Add whose sum nobody
    else reads: a fusion with a wrong kernel. sums: of these only."""

    sums: Sequence[str] = ()

    def __call__(self, model: onnx.ModelProto, feeds: Mapping[str, Any], *, level: str = "all") -> Outcome:
        fused = onnx.ModelProto()
        fused.CopyFrom(model)
        read = [name for node in model.graph.node for name in node.input] + [o.name for o in model.graph.output]
        adds = {node.output[0] for node in model.graph.node if node.op_type == "Add"} & set(self.sums)
        del fused.graph.node[:]
        for node in model.graph.node:
            fused.graph.node.append(node)
            fuses = level in ("extended", "all") and node.op_type == "Relu" and node.input[0] in adds
            if fuses and read.count(node.input[0]) == 1:
                (name,) = node.output
                fused.graph.node[-1].output[0] = f"{name}/half"
                fused.graph.node.append(helper.make_node("Add", [f"{name}/half", f"{name}/half"], [name]))
        return super().__call__(fused, feeds, level=level)


@dataclass
class Failing(Cpu):
    """Ends at a stage when a node of this name takes part, unless `together` is not in the model as well."""

    name: str = ""
    stage: str = "crash"
    together: str = ""
    levels: Sequence[str] = ("disabled", "basic", "extended", "all")

    def __call__(self, model: onnx.ModelProto, feeds: Mapping[str, Any], *, level: str = "all") -> Outcome:
        names = {node.name for node in model.graph.node}
        if self.name in names and (not self.together or self.together in names) and level in self.levels:
            self.asked.append((tuple(o.name for o in model.graph.output), level))
            return Outcome(self.stage, "the process ended")
        return super().__call__(model, feeds, level=level)
