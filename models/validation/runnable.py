"""A model as sessions run it: the file itself, or a copy in which every node has a name and its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import onnx

from epcheck.conformance.test_data import model_file
from epcheck.models.graph import feedable
from epcheck.models.graph.inlining import inline_file
from epcheck.models.graph.order import order_nodes
from epcheck.models.placement import placement

NAMED_BYTES = 1 << 30
"""Up to this size a model whose nodes lack names gets them, and travels to the worker as bytes."""


@dataclass(frozen=True)
class RunnableModel:
    """A model whose nodes have names, call no local functions, and stand behind those that they read from: a session
    records its nodes by these names.

    graph: the model that is analysed. run: what a session loads: the path of the file, or the copy. folder: where the
    external data of a copy is; None where it has none. data_folder: where the external data of `graph` is; None where
    it has none. cast: input or output of a type that no session takes -> that of `graph`, behind a Cast.
    """

    graph: onnx.ModelProto
    run: onnx.ModelProto | Path
    folder: Path | None
    data_folder: Path | None
    cast: Mapping[str, str] = field(default_factory=dict)


def runnable(path: Path, model: onnx.ModelProto) -> RunnableModel:
    """The model of a file, which `model_file.parse` read as `model`. Raises ModelFileError where a call does not suit
    the function."""
    graph = inline_file(path, model)
    cast: dict[str, str] = {}
    if model.ByteSize() <= NAMED_BYTES:
        graph, cast = feedable.add_casts(placement.name_nodes(order_nodes(graph)))
    data_folder = path.parent if has_external_data(graph) else None
    if graph is model:
        return RunnableModel(model, path, None, data_folder)
    return RunnableModel(graph, graph, data_folder, data_folder, cast)


def has_external_data(model: onnx.ModelProto) -> bool:
    """Whether any tensor of the model is in another file."""
    return any(True for _ in model_file.external_tensors(model))
