"""The facts of a case as records have them: inputs, outputs, attributes, the DirectML operator it becomes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from epcheck.conformance.records.accuracy import Accuracy
from epcheck.conformance.records.case_facts import CaseFacts, DirectML, Value
from epcheck.conformance.test_data import repro
from epcheck.generators import graph
from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase, Case
from epcheck.generators.directml import FeatureLevel, OperatorDesc
from epcheck.generators.schema import dtype_name
from epcheck.generators.truth import Outputs, Refusal, Selection

DIRECTML_LEVEL = FeatureLevel.DML_FEATURE_LEVEL_6_4
"""What DirectML 1.15, the last redistributable, supports; descriptions are validated at it."""

PREVIEW = 12
"""Elements of an input that a record shows."""


def of(built: BuiltCase, rounded: Accuracy | None = None) -> CaseFacts:
    """The facts of a case. rounded: how far its correctly rounded outputs are from the truth."""
    return CaseFacts(
        **_identity(built.case),
        opset=built.opset,
        types=built.types,
        attributes=dict(built.node.attributes),
        values=_values(built),
        directml=None if built.lowering is None else _directml(built.lowering.description),
        expects=_expected(built),
        rounded=rounded,
    )


def _expected(built: BuiltCase) -> str:
    match built.truth:
        case Refusal(reason):
            return f"a refusal: {reason}"
        case Outputs(undefined=why) if why:
            return f"a refusal, or a result that is right where it is defined: {why}"
    return "the true result"


def of_unbuilt(case: Case) -> CaseFacts:
    """What is known of a case whose generator failed."""
    return CaseFacts(
        **_identity(case),
        opset=0,
        types={},
        attributes={},
        values=(),
        directml=None,
        expects="nothing: its generator failed",
    )


def _identity(case: Case) -> dict[str, Any]:
    """The fields that say which case it is."""
    return {
        "case_id": case.id,
        "operator": case.operator,
        "domain": case.domain,
        "since_version": case.since_version,
        "dtype": case.dtype,
        "sample": case.sample,
        "variant": case.binding,
        "repro": repro.command(case.id, case.folder),
    }


@lru_cache(maxsize=1024)
def _directml(desc: OperatorDesc) -> DirectML:
    """What a record shows of a description; the bindings of a sample share theirs."""
    violations = tuple(f"{v.constraint}: {v.message}" for v in desc.validate(DIRECTML_LEVEL))
    return DirectML(desc.NAME, desc.as_dict(), violations)


def _values(built: BuiltCase) -> tuple[Value, ...]:
    """The node's inputs as the model has them, then its outputs as the truth has them."""
    inputs = [
        Value(o.name, dtype_name(o.value.dtype), o.value.shape, _where(built, o.name), preview(o.value))
        for o in built.node.inputs
        if o is not None
    ]
    if isinstance(built.truth, Outputs):
        outputs = [(output.name, output.value) for output in built.truth.outputs]
    elif isinstance(built.truth, Selection):
        outputs = list(zip(built.node.results, built.truth.accepted[0], strict=True))
    else:
        types = graph.output_types(built.node, built.types)
        return (*inputs, *(Value(name, types[name], (), "output") for name in built.node.results))
    return (*inputs, *(Value(name, dtype_name(v.dtype), v.shape, "output", preview(v)) for name, v in outputs))


def _where(built: BuiltCase, name: str) -> str:
    return "input" if name in built.feeds else "initializer"


def preview(value: Array) -> str:
    """The first elements as text; the number of those left out."""
    flat: Any = np.ravel(value)[:PREVIEW]
    if value.dtype.kind != "f":
        flat = flat.tolist()
    more = value.size - len(flat)
    return ", ".join(map(str, flat)) + (f", … {more} more" if more > 0 else "")
