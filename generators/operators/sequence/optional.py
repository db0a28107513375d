"""Optional, OptionalHasElement and OptionalGetElement.

A model's ends are tensors, so the node Optional wraps what the operator under test takes where that is an optional, and
SequenceConstruct makes a sequence, as in `sequence.py`. From version 18 on both take tensors and sequences themselves.
What Optional itself makes is read by OptionalGetElement or, where it is empty, by OptionalHasElement.

Sources: the operators' ONNX pages. The DML EP has ONNX Runtime's CPU kernels for both under its name, none for
Optional: with fallback to CPU disabled only the cases without an optional can be placed on it. Of an empty optional the
page of OptionalGetElement leaves the behaviour undefined: there is no case. Nor are there any of what numpy cannot hold
(bfloat16, string).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from onnx import NodeProto, helper

from epcheck.generators import graph, schema
from epcheck.generators.array import Array
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.claims import newest_claimed_version
from epcheck.generators.node import Node, Operand, Surroundings
from epcheck.generators.operator import CPU_KERNEL, NO_KERNEL, NO_TENSOR, Operator, spread
from epcheck.generators.operators.sequence.sequence import (
    LENGTH,
    ONNX_NAMES,
    TENSOR,
    construct,
    read_length,
    read_tensors,
    sequence_type,
)
from epcheck.generators.truth import Output, Outputs, Refusal, Truth

DECLARES = (
    "Optional",
    "OptionalHasElement",
    "OptionalGetElement",
)

RELEASED = 15
"""The version of Optional that released opsets resolve to."""


@dataclass(frozen=True, kw_only=True)
class OptionalSample(Sample):
    """shapes: of the tensors inside. sequence: they are one. optional: it is wrapped. empty: there is nothing inside.

    An empty sample that is not optional leaves the input out.
    """

    shapes: tuple[tuple[int, ...], ...] = ((2, 3),)
    sequence: bool = False
    optional: bool = False
    empty: bool = False
    values: str = "distinct"


def samples(name: str) -> Iterator[OptionalSample]:
    for optional in (False, True):
        prefix = "optional_" if optional else ""
        yield OptionalSample(name=f"{prefix}tensor", optional=optional, every_dtype=True)
        yield OptionalSample(name=f"{prefix}every_value", shapes=((16,),), optional=optional, values="every")
        yield OptionalSample(name=f"{prefix}scalar", rank=0, shapes=((),), optional=optional)
        yield OptionalSample(name=f"{prefix}size_0", shapes=((0, 3),), optional=optional)
        yield OptionalSample(name=f"{prefix}rank_8", rank=8, shapes=((1, 2) * 4,), optional=optional)
        yield OptionalSample(name=f"{prefix}more_than_a_thread_group", shapes=((3, 1025),), optional=optional)
        three = ((2, 3), (4,), ())
        yield OptionalSample(name=f"{prefix}sequence", shapes=three, sequence=True, optional=optional, every_dtype=True)
        yield OptionalSample(name=f"{prefix}empty_sequence", shapes=(), sequence=True, optional=optional)
    if name == "OptionalHasElement":
        yield OptionalSample(name="omitted", shapes=(), empty=True)
        yield OptionalSample(name="empty_optional_tensor", shapes=(), optional=True, empty=True, every_dtype=True)
        yield OptionalSample(name="empty_optional_sequence", shapes=(), sequence=True, optional=True, empty=True)


def bindings(name: str, sample: OptionalSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """Without parameters; a version that takes optionals alone has no cases without them."""
    allowed = next(
        c.allowed_type_strs for c in schema.schema(name, since_version).type_constraints if c.type_param_str == "O"
    )
    if not sample.optional and "tensor(float)" not in allowed:
        return ()
    scalar = not any(sample.shapes)
    newest = since_version == newest_claimed_version(name)
    known = set(spread(sample, first=dtypes == ("float32",), newest=newest, scalar=scalar))
    if not known:
        return ()
    known = (known - {graph.INITIALIZER}) | {graph.RUNTIME}
    if not sample.shapes:
        known = {graph.RUNTIME}
    return tuple(binding for binding in graph.BINDINGS if binding in known)


def node(name: str, sample: OptionalSample, context: CaseContext) -> Node:
    """The tensors `element_0`, ... of any dtype and shape, wrapped as the sample says."""
    dtype = context.dtype
    operands = tuple(Operand(f"element_{i}", context.draw(sample.values, s)) for i, s in enumerate(sample.shapes))
    around, reads, spelled = _wrap_elements(sample, tuple(o.name for o in operands), dtype)
    types = {"O": spelled, "B": "bool"}
    after: tuple[NodeProto, ...] = ()
    results, writes = {"output": "bool"}, "output"
    if name == "OptionalGetElement":
        types = {"O": spelled, "V": sequence_type(dtype) if sample.sequence else dtype.name}
        results = {"output": dtype.name}
        if sample.sequence:
            writes, count = "result", len(sample.shapes)
            after = (read_length("result", LENGTH), *read_tensors("result", count))
            results = {LENGTH: "int64", **{f"{TENSOR}{i}": dtype.name for i in range(count)}}
    surroundings = Surroundings(reads, (writes,), results, types, around, after)
    return Node(name, "", context.since_version, operands, tuple(results), surroundings=surroundings)


def _wrap_elements(
    sample: OptionalSample, elements: tuple[str, ...], dtype: np.dtype[Any]
) -> tuple[tuple[NodeProto, ...], tuple[str, ...], str]:
    """The nodes before the one under test, what it reads of them, and the type of that as the claims spell it."""
    element = helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(dtype), None)
    inside = helper.make_sequence_type_proto(element) if sample.sequence else element
    tensor = f"tensor({ONNX_NAMES[dtype.name]})"
    spelled = f"optional(seq({tensor}))" if sample.sequence else f"optional({tensor})"
    if sample.empty:
        wrap = helper.make_node("Optional", [], ["optional"], name="make_optional", type=inside)
        return ((wrap,), ("optional",), spelled) if sample.optional else ((), (), dtype.name)
    made = (construct(elements, dtype),) if sample.sequence else ()
    taken = "sequence" if sample.sequence else elements[0]
    if not sample.optional:
        return made, (taken,), sequence_type(dtype) if sample.sequence else dtype.name
    wrap = helper.make_node("Optional", [taken], ["optional"], name="make_optional")
    return (*made, wrap), ("optional",), spelled


def truth(node: Node) -> Truth:
    """Whether there is anything inside: nothing where the input is omitted or Optional itself has no input; an empty
    sequence is something. OptionalGetElement gives what is inside, bit by bit."""
    elements = [operand.value for operand in node.inputs if operand is not None]
    if node.op_type == "OptionalHasElement":
        before = node.surroundings.before if node.surroundings else ()
        omitted = not node.surroundings.inputs if node.surroundings else not elements
        empty = any(made.op_type == "Optional" and not made.input for made in before)
        return Outputs((Output("output", np.array(not omitted and not empty)),))
    return _inside(node, elements)


def made_samples() -> Iterator[OptionalSample]:
    """Of the node Optional."""
    for sample in samples("OptionalHasElement"):
        if sample.optional:
            yield OptionalSample(
                **{
                    **vars(sample),
                    "name": sample.name.replace("empty_optional_", "nothing_of_").removeprefix("optional_"),
                }
            )
    yield expect_refusal(OptionalSample(name="neither_input_nor_type", shapes=()))


def made_bindings(sample: OptionalSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """Without parameters; Optional-28 adds types that numpy cannot hold."""
    newest = since_version == RELEASED
    if not newest and not sample.every_dtype:
        return ()
    known = set(spread(sample, first=dtypes == ("float32",), newest=newest, scalar=not any(sample.shapes)))
    if not known:
        return ()
    known = ((known - {graph.INITIALIZER}) | {graph.RUNTIME}) if sample.shapes and newest else {graph.RUNTIME}
    return tuple(binding for binding in graph.BINDINGS if binding in known)


def made_node(sample: OptionalSample, context: CaseContext) -> Node:
    """The tensors `element_0`, ... of any dtype and shape, and what is inside, read from the optional."""
    dtype = context.dtype
    operands = tuple(Operand(f"element_{i}", context.draw(sample.values, s)) for i, s in enumerate(sample.shapes))
    elements = tuple(o.name for o in operands)
    element = helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(dtype), None)
    tensor = f"tensor({ONNX_NAMES[dtype.name]})"
    types = {"V": dtype.name, "O": f"optional({tensor})"}
    if sample.sequence:
        types = {"V": sequence_type(dtype), "O": f"optional(seq({tensor}))"}
    if sample.empty or sample.refused:
        inside = helper.make_sequence_type_proto(element) if sample.sequence else element
        after = (helper.make_node("OptionalHasElement", ["optional"], ["output"], name="read_output"),)
        results = {"output": "bool"}
        around = Surroundings((), ("optional",), results, types, (), after, type=None if sample.refused else inside)
        return Node("Optional", "", context.since_version, (), ("output",), surroundings=around)
    if not sample.sequence:
        after = (helper.make_node("OptionalGetElement", ["optional"], ["output"], name="read_output"),)
        around = Surroundings(elements, ("optional",), {"output": dtype.name}, types, (), after)
        return Node("Optional", "", context.since_version, operands, ("output",), surroundings=around)
    get = helper.make_node("OptionalGetElement", ["optional"], ["result"], name="read_result")
    reads = (get, read_length("result", LENGTH), *read_tensors("result", len(elements)))
    results = {LENGTH: "int64", **{f"{TENSOR}{i}": dtype.name for i in range(len(elements))}}
    around = Surroundings(("sequence",), ("optional",), results, types, (construct(elements, dtype),), reads)
    return Node("Optional", "", context.since_version, operands, tuple(results), surroundings=around)


def made_truth(node: Node) -> Truth:
    """What is inside, bit by bit; of an empty optional, that nothing is. It must have an input or a type."""
    around = node.surroundings
    assert around is not None
    if not around.inputs:
        empty = Outputs((Output("output", np.array(False)),))
        return empty if around.type else Refusal("Optional must have an input, or a type to be empty")
    elements = [operand.value for operand in node.inputs if operand is not None]
    return _inside(node, elements)


def _inside(node: Node, elements: Sequence[Array]) -> Outputs:
    if node.results == ("output",):
        return Outputs((Output("output", elements[0]),))
    tensors = (Output(f"{TENSOR}{index}", tensor) for index, tensor in enumerate(elements))
    return Outputs((Output(LENGTH, np.array(len(elements), np.int64)), *tensors))


OPERATORS = (
    Operator(
        "Optional",
        made_samples,
        made_bindings,
        made_node,
        made_truth,
        NO_KERNEL,
        varied=("V",),
        without_rank_9=NO_TENSOR,
    ),
    *(
        Operator(
            name,
            partial(samples, name),
            partial(bindings, name),
            partial(node, name),
            truth,
            CPU_KERNEL,
            varied=("O",),
            without_rank_9=NO_TENSOR,
        )
        for name in ("OptionalHasElement", "OptionalGetElement")
    ),
)
