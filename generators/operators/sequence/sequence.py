"""SequenceConstruct, SequenceEmpty, SequenceInsert, SequenceErase, SequenceAt, SequenceLength and ConcatFromSequence.

A model's ends are tensors, so a case has nodes around the one under test: SequenceConstruct (SequenceEmpty for none)
makes its sequence of the inputs `element_0`, `element_1`, ..., SequenceLength and SequenceAt at constant positions read
every tensor of a sequence that it gives, SequenceInsert fills one that SequenceEmpty gives.

Sources: the operators' ONNX pages. The DML EP has ONNX Runtime's own CPU kernels under its name for all of them but
ConcatFromSequence, which is DML_JOIN_OPERATOR_DESC (DmlOperatorConcatFromSequence.cpp), and for the nodes around them
too, so that a session without any fallback proves where they ran. Elements that numpy cannot hold (bfloat16, string)
have no cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper

from epcheck.generators import graph
from epcheck.generators.array import Array
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.node import Attribute, Node, Operand, Surroundings
from epcheck.generators.operator import CPU_KERNEL, NO_TENSOR, Operator, spread
from epcheck.generators.schema import NUMPY_NAMES
from epcheck.generators.truth import Output, Outputs, Refusal, Truth

DECLARES = (
    "SequenceConstruct",
    "SequenceEmpty",
    "SequenceInsert",
    "SequenceErase",
    "SequenceAt",
    "SequenceLength",
    "ConcatFromSequence",
)

ELEMENT = "element_"
"""What the names of the inputs that become the sequence's tensors begin with."""

LENGTH, TENSOR = "length", "tensor_"
"""The outputs of a case whose node gives a sequence: its length, and `tensor_0`, `tensor_1`, ..."""

INPUT_LENGTH = "input_length"
"""The length of the input sequence, read beside the node under test: it must not change."""

ONNX_NAMES = {numpy_name: name for name, numpy_name in NUMPY_NAMES.items()}
INT64 = np.iinfo(np.int64)


@dataclass(frozen=True, kw_only=True)
class SequenceSample(Sample):
    """shapes: of the sequence's tensors. position: None leaves the input out. attributes: of the node.

    tensor: the shape of what SequenceInsert inserts. keeps: the input's length is read, too. only: the one dtype, which
    SequenceEmpty takes where it is told none.
    """

    shapes: tuple[tuple[int, ...], ...] = ((2, 3), (2, 3), (2, 3))
    position: int | tuple[int, ...] | None = None
    position_dtype: str = "int64"
    attributes: tuple[tuple[str, int], ...] = ()
    tensor: tuple[int, ...] = (2, 3)
    values: str = "distinct"
    keeps: bool = False
    only: str = ""


def sequence_type(dtype: np.dtype[Any]) -> str:
    """How the claims spell the type of a sequence: `seq(float)`."""
    return f"seq({ONNX_NAMES[dtype.name]})"


def construct(elements: Sequence[str], dtype: np.dtype[Any], name: str = "sequence") -> NodeProto:
    """The node that makes a sequence of these tensors."""
    if elements:
        return helper.make_node("SequenceConstruct", list(elements), [name], name=f"make_{name}")
    element = helper.np_dtype_to_tensor_dtype(dtype)
    return helper.make_node("SequenceEmpty", [], [name], name=f"make_{name}", dtype=element)


def read_length(sequence: str, output: str) -> NodeProto:
    """The node that reads a sequence's length."""
    return helper.make_node("SequenceLength", [sequence], [output], name=f"read_{output}")


def read_tensors(sequence: str, count: int) -> Iterator[NodeProto]:
    """The nodes that read the first `count` tensors of a sequence, as `tensor_0`, `tensor_1`, ..."""
    for index in range(count):
        at = f"at_{index}"
        value = helper.make_tensor(at, TensorProto.INT64, (), [index])
        yield helper.make_node("Constant", [], [at], name=f"make_{at}", value=value)
        yield helper.make_node("SequenceAt", [sequence, at], [f"{TENSOR}{index}"], name=f"read_{TENSOR}{index}")


