"""Check one node on the values that it received, by the oracle of its operator.

A floating-point output that is at most a multiple as far from the truth as the baseline's, or as one rounding of its
format, is right (accuracy.deviation). One in float16 or bfloat16 that is farther is wrong, but where a published table
allows the error of its operator: derived bounds of sums in these formats allow more than a fault is worth. In wider
formats, and for integers, the suite's operators give the error that is allowed, and the source of that bound
(generators.bounds). Where that bound permits anything, or no oracle knows the
operator, its dtype or its size, the baseline's outputs for the same values are taken as true: integers and moved data
equal them, floating-point values lie within BASELINE_ULPS of the tensor's range. Signs of zeros that are computed are
not checked: a node that loses one is not what makes a model wrong.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeGuard

import ml_dtypes
import numpy as np
import onnx

from epcheck.conformance.comparison import compare
from epcheck.conformance.comparison.ulp import is_floating
from epcheck.generators import registry, schema
from epcheck.generators.array import Array
from epcheck.generators.citation import CitationKind, source_text
from epcheck.generators.node import qualified_name
from epcheck.generators.serialization.node_proto import read_node
from epcheck.generators.sources import node_tests
from epcheck.generators.truth import Output, Outputs, Selection, Truth, Ulp
from epcheck.models.accuracy.closeness import STEP, distance, farthest, pair_tensors, within
from epcheck.models.accuracy.deviation import (
    MULTIPLE,
    allow_deviation,
    is_one_rounding_away,
    measure_deviation,
    words_of,
)
from epcheck.models.accuracy.metrics import MASKED
from epcheck.models.graph.attributes import read_integer
from epcheck.models.graph.feed import Feed, tensors
from epcheck.models.graph.values import bodies
from epcheck.models.graph.wiring import Wiring
from epcheck.models.oracle import large_weights
from epcheck.models.oracle import node as oracle_node
from epcheck.models.oracle.node import OracleError
from epcheck.models.oracle.rounding import UNITS

WORK = 3e8
"""The suite, which also computes bounds, is asked about nodes of up to so many multiplications; it takes seconds."""

EXACT_WORK = 3e9
"""The oracle of whole models, which computes values alone, is asked about nodes of up to so many."""

COARSE = UNITS["float16"]
"""From this rounding unit on the bound of an operator does not decide: it allows a long sum a large part of itself."""

VAGUE = 0.05
"""Share of the root mean square of an output beyond which a bound does not decide: over the steps of a recurrent
operator it grows without end, and would take any answer for right."""

RARE = 0.01
"""Share of the elements of an 8-bit output that may be one step off: where a value lies between two steps, runtimes
round differently."""

BASELINE_ULPS = 256
"""Epsilons of the range of a tensor by which two honest providers may differ in one node: sums of 2**14 terms in two
orders differ by about the root of that many roundings, and twice that stands between the baseline and the truth."""

ORACLE, BASELINE = "the operator's oracle", "the baseline"
"""Where the expected outputs come from."""

FAR = 16
"""Where the oracle finds the baseline wrong as well, the candidate is wrong if it is so many times farther from the
oracle than the baseline is."""

_OF_TABLES = (CitationKind.PUBLISHED, CitationKind.FLUSH, CitationKind.STATED)
"""Kinds of citations of a bound that no error analysis of a sum adds to."""

NUMBERS = frozenset(schema.NUMPY_NAMES.values())


@dataclass(frozen=True)
class IsolatedNode:
    """A node that is wrong on the values that it should receive. node: its index. error: the `closeness.distance` of
    its outputs `got` from the baseline's. received: the values, without constants."""

    node: int
    check: NodeCheck
    error: float
    got: Mapping[str, Feed] = field(repr=False)
    received: Mapping[str, Feed] = field(repr=False)


