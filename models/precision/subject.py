"""The model that the doctor looks at: which nodes compute in float16, and the model with some of them in float32."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from epcheck.generators.array import Array
from epcheck.models.graph.feed import Feed
from epcheck.models.graph.wiring import Wiring, wire
from epcheck.models.precision.retyping import Retyping, retyping

NARROW, WIDE = TensorProto.FLOAT16, TensorProto.FLOAT

_DTYPES: Mapping[int, np.dtype[Any]] = {NARROW: np.dtype(np.float16), WIDE: np.dtype(np.float32)}


@dataclass(frozen=True)
class Subject:
    """A float16 model, or a float32 model of which is asked what it were in float16 (`converted`).

    Its nodes are named by their indices in the model of the file, and so are its values.
    """

    retyping: Retyping
    converted: bool

    @property
    def model(self) -> onnx.ModelProto:
        """The model of the file."""
        return self.retyping.model

    @property
    def folder(self) -> Path | None:
        """Where the external data of all of these models is; None where they have none."""
        return self.retyping.wiring.folder

    @property
    def wiring(self) -> Wiring:
        """Of the model of the file."""
        return self.retyping.wiring

    @property
    def nodes(self) -> tuple[int, ...]:
        """Those that compute in float16 and could in float32, in the order of the graph."""
        return tuple(self.retyping.places)

    def with_wide(self, nodes: Collection[int]) -> onnx.ModelProto:
        """The float16 model with these nodes in float32."""
        if self.converted:
            return self.retyping.retype_nodes([node for node in self.nodes if node not in nodes])
        return self.retyping.retype_nodes(nodes)

    @cached_property
    def narrow(self) -> onnx.ModelProto:
        """The float16 model."""
        return self.with_wide(())

    @cached_property
    def narrow_wiring(self) -> Wiring:
        """Of the float16 model."""
        return wire(self.narrow)

    @cached_property
    def values(self) -> Mapping[str, str]:
        """Value of the model of the file that a node makes -> its name in the float16 model, of those in float16."""
        nodes = self.model.graph.node
        if self.converted:
            made = (nodes[at].output[place] for at, found in self.retyping.places.items() for place in found.outputs)
            return {name: self.retyping.make_retyped_name(name) for name in made}
        types = self.retyping.types
        return {name: name for name in self.wiring.producer if types.get(name) == NARROW}

    def in_narrow(self, values: Mapping[str, Feed]) -> dict[str, Feed]:
        """True values of the model of the file as the float16 model has them: names and dtypes."""
        found: dict[str, Feed] = {}
        types = self.retyping.types
        for name, value in values.items():
            if not isinstance(value, np.ndarray):
                found[name] = value
                continue
            found[name] = _round_to_type(value, types.get(name, 0))
            if self.converted and types.get(name) == WIDE:
                found[self.retyping.make_retyped_name(name)] = _round_to_type(value, NARROW)
        return found


def _round_to_type(value: Array, element_type: int) -> Array:
    """In the dtype of float16 and float32 values; others as they are."""
    if value.dtype.kind != "f" or element_type not in _DTYPES:
        return value
    with np.errstate(over="ignore", under="ignore"):
        return value.astype(_DTYPES[element_type])


def subject(model: onnx.ModelProto, converted: bool, folder: Path | None = None) -> Subject:
    """The subject of a model whose functions are inlined. converted: it is a float32 model, and every node that can is
    taken to float16. folder: where its external data is; None where it has none."""
    types = (WIDE, NARROW) if converted else (NARROW, WIDE)
    return Subject(retyping(model, *types, folder), converted)
