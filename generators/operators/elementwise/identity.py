"""Identity and Dropout outside training -> DML_ELEMENT_WISE_IDENTITY, DML_ACTIVATION_IDENTITY_OPERATOR_DESC.

Sources: the pages of Identity (tensors only here) and of Dropout: 7 and 10 copy their input when not training, and do
not say what the mask then is, so no sample asks for it; from 12 on ratio and training_mode are inputs, without training
the output is the input and the mask all true. ratio says nothing then. Data is moved, so NaN, denormals and the sign of
a zero arrive as they were.
How the DML EP lowers them: Identity is a copy of a buffer outside fused graphs, Dropout-7 (its only one) an activation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from epcheck.generators import data, graph, schema
from epcheck.generators.array import Array
from epcheck.generators.case import CaseContext, Sample
from epcheck.generators.declaration.optional_io import OptionalIO
from epcheck.generators.directml.descriptions.elementwise.activation import ActivationIdentity
from epcheck.generators.directml.descriptions.elementwise.unary import ElementWiseIdentity
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.families import elementwise
from epcheck.generators.families.elementwise import ElementwiseOperator
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import declare
from epcheck.generators.truth import Output, Outputs, Truth

DECLARES = (
    "Identity",
    "Dropout",
)

BOOLEAN_MASK = 10
"""The version of Dropout since which the mask is bool; before, it has the type of the data."""


@dataclass(frozen=True, kw_only=True)
class CopySample(Sample):
    """values: 'distinct' ones or 'every_value' that the dtype has."""

    shape: tuple[int, ...] = (3, 7)
    values: str = "distinct"
    every_binding: bool = False


@dataclass(frozen=True, kw_only=True)
class DropoutSample(CopySample):
    """ratio, training_mode, seed: None leaves the input or attribute out. mask: whether the second output is asked for.

    ratio_dtype: of the input; None is that of the data.
    """

    ratio: float | None = None
    training_mode: bool | None = None
    seed: int | None = None
    mask: bool = False
    ratio_dtype: str | None = None


def identity_samples() -> Iterator[CopySample]:
    yield CopySample(name="distinct", every_dtype=True, every_binding=True)
    yield CopySample(name="every_value", values="every_value", every_dtype=True)
    for name, shape in elementwise.shapes():
        yield CopySample(name=name, shape=shape, rank=len(shape))


def dropout_samples() -> Iterator[DropoutSample]:
    for sample in identity_samples():
        yield DropoutSample(**vars(sample))
    for name, ratio in {"ratio_0": 0.0, "ratio_0_25": 0.25, "ratio_0_75": 0.75, "ratio_0_999": 0.999}.items():
        yield DropoutSample(name=name, ratio=ratio, every_dtype=name == "ratio_0_75")
    yield DropoutSample(name="mask", mask=True, every_dtype=True)
    yield DropoutSample(name="mask_ratio_0_75", mask=True, ratio=0.75, every_dtype=True)
    yield DropoutSample(name="mask_of_rank_8", rank=8, mask=True, shape=(2, 1, 2, 3, 1, 2, 2, 3))
    yield DropoutSample(name="mask_of_size_0", mask=True, shape=(2, 0, 3))
    yield DropoutSample(name="mask_beyond_a_thread_group", mask=True, shape=(1031,))
    yield DropoutSample(name="not_training", training_mode=False, ratio=0.5, every_dtype=True)
    yield DropoutSample(name="not_training_mask", training_mode=False, ratio=0.5, mask=True)
    yield DropoutSample(name="not_training_ratio_omitted", training_mode=False, mask=True)
    yield DropoutSample(name="seed", seed=7, ratio=0.5)
    yield DropoutSample(name="ratio_of_another_type", ratio=0.5, ratio_dtype="float64")


def bindings(sample: CopySample, _: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    if dtypes != ("float32",):
        return (graph.RUNTIME,) if sample.every_dtype else ()
    return (graph.RUNTIME, graph.SYMBOLIC, graph.CONSTANT) if sample.every_binding else (graph.RUNTIME,)


def dropout_bindings(sample: DropoutSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    if not _ratio_is_input(since_version):
        fits = not sample.mask and sample.training_mode is None and sample.seed is None and not sample.ratio_dtype
        return bindings(sample, since_version, dtypes) if fits else ()
    if sample.ratio is None and sample.training_mode is None:
        return bindings(sample, since_version, dtypes)
    first = dtypes == ("float32",)
    return (graph.INITIALIZER, graph.RUNTIME) if first else (graph.INITIALIZER,) if sample.every_dtype else ()


def _ratio_is_input(since_version: int) -> bool:
    return len(schema.schema("Dropout", since_version).inputs) > 1


def _values(sample: CopySample, context: CaseContext) -> Array:
    if sample.values == "every_value":
        return data.every_value(context.dtype)
    return data.distinct(sample.shape, context.dtype, context.rng)


def identity_node(sample: CopySample, context: CaseContext) -> Node:
    """One tensor of any shape and type."""
    return Node("Identity", "", context.since_version, (Operand("input", _values(sample, context)),), ("output",))


def dropout_node(sample: DropoutSample, context: CaseContext) -> Node:
    """data of any shape; ratio an attribute, or a scalar input beside the scalar training_mode."""
    operands: list[Operand | None] = [Operand("data", _values(sample, context))]
    attributes: dict[str, Attribute] = {} if sample.seed is None else {"seed": sample.seed}
    if _ratio_is_input(context.since_version):
        dtype = context.dtype if sample.ratio_dtype is None else np.dtype(sample.ratio_dtype)
        ratio = None if sample.ratio is None else Operand("ratio", np.array(sample.ratio, dtype), parameter=True)
        if ratio is not None or sample.training_mode is not None:
            operands.append(ratio)
        if sample.training_mode is not None:
            operands.append(Operand("training_mode", np.array(sample.training_mode), parameter=True))
    elif sample.ratio is not None:
        attributes["ratio"] = sample.ratio
    outputs = ("output", "mask") if sample.mask else ("output",)
    return Node("Dropout", "", context.since_version, tuple(operands), outputs, attributes)


def identity_truth(node: Node) -> Truth:
    """The input, bit for bit."""
    return Outputs((Output("output", node.array("input")),))


def dropout_truth(node: Node) -> Truth:
    """The data, bit for bit, and a mask that is true everywhere. Training is random: not decided here."""
    value = node.array("data")
    mask = np.ones(value.shape, bool if node.since_version >= BOOLEAN_MASK else value.dtype)
    return Outputs(tuple(Output(name, mask if name == "mask" else value) for name in node.results))


def identity_lower(node: Node) -> Lowering | None:
    """Rank padded to 4, the type as it is."""
    return elementwise.lower_tensor(node.array("input"), lambda tensor: ElementWiseIdentity(tensor, tensor))


def dropout_lower(node: Node) -> Lowering | None:
    """Rank padded to 4; the kernel of Dropout-7 has no mask, and there is no newer one."""
    if _ratio_is_input(node.since_version) or node.since_version > 7:
        return None
    return elementwise.lower_tensor(node.array("data"), lambda tensor: ActivationIdentity(tensor, tensor))


MASK = "Dropout outside training: the page does not say what the mask is"

OPTIONAL_IO: Mapping[str, tuple[OptionalIO, ...]] = {
    "Dropout": (OptionalIO("ratio_0_75", outputs=("mask",), versions=(7, 10), undefined={"mask": MASK}),),
}

OPERATORS = declare(
    (
        ElementwiseOperator("Identity", identity_samples, bindings, identity_node, identity_truth, identity_lower),
        ElementwiseOperator("Dropout", dropout_samples, dropout_bindings, dropout_node, dropout_truth, dropout_lower),
    ),
    optional_io=OPTIONAL_IO,
)
