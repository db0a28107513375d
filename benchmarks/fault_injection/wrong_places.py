"""Where in the zoo a node is made wrong, and how: the places of the study, the same ones each time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any

import numpy as np
import onnx

from epcheck.models import zoo
from epcheck.models.feeds import feeds
from epcheck.models.graph.wiring import Wiring, wire
from epcheck.models.zoo import Architecture

OF_ONE_OPERATOR = 4
"""Places at most that share their operator; the zoo is half MatMul and Add otherwise."""

ANY = ("shifted by one", "reversed", "ends one short", "transposed")
FLOATING = ("1 % too large", "saturates at 0.5", "NaN at the end", "rounded to bfloat16")
OF_OPERATOR: Mapping[str, tuple[str, ...]] = {
    "BatchNormalization": ("epsilon of 0.1",),
    "LayerNormalization": ("epsilon of 0.1",),
    "Softmax": ("axis one before",),
    "Concat": ("operands swapped",),
    "Conv": ("pads at the wrong end", "bias ignored"),
    "MaxPool": ("pads at the wrong end",),
    "Gemm": ("bias ignored",),
    "LeakyRelu": ("alpha ignored",),
    "Resize": ("asymmetric coordinates",),
    "TopK": ("smallest first",),
    "LSTM": ("backwards",),
    "Sub": ("operands swapped",),
    "Div": ("operands swapped",),
    "Pow": ("operands swapped",),
    "QuantizeLinear": ("zero point ignored", "one too many"),
    "DequantizeLinear": ("zero point ignored",),
    "QLinearConv": ("one too many",),
    "ArgMax": ("one too many",),
}


@dataclass(frozen=True)
class Place:
    """A node of an architecture, and what is wrong with it."""

    architecture: str
    node: int
    op_type: str
    output: str
    fault: str

    @property
    def description(self) -> str:
        """As the backend reads it from its environment."""
        return f"{self.op_type}\n{self.output}\n{self.fault}"


@dataclass(frozen=True)
class Subject:
    """An architecture with its feeds."""

    architecture: Architecture

    @cached_property
    def model(self) -> onnx.ModelProto:
        """The model."""
        return self.architecture.build()

    @cached_property
    def feeds(self) -> Mapping[str, Any]:
        """Of seed 0, each dynamic dimension at its first size."""
        dims = {name: sizes[0] for name, sizes in self.architecture.dims.items()}
        made = feeds.generate(self.model, seed=0, dims=dims)
        return {name: value for name, value in made.items() if value is not None}

    @cached_property
    def wiring(self) -> Wiring:
        """Of the model."""
        return wire(self.model, self.feeds)

    def places(self) -> Iterator[Place]:
        """Every node of the main graph with every fault that it can have."""
        for index, node in enumerate(self.model.graph.node):
            if node.op_type == "Constant" or not self.wiring.can_be_output(node.output[0]):
                continue
            for fault in self._faults(node):
                yield Place(self.architecture.name, index, node.op_type, node.output[0], fault)

    def _faults(self, node: onnx.NodeProto) -> Iterator[str]:
        tensor = self.wiring.types.get(node.output[0], onnx.TypeProto()).tensor_type
        if not tensor.HasField("shape"):
            return
        dims = tensor.shape.dim
        if dims and (dims[-1].dim_value > 1 or dims[-1].dim_param):
            yield from ANY[:3]
        if len(dims) > 1 and dims[-1].dim_value != 1 and dims[-2].dim_value != 1:
            yield ANY[3]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type) if tensor.elem_type else np.dtype(bool)
        if dtype == np.float32 and dims:
            yield from FLOATING
        for fault in OF_OPERATOR.get(node.op_type, ()):
            third = len(node.input) > 2 and node.input[2]
            if not fault.endswith("ignored") or fault == "alpha ignored" or third:
                yield fault


def subjects() -> dict[str, Subject]:
    """Name -> architecture of the zoo."""
    return {architecture.name: Subject(architecture) for architecture in zoo.all()}


def drawn(zoo_subjects: Mapping[str, Subject], seed: int) -> Iterator[Place]:
    """Places in a random order that takes the architectures in turn and no operator too often."""
    rng = Random(seed)
    waiting = {name: list(subject.places()) for name, subject in zoo_subjects.items()}
    for places in waiting.values():
        rng.shuffle(places)
    seen: Counter[str] = Counter()
    while any(waiting.values()):
        for places in waiting.values():
            while places:
                place = places.pop()
                if seen[place.op_type] < OF_ONE_OPERATOR:
                    accepted = yield place
                    seen[place.op_type] += bool(accepted)
                    break
