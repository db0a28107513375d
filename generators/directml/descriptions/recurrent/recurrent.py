"""DML_RNN_, DML_GRU_ and DML_LSTM_OPERATOR_DESC.

Pages: ns-directml-dml_rnn_operator_desc and so on. They name the gates, not their arithmetic step by step, so nothing
is evaluated here. Every tensor has four dimensions; a smaller rank is padded with leading 1s.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar

from epcheck.generators.array import Array
from epcheck.generators.directml.constraint import Violation
from epcheck.generators.directml.descriptions.elementwise.activation import FUSED, make_fused
from epcheck.generators.directml.lowering import Lowering, pad_rank
from epcheck.generators.directml.operator_desc import OperatorDesc
from epcheck.generators.directml.tensor import DataType, TensorDesc
from epcheck.generators.node import Node
from epcheck.generators.oracle_math.activations import Activation


class RecurrentNetworkDirection(Enum):
    """DML_RECURRENT_NETWORK_DIRECTION (ne-directml-dml_recurrent_network_direction)."""

    FORWARD = 0
    BACKWARD = 1
    BIDIRECTIONAL = 2


DIRECTIONS = {
    "forward": RecurrentNetworkDirection.FORWARD,
    "reverse": RecurrentNetworkDirection.BACKWARD,
    "bidirectional": RecurrentNetworkDirection.BIDIRECTIONAL,
}


class _Recurrent(OperatorDesc):
    """What the three have in common: constraints on the sizes, and activations in an array."""

    GATES: ClassVar[int]

    input_tensor: TensorDesc
    weight_tensor: TensorDesc
    recurrence_tensor: TensorDesc
    activation_descs: tuple[OperatorDesc, ...]
    direction: RecurrentNetworkDirection

    def constraints(self) -> Iterator[Violation]:
        """W [1, directions, gates * hidden, input] and R [1, directions, gates * hidden, hidden] fit X."""
        directions = 2 if self.direction is RecurrentNetworkDirection.BIDIRECTIONAL else 1
        x, w, r = (tensor.sizes for tensor in (self.input_tensor, self.weight_tensor, self.recurrence_tensor))
        rows = self.GATES * r[-1]
        if w != (1, directions, rows, x[-1]) or r != (1, directions, rows, r[-1]):
            yield self.violation("weights_fit_input", f"WeightTensor {w} and RecurrenceTensor {r} do not fit {x}")
        yield from self._size_violations(x, directions, r[-1])
        tensors = [tensor for name, tensor in self.tensors().items() if tensor and name != "SequenceLengthsTensor"]
        if len({tensor.data_type for tensor in tensors}) > 1:
            yield self.violation("same_data_type", "all tensors but SequenceLengthsTensor have one data type")

    def _size_violations(self, x: tuple[int, ...], directions: int, hidden: int) -> Iterator[Violation]:
        """X is [1, sequence, batch, input], a state [1, directions, batch, hidden], the sequence of them
        [sequence, directions, batch, hidden]; biases and peepholes lie one behind the other in the last dimension."""
        if len(x) != 4 or x[0] != 1:
            yield self.violation("input_sizes", f"InputTensor has sizes {x}")
            return
        state = (1, directions, x[2], hidden)
        expected = {
            "BiasTensor": (1, 1, directions, 2 * self.GATES * hidden),
            "HiddenInitTensor": state,
            "CellMemInitTensor": state,
            "SequenceLengthsTensor": (1, 1, 1, x[2]),
            "PeepholeTensor": (1, 1, directions, 3 * hidden),
            "OutputSequenceTensor": (x[1], *state[1:]),
            "OutputSingleTensor": state,
            "OutputCellSingleTensor": state,
        }
        for name, tensor in self.tensors().items():
            if tensor is not None and name in expected and tensor.sizes != expected[name]:
                yield self.violation("sizes_fit", f"{name} has sizes {tensor.sizes} instead of {expected[name]}")


@dataclass(frozen=True)
class Rnn(_Recurrent):
    """One-layer simple recurrent network."""

    NAME: ClassVar[str] = "DML_RNN_OPERATOR_DESC"
    GATES: ClassVar[int] = 1

    input_tensor: TensorDesc
    weight_tensor: TensorDesc
    recurrence_tensor: TensorDesc
    bias_tensor: TensorDesc | None
    hidden_init_tensor: TensorDesc | None
    sequence_lengths_tensor: TensorDesc | None
    output_sequence_tensor: TensorDesc | None
    output_single_tensor: TensorDesc | None
    activation_desc_count: int = field(init=False)
    activation_descs: tuple[OperatorDesc, ...]
    direction: RecurrentNetworkDirection

    def __post_init__(self) -> None:
        object.__setattr__(self, "activation_desc_count", len(self.activation_descs))


@dataclass(frozen=True)
class Gru(_Recurrent):
    """One-layer gated recurrent unit."""

    NAME: ClassVar[str] = "DML_GRU_OPERATOR_DESC"
    GATES: ClassVar[int] = 3

    input_tensor: TensorDesc
    weight_tensor: TensorDesc
    recurrence_tensor: TensorDesc
    bias_tensor: TensorDesc | None
    hidden_init_tensor: TensorDesc | None
    sequence_lengths_tensor: TensorDesc | None
    output_sequence_tensor: TensorDesc | None
    output_single_tensor: TensorDesc | None
    activation_desc_count: int = field(init=False)
    activation_descs: tuple[OperatorDesc, ...]
    direction: RecurrentNetworkDirection
    linear_before_reset: bool

    def __post_init__(self) -> None:
        object.__setattr__(self, "activation_desc_count", len(self.activation_descs))


@dataclass(frozen=True)
class Lstm(_Recurrent):
    """One-layer long short-term memory."""

    NAME: ClassVar[str] = "DML_LSTM_OPERATOR_DESC"
    GATES: ClassVar[int] = 4

    input_tensor: TensorDesc
    weight_tensor: TensorDesc
    recurrence_tensor: TensorDesc
    bias_tensor: TensorDesc | None
    hidden_init_tensor: TensorDesc | None
    cell_mem_init_tensor: TensorDesc | None
    sequence_lengths_tensor: TensorDesc | None
    peephole_tensor: TensorDesc | None
    output_sequence_tensor: TensorDesc | None
    output_single_tensor: TensorDesc | None
    output_cell_single_tensor: TensorDesc | None
    activation_desc_count: int = field(init=False)
    activation_descs: tuple[OperatorDesc, ...]
    direction: RecurrentNetworkDirection
    clip_threshold: float
    use_clip_threshold: bool
    couple_input_forget: bool

    def __post_init__(self) -> None:
        object.__setattr__(self, "activation_desc_count", len(self.activation_descs))


INPUTS = {"RNN": ("X", "W", "R", "B", "initial_h", "sequence_lens"),
          "GRU": ("X", "W", "R", "B", "initial_h", "sequence_lens"),
          "LSTM": ("X", "W", "R", "B", "initial_h", "initial_c", "sequence_lens", "P")}  # fmt: skip
"""ONNX's inputs in the order of the struct."""


