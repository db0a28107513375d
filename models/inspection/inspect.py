"""Inspect a model before it runs: its file, the complaints of ONNX, and the versions that the runtime reads."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from epcheck.conformance.targets.target import DML, Target
from epcheck.conformance.test_data import model_file
from epcheck.conformance.test_data.model_file import ModelFileError
from epcheck.generators.node import qualified_name
from epcheck.models.execution.model_outcome import CRASH, DONE, TIMEOUT
from epcheck.models.execution.session import ModelSessions
from epcheck.models.feeds import dims
from epcheck.models.graph import values
from epcheck.models.graph.skeleton import constants, without_weights
from epcheck.models.inspection import checking

ERROR, WARNING, NOTE = "error", "warning", "note"

COMPLAINTS = ("onnx's checker", "onnx's shape inference")
"""How findings of these begin."""

CHECKER = Target("onnx", (sys.executable,), ("python:epcheck.models.inspection.checking:check",), jail=True,
                 forks=True)  # fmt: skip
"""Whose worker asks onnx's checker and shape inference."""

CHECK_S = 120.0
"""Seconds that onnx's checker and shape inference may take."""

CONTROL_FLOW = frozenset(("If", "Loop", "Scan", "SequenceMap"))


@dataclass(frozen=True)
class Finding:
    """A remark on a model. severity: ERROR where it will not load, WARNING or NOTE."""

    severity: str
    text: str
    suggestion: str = ""


@dataclass(frozen=True)
class ExternalFile:
    """A file beside the model that holds weights. bytes: of the tensors in it."""

    name: str
    tensors: int
    bytes: int


@dataclass(frozen=True)
class Inspection:
    """What is known of a model before anything runs.

    opsets: (domain, version). bytes: of the file and of its external data. inputs, outputs: name -> type in words,
    initializers left out. dimensions: dynamic dimension of the inputs -> the size that it has unless told.
    """

    path: Path
    ir_version: int
    opsets: tuple[tuple[str, int], ...]
    producer: str
    nodes: int
    operators: Mapping[str, int]
    parameters: int
    bytes: int
    external: tuple[ExternalFile, ...]
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    dimensions: Mapping[str, int]
    functions: tuple[str, ...]
    findings: tuple[Finding, ...]

    @property
    def loads(self) -> bool:
        """Whether no finding keeps the model from loading."""
        return all(finding.severity != ERROR for finding in self.findings)

    def with_findings(self, more: Iterable[Finding]) -> Inspection:
        """The inspection with further findings."""
        return replace(self, findings=(*self.findings, *more))


@dataclass(frozen=True)
class Limits:
    """The newest versions that a runtime reads, by its own messages. opset: of ai.onnx, officially. None where it does
    not say."""

    runtime: str
    opset: int | None
    ir_version: int | None


def inspect(path: Path, model: onnx.ModelProto) -> Inspection:
    """The inspection of the file `path`, which `model_file.parse` read as `model`.

    Raises ModelFileError: for external data that is not there or leaves the folder, and where onnx's checker does not
    survive the model.
    """
    places = model_file.in_other_files(model, path)
    protos = list(_protos(model))
    weights = {tensor.name for tensor in model.graph.initializer}
    external: dict[str, ExternalFile] = {}
    for place in places:
        name = place.file.relative_to(path.parent.resolve()).as_posix()
        before = external.get(name, ExternalFile(name, 0, 0))
        external[name] = ExternalFile(name, before.tensors + 1, before.bytes + place.length)
    operators = Counter(qualified_name(node.op_type, node.domain) for node in protos)
    return Inspection(
        path=path,
        ir_version=model.ir_version,
        opsets=tuple((entry.domain or "ai.onnx", entry.version) for entry in model.opset_import),
        producer=" ".join(filter(None, (model.producer_name, model.producer_version))),
        nodes=len(protos),
        operators=dict(operators.most_common()),
        parameters=sum(int(np.prod(tensor.dims, dtype=np.float64)) for tensor in model.graph.initializer),
        bytes=path.stat().st_size + sum(place.length for place in places),
        external=tuple(external.values()),
        inputs={value.name: _type_text(value) for value in model.graph.input if value.name not in weights},
        outputs={value.name: _type_text(value) for value in model.graph.output},
        dimensions=dims.of_inputs(model),
        functions=tuple(qualified_name(function.name, function.domain) for function in model.functions),
        findings=(*_what_onnx_says(path, model), *_remarks(model, protos)),
    )


def limits(sessions: ModelSessions) -> Limits:
    """The limits of a target's runtime, from its messages about models of versions that do not exist yet."""
    future = [sessions.run(_tiny(ir_version, opset), {"x": np.zeros(1, np.float32)}).message
              for ir_version, opset in ((4, 999), (999, 13))]  # fmt: skip
    opset = re.search(r"support for domain ai\.onnx is till opset (\d+)", future[0])
    version = re.search(r"max supported IR version:? (\d+)", future[1])
    release = sessions.facts.get("onnxruntime", "")
    runtime = f"onnxruntime {release}" if release else sessions.target.name
    return Limits(runtime, int(opset[1]) if opset else None, int(version[1]) if version else None)


def against(inspection: Inspection, limits: Limits) -> Iterator[Finding]:
    """Findings about versions of the model that are newer than the runtime reads."""
    opset = dict(inspection.opsets).get("ai.onnx", 0)
    if limits.opset is not None and opset > limits.opset:
        yield Finding(ERROR, f"the model has opset {opset}; {limits.runtime} reads {limits.opset} at most",
                      f"re-export with opset {limits.opset}, or use a newer runtime")  # fmt: skip
    if limits.ir_version is not None and inspection.ir_version > limits.ir_version:
        yield Finding(
            ERROR,
            f"the model has IR version {inspection.ir_version}; {limits.runtime} reads {limits.ir_version} at most",
            f"set model.ir_version = {limits.ir_version} with the onnx package: opsets stay as they are",
        )