def _shared_samples() -> Iterator[SequenceSample]:
    """What sequences there are, for every operator that takes one."""
    yield SequenceSample(name="three_tensors", every_dtype=True)
    yield SequenceSample(name="one_tensor", shapes=((2, 3),))
    yield SequenceSample(name="every_value", shapes=((16,), (16,)), tensor=(16,), values="every", every_dtype=True)
    yield SequenceSample(name="size_0", shapes=((0, 3), (2, 3), (4, 3)), tensor=(0, 3))
    yield SequenceSample(name="rank_1", shapes=((5,), (1,), (7,)), tensor=(3,))
    yield SequenceSample(name="rank_8", rank=8, shapes=((1, 2) * 4,) * 3, tensor=(1, 2) * 4)
    yield SequenceSample(name="more_than_a_thread_group", shapes=((1025,), (2049,)), tensor=(1500,))
    yield SequenceSample(name="forty_tensors", shapes=((2,),) * 40, tensor=(2,))


def _mixed_samples() -> Iterator[SequenceSample]:
    """Sequences whose tensors have nothing but their type in common."""
    yield SequenceSample(name="different_shapes", shapes=((2, 3), (4, 1), (1, 5)), tensor=(7, 2), every_dtype=True)
    yield SequenceSample(name="different_ranks", shapes=((), (2,), (2, 3, 4)), tensor=(1, 1, 1, 2))
    yield SequenceSample(name="scalars", shapes=((), (), ()), tensor=())


def _construct_samples() -> Iterator[SequenceSample]:
    yield from _shared_samples()
    yield from _mixed_samples()


def _length_samples() -> Iterator[SequenceSample]:
    yield from _shared_samples()
    yield from _mixed_samples()
    yield SequenceSample(name="empty", shapes=(), every_dtype=True)


def _empty_samples() -> Iterator[SequenceSample]:
    yield SequenceSample(name="dtype_given", every_dtype=True)
    yield SequenceSample(name="dtype_omitted", only="float32")
    for sample in ("one_tensor", "size_0", "rank_1", "rank_8", "every_value"):
        (shared,) = (known for known in _shared_samples() if known.name == sample)
        yield shared


def _positions(low: int, high: int) -> Iterator[SequenceSample]:
    """low, high: the positions that a sequence of three tensors accepts."""
    for position in range(low, high + 1):
        name = f"position_{'minus_' if position < 0 else ''}{abs(position)}"
        for dtype in ("int64", "int32"):
            yield SequenceSample(
                name=name if dtype == "int64" else f"{name}_int32",
                position=position,
                position_dtype=dtype,
                every_dtype=position in (low, 1) and dtype == "int64",
            )
    far = {"beyond": high + 1, "before": low - 1, "int64_max": INT64.max, "int64_min": INT64.min, "2_to_the_32": 2**32}
    for name, position in far.items():
        yield expect_refusal(SequenceSample(name=f"position_{name}", position=position))
    yield expect_refusal(SequenceSample(name="two_positions", position=(0, 1)))


def _set_position(samples: Iterator[SequenceSample], position: int) -> Iterator[SequenceSample]:
    for sample in samples:
        yield SequenceSample(**{**vars(sample), "position": position})


def _at_samples() -> Iterator[SequenceSample]:
    yield from _positions(-3, 2)
    others = (sample for sample in _shared_samples() if sample.name != "three_tensors")  # that is position_minus_1
    yield from _set_position(others, -1)
    yield from _set_position(_mixed_samples(), 1)
    yield expect_refusal(SequenceSample(name="position_0_of_empty", shapes=(), position=0))


def _erase_samples() -> Iterator[SequenceSample]:
    yield from _positions(-3, 2)
    yield from _shared_samples()
    yield from _set_position(_mixed_samples(), 1)
    yield SequenceSample(name="input_stays", position=0, keeps=True)
    yield SequenceSample(name="position_omitted_input_stays", keeps=True)
    yield expect_refusal(SequenceSample(name="position_0_of_empty", shapes=(), position=0))
    yield expect_refusal(SequenceSample(name="position_omitted_of_empty", shapes=()))


def _insert_samples() -> Iterator[SequenceSample]:
    yield from _positions(-3, 3)
    yield from _shared_samples()
    yield from _set_position(_mixed_samples(), 1)
    yield SequenceSample(name="into_empty", shapes=(), every_dtype=True)
    yield SequenceSample(name="into_empty_position_0", shapes=(), position=0)
    yield SequenceSample(name="input_stays", position=0, keeps=True)
    yield SequenceSample(name="position_omitted_input_stays", keeps=True)
    yield expect_refusal(SequenceSample(name="position_1_of_empty", shapes=(), position=1))


