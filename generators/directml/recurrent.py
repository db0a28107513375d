"""DML_RNN_, DML_GRU_ and DML_LSTM_OPERATOR_DESC (ns-directml-dml_rnn_operator_desc and so on)."""

from __future__ import annotations

from epcheck.generators.activations import Activation
from epcheck.generators.case import Lowering, Node


def lowered(node: Node, activations: list[Activation]) -> Lowering | None:
    return None
