"""A case: one model, its feeds, and what the standard says must come out; and the sample that it is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from epcheck.generators import data
from epcheck.generators.array import Array
from epcheck.generators.node import Node, qualified_name
from epcheck.generators.truth import Truth

if TYPE_CHECKING:
    from epcheck.generators.directml.lowering import Lowering


@dataclass(frozen=True)
class Sample:
    """What a generator yields before dtype and opset are applied.

    name: unique within its operator and stable from release to release; it is a part of the case id, and nothing else.
    every_dtype: the sample is worth a case in every dtype, not in the operator's first one only.
    rank: of its data, where it is there for that rank: other dtypes and a ninth dimension follow from such samples.
    refused: it breaks a rule, as `expect_refusal` declares.
    """

    name: str
    every_dtype: bool = False
    rank: int | None = field(default=None, kw_only=True)
    refused: bool = field(default=False, kw_only=True)


S = TypeVar("S", bound=Sample)


def expect_refusal(sample: S) -> S:
    """The sample as one that breaks a rule: its name then begins with `refused_`."""
    return replace(sample, name=f"refused_{sample.name}", refused=True)


@dataclass(frozen=True)
class CaseContext:
    """What is applied to a sample: the version, one dtype per varied type constraint, and the random source."""

    since_version: int
    dtypes: tuple[np.dtype[Any], ...]
    rng: np.random.Generator

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the first varied type constraint."""
        return self.dtypes[0]

    def draw(self, kind: str, shape: tuple[int, ...]) -> Array:
        """'every' value of the first dtype in some order, 'small' integers of -9 to 9; otherwise `data.distinct`."""
        match kind:
            case "every":
                return np.resize(self.rng.permutation(data.every_value(self.dtype)), shape)
            case "small":
                return self.rng.integers(-9, 10, shape).astype(self.dtype)
        return data.distinct(shape, self.dtype, self.rng)


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
    """The identity of a case; `build()` makes its model. Nothing is built before.

    dtype: numpy dtype name, or several joined by '-' when the operator varies more than one type constraint.
    folder: where it was read from; empty for a case that this package makes.
    source: what made it: `declared` for a sample of an operator, the name of a module of `sources/`, or `foreign`.
    kind: what an engine aimed it at, of `suite.KINDS`; empty for a sample of an operator and for a case that was read.
    """

    operator: str
    domain: str
    since_version: int
    dtype: str
    sample: str
    binding: str
    builder: Callable[[Case], BuiltCase] = field(compare=False, repr=False)
    folder: str = field(default="", compare=False)
    kind: str = field(default="", compare=False)
    source: str = field(default="", compare=False)

    @property
    def operator_key(self) -> str:
        """How a user names its operator: `Slice`, `com.microsoft::Gelu`."""
        return qualified_name(self.operator, self.domain)

    @cached_property
    def id(self) -> str:
        """`Slice-13/float16/negative_step[runtime]`; a domain other than ai.onnx stands before it with '::'."""
        return f"{self.operator_key}-{self.since_version}/{self.dtype}/{self.sample}[{self.binding}]"

    def __reduce__(self) -> tuple[Any, ...]:
        """Its values without the names of the fields: a cluster is sent all cases of a run."""
        state = vars(self)
        return Case, tuple(state[field.name] for field in fields(self))

    def build(self) -> BuiltCase:
        """Make the model, the feeds and the truth. The random data comes from the id alone."""
        return self.builder(self)