@dataclass(frozen=True)
class NodeCheck:
    """The result of checking a node. kind: 'right', or the kind of the difference: 'missing', 'dtype', 'shape',
    'special' (a NaN or an infinity) or 'value'. words: the difference in a sentence. judge: ORACLE or BASELINE. truth:
    the outputs by which it was judged, tensors alone, by the model's names. licence: the published bounds that alone
    make a node right which is beyond the noise of its format; empty for any other."""

    kind: str
    words: str = ""
    judge: str = ""
    truth: tuple[Output, ...] = ()
    licence: str = ""

    @property
    def wrong(self) -> bool:
        """Whether there is a difference."""
        return self.kind != "right"


def check_node(
    wiring: Wiring, node: int, values: Mapping[str, Feed], got: Mapping[str, Feed], baseline: Mapping[str, Feed]
) -> NodeCheck:
    """Check the outputs of a node.

    values: of all its inputs, constants as well. got: its outputs by name; those that nobody reads may be missing, and
    are not checked. baseline: the baseline's outputs for the same values.
    """
    names = [name for name in wiring.list_outputs(node) if name in got]
    exact = _compute_exact(wiring, node, values, got)
    by_noise = _check_by_noise(names, got, baseline, exact, _count_steps(wiring.model.graph.node[node], values))
    if by_noise is not None and by_noise.kind != "value":
        return by_noise
    truth = _find_decisive_truth(wiring, node, values, got)
    if by_noise is not None:
        if not _is_bound_published(truth) or _check_by_oracle(truth, wiring, node, names, got).wrong:
            return by_noise
        return replace(by_noise, kind="right", words="", licence=_cite_licence(truth))
    if truth is not None:
        outputs = _true_outputs(truth, wiring, node, names)
        check = replace(_check_by_oracle(truth, wiring, node, names, got), truth=outputs)
        if not check.wrong and exact and _is_bound_published(truth):
            check = replace(check, licence=_cite_licence(truth))
        if not check.wrong or not _check_by_oracle(truth, wiring, node, names, baseline).wrong:
            return check if check.kind != "value" or not _is_rarely_off(outputs, got, baseline) else (
                replace(check, kind="right", words=""))  # fmt: skip
        true: dict[str, Feed] = {output.name: output.value for output in outputs}
        if farthest(true, got, true) > FAR * farthest(true, baseline, true):
            return check
    return check_by_baseline(names, got, baseline)


def _find_decisive_truth(
    wiring: Wiring, node: int, values: Mapping[str, Feed], got: Mapping[str, Feed]
) -> Outputs | Selection | None:
    """The truth of the suite's operator; None where it has none, or its bound permits anything."""
    truth = _truth(wiring, node, values) if work(wiring, node, values, got) <= WORK else None
    return truth if isinstance(truth, Outputs | Selection) and not permits_anything(truth) else None


def permits_anything(truth: Truth) -> bool:
    """Whether the error that is allowed for half of the elements of some output is more than VAGUE of its size."""
    bounds = ((output, output.bound) for output in truth.outputs) if isinstance(truth, Outputs) else ()
    return any(
        float(np.median(bound.floor)) > VAGUE * _root_mean_square(output.value)
        for output, bound in bounds
        if isinstance(bound, Ulp) and output.value.size and output.value.dtype.kind == "f"
    )


def _is_bound_published(truth: Truth | None) -> TypeGuard[Outputs]:
    """Whether published tables alone say what every output of the operator may be off: it is no sum."""
    bounds = [output.bound for output in truth.outputs] if isinstance(truth, Outputs) else []
    return bool(bounds) and all(
        isinstance(bound, Ulp) and all(c.kind in _OF_TABLES for c in bound.citations) for bound in bounds
    )


def _cite_licence(truth: Outputs) -> str:
    bounds = (output.bound for output in truth.outputs)
    cited = [each for bound in bounds if isinstance(bound, Ulp) for each in bound.citations]
    return source_text(dict.fromkeys(each for each in cited if each.kind == CitationKind.PUBLISHED))


