"""Packs: many cases as disjoint subgraphs of one model and one session, where sessions cost more than nodes.

Every name of a case gets the case's prefix, symbolic dimensions too, so that no two share anything but the session. A
pack that succeeds gives each case the outcome it would have had; a pack that fails in any way says nothing of any case.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import onnx

from epcheck.conformance.outcome import DONE, Outcome
from epcheck.generators.case import Array, BuiltCase, Outputs, Refusal, Selection


@dataclass(frozen=True)
class Pack:
    """One model that holds all of its cases. feeds: graph input name -> array."""

    cases: tuple[BuiltCase, ...]
    model: bytes
    feeds: Mapping[str, Array]

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the model's outputs."""
        if len(self.cases) == 1:
            return self.cases[0].node.outputs
        return tuple(_prefix(i) + name for i, case in enumerate(self.cases) for name in case.node.outputs)


def may_be_packed(case: BuiltCase) -> bool:
    """Whether a case can share a session without harm to the others.

    Not one that must be refused, which refuses the whole model; and not one with an empty output: fetched beside it,
    DirectML's provider returns every other output of the session as it found the memory (docs/findings.md).
    """
    match case.truth:
        case Refusal():
            return False
        case Outputs(outputs=outputs):
            return all(output.value.size for output in outputs)
        case Selection(accepted=accepted):
            return all(part.size for part in accepted[0])


def fit_together(one: BuiltCase, other: BuiltCase) -> bool:
    """Whether two cases can share a model: the same operator sets."""
    return (one.opset, one.node.domain) == (other.opset, other.node.domain)


def pack(cases: Sequence[BuiltCase]) -> Pack:
    """The pack of one case or more that fit together; one case is its own pack, unchanged."""
    if len(cases) == 1:
        return Pack(tuple(cases), cases[0].model, cases[0].feeds)
    whole = onnx.ModelProto.FromString(cases[0].model)
    whole.ClearField("graph")
    whole.graph.name = "pack"
    feeds: dict[str, Array] = {}
    for index, case in enumerate(cases):
        prefix = _prefix(index)
        graph = onnx.ModelProto.FromString(case.model).graph
        for node in graph.node:
            node.name = prefix + node.name
            node.input[:] = [prefix + name if name else "" for name in node.input]
            node.output[:] = [prefix + name for name in node.output]
        for value in (*graph.input, *graph.output, *graph.initializer):
            value.name = prefix + value.name
        for value in (*graph.input, *graph.output):
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_param:
                    dim.dim_param = prefix + dim.dim_param
        whole.graph.MergeFrom(graph)
        feeds |= {prefix + name: array for name, array in case.feeds.items()}
    whole.graph.name = "pack"
    return Pack(tuple(cases), whole.SerializeToString(), feeds)


def unpack(packed: Pack, outcome: Outcome, nodes: Sequence[tuple[str, str, str]] | None) -> Iterator[Outcome]:
    """The outcome of each case of a pack that is done; the seconds are the session's, shared out evenly.

    nodes: (provider, operator, node name) of each node that was assigned; a case is assigned what bears its prefix.
    """
    count = len(packed.cases)
    if count == 1 or outcome.kind != DONE:
        assert count == 1, "only a pack that is done can be unpacked"
        yield outcome
        return
    for index in range(count):
        prefix = _prefix(index)

        def own(names: Sequence[str], prefix: str = prefix) -> tuple[str, ...]:
            return tuple(name.removeprefix(prefix) for name in names if name.startswith(prefix))

        yield replace(
            outcome,
            outputs={name.removeprefix(prefix): v for name, v in outcome.outputs.items() if name.startswith(prefix)},
            assignment=None if nodes is None else tuple((p, op) for p, op, name in nodes if name.startswith(prefix)),
            unwritten=own(outcome.unwritten),
            repeat_differs=own(outcome.repeat_differs),
            create_s=None if outcome.create_s is None else outcome.create_s / count,
            run_s=None if outcome.run_s is None else outcome.run_s / count,
            shared=count,
        )


def _prefix(index: int) -> str:
    return f"case{index}/"
