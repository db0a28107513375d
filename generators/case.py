"""What a case is: one model, its feeds, and what the standard says must come out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

    from epcheck.generators.directml import OperatorDesc

Array = np.ndarray[Any, np.dtype[Any]]
Attribute = int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | Array
"""An array is a tensor; an empty tuple is one of integers."""


@dataclass(frozen=True)
class Sample:
    """What a generator yields before dtype and opset are applied.

    name: unique within its operator and stable from release to release; it is a part of the case id.
    every_dtype: the sample is worth a case in every dtype, not in the operator's first one only.
    """

    name: str
    every_dtype: bool = False


@dataclass(frozen=True)
class Binding:
    """What is applied to a sample: the version, one dtype per varied type constraint, and the random source."""

    since_version: int
    dtypes: tuple[np.dtype[Any], ...]
    rng: np.random.Generator

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the first varied type constraint."""
        return self.dtypes[0]


@dataclass(frozen=True)
class Operand:
    """One input of a node.

    parameter: the input says *how* to compute (starts, K, a scale), so exporters write it as an initializer.
    """

    name: str
    value: Array
    parameter: bool = False


@dataclass(frozen=True)
class Surroundings:
    """What stands around a node that takes or gives sequences or optionals, or has branches: a case's model has
    tensors at its ends.

    inputs, outputs: what the node under test itself reads and writes, by name; empty names are omitted ones.
    results: name -> numpy dtype name of the tensors that leave the model, in the order of `Node.outputs`.
    types: type constraint of the node under test -> numpy dtype name, or a type as ONNX spells it (`seq(float)`).
    before: nodes that make what the node reads of the tensors that enter the model, the `Node.inputs`.
    after: nodes that make tensors of what it writes. graphs: the attributes of the node that are graphs.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    results: Mapping[str, str]
    types: Mapping[str, str]
    before: tuple[NodeProto, ...] = ()
    after: tuple[NodeProto, ...] = ()
    graphs: Mapping[str, GraphProto] = field(default_factory=dict)


@dataclass(frozen=True)
class Node:
    """The node under test with the values of its inputs; None stands for an omitted optional input, and an empty name
    for an omitted optional output.

    With surroundings, `inputs` are the tensors that enter the model and `outputs` the names of those that leave it.
    """

    op_type: str
    domain: str
    since_version: int
    inputs: tuple[Operand | None, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    surroundings: Surroundings | None = None

    @property
    def results(self) -> tuple[str, ...]:
        """The names of the outputs that are not omitted."""
        return tuple(filter(None, self.outputs))

    def value(self, name: str) -> Array | None:
        """The value of the input of that name; None when it is omitted."""
        return next((operand.value for operand in self.inputs if operand is not None and operand.name == name), None)

    def array(self, name: str) -> Array:
        """The value of an input that is there. Raises KeyError when it is omitted."""
        value = self.value(name)
        if value is None:
            raise KeyError(f"{self.op_type} has no input '{name}'")
        return value

    def integer(self, name: str, default: int) -> int:
        """The value of an attribute that is an integer."""
        return int(self.attributes.get(name, default))  # type: ignore[arg-type]

    def number(self, name: str, default: float) -> float:
        """The value of an attribute that is a float: float32 in the model, so rounded to it."""
        return float(np.float32(self.attributes.get(name, default)))  # type: ignore[arg-type]

    def text(self, name: str, default: str) -> str:
        """The value of an attribute that is a string."""
        return str(self.attributes.get(name, default))

    def integers(self, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
        """The value of an attribute that is a list of integers."""
        return tuple(int(one) for one in self.attributes.get(name, default))  # type: ignore[union-attr]


@dataclass(frozen=True)
class Exact:
    """Every element equals the truth: same bits, except that any NaN equals any NaN."""


@dataclass(frozen=True)
class Ulp:
    """At most `bound` ULP of the output dtype away from the float64 truth.

    floor: absolute difference that is always accepted (results near zero by cancellation): one for all elements, or
    float64 of the output's shape.
    source: where the bound comes from; a bound without a source is not a bound.
    """

    bound: float
    source: str
    floor: float | Array = 0.0


@dataclass(frozen=True)
class OneStep:
    """Quantised output: the exact integer, or one step beside it where `allowed` (bool, the output's shape) is set."""

    allowed: Array


Bound = Exact | Ulp | OneStep


@dataclass(frozen=True)
class Output:
    """The truth of one output.

    value: the true result, rounded once to the output dtype.
    exact: the result before that rounding (float64), where ULP are measured; None when `value` is exact itself.
    """

    name: str
    value: Array
    bound: Bound = Exact()
    exact: Array | None = None


@dataclass(frozen=True)
class Outputs:
    """The standard defines every output element."""

    outputs: tuple[Output, ...]


@dataclass(frozen=True)
class Selection:
    """The standard defines which elements are selected along an axis, and the values must be those at the indices.

    accepted: the (values, indices) pairs that follow the standard, the preferred one first; more than one
    where the standard leaves an order open (NaN).
    ordered: the order along `axis` is defined too; otherwise any permutation of an accepted pair is right.
    names: of the two outputs, values and indices.
    """

    data: Array
    axis: int
    accepted: tuple[tuple[Array, Array], ...]
    ordered: bool
    names: tuple[str, str]


@dataclass(frozen=True)
class Refusal:
    """The node must be refused with a clean error; `reason` says which rule of the standard it breaks."""

    reason: str


Truth = Outputs | Selection | Refusal


@dataclass(frozen=True)
class Lowering:
    """A node as DirectML sees it: the operator description and one array (or None) for each of its input tensors."""

    description: OperatorDesc
    feeds: tuple[Array | None, ...]


@dataclass(frozen=True)
class BuiltCase:
    """A case with everything that is needed to run and to judge it.

    model: a serialized ModelProto.  feeds: graph input name -> array.  types: type constraint -> numpy dtype name.
    lowering: None where nothing is executed (an empty result) or no DirectML operator exists.
    """

    case: Case
    node: Node
    opset: int
    model: bytes
    feeds: Mapping[str, Array]
    truth: Truth
    types: Mapping[str, str]
    lowering: Lowering | None


@dataclass(frozen=True)
class Case:
    """The identity of a case; `build()` makes its model. Planning thousands costs nothing but their names.

    dtype: numpy dtype name, or several joined by '-' when the operator varies more than one type constraint.
    """

    operator: str
    domain: str
    since_version: int
    dtype: str
    sample: str
    variant: str
    builder: Callable[[Case], BuiltCase] = field(compare=False, repr=False)

    @property
    def operator_key(self) -> str:
        """How a user names its operator: `Slice`, `com.microsoft::Gelu`."""
        return f"{self.domain}::{self.operator}" if self.domain else self.operator

    @cached_property
    def id(self) -> str:
        """`Slice-13/float16/negative_step[runtime]`; a domain other than ai.onnx stands before it with '::'."""
        return f"{self.operator_key}-{self.since_version}/{self.dtype}/{self.sample}[{self.variant}]"

    def build(self) -> BuiltCase:
        """Make the model, the feeds and the truth. The random data comes from the id alone."""
        return self.builder(self)
