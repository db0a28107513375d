"""Packs: many cases as disjoint subgraphs of one model and one session, where sessions cost more than nodes.

Every name of a case gets a prefix of its own, symbolic dimensions too, so that no two cases share anything but the
session. A pack that succeeds gives each case the outcome it would have had; a pack that fails in any way says nothing
of any case.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from epcheck.conformance.preparation import model_parts
from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.records.outcome import DONE, Outcome
from epcheck.conformance.workers.program.protocol import as_dtype, dtype_name, spans
from epcheck.generators.array import Array


def model(cases: Sequence[PreparedCase]) -> bytes:
    """The serialized ModelProto that holds all of these cases, whose shells are equal; one case is its own pack."""
    if len(cases) == 1:
        return cases[0].model
    return model_parts.join_graphs(cases[0].shell, (case.graph for case in cases))


def prefixes(cases: Sequence[PreparedCase]) -> tuple[str, ...]:
    """What stands before the names of each case in the model of all."""
    return ("",) if len(cases) == 1 else tuple(case.prefix for case in cases)


@dataclass(frozen=True)
class SessionOutputs:
    """What a session answered. tensors: [name, numpy dtype name, shape] of each output, in the order of the body.

    nodes: [provider, operator, node name] of each node that was assigned; None where the runtime keeps no record.
    """

    tensors: Sequence[Sequence[Any]]
    body: bytes
    nodes: Sequence[Sequence[str]] | None


INLINED = "(inlined)"
"""The operator of nodes that stand for a function's body. They have no name, so nobody can say whose they are in a
pack; but where all have gone to one provider, so have those of each case."""


def unpack(cases: Sequence[PreparedCase], outcome: Outcome, answer: SessionOutputs) -> Iterator[Outcome]:
    """The outcome of each case of a session; the seconds are the session's, shared out evenly.

    Those of a pack whose outputs are exactly the expected ones share an outcome without outputs.
    Raises KeyError, TypeError or ValueError where the answer's tensors do not describe its body.
    """
    count = len(cases)
    shared = replace(
        outcome,
        create_s=None if outcome.create_s is None else outcome.create_s / count,
        run_s=None if outcome.run_s is None else outcome.run_s / count,
        shared=count,
    )
    named, nameless = _nodes(cases, outcome, answer)
    steady = not (outcome.unwritten or outcome.repeat_differs)
    alike: dict[tuple[tuple[str, str], ...] | None, Outcome] = {}
    place = start = 0
    for case, prefix in zip(cases, prefixes(cases), strict=True):
        nodes = None if answer.nodes is None else tuple(named.get(prefix[:-1], nameless))
        described, data = case.expected
        after, end = place + len(described), start + len(data)
        can_be_exact = steady and described != []
        if can_be_exact and answer.tensors[place:after] == described and answer.body[start:end] == data and prefix:
            place, start = after, end
            if nodes not in alike:
                alike[nodes] = replace(shared, assignment=nodes, exact=True)
            yield alike[nodes]
            continue
        tensors = answer.tensors[place : place + len(case.outputs)] if prefix else answer.tensors
        outputs, end = _arrays(tensors, answer.body, start, prefix)
        right = _describe_outputs(outputs, case.prefix) == described and answer.body[start:end] == data
        place, start = place + len(tensors), end
        yield replace(
            shared,
            exact=can_be_exact and right,
            outputs=outputs,
            assignment=nodes,
            unwritten=_select_own(outcome.unwritten, prefix),
            repeat_differs=_select_own(outcome.repeat_differs, prefix),
        )
    if place != len(answer.tensors):
        raise ValueError(f"{len(answer.tensors) - place} of its outputs belong to no case")
    if start != len(answer.body):
        raise ValueError(f"{len(answer.body) - start} bytes of the body belong to no case")


def _nodes(
    cases: Sequence[PreparedCase], outcome: Outcome, answer: SessionOutputs
) -> tuple[Mapping[str, Sequence[tuple[str, str]]], tuple[tuple[str, str], ...]]:
    """(provider, operator) of each node under the prefix of its case, without the slash; and what is said of the nodes
    of a case that has none there."""
    count = len(cases)
    own = {cases[0].op_type, *cases[0].beside} if count == 1 else ()
    named: dict[str, list[tuple[str, str]]] = {}
    inlined: set[str] = set()
    for provider, operator, name in answer.nodes or ():
        if name or operator in own:
            named.setdefault(str(name).partition("/")[0] if count > 1 else "", []).append(
                (str(provider), str(operator))
            )
        else:
            inlined.add(str(provider))
    if count > 1 and (outcome.kind != DONE or len(inlined) > 1):
        return named, ()
    return named, tuple((provider, INLINED) for provider in sorted(inlined))


def _arrays(tensors: Sequence[Sequence[Any]], body: bytes, start: int, prefix: str) -> tuple[dict[str, Array], int]:
    """The outputs that begin at `start`, under their names without the prefix, as read-only views of the body; and
    where they end. One that has another prefix is nobody's."""
    found, end = {}, start
    for name, dtype, shape, begin, count in spans(tensors, len(body), start):
        array = np.frombuffer(body, as_dtype(dtype), count, begin).reshape(shape)
        end = begin + array.nbytes
        if name.startswith(prefix):
            found[name.removeprefix(prefix)] = array
    return found, end


def _describe_outputs(outputs: Mapping[str, Array], prefix: str) -> list[list[Any]]:
    """How an answer describes these outputs in a pack."""
    return [[prefix + name, dtype_name(array.dtype), list(array.shape)] for name, array in outputs.items()]


def _select_own(names: Sequence[str], prefix: str) -> tuple[str, ...]:
    return tuple(name.removeprefix(prefix) for name in names if name.startswith(prefix))