def _compute_exact(
    wiring: Wiring, node: int, values: Mapping[str, Feed], got: Mapping[str, Feed]
) -> Mapping[str, Feed]:
    """The outputs of a node in float64, by the model's names; empty where no oracle computes them."""
    proto = wiring.model.graph.node[node]
    floating = any(isinstance(value, np.ndarray) and is_floating(value.dtype) for value in got.values())
    if not floating or any(bodies(proto)) or work(wiring, node, values, got) > EXACT_WORK:
        return {}
    if any(name and name not in values for name in proto.input):
        return {}
    inputs = [values[name] if name else None for name in proto.input]
    opsets = {("" if e.domain == "ai.onnx" else e.domain): e.version for e in wiring.model.opset_import}
    try:
        with np.errstate(all="ignore"):
            computed = large_weights.evaluate(proto, inputs, partial(oracle_node.evaluate, opsets=opsets)).values
    except OracleError:
        return {}
    return {name: value for name, value in zip(proto.output, computed, strict=False) if name}


def _count_steps(node: onnx.NodeProto, values: Mapping[str, Feed]) -> int:
    """In how many steps a recurrent node rounds its state; 1 for another node."""
    x = values.get(node.input[0]) if node.op_type in ("GRU", "LSTM", "RNN") and node.input else None
    return max(x.shape[read_integer(node, "layout") == 1], 1) if isinstance(x, np.ndarray) and x.ndim > 1 else 1


def _check_by_noise(
    names: list[str], got: Mapping[str, Feed], baseline: Mapping[str, Feed], exact: Mapping[str, Feed], steps: int
) -> NodeCheck | None:
    """The check of a node whose outputs are floating point, by the distance of the baseline and of one rounding from
    the truth, or of as many as it has steps; None where it does not decide: where there is another output, no truth, or
    a wider format that is beyond that."""
    truth = []
    failed = None
    for name in names:
        value, true, other = got[name], exact.get(name), baseline.get(name)
        if not isinstance(value, np.ndarray) or not isinstance(true, np.ndarray) or value.dtype.name not in UNITS:
            return None
        if value.shape != true.shape or (isinstance(other, np.ndarray) and value.dtype != other.dtype):
            return None
        allowed = allow_deviation(other if isinstance(other, np.ndarray) else None, true, value.dtype, steps)
        found = measure_deviation(value, true)
        with np.errstate(over="ignore"):
            rounded = true.astype(value.dtype)
        if found.exceeds(allowed) and UNITS[value.dtype.name] < COARSE:
            return None
        by_element = found.largest > allowed.largest or not found.exceeds(allowed)
        truth.append(
            within(name, rounded, allowed.largest)
            if by_element
            else within(name, rounded, min(allowed.typical, allowed.channel), _root_mean_square(true))
        )
        if failed is None and found.exceeds(allowed):
            kind = "special" if math.isinf(found.largest) else "value"
            failed = NodeCheck(kind, f"'{name}' is {words_of(found, allowed)}", ORACLE)
    return replace(failed or NodeCheck("right", judge=ORACLE), truth=tuple(truth)) if names else None


def _root_mean_square(value: Array) -> float:
    wide = value.astype(np.float64)
    usual = wide[np.isfinite(wide) & (np.abs(wide) < MASKED)]
    return float(np.sqrt(np.mean(usual**2))) if usual.size else 1.0


def _is_rarely_off(truth: tuple[Output, ...], got: Mapping[str, Feed], baseline: Mapping[str, Feed]) -> bool:
    """Whether every output has 8 bits, and is one step off at most, in no more elements than MULTIPLE times as many as
    the baseline, or RARE."""
    for output in truth:
        value, other = got.get(output.name), baseline.get(output.name)
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "iu" or value.dtype.itemsize > 1:
            return False
        apart = np.abs(value.astype(np.int64) - output.value.astype(np.int64))
        own = float(np.mean(other != output.value)) if isinstance(other, np.ndarray) else 0.0
        if apart.max(initial=0) > 1 or float(np.mean(apart > 0)) > max(MULTIPLE * own, RARE):
            return False
    return True


def is_like(value: Feed | None, other: Feed | None) -> bool:
    """Whether two outputs of the same node are so near to each other that neither can be wrong where the other is
    right: equal, or a few roundings of their format apart."""
    if not isinstance(value, np.ndarray) or not isinstance(other, np.ndarray):
        return kind_of_difference(value, other) == "right" if value is not None else other is None
    if value.dtype != other.dtype or value.shape != other.shape:
        return False
    if value.dtype.name in UNITS:
        return is_one_rounding_away(value, other)
    return bool(np.array_equal(value, other))


