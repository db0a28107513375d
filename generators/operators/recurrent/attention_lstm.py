"""com.microsoft::AttnLSTM: an LSTM that reads what an attention over a memory gave for its last hidden state.

Source: ONNX Runtime's ContribOperators.md. A step reads X_t beside the attention of the step before, which is 0 at
first; its hidden state is the query of Bahdanau's attention, whose context, or that beside the hidden state times AW,
is the next attention. Of W the last dimension is that of X and of the attention. The bound is that of LSTM, with the
error of each step of the attention. Y behind the end of a sequence is open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.bounds import estimate
from epcheck.generators.bounds.estimate import Estimate, Precision
from epcheck.generators.bounds.running_error import Approximate, output
from epcheck.generators.case import CaseContext, expect_refusal
from epcheck.generators.families.drawn import Drawn, DrawnSample
from epcheck.generators.node import Attribute, Node
from epcheck.generators.operators.recurrent.recurrent.oracle import STEPS, read_direction, read_initial, stack_parts
from epcheck.generators.operators.recurrent.recurrent.samples import CELLS
from epcheck.generators.truth import Outputs, Refusal, Truth

DECLARES = ("com.microsoft::AttnLSTM",)

CELL = CELLS["LSTM"]
THREE = "X has 3 dimensions"
MEMORY = ("QW", "MW", "V", "M")
TANH_ULPS = 5.0
"""The error of tanh: OpenCL C, full profile."""


@dataclass(frozen=True, kw_only=True)
class AttentionSample(DrawnSample):
    """sizes: steps, batch, input_size, hidden_size. memory: its steps and its depth. depth: am_attn_size. layer: the
    columns of AW. broken: what has another shape."""

    sizes: tuple[int, int, int, int] = (3, 2, 4, 5)
    memory: tuple[int, int] = (6, 3)
    depth: int = 7
    layer: int = 4
    directions: int = 1
    broken: str = ""


def samples() -> Iterator[AttentionSample]:
    for direction in ("forward", "reverse", "bidirectional"):
        own: Mapping[str, Attribute] = {"hidden_size": 5, "direction": direction}
        many = 2 if direction == "bidirectional" else 1
        whole = ("B", "sequence_lens", "initial_h", "initial_c", "P", *MEMORY, "memory_seq_lens", "AW")
        for name, present in (("", MEMORY), ("_b", ("B", *MEMORY)), ("_lengths", ("sequence_lens", *MEMORY)),
                              ("_memory_lengths", (*MEMORY, "memory_seq_lens")), ("_layer", (*MEMORY, "AW")),
                              ("_states", ("initial_h", "initial_c", *MEMORY)), ("_p", ("P", *MEMORY)),
                              ("_all", whole)):  # fmt: skip
            yield AttentionSample(name=f"{direction}{name}", attributes=own, present=present, directions=many,
                                  every_dtype=name in ("", "_all"))  # fmt: skip
    base: Mapping[str, Attribute] = {"hidden_size": 5}
    yield AttentionSample(name="last_only", attributes=base, present=(*MEMORY, "AW"), omitted=("Y",))
    yield AttentionSample(name="input_forget", attributes={**base, "input_forget": 1}, present=(*MEMORY, "AW"))
    yield AttentionSample(name="clip", attributes={**base, "clip": 0.25}, present=(*MEMORY, "AW"))
    others: Mapping[str, Attribute] = {**base, "activations": ("HardSigmoid", "Softsign", "Relu")}
    yield AttentionSample(name="activations", attributes=others, present=MEMORY)
    for sizes, memory, depth, layer in (((1, 1, 1, 1), (1, 1), 1, 1), ((2, 3, 17, 9), (33, 5), 17, 3),
                                        ((2, 1, 3, 33), (5, 17), 3, 19), ((9, 2, 3, 4), (4, 3), 5, 2)):  # fmt: skip
        name = "sizes_" + "_".join(map(str, sizes))
        yield AttentionSample(name=name, attributes={"hidden_size": sizes[3]}, present=(*MEMORY, "AW"), sizes=sizes,
                              memory=memory, depth=depth, layer=layer)  # fmt: skip
    for broken in ("W", "QW", "MW", "V", "M"):
        yield expect_refusal(AttentionSample(name=f"{broken.lower()}_of_another_size", attributes=base, present=MEMORY,
                                             broken=broken))  # fmt: skip


def draw(sample: AttentionSample, context: CaseContext) -> Mapping[str, Array]:
    """Weights shrink with the number of terms, so that the activations see all of their curve."""
    rng, (steps, batch, inputs, hidden), many = context.rng, sample.sizes, sample.directions
    count, deep = sample.memory
    attended = sample.layer if "AW" in sample.present else deep
    shapes: dict[str, tuple[int, ...]] = {
        "W": (many, 4 * hidden, inputs + attended), "R": (many, 4 * hidden, hidden), "B": (many, 8 * hidden),
        "initial_h": (many, batch, hidden), "initial_c": (many, batch, hidden), "P": (many, 3 * hidden),
        "QW": (many, hidden, sample.depth), "MW": (many, deep, sample.depth), "V": (many, sample.depth),
        "M": (batch, count, deep), "AW": (many, deep + hidden, sample.layer), "X": (steps, batch, inputs),
    }  # fmt: skip
    if sample.broken:
        *others, last = shapes[sample.broken]
        shapes[sample.broken] = (*others, last + 1)
    roots = {"W": inputs + attended, "R": hidden, "QW": hidden, "MW": deep, "AW": deep + hidden, "V": 1}
    found = {
        name: (1.5 * rng.uniform(-1, 1, shape) / np.sqrt(roots.get(name, 1))).astype(context.dtype)
        for name, shape in shapes.items()
    }
    lengths = np.resize(np.array([steps, max(steps - 1, 1)]), batch)
    kept = np.resize(np.array([max(count - 2, 1), count]), batch)
    return {**found, "sequence_lens": lengths.astype(np.int32), "memory_seq_lens": kept.astype(np.int32)}


def _find_rule(node: Node) -> str:
    """The first rule about shapes that the node breaks."""
    w, r, memory = node.array("W"), node.array("R"), node.array("M")
    many, hidden, x = len(r), r.shape[-1], node.array("X")
    depth, layer = node.array("MW").shape[-1], node.value("AW")
    attended = memory.shape[2] if layer is None else layer.shape[2]
    expected: Mapping[str, tuple[int, ...]] = {
        "W": (many, 4 * hidden, x.shape[2] + attended), "QW": (many, hidden, depth),
        "MW": (many, memory.shape[2], depth), "V": (many, depth), "M": (x.shape[1], *memory.shape[1:]),
    }  # fmt: skip
    found = {"W": w.shape, **{name: node.array(name).shape for name in MEMORY}}
    wrong = (name for name, shape in expected.items() if found[name] != shape)
    return next((f"{name} must have the shape {expected[name]}, not {found[name]}" for name in wrong), "")


def _attend(node: Node, index: int, hidden: Approximate) -> Approximate:
    """The attention after a step with this hidden state, [batch, depth of the memory or columns of AW]."""
    precision = Precision(node.array("X").dtype)
    query = Estimate(hidden.value, hidden.error)
    memory, kept, layer = estimate.exact(node.array("M")), node.value("memory_seq_lens"), node.value("AW")
    keys = precision.dot(memory, estimate.exact(node.array("MW")[index]))
    processed = precision.dot(query, estimate.exact(node.array("QW")[index]))
    batch, count, depth = keys.value.shape
    wide = Estimate(*(np.broadcast_to(part[:, None], keys.value.shape) for part in (processed.value, processed.error)))
    total = precision.add(keys, wide)
    bent = np.tanh(total.value)
    curved = Estimate(bent, total.error + 2 * TANH_ULPS * precision.unit * np.abs(bent) + precision.tiny)
    scores = precision.dot(curved, estimate.exact(node.array("V")[index].reshape(depth, 1))).reshape(batch, count)
    if kept is not None:
        scores = Estimate(np.where(np.arange(count) < kept[:, None], scores.value, -np.inf), scores.error)
    found = precision.dot(precision.softmax(scores).reshape(batch, 1, count), memory).reshape(batch, -1)
    if layer is not None:
        joined = estimate.concatenate((query, found), 1)
        found = precision.dot(joined, estimate.exact(layer[index]))
    return Approximate(found.value, found.error)


def _run(node: Node, index: int) -> tuple[Approximate, Approximate, Approximate]:
    """One direction: Y [steps, batch, hidden], Y_h and Y_c [batch, hidden]. A sequence that is over keeps its state."""
    x, lengths = node.array("X"), node.value("sequence_lens")
    steps, batch, _ = x.shape
    direction = read_direction(node, CELL, index)
    hidden = direction.w.shape[1]
    ends = np.full(batch, steps) if lengths is None else lengths
    state = tuple(read_initial(node, name, index, batch, hidden) for name in ("initial_h", "initial_c"))
    width = direction.w.shape[2] - x.shape[2]
    attended = Approximate.exact(np.zeros((batch, width)))
    backward = index == 1 or node.text("direction", "forward") == "reverse"
    rows = [state[0]] * steps
    for t in reversed(range(steps)) if backward else range(steps):
        active = (t < ends)[:, None]
        read = Approximate(*(np.concatenate(parts, 1) for parts in
                             ((x[t], attended.value), (np.zeros(x[t].shape), attended.error))))  # fmt: skip
        h, c = STEPS["LSTM"](direction, read, (state[0], state[1]))
        state = h.where(active, state[0]), c.where(active, state[1])
        attended = _attend(node, index, h).where(active, attended)
        rows[t] = h.where(active, Approximate(np.zeros_like(h.value), np.full_like(h.value, np.inf)))
    return stack_parts(rows, 0), state[0], state[1]


def truth(node: Node) -> Truth:
    """The equations of the page, a step at a time."""
    if why := _find_rule(node):
        return Refusal(why)
    with np.errstate(all="ignore"):
        runs = [_run(node, index) for index in range(len(node.array("R")))]
    found = {name: stack_parts([run[part] for run in runs], axis)
             for part, (name, axis) in enumerate((("Y", 1), ("Y_h", 0), ("Y_c", 0)))}  # fmt: skip
    return Outputs(tuple(output(name, found[name], node.array("X").dtype) for name in node.results))


PARAMETERS = ("W", "R", "B", "P", "QW", "MW", "V", "AW")

OPERATORS = (Drawn("AttnLSTM", samples, draw, truth, PARAMETERS).declare(without_rank_dtypes=THREE),)
