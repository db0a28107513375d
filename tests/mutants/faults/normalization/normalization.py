"""Faults of the normalizations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase
from epcheck.generators.node import Attribute, Node
from tests.mutants.mutant import Mutant, attribute, inputs, misread, swapped

BATCH, INSTANCE, LAYER = "BatchNormalization", "InstanceNormalization", "LayerNormalization"
SIMPLIFIED, RMS, GROUP = "SimplifiedLayerNormalization", "RMSNormalization", "GroupNormalization"
MVN, LP = "MeanVarianceNormalization", "LpNormalization"
SKIP, SKIP_SIMPLIFIED = (f"com.microsoft::{name}" for name in ("SkipLayerNormalization",
                                                              "SkipSimplifiedLayerNormalization"))  # fmt: skip
GROUP_NORM = "com.microsoft::GroupNorm"
FUSED = tuple(f"com.microsoft.dml::DmlFused{name}" for name in (BATCH, INSTANCE, MVN))


def changed(operator: str, what: str, attributes: dict[str, Attribute | None]) -> Mutant:
    """The provider takes attributes for other values where they are given (None: does not see them)."""

    def change(node: Node) -> Node:
        others = {key: attributes.get(key, value) for key, value in node.attributes.items()}
        return replace(node, attributes={key: value for key, value in others.items() if value is not None})

    return misread(operator, what, change)


def without(operator: str, name: str) -> Mutant:
    """The provider does not see an input."""

    def change(node: Node) -> Node:
        return replace(node, inputs=tuple(None if o is not None and o.name == name else o for o in node.inputs))

    return misread(operator, f"{name} is ignored", change)


def of_operator(operator: str, other: str, what: str) -> Mutant:
    return misread(operator, what, lambda node: replace(node, op_type=other))


def of_input(operator: str, name: str, what: str, change: Callable[[Array], Array]) -> Mutant:
    return inputs(operator, what, lambda read, value: change(value) if read == name else value)


def window_below(node: Node) -> Node:
    """An even window reaches further down: that is the right one of the channels in reverse."""
    return replace(
        node, inputs=tuple(None if o is None else replace(o, value=np.flip(o.value, 1)) for o in node.inputs)
    )


def _window_reaches_down() -> Mutant:
    turned = misread("LRN", "an even window reaches further down", window_below)

    def answer(built: BuiltCase) -> Mapping[str, Array] | None:
        got = turned.answer(built)
        return got and {name: np.flip(value, 1) for name, value in got.items()}

    return replace(turned, answer=answer)


MUTANTS = (
    *(
        attribute(operator, "epsilon", None)
        for operator in (BATCH, INSTANCE, LAYER, SIMPLIFIED, RMS, GROUP, SKIP, SKIP_SIMPLIFIED, GROUP_NORM, *FUSED[:2])
    ),
    swapped(BATCH, 1, 2),
    swapped(BATCH, 3, 4),
    attribute(BATCH, "spatial", None),
    of_input(BATCH, "var", "the deviation is given instead of the variance", np.square),
    of_input(BATCH, "input_var", "the deviation of revision 14 is given instead of the variance", np.square),
    swapped(INSTANCE, 1, 2),
    of_input(INSTANCE, "B", "the bias is subtracted", np.negative),
    of_input(INSTANCE, "input", "the instances are normalized together", lambda x: np.broadcast_to(x[:1], x.shape)),
    attribute(LAYER, "axis", None),
    attribute(SIMPLIFIED, "axis", None),
    attribute(RMS, "axis", None),
    without(LAYER, "B"),
    of_operator(LAYER, SIMPLIFIED, "the mean is not subtracted"),
    of_operator(SIMPLIFIED, LAYER, "the mean is subtracted"),
    of_operator(RMS, LAYER, "the mean is subtracted"),
    of_input(LAYER, "Scale", "the sign of the scale is lost", np.abs),
    attribute(MVN, "axes", None),
    attribute(MVN, "across_channels", None),
    attribute(MVN, "normalize_variance", None),
    attribute(GROUP, "num_groups", 1),
    swapped(GROUP, 1, 2),
    attribute(GROUP_NORM, "groups", 1),
    attribute(GROUP_NORM, "activation", 0),
    attribute(GROUP_NORM, "channels_last", None),
    swapped(GROUP_NORM, 1, 2),
    attribute("LRN", "size", 3),
    *(attribute("LRN", name, None) for name in ("alpha", "beta", "bias")),
    _window_reaches_down(),
    attribute(LP, "p", None),
    attribute(LP, "axis", None),
    of_input(LP, "input", "an epsilon is added to the norm", lambda x: np.where(x == 0, x.dtype.type(1e-3), x)),
    without(SKIP, "beta"),
    without(SKIP, "bias"),
    without(SKIP_SIMPLIFIED, "bias"),
    of_operator(SKIP, "SkipSimplifiedLayerNormalization", "the mean is not subtracted"),
    of_operator(SKIP_SIMPLIFIED, "SkipLayerNormalization", "the mean is subtracted"),
    of_input(SKIP, "skip", "skip is subtracted", np.negative),
    *(changed(operator, "the activation is left out", {"fused_activation": None}) for operator in FUSED),
    *(changed(operator, "every activation is Relu", {"fused_activation": "Relu"}) for operator in FUSED),
    *(changed(operator, "fused_alpha is ignored", {"fused_alpha": None}) for operator in FUSED),
    *(changed(operator, "fused_beta is ignored", {"fused_beta": None}) for operator in FUSED),
    attribute(FUSED[2], "across_channels", None),
    attribute(FUSED[2], "normalize_variance", None),
)