def check_by_baseline(names: list[str], got: Mapping[str, Feed], baseline: Mapping[str, Feed]) -> NodeCheck:
    """Check outputs by those of the baseline, within the bound that the module's docstring gives."""
    truth = tuple(
        within(name, value, _find_tolerance(value), _range(value))
        for name in names
        if isinstance(value := baseline.get(name), np.ndarray)
    )
    for name in names:
        kind = kind_of_difference(baseline.get(name), got.get(name))
        if kind == "right":
            continue
        apart = _of_range(baseline[name], got[name]) if kind == "value" else math.inf
        if apart > _find_tolerance(got[name]):
            return NodeCheck(kind, f"'{name}' is {apart:.3g} of its range away from the baseline", BASELINE, truth)
    return NodeCheck("right", judge=BASELINE, truth=truth)


def kind_of_difference(expected: Feed | None, got: Feed | None) -> str:
    """The kind of the difference between two values, as in `NodeCheck.kind`: 'right' where there is none."""
    if expected is None or got is None:
        return "missing"
    if not isinstance(expected, np.ndarray) or not isinstance(got, np.ndarray):
        pairs = pair_tensors(expected, got)
        kinds = ["shape"] if pairs is None else [kind_of_difference(*pair) for pair in pairs]
        return next((kind for kind in kinds if kind != "right"), "right")
    if expected.dtype != got.dtype:
        return "dtype"
    if expected.shape != got.shape:
        return "shape"
    apart = distance(expected, got)
    return "right" if apart == 0 else "special" if math.isinf(apart) else "value"


def is_random(wiring: Wiring, node: int) -> bool:
    """Whether ONNX lets the node, or a node in its bodies, draw random numbers, so that two runs may differ."""
    pending = [wiring.model.graph.node[node]]
    for proto in pending:  # which grows on the way
        inner = [node for _, body in bodies(proto) for node in body.node]
        pending.extend(inner)
        definition = None if inner else definition_of(wiring, proto)
        if definition is None or (proto.op_type == "Dropout" and len(proto.input) < node_tests.WITH_TRAINING_MODE):
            continue
        determinism = definition.node_determinism  # type: ignore[attr-defined]  # which onnx's stubs lack
        if determinism == onnx.defs.OpSchema.NodeDeterminism.NonDeterministic:
            return True
    return False


def work(wiring: Wiring, node: int, values: Mapping[str, Feed], got: Mapping[str, Feed]) -> float:
    """An estimate of the multiplications of a node. For a matrix product [m, k] x [k, n] they are the square root of
    the product of the three sizes; other operators need fewer."""
    inputs = sorted((_size(values[name]) for name in wiring.reads[node] if name in values), reverse=True)[:2]
    output = max((_size(got[name]) for name in wiring.list_outputs(node) if name in got), default=0)
    return math.sqrt(math.prod(map(float, (*inputs, output)))) if len(inputs) == 2 else float(max([*inputs, output]))


def _size(value: Feed) -> int:
    return sum(tensor.size for tensor in tensors(value))


def _of_range(expected: Feed, got: Feed) -> float:
    """The largest difference relative to the largest element: a sum that cancels is only as exact as its terms."""
    if not isinstance(expected, np.ndarray) or not isinstance(got, np.ndarray):
        return max((_of_range(*pair) for pair in pair_tensors(expected, got) or ()), default=0.0)
    if expected.dtype.kind not in "biuf" and expected.dtype != ml_dtypes.bfloat16:
        return distance(expected, got)
    true, value = expected.astype(np.float64), got.astype(np.float64)
    return float(np.abs(true - value)[np.isfinite(true)].max(initial=0.0)) / _range(expected)


def _range(expected: Array) -> float:
    """The largest finite magnitude of an array of numbers that is no mask; 1 where all are 0."""
    if expected.dtype.kind not in "biuf" and expected.dtype != ml_dtypes.bfloat16:
        return 1.0
    true = np.abs(expected.astype(np.float64))
    return float(true[np.isfinite(true) & (true < MASKED)].max(initial=0.0)) or 1.0


