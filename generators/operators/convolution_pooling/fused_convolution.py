"""com.microsoft::FusedConv: Conv, a sum and an activation, which ONNX Runtime's optimiser makes one node.

Source: ONNX Runtime's ContribOperators.md ("the same as Conv besides it includes an attribute activation"). Which
activations there are, in which order `activation_params` has their parameters, and that Z is added before the
activation, is what the optimiser writes: conv_activation_fusion.cc, and conv_add_act_fusion.cc.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from epcheck.generators.case import CaseContext, expect_refusal
from epcheck.generators.declaration.optional_io import OptionalIO, each_alone
from epcheck.generators.families import fused_activation
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import NO_KERNEL, Operator, declare
from epcheck.generators.operators.convolution_pooling import convolution
from epcheck.generators.operators.convolution_pooling.convolution import CONTRIB, ConvSample

DECLARES = ("com.microsoft::FusedConv",)

ACTIVATIONS: Mapping[str, tuple[tuple[float, ...], ...]] = {
    "Relu": ((),),
    "Sigmoid": ((),),
    "Tanh": ((),),
    "LeakyRelu": ((0.01,), (0.375,)),
    "Clip": ((0.0, 6.0), (-0.5, 0.75)),
    "HardSigmoid": ((0.2, 0.5), (0.375, 0.25)),
}
"""Activation -> the parameters that it is tried with, the usual ones first."""


@dataclass(frozen=True, kw_only=True)
class FusedSample(ConvSample):
    """residual: Z is an input."""

    residual: bool = False


def samples() -> Iterator[FusedSample]:
    for name, several in ACTIVATIONS.items():
        plain = FusedSample(name=name.lower(), activation=(name, several[0]))
        yield replace(plain, every_dtype=True)
        yield replace(plain, name=f"{plain.name}_integers", values="integers", every_dtype=name == "Relu")
        yield replace(plain, name=f"{plain.name}_residual", residual=True, every_dtype=name in ("Relu", "Clip"))
        for parameters in several[1:]:
            yield replace(plain, name=f"{plain.name}_parameters", activation=(name, parameters), residual=True)
        yield replace(plain, name=f"{plain.name}_channels_16", attributes=(("pads", (1, 1, 1, 1)),),
                      x=(1, 16, 14, 14), w=(16, 16, 3, 3), bias=(16,))  # fmt: skip
    yield FusedSample(name="no_activation")
    yield FusedSample(name="no_activation_residual", residual=True)
    for sample in (FusedSample(**vars(each)) for each in convolution.samples()):
        if sample.name in convolution.FUSED_BASE and sample.name != "defaults":  # that is `relu`
            yield replace(sample, name=f"relu_{sample.name}", activation=("Relu", ()), every_dtype=False)
            yield replace(sample, name=f"relu_{sample.name}_residual", activation=("Relu", ()), residual=True,
                          every_dtype=False)  # fmt: skip
    for refused in map(expect_refusal, convolution.list_refused()):
        yield FusedSample(**{**vars(refused), "activation": ("Relu", ())})


def node(sample: FusedSample, context: CaseContext) -> Node:
    """X, W and B as of Conv; Z [N, M, *output]; Y."""
    plain = convolution.node(replace(sample, activation=None), context, name="FusedConv", domain=CONTRIB)
    attributes: dict[str, Attribute] = dict(plain.attributes)
    if sample.activation is not None:
        name, parameters = sample.activation
        attributes |= dict(fused_activation.attributes_of_conv(name, *parameters))
    operands = plain.inputs
    conv = convolution.parse(plain)
    if sample.residual and not isinstance(conv, str):
        shape = (conv[0].shape[0], conv[1].shape[0], *conv[3].output)
        z = convolution.plain_values(shape, sample.values, context.dtype, context.rng)
        operands = (*operands, *[None] * (3 - len(operands)), Operand("Z", z))
    return replace(plain, inputs=operands, attributes=attributes)


def bindings(sample: FusedSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    return convolution.bindings(sample, since_version, dtypes, domain=CONTRIB)


KEY = "com.microsoft::FusedConv"

OPERATORS = declare(
    (Operator("FusedConv", samples, bindings, node, convolution.truth, NO_KERNEL, domain=CONTRIB),),
    optional_io={KEY: (OptionalIO("relu_residual", inputs=each_alone("B", "Z")),)},
)
