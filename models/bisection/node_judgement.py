"""Whether one node is wrong, given the values that it received: by the oracle that judges single operators.

The suite's operators say for any node what is right and how far from it is allowed, and who says so
(generators.bounds). Where none knows the operator, its dtype or its size, the baseline on the same values is what is
right: integers and moved data equal it, floating-point values lie within BASELINE_ULPS of the tensor's range.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import onnx

from epcheck.conformance.comparison import compare
from epcheck.generators import onnx_tests, schema, suite
from epcheck.generators.array import Array
from epcheck.generators.truth import Outputs, Selection, Truth
from epcheck.models.accuracy.closeness import STEP, distance, farthest, paired
from epcheck.models.accuracy.metrics import MASKED
from epcheck.models.graph.feed import Feed, tensors
from epcheck.models.graph.values import bodies
from epcheck.models.graph.wiring import Wiring

WORK = 3e8
"""Multiplications, about, up to which an oracle in numpy is asked; it takes seconds for so many."""

BASELINE_ULPS = 256
"""Epsilons of the range of a tensor by which two honest providers may differ in one node: sums of 2**14 terms in two
orders differ by about the root of that many roundings, and twice that stands between the baseline and the truth."""

ORACLE, BASELINE = "the operator's oracle", "the baseline"
"""Who says what is right."""

FAR = 16
"""A candidate is wrong although the oracle does not agree with the baseline either, where it is so many times farther
from the oracle than that."""

NUMBERS = frozenset(schema.NUMPY_NAMES.values())


@dataclass(frozen=True)
class Judgement:
    """What is said of a node. kind: 'right', or of what kind the difference is: 'missing', 'dtype', 'shape', 'special'
    (a NaN or an infinity), 'value'. words: the difference. judge: who says what is right."""

    kind: str
    words: str = ""
    judge: str = ""

    @property
    def wrong(self) -> bool:
        """Whether the node is."""
        return self.kind != "right"


def judge(
    wiring: Wiring, node: int, values: Mapping[str, Feed], got: Mapping[str, Feed], baseline: Mapping[str, Feed]
) -> Judgement:
    """Judge what a node made. values: all that it reads, constants as well. baseline: what that makes of the same.

    Only what is in `got` is judged: what the node makes and nobody reads may be missing there.
    """
    asked = [name for name in wiring.made_by(node) if name in got]
    truth = _truth(wiring, node, values) if work(wiring, node, values, got) <= WORK else None
    if isinstance(truth, Outputs | Selection):
        said = _by_oracle(truth, wiring, node, asked, got)
        if not said.wrong or not _by_oracle(truth, wiring, node, asked, baseline).wrong:
            return said
        true = _true(truth, wiring, node, asked)
        if farthest(true, got, true) > FAR * farthest(true, baseline, true):
            return said
    return by_baseline(asked, got, baseline)


def by_baseline(names: list[str], got: Mapping[str, Feed], baseline: Mapping[str, Feed]) -> Judgement:
    """Judge values by those of the baseline; see above for what is allowed."""
    for name in names:
        kind = kind_of_difference(baseline.get(name), got.get(name))
        if kind == "right":
            continue
        apart = _of_range(baseline[name], got[name]) if kind == "value" else math.inf
        if apart > _allowed(got[name]):
            return Judgement(kind, f"'{name}' is {apart:.3g} of its range away from the baseline", BASELINE)
    return Judgement("right", judge=BASELINE)


def kind_of_difference(expected: Feed | None, got: Feed | None) -> str:
    """Of what kind the difference between two values is: 'right' where there is none."""
    if expected is None or got is None:
        return "missing"
    if not isinstance(expected, np.ndarray) or not isinstance(got, np.ndarray):
        pairs = paired(expected, got)
        kinds = ["shape"] if pairs is None else [kind_of_difference(*pair) for pair in pairs]
        return next((kind for kind in kinds if kind != "right"), "right")
    if expected.dtype != got.dtype:
        return "dtype"
    if expected.shape != got.shape:
        return "shape"
    apart = distance(expected, got)
    return "right" if apart == 0 else "special" if math.isinf(apart) else "value"


def is_random(wiring: Wiring, node: int) -> bool:
    """Whether the standard lets the node, or one in its bodies, draw random numbers, so that no two runs need agree."""
    pending = [wiring.model.graph.node[node]]
    for proto in pending:  # which grows on the way
        inner = [one for _, body in bodies(proto) for one in body.node]
        pending.extend(inner)
        definition = None if inner else _definition(wiring, proto)
        if definition is None or (proto.op_type == "Dropout" and len(proto.input) < onnx_tests.WITH_TRAINING_MODE):
            continue
        determinism = definition.node_determinism  # type: ignore[attr-defined]  # which onnx's stubs lack
        if determinism == onnx.defs.OpSchema.NodeDeterminism.NonDeterministic:
            return True
    return False


def work(wiring: Wiring, node: int, values: Mapping[str, Feed], got: Mapping[str, Feed]) -> float:
    """About how many multiplications a node is: those of a matrix product [m, k] x [k, n] are the root of the product
    of the three sizes, and other operators need fewer."""
    inputs = sorted((_size(values[name]) for name in wiring.reads[node] if name in values), reverse=True)[:2]
    output = max((_size(got[name]) for name in wiring.made_by(node) if name in got), default=0)
    return math.sqrt(math.prod(map(float, (*inputs, output)))) if len(inputs) == 2 else float(max([*inputs, output]))


def _size(value: Feed) -> int:
    return sum(one.size for one in tensors(value))


def _of_range(expected: Feed, got: Feed) -> float:
    """The largest difference relative to the largest element: sums that cancel are no more exact than their terms."""
    if not isinstance(expected, np.ndarray) or not isinstance(got, np.ndarray):
        return max((_of_range(*pair) for pair in paired(expected, got) or ()), default=0.0)
    if expected.dtype.kind not in "biuf" and expected.dtype != ml_dtypes.bfloat16:
        return distance(expected, got)
    one, other = expected.astype(np.float64), got.astype(np.float64)
    finite = np.isfinite(one)
    range_ = float(np.abs(one[finite & (np.abs(one) < MASKED)]).max(initial=0.0))
    return float(np.abs(one - other)[finite].max(initial=0.0)) / (range_ or 1.0)


def _allowed(value: Feed) -> float:
    if not isinstance(value, np.ndarray):
        return min(map(_allowed, tensors(value)), default=0.0)
    dtype = value.dtype
    if dtype.kind == "f" or dtype == ml_dtypes.bfloat16:
        return BASELINE_ULPS * float(ml_dtypes.finfo(dtype).eps)  # type: ignore[no-untyped-call]
    return STEP if dtype.kind in "iu" and dtype.itemsize == 1 else 0.0


def _by_oracle(
    truth: Outputs | Selection, wiring: Wiring, node: int, asked: list[str], got: Mapping[str, Feed]
) -> Judgement:
    """The truth names outputs as the schema does; the model names them as it likes."""
    proto = wiring.model.graph.node[node]
    definition = _definition(wiring, proto)
    assert definition is not None
    formals = onnx_tests.node_of(proto, definition, [np.empty(0)] * len(proto.input)).outputs
    model_name = {formal: own for formal, own in zip(formals, proto.output, strict=True) if own in asked}
    told = {formal: value for formal, own in model_name.items() if isinstance(value := got.get(own), np.ndarray)}
    for difference in compare.differences(truth, told):
        own = model_name.get(difference.output)
        if own is None:  # an output that nobody asked for
            continue
        expected = _expected(truth, difference.output)
        kind = kind_of_difference(expected, told.get(difference.output))
        return Judgement("value" if kind == "right" else kind, f"'{own}': {difference.reason}", ORACLE)
    return Judgement("right", judge=ORACLE)


def _true(truth: Outputs | Selection, wiring: Wiring, node: int, asked: list[str]) -> dict[str, Feed]:
    """What the oracle expects, by the model's names."""
    made = wiring.model.graph.node[node].output
    values = [output.value for output in truth.outputs] if isinstance(truth, Outputs) else truth.accepted[0]
    return {name: value for name, value in zip(filter(None, made), values, strict=False) if name in asked}


