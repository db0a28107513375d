"""The sample of cases whose sessions are used as applications use them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from epcheck.conformance.targets.variants import EXIT, USES, Axis
from epcheck.generators.case import Case

OPERATORS = (
    "Add", "MatMul", "Gemm", "Conv", "ConvTranspose", "MaxPool", "AveragePool", "GlobalAveragePool",
    "BatchNormalization", "LayerNormalization", "InstanceNormalization", "Softmax", "Relu", "Sigmoid", "Gelu", "Gather",
    "ScatterElements", "Slice", "Split", "Concat", "Transpose", "Pad", "Resize", "ReduceMean", "ArgMax", "TopK",
    "NonZero", "Where", "Cast", "CumSum", "LSTM", "If", "QuantizeLinear", "DequantizeLinear", "QLinearConv",
    "MatMulInteger", "com.microsoft::MultiHeadAttention", "com.microsoft::GroupQueryAttention",
    "com.microsoft::SkipLayerNormalization", "com.microsoft::MatMulNBits",
)  # fmt: skip
"""Those that models have most, of each way in which a kernel keeps something: weights, workspaces, sizes, tables."""

OF_GRAPHS = ("MatMul", "Conv", "Gemm", "Add", "LayerNormalization", "Relu", "Softmax", "Gelu")
"""The last operators of graphs, whose weights are initializers."""

FEW = frozenset(
    ("MatMul", "Conv", "Softmax", "LayerNormalization", "TopK", "Slice", "LSTM", "QLinearConv", "Resize", "Cast")
)
"""The operators of the cases for axes that take a process or more of each variant that differs."""

OF_FEW = (Axis.THREADS, Axis.LIFECYCLE, Axis.OPTIONS)
"""Those axes. What differs there mostly differs for every operator."""

BINDINGS = ("runtime", "initializer")
"""How the parameters of a sampled case enter: one case of each operator for each."""


def choose_of_all(cases: Iterable[Case]) -> Mapping[str, frozenset[str]]:
    """Where sessions of all cases are used: the use that starts a process for each -> the ids of its sample."""
    return {EXIT: choose_sample(cases)[Axis.LIFECYCLE]}


def choose_sample(cases: Iterable[Case]) -> Mapping[str, frozenset[str]]:
    """Axis of use -> the ids of its sample: of each of OPERATORS, in its newest version that is there, a declared case
    for each of BINDINGS, in float32 where there is one, and a graph for each of OF_GRAPHS; of OF_FEW one of each
    of FEW. Of several cases the one whose id has the SHA-256 that comes first."""
    chosen: dict[tuple[str, str], tuple[tuple[int, bool, str], str]] = {}
    for case in cases:
        is_declared = case.source == "declared" and case.operator_key in OPERATORS and case.binding in BINDINGS
        if not is_declared and (case.source != "graphs" or case.operator_key not in OF_GRAPHS):
            continue
        digest = hashlib.sha256(case.id.encode()).hexdigest()
        rank = -case.since_version, not case.dtype.startswith("float32"), digest
        key = case.operator_key, case.binding if is_declared else case.source
        if key not in chosen or rank < chosen[key][0]:
            chosen[key] = rank, case.id
    bound = {operator: binding for operator, binding in sorted(chosen) if operator in FEW and binding in BINDINGS}
    few = frozenset(chosen[key][1] for key in bound.items())
    every = frozenset(case_id for _, case_id in chosen.values())
    return {axis: few if axis in OF_FEW else every for axis in USES}
