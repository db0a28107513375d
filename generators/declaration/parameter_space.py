"""The parameters of an operator: what values each has, which are sizes, and the node that values make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx.defs import OpSchema

from epcheck.generators import schema
from epcheck.generators.array import Array
from epcheck.generators.node import Attribute, Node, Operand

OPTIONAL = OpSchema.FormalParameterOption.Optional

Values = Mapping[str, Any]
"""Parameter -> its value in a node."""


@dataclass(frozen=True)
class Parts:
    """inputs: in the order of the schema, None for an omitted one. parameters: indices of those that exporters write as
    initializers. outputs: in the order of the schema, whether each is asked for; all where it is empty."""

    inputs: tuple[Array | None, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    parameters: tuple[int, ...] = ()
    outputs: tuple[bool, ...] = ()

    def make_node(self, op_type: str, version: int, domain: str) -> Node:
        """The node of these parts; the inputs and outputs of a variadic operator are numbered."""
        definition, signature = schema.schema(op_type, version, domain), schema.signature(op_type, version, domain)
        names = [formal.name for formal in definition.inputs]
        if signature.variadic[0]:
            names = [*names[:-1], *(f"{names[-1]}_{index}" for index in range(len(self.inputs)))]
        inputs = tuple(
            None if value is None else Operand(name, value, parameter=index in self.parameters)
            for index, (name, value) in enumerate(zip(names, self.inputs, strict=False))
        )
        formals = [formal.name for formal in definition.outputs]
        if signature.variadic[1]:
            formals = [f"output_{index}" for index in range(len(self.outputs))]
        is_present = self.outputs or (True,) * sum(formal.option != OPTIONAL for formal in definition.outputs)
        outputs = [name if present else "" for name, present in zip(formals, is_present, strict=False)]
        while not outputs[-1]:
            outputs.pop()
        return Node(op_type, domain, version, inputs, tuple(outputs), dict(self.attributes))


ANY_NUMBER = ("minus_zero", "denormal")
"""Extremes that are defined wherever numbers are."""

ANY_VALUE = ("nan", "inf", "minus_inf", *ANY_NUMBER)


def always(_values: Values) -> bool:
    """Any values make a valid node."""
    return True


@dataclass(frozen=True)
class ParameterSpace:
    """The parameters of one operator, in float32.

    sizes: of dimensions, as they are where nothing is said of them. choices: the values of every other parameter, the
    usual one first; pairs are made of these. borders: sizes at which kernels change path, by the parameter that has
    them. empty: the sizes that may be 0 with a defined result. node: the parts of a node of all values.
    is_valid: whether a node of these choices is one. row: the size that is the length of a row where single values are
    placed. extremes: the values that may stand in the first input with a defined result; only_moves: the operator
    computes nothing of them.
    """

    sizes: Mapping[str, int]
    node: Callable[[Values, np.random.Generator], Parts]
    choices: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    borders: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    empty: tuple[str, ...] = ()
    is_valid: Callable[[Values], bool] = always
    row: str = "length"
    extremes: tuple[str, ...] = ()
    only_moves: bool = False

    def usual(self) -> Values:
        """Every parameter at its usual value."""
        return {**self.sizes, **{name: values[0] for name, values in self.choices.items()}}