def _expected(truth: Outputs | Selection, name: str) -> Array | None:
    if isinstance(truth, Selection):
        return dict(zip(truth.names, truth.accepted[0], strict=True)).get(name)
    return next((output.value for output in truth.outputs if output.name == name), None)


def _truth(wiring: Wiring, node: int, values: Mapping[str, Feed]) -> Truth | None:
    proto = wiring.model.graph.node[node]
    definition = _definition(wiring, proto)
    operator = suite.all_operators().get(f"{proto.domain}::{proto.op_type}" if proto.domain else proto.op_type)
    if definition is None or operator is None or any(bodies(proto)) or is_random(wiring, node):
        return None
    given = [values.get(name) for name in proto.input if name]
    if any(not isinstance(value, np.ndarray) or value.dtype.name not in NUMBERS for value in given):
        return None
    try:
        with np.errstate(all="ignore"):
            return operator.truth(onnx_tests.node_of(proto, definition, given))
    except Exception:  # a stranger's node is not one of the suite's: an oracle that cannot read it has no opinion
        return None


def _definition(wiring: Wiring, proto: onnx.NodeProto) -> onnx.defs.OpSchema | None:
    """The schema that the model's opset gives the operator; None for one that nobody knows, or that the model
    defines."""
    domain = "" if proto.domain == "ai.onnx" else proto.domain
    opsets = {("" if one.domain == "ai.onnx" else one.domain): one.version for one in wiring.model.opset_import}
    if domain not in opsets or any((f.domain, f.name) == (domain, proto.op_type) for f in wiring.model.functions):
        return None
    try:
        versions = [v for v in schema.since_versions(proto.op_type, domain) if v <= opsets[domain]]
        return schema.schema(proto.op_type, versions[-1], domain) if versions else None
    except KeyError:
        return None
