"""The types of the values in a model: element type and shape, as far as ONNX infers them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import onnx
from onnx import TensorProto, helper, shape_inference

from epcheck.generators.schema import NUMPY_NAMES
from epcheck.models.graph.flops import Shape
from epcheck.models.graph.skeleton import without_weights

NAMES = {number: name.lower() for name, number in TensorProto.DataType.items()}
"""TensorProto.DataType -> the element type as type strings have it."""


@dataclass(frozen=True)
class Type:
    """dtype: a numpy dtype name, the ONNX name of an element type that numpy lacks, or a type string such as
    `seq(float32)`; empty where nothing is known."""

    dtype: str = ""
    shape: Shape = None

    @property
    def bytes(self) -> int | None:
        """Of the tensor; None where a size is not known, or it is no tensor of whole bytes."""
        if self.shape is None or None in self.shape:
            return None
        number = next((n for n, name in NAMES.items() if NUMPY_NAMES.get(name, name) == self.dtype), 0)
        try:
            itemsize = helper.tensor_dtype_to_np_dtype(number).itemsize
        except KeyError:
            return None
        return itemsize * math.prod(size for size in self.shape if size is not None)

    def __str__(self) -> str:
        sizes = "…" if self.shape is None else ", ".join("?" if size is None else str(size) for size in self.shape)
        return f"{self.dtype or '?'}[{sizes}]"


UNKNOWN = Type()


def infer_types(model: onnx.ModelProto, shapes: Mapping[str, tuple[int, ...]]) -> onnx.ModelProto:
    """The model without its weights, with inferred types, in bodies as well.

    shapes: input name -> sizes in place of what the model says.
    """
    skeleton = without_weights(model, shapes)
    try:
        return shape_inference.infer_shapes(skeleton, data_prop=True)
    except (shape_inference.InferenceError, ValueError, RuntimeError):  # a model that contradicts itself
        return skeleton


def of_graph(graph: onnx.GraphProto) -> dict[str, Type]:
    """Value name -> type, of the values that the graph itself declares; those of outer graphs are left out."""
    found = {tensor.name: Type(_dtype(tensor.data_type), tuple(tensor.dims)) for tensor in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        found[value.name] = of(value.type)
    return found


def of(kind: onnx.TypeProto) -> Type:
    """The type of a TypeProto."""
    match kind.WhichOneof("value"):
        case "tensor_type":
            tensor = kind.tensor_type
            sizes = tuple(map(size_of, tensor.shape.dim))
            return Type(_dtype(tensor.elem_type), sizes if tensor.HasField("shape") else None)
        case "sequence_type":
            return Type(f"seq({of(kind.sequence_type.elem_type).dtype})")
        case "map_type":
            key, value = _dtype(kind.map_type.key_type), of(kind.map_type.value_type).dtype
            return Type(f"map({key},{value})")
        case "optional_type":
            return Type(f"optional({of(kind.optional_type.elem_type).dtype})")
        case None:
            return UNKNOWN
        case other:
            return Type(str(other).removesuffix("_type"))


def size_of(dim: onnx.TensorShapeProto.Dimension) -> int | None:
    """The size of a dimension; None for a dynamic one, which some exporters write as -1."""
    return dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else None


def bodies(node: onnx.NodeProto) -> Iterator[tuple[str, onnx.GraphProto]]:
    """(attribute, graph) of the graphs in a node's attributes."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.name, attribute.g
        yield from ((attribute.name, graph) for graph in attribute.graphs)


def _dtype(element_type: int) -> str:
    name = NAMES.get(element_type, "")
    return "" if name == "undefined" else NUMPY_NAMES.get(name, name)
