"""What every DML_*_OPERATOR_DESC has in common."""

import re
from abc import ABC
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, fields
from enum import Enum
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar, Final

from epcheck.generators.array import Array
from epcheck.generators.directml.constraint import ConstraintViolation, Violation
from epcheck.generators.directml.feature_level import FeatureLevel, TensorSupport, find_level, tensor_support
from epcheck.generators.directml.tensor import MAX_RANK, DataType, TensorDesc

INT: Final = MappingProxyType({"c_type": "INT"})
"""Metadata of a field whose C type is INT or const INT*; without it an integer is UINT."""

_C_RANGES: Final = {"UINT": (0, 2**32 - 1), "INT": (-(2**31), 2**31 - 1)}
_BUFFER_TENSOR_PAGE: Final = "ns-directml-dml_buffer_tensor_desc"
_MAX_TENSOR_ELEMENTS: Final = 2**32 - 1


@dataclass(frozen=True)
class OperatorDesc(ABC):
    """The description of one DirectML operator.

    A subclass is a frozen dataclass whose fields are the members of the C struct, in their order, in snake_case. A
    tensor is a TensorDesc, an optional one may be None, an array of them a tuple; an array of numbers is a tuple of int
    or float, a BOOL a bool, a fused activation an OperatorDesc or None.
    """

    NAME: ClassVar[str]
    """The C struct, 'DML_SLICE1_OPERATOR_DESC'."""

    def constraints(self) -> Iterator[Violation]:
        """Violations of what the operator's page demands at every feature level; none by default."""
        return iter(())

    def evaluate(self, *_args: Any, **_arrays: Any) -> tuple[Array, ...]:
        """The page's definition of the operator, in numpy.

        Takes one array for each input tensor and returns one for each output tensor, both in the struct's order.
        An array has the shape `sizes` and the type `data_type` of its tensor, whatever its strides; None
        stands for an optional tensor that the description leaves out.

        Raises ConstraintViolation if the formula is undefined for this description and ValueError if an array does
        not match its tensor, or where the page defines no arithmetic, as by default. Data types and dimension counts
        need not be supported by any feature level.
        """
        raise ValueError(f"the page of {self.NAME} does not define the arithmetic")

    def validate(self, level: FeatureLevel) -> tuple[Violation, ...]:
        """Every violated constraint, empty if DirectML at `level` accepts the description.

        Checks, in this order: the operator and its tensors against the tables of `feature_level`, tensors against
        ns-directml-dml_buffer_tensor_desc, integers against their C types, then `constraints()`. Where a required
        tensor is missing, the rest has no meaning and is not checked.
        """
        support = tuple(self._support_violations(level))
        if any(violation.constraint == "tensor_required" for violation in support):
            return support
        return (
            *support,
            *self._buffer_violations(self.support(level)),
            *self._c_type_violations(),
            *self.constraints(),
        )

    def as_dict(self) -> dict[str, Any]:
        """The members by their C names, in the struct's order, in types that JSON has."""
        return {c_name: _encode_json(getattr(self, name)) for name, c_name, _ in _members(type(self))}

    def tensors(self) -> dict[str, TensorDesc | None]:
        """The tensors by the C names of their members, in the struct's order; None where one is left out.

        Those of an array of tensors are numbered: `InputTensors[0]`.
        """
        found: dict[str, TensorDesc | None] = {}
        for name, c_name, c_type in _members(type(self)):
            if c_type == "TENSOR":
                found[c_name] = getattr(self, name)
            elif c_type == "TENSORS":
                found |= {f"{c_name}[{index}]": tensor for index, tensor in enumerate(getattr(self, name))}
        return found

    def support(self, level: FeatureLevel) -> Mapping[str, TensorSupport]:
        """The 'Tensor support' table of the page that holds at `level`, by tensor member; empty where none is recorded.

        An operator whose table depends on more than the level has its own.
        """
        return tensor_support(self.NAME, level)

    def violation(self, constraint: str, message: str) -> Violation:
        """A violation of what this operator's own page states."""
        return Violation(constraint, message, page(self.NAME))

    def require_defined(self, *tolerated: str) -> None:
        """Raise ConstraintViolation for integers beyond their C types and `constraints()`, but the `tolerated` ones."""
        found = (*self._c_type_violations(), *self.constraints())
        violations = [violation for violation in found if violation.constraint not in tolerated]
        if violations:
            raise ConstraintViolation(self.NAME, violations)

    def require_arrays(self, **arrays: Array | None) -> None:
        """Raise ValueError unless each array, given by the name of its field, has its tensor's shape and type."""
        for name, array in arrays.items():
            tensor: TensorDesc | None = getattr(self, name)
            if tensor is None and array is None:
                continue
            if tensor is None:
                raise ValueError(f"{self.NAME}: {c_name(name)} is left out of the description; its array must be None")
            if array is None:
                raise ValueError(f"{self.NAME}: {c_name(name)} is part of the description; its array is missing")
            if array.shape != tensor.sizes or DataType.of(array.dtype) is not tensor.data_type:
                raise ValueError(
                    f"{self.NAME}: {c_name(name)} is {tensor.data_type.name} of sizes {tensor.sizes}; "
                    f"got {array.dtype} of shape {array.shape}"
                )

    def _support_violations(self, level: FeatureLevel) -> Iterator[Violation]:
        introduced = find_level(self.NAME)
        if level < introduced:
            yield self.violation(
                "operator_not_in_feature_level",
                f"{self.NAME} was introduced in {introduced.name}; this is {level.name}",
            )
            return
        support = self.support(level)
        for member, tensor in self.tensors().items():
            row = support.get(member.partition("[")[0])
            if row is None:
                continue
            if tensor is None:
                if not row.optional:
                    yield self.violation("tensor_required", f"{member} is not optional")
                continue
            counts = row.dimension_counts
            if tensor.dimension_count not in counts:
                yield self.violation(
                    "dimension_count_supported",
                    f"{member} has {tensor.dimension_count} dimensions; "
                    f"{level.name} supports {counts[0]} to {counts[-1]}",
                )
            if row.data_types and tensor.data_type not in row.data_types:
                supported = ", ".join(sorted(data_type.name for data_type in row.data_types))
                yield self.violation(
                    "data_type_supported",
                    f"{member} is {tensor.data_type.name}; {level.name} supports {supported}",
                )

    def _buffer_violations(self, support: Mapping[str, TensorSupport]) -> Iterator[Violation]:
        for member, tensor in self.tensors().items():
            if tensor is None:
                continue
            in_table = member.partition("[")[0] in support
            if not in_table and not 1 <= tensor.dimension_count <= MAX_RANK:
                yield Violation(
                    "tensor_dimension_count",
                    f"{member} has {tensor.dimension_count} dimensions; 1 to {MAX_RANK} are possible",
                    _BUFFER_TENSOR_PAGE,
                )
            if 0 in tensor.sizes:
                yield Violation(
                    "tensor_sizes_nonzero", f"{member} has a size of 0 in {tensor.sizes}", _BUFFER_TENSOR_PAGE
                )
            elif max(tensor.element_count, tensor.buffer_element_count) > _MAX_TENSOR_ELEMENTS:
                yield Violation(
                    "tensor_element_count",
                    f"{member} with sizes {tensor.sizes} and strides {tensor.strides} has "
                    f"{max(tensor.element_count, tensor.buffer_element_count)} elements; "
                    f"at most {_MAX_TENSOR_ELEMENTS} are possible",
                    _BUFFER_TENSOR_PAGE,
                )

    def _c_type_violations(self) -> Sequence[Violation]:
        found: list[Violation] = []
        for name, tensor in self.tensors().items():
            if tensor is not None:
                found += self._out_of_range("UINT", f"{name}.Sizes", tensor.sizes)
                found += self._out_of_range("UINT", f"{name}.Strides", tensor.strides or ())
        for name, c_name, c_type in _members(type(self)):
            value = getattr(self, name)
            if c_type in _C_RANGES and isinstance(value, tuple | int):
                values = value if isinstance(value, tuple) else (value,)
                found += self._out_of_range(c_type, c_name, tuple(value for value in values if isinstance(value, int)))
        return found

    def _out_of_range(self, c_type: str, member: str, values: tuple[int, ...]) -> Sequence[Violation]:
        low, high = _C_RANGES[c_type]
        if not values or (low <= min(values) and max(values) <= high):
            return ()
        constraint = f"value_fits_{c_type.lower()}"
        return [
            self.violation(constraint, f"{member} holds {value}; {c_type} ranges from {low} to {high}")
            for value in values
            if not low <= value <= high
        ]