def _find_tolerance(value: Feed) -> float:
    if not isinstance(value, np.ndarray):
        return min(map(_find_tolerance, tensors(value)), default=0.0)
    dtype = value.dtype
    if dtype.kind == "f" or dtype == ml_dtypes.bfloat16:
        return BASELINE_ULPS * float(ml_dtypes.finfo(dtype).eps)  # type: ignore[no-untyped-call]
    return STEP if dtype.kind in "iu" and dtype.itemsize == 1 else 0.0


def _check_by_oracle(
    truth: Outputs | Selection, wiring: Wiring, node: int, names: list[str], got: Mapping[str, Feed]
) -> NodeCheck:
    """truth: names outputs as the schema does, not as the model."""
    proto = wiring.model.graph.node[node]
    definition = definition_of(wiring, proto)
    assert definition is not None
    formals = read_node(proto, definition, [np.empty(0)] * len(proto.input)).outputs
    model_name = {formal: own for formal, own in zip(formals, proto.output, strict=True) if own in names}
    outputs = {formal: value for formal, own in model_name.items() if isinstance(value := got.get(own), np.ndarray)}
    for difference in compare.differences(truth, outputs):
        own = model_name.get(difference.output)
        if own is None:  # an output that the session did not return
            continue
        expected = _find_expected_value(truth, difference.output)
        kind = kind_of_difference(expected, outputs.get(difference.output))
        return NodeCheck("value" if kind == "right" else kind, f"'{own}': {difference.reason}", ORACLE)
    return NodeCheck("right", judge=ORACLE)


def _true_outputs(truth: Outputs | Selection, wiring: Wiring, node: int, names: list[str]) -> tuple[Output, ...]:
    """The expected outputs by the model's names."""
    made = filter(None, wiring.model.graph.node[node].output)
    outputs = truth.outputs if isinstance(truth, Outputs) else tuple(map(Output, truth.names, truth.accepted[0]))
    named = (replace(output, name=name) for name, output in zip(made, outputs, strict=False))
    return tuple(output for output in named if output.name in names)


def _find_expected_value(truth: Outputs | Selection, name: str) -> Array | None:
    if isinstance(truth, Selection):
        return dict(zip(truth.names, truth.accepted[0], strict=True)).get(name)
    return next((output.value for output in truth.outputs if output.name == name), None)


def _truth(wiring: Wiring, node: int, values: Mapping[str, Feed]) -> Truth | None:
    proto = wiring.model.graph.node[node]
    definition = definition_of(wiring, proto)
    operator = registry.all_operators().get(qualified_name(proto.op_type, proto.domain))
    if definition is None or operator is None or any(bodies(proto)) or is_random(wiring, node):
        return None
    inputs = [values.get(name) for name in proto.input if name]
    if any(not isinstance(value, np.ndarray) or value.dtype.name not in NUMBERS for value in inputs):
        return None
    try:
        with np.errstate(all="ignore"):
            truth = operator.truth(read_node(proto, definition, inputs))
    except Exception:  # an oracle of the suite may meet attributes that no case has
        return None
    if not isinstance(truth, Outputs):
        return truth
    return Outputs(tuple(replace(output, zeros=None) for output in truth.outputs))


def definition_of(wiring: Wiring, proto: onnx.NodeProto) -> onnx.defs.OpSchema | None:
    """The schema of the operator in the model's opset; None for an unknown operator and for a local function."""
    domain = "" if proto.domain == "ai.onnx" else proto.domain
    opsets = {("" if e.domain == "ai.onnx" else e.domain): e.version for e in wiring.model.opset_import}
    if domain not in opsets or any((f.domain, f.name) == (domain, proto.op_type) for f in wiring.model.functions):
        return None
    try:
        versions = [v for v in schema.since_versions(proto.op_type, domain) if v <= opsets[domain]]
        return schema.schema(proto.op_type, versions[-1], domain) if versions else None
    except KeyError:
        return None
