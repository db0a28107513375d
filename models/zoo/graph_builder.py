"""Build a graph with seeded random weights, as protobuf through onnx.helper."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from epcheck.generators import graph
from epcheck.generators.array import Array
from epcheck.generators.operator import random_source

Dims = Sequence[int | str]
"""Sizes; a string names a dynamic one."""


class GraphBuilder:
    """A graph under construction. A value is its name, as in ONNX: `add` returns the names of a node's outputs, and
    takes those of its inputs.

    Names follow the exporters: nodes are `/block/Conv`, values `/block/Conv_output_0`, weights `block.weight`.
    """

    def __init__(
        self, name: str, opset: int, domains: Iterable[str] = (), dtype: str = "float32", seed: str = ""
    ) -> None:
        """name: of the graph. dtype: numpy name of the weights' type. seed: of the weights; the name unless given."""
        self.dtype = np.dtype(dtype)
        self._name, self._opset, self._domains = name, opset, tuple(domains)
        self._rng = random_source(f"zoo/{seed or name}")
        self._scope: tuple[str, ...] = ()
        self._taken: dict[str, int] = {}
        self._nodes: list[onnx.NodeProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._described: list[onnx.ValueInfoProto] = []
        self._weights: list[onnx.TensorProto] = []

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Prefix the names of what is added inside with this one, as PyTorch does for the parts of a module."""
        outer, self._scope = self._scope, (*self._scope, name)
        yield
        self._scope = outer

    def input(self, name: str, dtype: str, dims: Dims) -> str:
        """A graph input."""
        self._inputs.append(_value_info(name, dtype, dims))
        return name

    def output(self, name: str, dtype: str, dims: Dims) -> None:
        """Make a value a graph output."""
        self._outputs.append(_value_info(name, dtype, dims))

    def input_sequence(self, name: str, dtype: str, dims: Dims) -> str:
        """A graph input that is a sequence of tensors."""
        self._inputs.append(_sequence_info(name, dtype, dims))
        return name

    def output_sequence(self, name: str, dtype: str, dims: Dims) -> None:
        """Make a graph output of a sequence of tensors."""
        self._outputs.append(_sequence_info(name, dtype, dims))

    def describe(self, value: str, dtype: str, dims: Dims) -> str:
        """Declare the type of a value that onnx cannot infer, as behind an operator that it does not know."""
        self._described.append(_value_info(value, dtype, dims))
        return value

    def weight(self, name: str, dims: Sequence[int], std: float, mean: float = 0.0) -> str:
        """An initializer of the weights' dtype, normally distributed."""
        return self.constant((mean + std * self._rng.standard_normal(dims)).astype(self.dtype), name)

    def constant(self, value: Any, name: str = "constant") -> str:
        """An initializer; a Python number or list becomes one of the weights' dtype if it has a float, else int64."""
        array = value if isinstance(value, np.ndarray | np.generic) else np.array(value)
        if array is not value:
            array = array.astype(self.dtype if array.dtype.kind == "f" else np.int64)
        full = self._unique(".".join((*self._scope, name)))
        self._weights.append(numpy_helper.from_array(np.asarray(array), full))
        return full

    def random(self, dims: Sequence[int]) -> Array:
        """Standard normal numbers (float64) for weights that have to be computed further."""
        return self._rng.standard_normal(dims)

    def add(self, op_type: str, *inputs: str, named: str = "", domain: str = "", **attributes: Any) -> str:
        """Add a node with one output and return its name. named: the name, for a graph output."""
        (name,) = self.add_all(op_type, *inputs, named=(named,), domain=domain, **attributes)
        return name

    def add_all(
        self, op_type: str, *inputs: str, named: Sequence[str], domain: str = "", **attributes: Any
    ) -> tuple[str, ...]:
        """Add a node with several outputs and return their names. named: the names; an empty one is generated."""
        name = self._unique("/".join(("", *self._scope, op_type)))
        outputs = tuple(chosen or f"{name}_output_{index}" for index, chosen in enumerate(named))
        self._nodes.append(helper.make_node(op_type, inputs, outputs, name=name, domain=domain, **attributes))
        return outputs

    def body(self, name: str) -> GraphBuilder:
        """A builder of a graph for a node's attribute. It shares random numbers, opset and names with this one."""
        inner = GraphBuilder(name, self._opset, self._domains, self.dtype.name)
        inner._rng, inner._taken, inner._scope = self._rng, self._taken, (*self._scope, name)
        return inner

    def graph(self) -> onnx.GraphProto:
        """The graph as it is now."""
        return helper.make_graph(
            self._nodes, self._name, self._inputs, self._outputs, self._weights, value_info=self._described
        )

    def model(self, functions: Sequence[onnx.FunctionProto] = ()) -> onnx.ModelProto:
        """The model of the graph and of the functions that its nodes call."""
        imports = [helper.make_opsetid("", self._opset), *(helper.make_opsetid(domain, 1) for domain in self._domains)]
        return helper.make_model(
            self.graph(),
            opset_imports=imports,
            functions=functions,
            ir_version=max(graph.ir_version_for(self._opset), graph.OLDEST_IR),
            producer_name="epcheck",
        )

    def _unique(self, name: str) -> str:
        count = self._taken[name] = self._taken.get(name, 0) + 1
        return name if count == 1 else f"{name}_{count - 1}"


def fan_in_std(fan_in: int, gain: float = 1.0) -> float:
    """The standard deviation of weights that keep the variance of what they sum: gain / sqrt(fan_in).

    gain: sqrt(2) before a Relu, which halves it (He et al., Delving Deep into Rectifiers, 2015).
    """
    return gain / math.sqrt(fan_in)


def _value_info(name: str, dtype: str, dims: Dims) -> onnx.ValueInfoProto:
    element = onnx.TensorProto.STRING if dtype == "string" else helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return helper.make_tensor_value_info(name, element, list(dims))


def _sequence_info(name: str, dtype: str, dims: Dims) -> onnx.ValueInfoProto:
    return helper.make_value_info(name, helper.make_sequence_type_proto(_value_info(name, dtype, dims).type))