def page(name: str) -> str:
    """The page of a DML_*_OPERATOR_DESC, as the DirectML reference names it."""
    return f"ns-directml-{name.lower()}"


def c_name(name: str) -> str:
    """The C struct's name of a field: 'input_window_offsets' is InputWindowOffsets."""
    return "".join(word.capitalize() for word in name.split("_"))


@cache
def _members(desc: type[OperatorDesc]) -> tuple[tuple[str, str, str], ...]:
    """For each field its name, its C name, and 'TENSOR', 'TENSORS' for an array of them, 'UINT' or 'INT' (floats,
    enumerations and nested operators count as UINT)."""
    return tuple((field.name, c_name(field.name), _c_type(field)) for field in fields(desc))


def _c_type(field: Field[Any]) -> str:
    annotation = str(field.type)
    if "TensorDesc" in annotation:
        return "TENSORS" if "tuple" in annotation else "TENSOR"
    return str(field.metadata.get("c_type", "UINT"))


def _encode_json(value: Any) -> Any:
    match value:
        case TensorDesc():
            return {
                "DataType": value.data_type.name,
                "Sizes": list(value.sizes),
                "Strides": None if value.strides is None else list(value.strides),
            }
        case DataType():
            return value.name
        case OperatorDesc():
            return {"Type": value.NAME, **value.as_dict()}
        case Enum():
            words = re.findall(r"[A-Z][a-z0-9]*", type(value).__name__)
            return "_".join(["DML", *map(str.upper, words), value.name])
        case tuple():
            return [_encode_json(item) for item in value]
        case _:
            return value
