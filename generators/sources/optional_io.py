"""The cases of optional inputs and outputs: their samples' names begin with `optional_`.

Each combination of the inputs is tried with the outputs that the sample asks for, and each combination of the outputs
with all inputs. The truth is that of the operator, of the outputs that are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from epcheck.generators import graph, schema
from epcheck.generators.case import BuiltCase, Case, CaseContext
from epcheck.generators.declaration.optional_io import OptionalIO
from epcheck.generators.node import Node
from epcheck.generators.operator import NotLowered, Operator, build_case, random_source
from epcheck.generators.truth import Output, Outputs, Refusal, Truth, Undefined

SOURCE = "optional_io"
KIND = "optional"
KINDS = {KIND: "optional inputs, and optional outputs, in every combination"}
"""What these cases are called -> what they are aimed at."""

NOT_LOWERED = NotLowered("the page defines no result")


@dataclass(frozen=True)
class Combination:
    """absent: the inputs that are not there. outputs: the optional ones that are asked for; None for those of the
    sample."""

    absent: frozenset[str]
    outputs: frozenset[str] | None = None


def cases(operator: Operator[Any]) -> Iterator[Case]:
    """Those of each `OptionalIO` of the operator."""
    for declared in operator.optional_io:
        yield from _list_cases(declared, operator)


def combinations(declared: OptionalIO) -> Iterator[tuple[str, Combination]]:
    """What stands in the name of a sample after its kind -> what is absent and asked for."""
    prefix = f"{declared.name}_" if declared.name else ""
    for there in product((True, False), repeat=len(declared.inputs)) if declared.inputs else ():
        present = [name for group, is_there in zip(declared.inputs, there, strict=True) if is_there for name in group]
        absent = {name for group in declared.inputs for name in group if name not in present}
        if any(absent.isdisjoint(together) for together in declared.never):
            continue
        yield f"{prefix}inputs_{_words(present)}", Combination(frozenset(absent))
    for there in product((True, False), repeat=len(declared.outputs)) if declared.outputs else ():
        asked = [name for name, is_there in zip(declared.outputs, there, strict=True) if is_there]
        yield f"{prefix}outputs_{_words(asked)}", Combination(frozenset(), frozenset(asked))


def _words(names: list[str]) -> str:
    return "_".join(names).lower() or "none"


def _list_cases(declared: OptionalIO, operator: Operator[Any]) -> Iterator[Case]:
    base = next(sample for sample in operator.samples() if sample.name == declared.base)
    for version in schema.since_versions(operator.name, operator.domain):
        if not _has(declared, operator, version):
            continue
        every = tuple(operator.dtypes(version))
        dtypes = next((each for each in every if operator.bindings(base, version, each)), every[0])
        for words, combination in combinations(declared):
            builder = partial(_build, declared, operator, combination)
            sample = f"{KIND}_{words}"
            yield Case(
                operator.name,
                operator.domain,
                version,
                "-".join(dtypes),
                sample,
                graph.INITIALIZER,
                builder,
                kind=KIND,
                source=SOURCE,
            )


def _has(declared: OptionalIO, operator: Operator[Any], version: int) -> bool:
    """Whether that version of the operator is among those of the declared."""
    definition = schema.schema(operator.name, version, operator.domain)
    inputs, outputs = ({formal.name for formal in part} for part in (definition.inputs, definition.outputs))
    wanted = {name for group in declared.inputs for name in group}
    return (
        wanted <= inputs
        and set(declared.outputs) <= outputs
        and (not declared.versions or version in declared.versions)
    )


def _build(declared: OptionalIO, operator: Operator[Any], combination: Combination, case: Case) -> BuiltCase:
    node = _node(declared, operator, combination, case)
    if combination.outputs is None:
        return build_case(operator, node, operator.truth(node), case)
    definition = schema.schema(operator.name, case.since_version, operator.domain)
    formals = [formal.name for formal in definition.outputs]
    asked = [name if name in combination.outputs or name not in declared.outputs else "" for name in formals]
    while not asked[-1]:
        asked.pop()
    why = declared.why_undefined(case.since_version, combination.outputs)
    whole, node = replace(node, outputs=tuple(formals)), replace(node, outputs=tuple(asked))
    left = {name: value for name, value in node.attributes.items() if name != declared.taken_out}
    node = replace(node, attributes=left)
    node, truth = _rename_outputs(node, _select_asked(operator.truth(whole if why else node), node, declared, why))
    return build_case(replace(operator, lower=NOT_LOWERED) if why else operator, node, truth, case)


def _rename_outputs(node: Node, truth: Truth) -> tuple[Node, Truth]:
    """Node and truth without an output that has the name of an input, as `mean` of BatchNormalization-7."""
    taken = {operand.name for operand in node.inputs if operand is not None}
    names = {name: f"{name}_out" if name in taken else name for name in node.outputs}
    if isinstance(truth, Outputs):
        truth = replace(truth, outputs=tuple(replace(output, name=names[output.name]) for output in truth.outputs))
    return replace(node, outputs=tuple(map(names.__getitem__, node.outputs))), truth


def _node(declared: OptionalIO, operator: Operator[Any], combination: Combination, case: Case) -> Node:
    """The sample's node without the inputs that are left out."""
    base = next(sample for sample in operator.samples() if sample.name == declared.base)
    fields = dict(declared.fields)
    for name in combination.absent:
        fields |= declared.fields_without.get(name, {})
    dtypes = tuple(np.dtype(name) for name in case.dtype.split("-"))
    node = operator.node(replace(base, **fields), CaseContext(case.since_version, dtypes, random_source(case.id)))
    taken_out = combination.absent - declared.fields_without.keys()
    inputs = [None if operand is not None and operand.name in taken_out else operand for operand in node.inputs]
    while inputs[-1] is None:
        inputs.pop()
    return replace(node, inputs=tuple(inputs))


def _select_asked(truth: Truth, node: Node, declared: OptionalIO, why: str) -> Truth:
    """The truth of the outputs that the node has."""
    if isinstance(truth, Refusal):
        return truth
    assert isinstance(truth, Outputs)
    known = {output.name: output for output in truth.outputs}
    outputs = tuple(known[name] for name in node.results)
    return Outputs(tuple(_make_open(o) if why or o.name in declared.undefined else o for o in outputs), why)


def _make_open(output: Output) -> Output:
    """The output with its shape and dtype, and no truth of its elements."""
    return Output(output.name, output.value, undefined=Undefined(np.ones(output.value.shape, np.bool_)))
