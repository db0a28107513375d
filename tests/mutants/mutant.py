"""Mutants: providers that are wrong in one way, each of which at least one case of the suite must tell.

Most are made of the operator's own truth: a provider with the fault answers each case with what the standard says of
the node as it misread it (`misread`, `attribute`, `inputs`, `swapped`), or with the right outputs changed by a step
(`outputs`). Where an operator has an implementation of its own in `faults/`, a mutant is that implementation with a
step replaced (`implemented`); it also decides by itself what it refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from epcheck.generators import registry
from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase
from epcheck.generators.node import Attribute, Node
from epcheck.generators.truth import Outputs, Refusal, Selection, Truth

Answer = Callable[[BuiltCase], Mapping[str, Array] | None]
"""The outputs of a provider by name; None where it refuses."""

Implementation = Callable[[bytes, Mapping[str, Array]], tuple[Array, ...]]
"""(serialized model, feeds) -> outputs; raises where it refuses."""


@dataclass(frozen=True)
class Mutant:
    """operator: `Operator.key`. fault: what is wrong, in words. answer: see `Answer`.

    caught_by: the id of a case that must fail; any case of the operator where it is empty.
    """

    operator: str
    fault: str
    answer: Answer
    caught_by: str = ""


def outputs_of(truth: Truth) -> dict[str, Array] | None:
    """The outputs that the truth prefers; None for a refusal."""
    if isinstance(truth, Outputs):
        return {output.name: output.value for output in truth.outputs}
    if isinstance(truth, Selection):
        return dict(zip(truth.names, truth.accepted[0], strict=True))
    return None


def by_truth(operator: str, fault: str, answer: Answer) -> Mutant:
    """The provider refuses what must be refused, and answers the rest."""
    return Mutant(operator, fault, lambda built: None if isinstance(built.truth, Refusal) else answer(built))


def implemented(operator: str, fault: str, implementation: Implementation, caught_by: str) -> Mutant:
    """The provider is an implementation of its own."""

    def answer(built: BuiltCase) -> Mapping[str, Array] | None:
        try:
            found = implementation(built.model, built.feeds)
        except Exception:  # whatever it raises, the provider refuses the node
            return None
        return dict(zip(built.node.outputs, found, strict=True))

    return Mutant(operator, fault, answer, caught_by)


def misread(operator: str, fault: str, change: Callable[[Node], Node]) -> Mutant:
    """The provider takes the node for another one, and does that right.

    A misread node that has no meaning has no answer: the truth raises.
    """
    truth = registry.operator_of(operator).truth
    return by_truth(operator, fault, lambda built: outputs_of(truth(change(built.node))))


def attribute(operator: str, name: str, value: Attribute | None, fault: str = "") -> Mutant:
    """The provider takes an attribute for another value, or does not see it (None)."""

    def change(node: Node) -> Node:
        others = {key: kept for key, kept in node.attributes.items() if key != name}
        return replace(node, attributes=others if value is None else {**others, name: value})

    words = f"{name} is ignored" if value is None else fault or f"{name} is always {value}"
    return misread(operator, words, change)


def inputs(operator: str, fault: str, change: Callable[[str, Array], Array]) -> Mutant:
    """The provider changes what it reads: (input name, value) -> value."""
    return misread(
        operator,
        fault,
        lambda node: replace(
            node, inputs=tuple(None if o is None else replace(o, value=change(o.name, o.value)) for o in node.inputs)
        ),
    )


def swapped(operator: str, left: int = 0, right: int = 1) -> Mutant:
    """The provider exchanges two inputs."""

    def change(node: Node) -> Node:
        operands = list(node.inputs)
        first, second = operands[left], operands[right]
        assert first is not None
        assert second is not None
        operands[left], operands[right] = replace(first, value=second.value), replace(second, value=first.value)
        return replace(node, inputs=tuple(operands))

    return misread(operator, f"inputs {left} and {right} are exchanged", change)


def outputs(operator: str, fault: str, change: Callable[[Array], Array]) -> Mutant:
    """The provider does the last step wrong: every right output, changed."""

    def answer(built: BuiltCase) -> Mapping[str, Array] | None:
        right = outputs_of(built.truth)
        return None if right is None else {name: change(value) for name, value in right.items()}

    return by_truth(operator, fault, answer)
