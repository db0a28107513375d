"""com.microsoft::MoEGroupRouter: the experts of each token, from the best groups of experts.

Source: ONNX Runtime's ContribOperators.md. Scores that are equal, or nearer than float32 tells, may be taken in any
order: the data have none. What becomes of more experts than the groups have, the page does not say, and no case asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds
from epcheck.generators.bounds.estimate import SOURCE, Estimate, Precision, exact
from epcheck.generators.case import CaseContext, expect_refusal
from epcheck.generators.families.drawn import MICROSOFT, Drawn, DrawnSample
from epcheck.generators.node import Attribute, Node
from epcheck.generators.oracle_math.activations import sigmoid
from epcheck.generators.truth import Outputs, Refusal, Truth

DECLARES = ("com.microsoft::MoEGroupRouter",)

SINGLE = Precision(np.dtype(np.float32))
GAP = 1e-3
"""How far apart the scores of the data are where one is chosen and the other is not."""
TRIES = 50
"""For each row of them, at most."""
FULL = ("selection_scores", "router_weights")
NO_SCALAR = "logits have an axis of experts, whose number is that of expert_bias"


@dataclass(frozen=True, kw_only=True)
class RouterSample(DrawnSample):
    """shape: of logits. width: of the activations, where there is a projection. size: of the logits."""

    shape: tuple[int, ...] = (5, 16)
    width: int = 0
    size: float = 3.0
    short_bias: bool = False


def _sample(name: str, groups: int, kept: int, each: int, top: int, **members: object) -> RouterSample:
    attributes: Mapping[str, Attribute] = {
        "n_group": groups, "topk_group": kept, "group_topk": each, "top_k": top, "router_sentinel": -1000.0,
    }  # fmt: skip
    extra: Mapping[str, Attribute] = members.pop("attributes", {})  # type: ignore[assignment]
    return RouterSample(name=name, attributes={**attributes, **extra}, outputs=1, **members)  # type: ignore[arg-type]


def samples() -> Iterator[RouterSample]:
    for groups, kept, each, top in ((4, 2, 2, 3), (1, 1, 1, 4), (4, 1, 2, 2), (8, 4, 1, 4), (2, 2, 3, 16), (4, 2, 9, 5),
                                    (16, 3, 1, 3), (4, 4, 2, 1)):  # fmt: skip
        name = f"groups_{groups}_kept_{kept}_each_{each}_top_{top}"
        yield _sample(name, groups, kept, each, top, every_dtype=(groups, kept) == (4, 2))
    for sentinel, name in ((0.0, "0"), (-np.inf, "minus_infinity"), (7.5, "7_5")):
        yield _sample(f"sentinel_{name}", 4, 2, 2, 3, attributes={"router_sentinel": sentinel})
    yield _sample("very_negative", 4, 2, 2, 3, size=40.0)
    for shape in ((1, 16), (2, 3, 16), (2, 2, 3, 16), (257, 16), (3, 256)):
        yield _sample("shape_" + "_".join(map(str, shape)), 8, 3, 2, 4, shape=shape, rank=len(shape))
    alone: Mapping[str, Attribute] = {"n_group": 1, "topk_group": 1, "top_k": 2}
    scores = RouterSample(name="full_scores", attributes=alone, outputs=3, omitted=("router_probs",), every_dtype=True)
    yield scores
    yield RouterSample(name="projection", attributes=alone, outputs=3, omitted=("router_probs",), every_dtype=True,
                       present=("projection_weight",), shape=(3, 8), width=256)  # fmt: skip
    yield expect_refusal(_sample("groups_do_not_divide", 3, 2, 2, 3))
    yield expect_refusal(_sample("more_groups_than_there_are", 4, 5, 2, 3))
    yield expect_refusal(_sample("bias_of_another_length", 4, 2, 2, 3, short_bias=True))


def draw(sample: RouterSample, context: CaseContext) -> Mapping[str, Array]:
    """Drawn again until the choice is a clear one."""
    rng, dtype, experts = context.rng, context.dtype, sample.shape[-1]
    node = Node("MoEGroupRouter", MICROSOFT, context.since_version, (), (), sample.attributes)
    own = _read_counts(node)
    rows: list[Array] = []
    bias = rng.uniform(-0.2, 0.2, experts - sample.short_bias).astype(np.float32)
    for _ in range(TRIES * int(np.prod(sample.shape[:-1]))):
        row = (sample.size * rng.uniform(-1, 1, experts) - (sample.size if sample.size > 10 else 0)).astype(dtype)
        if sample.refused or sample.omitted or _choose(sigmoid(row.astype(np.float64)) + bias, **own)[1]:
            rows.append(row)
        if len(rows) == int(np.prod(sample.shape[:-1])):
            break
    logits = np.array(rows, dtype).reshape(sample.shape)
    if sample.width:
        logits = rng.uniform(-1, 1, (*sample.shape[:-1], sample.width)).astype(dtype)
    projection = (rng.uniform(-1, 1, (experts, sample.width or 1)) / 8).astype(dtype)
    return {"logits": logits, "expert_bias": bias, "projection_weight": projection}


def _read_counts(node: Node) -> dict[str, int]:
    return {name: node.integer(name, 1) for name in ("n_group", "topk_group", "group_topk", "top_k")}


def _choose(biased: Array, n_group: int, topk_group: int, group_topk: int, top_k: int) -> tuple[Array, bool]:
    """(which experts of a token are chosen, whether by a clear distance)."""
    grouped = biased.reshape(n_group, -1)
    best = np.sort(grouped, axis=1)[:, ::-1][:, :group_topk].sum(1)
    order = np.argsort(-best)
    clear = topk_group == n_group or bool(best[order[topk_group - 1]] - best[order[topk_group]] > GAP)
    allowed = np.full(grouped.shape, -np.inf)
    allowed[order[:topk_group]] = grouped[order[:topk_group]]
    flat = allowed.reshape(-1)
    ranked = np.argsort(-flat)
    chosen = np.zeros(flat.shape, bool)
    chosen[ranked[:top_k]] = True
    rest = flat[ranked[top_k]] if top_k < flat.size else -np.inf
    return chosen, clear and bool(flat[ranked[top_k - 1]] - rest > GAP)


def _break_rule(node: Node, experts: int) -> str:
    groups, kept = node.integer("n_group", 1), node.integer("topk_group", 1)
    if node.array("expert_bias").shape != (experts,):
        return f"expert_bias must have {experts} elements"
    divides = experts % groups == 0 and kept <= groups
    return "" if divides else f"{groups} groups must divide {experts} experts, and be at least the {kept} that are kept"


def _apply_sigmoid(x: Estimate) -> Estimate:
    """In float32: exp is off by 3 + 2 |x| ULP, the sum and the division by 3.5."""
    value = sigmoid(x.value)
    relative = (7 + 2 * np.abs(x.value)) * 2 * SINGLE.unit
    return Estimate(value, value * np.expm1(np.minimum(relative + x.error, 1.0)) + SINGLE.tiny)


def truth(node: Node) -> Truth:
    """The formula of the page: a sigmoid, sums, a choice, a logarithm."""
    logits, weights, bias = node.array("logits"), node.value("projection_weight"), node.array("expert_bias")
    x = exact(logits.reshape(-1, logits.shape[-1]))
    if weights is not None:
        x = SINGLE.dot(x, exact(weights.T))
    experts = x.value.shape[-1]
    if why := _break_rule(node, experts):
        return Refusal(why)
    scores = _apply_sigmoid(x)
    if "router_probs" not in node.results:
        whole = exact(np.broadcast_to(bias, scores.value.shape))
        return Outputs((SINGLE.output(FULL[0], SINGLE.add(scores, whole)), SINGLE.output(FULL[1], scores)))
    own = _read_counts(node)
    choices = [_choose(row + bias, **own) for row in scores.value]
    assert all(clear for _, clear in choices), "scores are so near that either may be chosen"
    chosen = np.array([choice for choice, _ in choices]).reshape(scores.value.shape)
    with np.errstate(divide="ignore"):
        logarithm = np.log(np.maximum(scores.value, 1e-20))
    error = scores.error / np.maximum(scores.value, 1e-20) + 6 * SINGLE.unit * np.abs(logarithm)
    value = np.where(chosen, logarithm, node.number("router_sentinel", 0.0))
    bound = bounds.ulp(2.0, (SOURCE,), logits.dtype, np.where(chosen, error, 0.0))
    return Outputs((bounds.round_output("router_probs", value, logits.dtype, bound),))


OPERATORS = (
    Drawn("MoEGroupRouter", samples, draw, truth, ("expert_bias", "projection_weight")).declare(
        without_rank_dtypes=NO_SCALAR
    ),
)
