"""What was asked: a case as a reader of its record sees it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

from epcheck.conformance.records import strict_json, typed_json
from epcheck.conformance.records.accuracy import Accuracy
from epcheck.generators.node import qualified_name as qualified_name  # reports import it from here

REFUSAL = "a refusal"
"""How the text begins of what a case expects for which a refusal is right."""


@dataclass(frozen=True)
class Value:
    """One input or output of the node. where: `input` (of the graph), `initializer`, `output`. preview: its start.
    data: what its elements have about them (`NaN`, `2^7`, ...: see `epcheck.conformance.preparation.data_words`)."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    where: str
    preview: str = ""
    data: tuple[str, ...] = ()


@dataclass(frozen=True)
class DirectML:
    """The DirectML operator a node is lowered to: the struct's name, its members as on its page, what it violates."""

    name: str
    members: Mapping[str, Any]
    violations: tuple[str, ...] = ()


@dataclass(frozen=True)
class NodeFacts:
    """A node of a graph, as CaseFacts has the one node of a case."""

    operator: str
    domain: str
    since_version: int
    types: Mapping[str, str]
    attributes: Mapping[str, Any]
    values: tuple[Value, ...]
    defaults: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class CaseFacts:
    """What was asked: the case as a reader of the record sees it, the same for every target and every run.

    types: type constraint -> numpy dtype name. expects: `the true result`, or which refusal. repro: the command line
    that writes the case out. rounded: how far the correctly rounded outputs are from the truth; None where nothing has
    a bound in ULP. defaults: attribute -> the value that the schema gives where the node has none. beside: the op_types
    of the nodes around the node under test. pairs: what the elements of the first two inputs have about them together,
    and those of the first one and the numbers beside it.
    nodes: all nodes of a graph whose values are known.
    """

    case_id: str
    operator: str
    domain: str
    since_version: int
    opset: int
    dtype: str
    sample: str
    binding: str
    types: Mapping[str, str]
    attributes: Mapping[str, Any]
    values: tuple[Value, ...]
    directml: DirectML | None
    expects: str
    repro: str
    rounded: Accuracy | None = None
    defaults: Mapping[str, Any] | None = None
    beside: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()
    nodes: tuple[NodeFacts, ...] = ()

    @property
    def operator_key(self) -> str:
        """How a user names the operator: `Slice`, `com.microsoft::Gelu`."""
        return qualified_name(self.operator, self.domain)

    @property
    def may_refuse(self) -> bool:
        """Whether a refusal is right."""
        return self.expects.startswith(REFUSAL)

    @property
    def nodes_alone(self) -> Iterator[CaseFacts]:
        """The nodes of the graph, each as the case of that node alone would have it."""
        for node in self.nodes:
            dtype = next(iter(node.types.values()), "")
            yield replace(self, **vars(node), dtype=dtype, beside=(), pairs=(), nodes=(), directml=None)

    @cached_property
    def text(self) -> str:
        """The facts as one JSON object."""
        return strict_json.dumps(typed_json.to_json(self))

    @classmethod
    def from_text(cls, case_id: str, text: str) -> Self:
        """The facts of the case that `text` holds, as the property of that name has them. It is read when a fact other
        than the id is asked for: a run writes the text on, ten thousand times a second, and looks at few of the facts.
        """
        facts = cls.__new__(cls)
        facts.__dict__.update(case_id=case_id, text=text)
        return facts

    def __getattr__(self, name: str) -> Any:
        known = self.__dict__
        if name not in self.__dataclass_fields__ or "text" not in known or name in known:
            raise AttributeError(name)
        known.update(typed_json.loads(CaseFacts, self.text).__dict__)
        return known[name]


for _name in ("rounded", "defaults", "beside", "pairs", "nodes"):
    delattr(CaseFacts, _name)  # defaults in the class would hide what is read from the text