def _concat_samples() -> Iterator[SequenceSample]:
    for sample in _shared_samples():
        if sample.name != "more_than_a_thread_group":
            yield SequenceSample(**{**vars(sample), "attributes": (("axis", 0),)})
    yield SequenceSample(name="more_than_a_thread_group", shapes=((1025,), (2049,)), attributes=(("axis", 0),))
    varied = ((2, 3, 4), (2, 1, 4), (2, 5, 4))
    for axis in (1, -2):
        name = f"axis_{'minus_' if axis < 0 else ''}{abs(axis)}"
        yield SequenceSample(name=f"{name}_different_lengths", shapes=varied, attributes=(("axis", axis),))
    for new_axis in (0, 1):
        for axis in range(-2 - new_axis, 2 + new_axis):
            yield SequenceSample(
                name=f"axis_{'minus_' if axis < 0 else ''}{abs(axis)}_new_axis_{new_axis}",
                attributes=(("axis", axis), ("new_axis", new_axis)),
                every_dtype=axis == 1,
            )
    yield SequenceSample(name="one_tensor_new_axis", shapes=((2, 3),), attributes=(("axis", 0), ("new_axis", 1)))
    yield SequenceSample(name="scalars_stacked", shapes=((),) * 5, attributes=(("axis", 0), ("new_axis", 1)))
    yield SequenceSample(name="size_0_stacked", shapes=((0, 2),) * 2, attributes=(("axis", 1), ("new_axis", 1)))
    yield SequenceSample(name="all_size_0", shapes=((0, 2),) * 2, attributes=(("axis", 0),))
    for name, axis, new in (("at_rank", 2, 0), ("below_rank", -3, 0), ("beyond_new", 3, 1), ("below_new", -4, 1)):
        yield expect_refusal(SequenceSample(name=f"axis_{name}", attributes=(("axis", axis), ("new_axis", new))))
    yield expect_refusal(
        SequenceSample(name="shapes_differ", shapes=((2, 3), (2, 4)), attributes=(("axis", 0), ("new_axis", 0)))
    )
    yield expect_refusal(
        SequenceSample(
            name="shapes_differ_stacked",
            shapes=((2, 3), (1, 3)),
            attributes=(("axis", 0), ("new_axis", 1)),
        )
    )
    yield expect_refusal(
        SequenceSample(name="ranks_differ", shapes=((2, 3), (2,)), attributes=(("axis", 0), ("new_axis", 0)))
    )


