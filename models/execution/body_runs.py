"""The executions of the bodies of If, Loop, Scan and SequenceMap, each as a model of its own with its feeds.

The nodes of a body can so be run alone, and searched, as those of a main graph are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx

from epcheck.models.graph.feed import Feed
from epcheck.models.graph.subgraph import SubgraphError, of_body
from epcheck.models.graph.wiring import Wiring
from epcheck.models.oracle import control_flow
from epcheck.models.oracle.node import OracleError

CONDITIONAL = "If"


@dataclass(frozen=True)
class BodyRun:
    """One execution of a body. attribute: of the node, that holds the body. turn: how many executions of the node were
    before. model: the body, its inputs and what it reads from outside as inputs. feeds: their values."""

    attribute: str
    turn: int
    model: onnx.ModelProto = field(repr=False)
    feeds: Mapping[str, Feed] = field(repr=False)


def visit(
    wiring: Wiring, node: int, values: Mapping[str, Feed], outputs: Callable[[BodyRun], Mapping[str, Feed]]
) -> None:
    """Call `outputs` with each execution of a node's bodies, in their order; an exception of it ends that.

    values: of all that the node and its bodies read, constants as well. outputs: gives the values of the body's
    outputs, from which the next execution follows. Raises SubgraphError where the executions cannot be had.
    """
    proto = wiring.model.graph.node[node]
    inputs = [values.get(name) if name else None for name in proto.input]
    turn = 0

    def run(body: onnx.GraphProto, inner: Mapping[str, Feed]) -> tuple[Feed, ...]:
        nonlocal turn
        model, feeds = of_body(wiring, body, {**values, **inner})
        found = outputs(BodyRun(_attribute(proto, inputs), turn, model, feeds))
        turn += 1
        missing = [output.name for output in body.output if output.name not in found]
        if missing:
            raise SubgraphError(f"the value '{missing[0]}' of a body is not known")
        return tuple(found[output.name] for output in body.output)

    try:
        control_flow.evaluate(proto, inputs, run)
    except (OracleError, LookupError, TypeError, ValueError, ArithmeticError) as error:
        if isinstance(error, SubgraphError):
            raise
        raise SubgraphError(f"the executions of its bodies are not known: {error}") from None


def _attribute(proto: onnx.NodeProto, inputs: list[Feed]) -> str:
    if proto.op_type != CONDITIONAL:
        return "body"
    return "then_branch" if bool(np.asarray(inputs[0]).reshape(-1)[0]) else "else_branch"