def lower_network(node: Node, activations: Sequence[Activation]) -> Lowering | None:
    """The node as DirectML sees it; None where nothing is executed and for Affine, which the DML EP has not."""
    feeds = tuple(_pad_rank(node.value(name)) for name in INPUTS[node.op_type])
    if any(activation.name not in FUSED for activation in activations) or any(
        f is not None and not f.size for f in feeds
    ):
        return None
    tensors = [None if feed is None else TensorDesc.of(feed) for feed in feeds]
    outputs = _outputs(node, DataType.of(node.array("X").dtype))
    descs = tuple(make_fused(a.name, *a.parameters) for a in activations)
    direction = DIRECTIONS[node.text("direction", "forward")]
    if node.op_type == "RNN":
        return Lowering(Rnn(*tensors, *outputs, descs, direction), feeds)  # type: ignore[arg-type, call-arg]
    if node.op_type == "GRU":
        reset = bool(node.integer("linear_before_reset", 0))
        return Lowering(Gru(*tensors, *outputs, descs, direction, reset), feeds)  # type: ignore[arg-type, call-arg]
    clip = node.number("clip", 0.0)
    flags = ("clip" in node.attributes, bool(node.integer("input_forget", 0)))
    return Lowering(Lstm(*tensors, *outputs, descs, direction, clip, *flags), feeds)  # type: ignore[arg-type, call-arg]


def _pad_rank(value: Array | None) -> Array | None:
    """Rank 4; sequence lengths are unsigned."""
    if value is None:
        return None
    unsigned = value.astype("uint32") if value.dtype.kind == "i" else value
    return pad_rank(unsigned)


def _outputs(node: Node, data_type: DataType) -> list[TensorDesc | None]:
    (seq, batch, _), (directions, _, hidden) = node.array("X").shape, node.array("R").shape
    single = (1, directions, batch, hidden)
    sizes = {"Y": (seq, directions, batch, hidden), "Y_h": single, "Y_c": single}
    names = ("Y", "Y_h", "Y_c")[: 3 if node.op_type == "LSTM" else 2]
    return [TensorDesc(data_type, sizes[name]) if name in node.results else None for name in names]