def bindings(sample: SequenceSample, _since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """As `spread`; a case without a position has no parameters, one without tensors nothing that could be constant."""
    if sample.only and dtypes[0] != sample.only:
        return ()
    known = set(spread(sample, first=dtypes == ("float32",), newest=True, scalar=not any(sample.shapes)))
    if sample.position is None:
        known -= {graph.INITIALIZER}
    if not sample.shapes:
        known -= {graph.CONSTANT}
    return tuple(binding for binding in graph.BINDINGS if binding in known)


def node(op_type: str, sample: SequenceSample, context: CaseContext) -> Node:
    """The tensors `element_0`, ... of any dtype and shape; `tensor`, what SequenceInsert inserts; `position`, a scalar
    of int32 or int64. What leaves the model: see LENGTH, TENSOR, and the operator's own output where it is a tensor."""
    dtype = context.dtype
    operands = [Operand(f"{ELEMENT}{i}", context.draw(sample.values, s)) for i, s in enumerate(sample.shapes)]
    elements = tuple(o.name for o in operands)
    before, reads = [construct(elements, dtype)], ["sequence"]
    if op_type == "SequenceConstruct":
        before, reads = [], list(elements)
    elif op_type == "SequenceEmpty":
        before, reads = [], []
    elif op_type == "SequenceInsert":
        operands.append(Operand("tensor", context.draw(sample.values, sample.tensor)))
        reads.append("tensor")
    if sample.position is not None:
        operands.append(Operand("position", np.array(sample.position, sample.position_dtype), parameter=True))
        reads.append("position")
    attributes: dict[str, Attribute] = dict(sample.attributes)
    if op_type == "SequenceEmpty" and not sample.only:
        attributes["dtype"] = int(helper.np_dtype_to_tensor_dtype(dtype))
    writes, after, results = _results(op_type, sample, dtype)
    types = {"S": sequence_type(dtype), "T": dtype.name, "I": sample.position_dtype}
    surroundings = Surroundings(tuple(reads), (writes,), results, types, tuple(before), after)
    return Node(op_type, "", context.since_version, tuple(operands), tuple(results), attributes, surroundings)


def _results(
    op_type: str, sample: SequenceSample, dtype: np.dtype[Any]
) -> tuple[str, tuple[NodeProto, ...], dict[str, str]]:
    """What the node under test writes, the nodes that read that, and the model's outputs: name -> dtype."""
    if op_type in _TENSORS:
        return _TENSORS[op_type], (), {_TENSORS[op_type]: "int64" if op_type == "SequenceLength" else dtype.name}
    if sample.refused:
        return "result", tuple(read_tensors("result", 1)), {f"{TENSOR}0": dtype.name}
    count = len(sample.shapes) + {"SequenceInsert": 1, "SequenceErase": -1}.get(op_type, 0)
    nodes, filled = [], "result"
    if op_type == "SequenceEmpty":
        nodes.append(read_length("result", INPUT_LENGTH))
        for index in range(count):
            inserted = f"filled_{index}"
            nodes.append(helper.make_node("SequenceInsert", [filled, f"{ELEMENT}{index}"], [inserted], name=inserted))
            filled = inserted
    if sample.keeps:
        nodes.append(read_length("sequence", INPUT_LENGTH))
    lengths = [INPUT_LENGTH] if nodes else []
    nodes += [read_length(filled, LENGTH), *read_tensors(filled, count)]
    results = {**dict.fromkeys((*lengths, LENGTH), "int64"), **{f"{TENSOR}{i}": dtype.name for i in range(count)}}
    return "result", tuple(nodes), results


_TENSORS = {"SequenceAt": "tensor", "SequenceLength": LENGTH, "ConcatFromSequence": "concat_result"}
"""The operators that give a tensor, and its name."""


def elements_of(node: Node) -> list[Array]:
    """The tensors of the sequence that the case makes."""
    return [o.value for o in node.inputs if o is not None and o.name.startswith(ELEMENT)]


def truth(node: Node) -> Truth:
    """The pages' text on a Python list; every element is a copy, bit by bit."""
    elements = elements_of(node)
    match node.op_type:
        case "SequenceLength":
            return Outputs((Output(LENGTH, np.array(len(elements), np.int64)),))
        case "ConcatFromSequence":
            return _concat(node, elements)
        case "SequenceConstruct" | "SequenceEmpty":
            return _sequence(node, elements, 0)
    insert = node.op_type == "SequenceInsert"
    position = node.value("position")
    if position is not None and position.shape:
        return Refusal(f"position must be a scalar, its shape is {position.shape}")
    if position is None:
        position = np.array(len(elements) if insert else -1)
    count, at = len(elements), int(position)
    if not -count <= at < count + insert:
        return Refusal(f"position {at} must be within [{-count}, {count - (not insert)}] for {count} tensors")
    if node.op_type == "SequenceAt":
        return Outputs((Output("tensor", elements[at]),))
    changed = list(elements)
    if insert:
        changed.insert(at, node.array("tensor"))
    else:
        del changed[at]
    return _sequence(node, changed, count)


def _sequence(node: Node, tensors: Sequence[Array], input_length: int) -> Outputs:
    found = {
        INPUT_LENGTH: np.array(input_length, np.int64),
        LENGTH: np.array(len(tensors), np.int64),
        **{f"{TENSOR}{index}": tensor for index, tensor in enumerate(tensors)},
    }
    return Outputs(tuple(Output(name, found[name]) for name in node.results))


def _concat(node: Node, elements: Sequence[Array]) -> Truth:
    stacks = node.integer("new_axis", 0)
    axis, rank = node.integer("axis", 0), elements[0].ndim + stacks
    if not -rank <= axis < rank:
        return Refusal(f"axis {axis} must be within [{-rank}, {rank - 1}]")
    join: Callable[..., Array] = np.stack if stacks else np.concatenate
    try:
        return Outputs((Output("concat_result", join(elements, axis=axis)),))
    except ValueError:
        return Refusal("all tensors must have the same shape, but for the axis along which they are concatenated")


_SAMPLES: dict[str, tuple[Callable[[], Iterator[SequenceSample]], str]] = {
    "SequenceConstruct": (_construct_samples, "T"),
    "SequenceEmpty": (_empty_samples, "S"),
    "SequenceInsert": (_insert_samples, "T"),
    "SequenceErase": (_erase_samples, "S"),
    "SequenceAt": (_at_samples, "T"),
    "SequenceLength": (_length_samples, "S"),
    "ConcatFromSequence": (_concat_samples, "T"),
}
"""Operator -> its samples, and the type constraint whose dtypes its cases have."""

OPERATORS = tuple(
    Operator(
        name, samples, bindings, partial(node, name), truth, CPU_KERNEL, varied=(constraint,), without_rank_9=NO_TENSOR
    )
    for name, (samples, constraint) in _SAMPLES.items()
)