def cost_of_dimensions(inspection: Inspection, provider: str | None) -> Iterator[Finding]:
    """A finding about the cost of dynamic dimensions on DirectML; none for other providers."""
    if inspection.dimensions and provider == DML:
        listed = ", ".join(f"'{name}'" for name in inspection.dimensions)
        yield Finding(
            NOTE,
            f"dynamic dimensions ({listed}) keep nodes out of DirectML's fused graphs: each node runs as an operator "
            "of its own, and is compiled again for each new shape",
            "where a size is always the same, fix it: onnxruntime.tools.make_dynamic_shape_fixed, or "
            "SessionOptions.add_free_dimension_override_by_name",
        )


def unresolved_reshapes(model: onnx.ModelProto, provider: str | None) -> Iterator[Finding]:
    """A finding about Reshape with `allowzero` and a -1 in its shape, which DirectML's provider claims and does not
    run. Every torch.onnx export with a dynamic batch has it (docs/findings/movement.md). None for other providers."""
    known = constants(model)
    found = [
        node.name or node.output[0]
        for node in model.graph.node
        if node.op_type == "Reshape"
        and any(attribute.name == "allowzero" and attribute.i for attribute in node.attribute)
        and -1 in known.get(node.input[1], np.zeros(0))
    ]
    if found and provider == DML:
        yield Finding(
            WARNING,
            f"{len(found)} Reshape with allowzero=1 and a -1 ('{found[0]}' first), which DirectML does not resolve",
            "set allowzero to 0: without a 0 in the shape it changes nothing",
        )


def casts(cast: Mapping[str, str]) -> Iterator[Finding]:
    """A finding about inputs and outputs that are fed and read through a Cast. cast: as in `RunnableModel`."""
    if cast:
        listed = ", ".join(f"'{name}' as '{other}'" for name, other in cast.items())
        yield Finding(
            NOTE,
            f"no session takes or gives these element types in Python; they pass a Cast that the model lacks: {listed}",
        )


def undeclared_shapes(model: onnx.ModelProto, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[Finding]:
    """A finding for each output whose shape is not what the model declares: ONNX Runtime warns of it, and goes on.
    shapes: output -> its real sizes."""
    for output in model.graph.output:
        declared, real = values.of(output.type).shape, shapes.get(output.name)
        if declared is None or real is None or output.type.tensor_type.elem_type == TensorProto.STRING:
            continue  # text comes as bytes, which have an axis more
        if len(declared) != len(real) or any(size not in (None, got) for size, got in zip(declared, real, strict=True)):
            wanted = ", ".join("?" if size is None else str(size) for size in declared)
            found = f"output '{output.name}' is declared as [{wanted}] and has the shape {list(real)}"
            yield Finding(
                WARNING,
                f"{found}; the runtime only warns",
                "correct the output's shape in the model: what reads it may allocate by it",
            )


def _what_onnx_says(path: Path, model: onnx.ModelProto) -> Iterator[Finding]:
    """The complaints of ONNX, from a worker. Raises ModelFileError for a model that crashes the worker."""
    with ModelSessions(CHECKER, CHECK_S) as sessions:
        outcome = sessions.run(without_weights(model, {}), {}, outputs=["messages"])
    if outcome.stage in (CRASH, TIMEOUT):
        raise ModelFileError(f"'{path}' cannot be inspected: onnx's checker crashes on it "
                             f"({outcome.message})")  # fmt: skip
    if outcome.stage != DONE:
        yield Finding(WARNING, f"onnx's checker ends with: {outcome.message}")
        return
    for source, sentence in json.loads(outcome.outputs["messages"].tobytes()):
        name = COMPLAINTS[0 if source == checking.CHECKER else 1]
        yield Finding(WARNING, f"{name}: {sentence}")


def _remarks(model: onnx.ModelProto, protos: Iterable[onnx.NodeProto]) -> Iterator[Finding]:
    known = {"", "ai.onnx", "ai.onnx.ml", "com.microsoft", "com.microsoft.nchwc", *(f.domain for f in model.functions)}
    custom = sorted({qualified_name(node.op_type, node.domain) for node in protos if node.domain not in known})
    if custom:
        yield Finding(WARNING, f"operators of custom domains: {', '.join(custom)}",
                      "a runtime needs the library that has their kernels")  # fmt: skip
    if used := sorted({node.op_type for node in protos if node.op_type in CONTROL_FLOW}):
        yield Finding(NOTE, f"control flow: {', '.join(used)}; what is in their bodies is placed node by node, too")
    if model.functions:
        yield Finding(NOTE, f"{len(model.functions)} functions, which a runtime puts in place of their calls")


def _protos(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    pending = list(model.graph.node)
    while pending:
        node = pending.pop()
        yield node
        for _, body in values.bodies(node):
            pending.extend(body.node)


def _type_text(value: onnx.ValueInfoProto) -> str:
    kind = values.of(value.type)
    tensor = dims.tensor_type(value.type)
    sizes = ", ".join(d.dim_param or ("?" if values.size_of(d) is None else str(d.dim_value)) for d in tensor.shape.dim)
    return f"{kind.dtype or '?'}[{sizes}]" if tensor.HasField("shape") else f"{kind.dtype or '?'}"


def _tiny(ir_version: int, opset: int) -> onnx.ModelProto:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "probe", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version)
