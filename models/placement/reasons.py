"""Why no change places a node, in a sentence."""

from __future__ import annotations

from epcheck.models.placement import prediction
from epcheck.models.placement.placement import NodePlacement

NOTHING = {
    prediction.SHAPES: (
        "nothing places it: the provider takes it alone, but ONNX Runtime keeps on the CPU what reads only values that "
        "are in the CPU's memory (fallback_cpu_capability.cc); on the provider it would wait for copies"
    ),
    prediction.DOMAIN: (
        "nothing places it: the provider has no kernel of its domain, and ONNX has no definition of it by other "
        "operators"
    ),
    prediction.OPERATOR: (
        "nothing places it: the provider has no kernel of the operator in any version and dtype, and no definition of "
        "it by operators that it has gives the same values"
    ),
    prediction.DTYPE: "nothing places it: with no dtype that the provider takes does it give the same values",
    prediction.VERSION: (
        "none of the versions that were tried places it: the node cannot be written in one of which the provider has a "
        "kernel, or gives other values there; an exporter may write it with other operators"
    ),
    prediction.DECLINED: ("nothing places it: the provider declines every way to write it that gives the same values"),
}
"""Kind of a prediction -> why nothing helps, where no change that was tried does."""

BODY_ALONE = (
    "nothing places it in its body: the provider takes it alone, with what it receives there, but the session keeps it "
    "on the CPU; unroll the loop, or export both branches and select with Where"
)
BODY_SHAPES = (
    "nothing places it: in a body as elsewhere ONNX Runtime keeps on the CPU what computes shapes from values that are "
    "in the CPU's memory (fallback_cpu_capability.cc)"
)
NOT_REACHED = "not tried: it is in a body of If, Loop or Scan that these feeds do not reach in the first execution"
CONTROL = (
    "nothing places it: the provider has no kernel for control flow; the nodes of its bodies are placed one by one"
)
CONTROL_FLOW = ("If", "Loop", "Scan", "SequenceMap")
ALONE = "nothing places it: the provider takes it alone, but not in this model, where it goes with its neighbours"
OTHER = "nothing places it: no other version, dtype, size or definition of it does"


def why_alone(node: NodePlacement) -> str:
    """Why a node that the provider takes alone is not on it in the model: DirectML's provider leaves to ONNX Runtime
    what computes shapes, from integers, and what is in a body may stay with the node that holds it."""
    if "float" not in node.inputs and node.predicted:
        return NOTHING[prediction.SHAPES]
    return BODY_ALONE if node.scope else ALONE


def why_not_tried(node: NodePlacement) -> str:
    """Why a node in a body that was not executed stays where it is, as far as that is known without a trial."""
    return BODY_SHAPES if node.kind == prediction.SHAPES else NOT_REACHED


def why_nothing(node: NodePlacement) -> str:
    """Why none of the changes that were tried places the node."""
    if node.operator.partition("-")[0] in CONTROL_FLOW:
        return CONTROL
    return NOTHING.get(node.kind, OTHER)
