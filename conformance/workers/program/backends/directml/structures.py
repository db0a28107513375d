"""A call (`epcheck.generators.directml.call`) as C has it: structures made of the kinds of their members alone."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

TENSOR_TYPE_BUFFER = 1
ITEM_BYTES = {1: 4, 2: 2, 3: 4, 4: 2, 5: 1, 6: 4, 7: 2, 8: 1, 9: 8, 10: 8, 11: 8}
"""DML_TENSOR_DATA_TYPE -> bytes of an element; the types of four bits are left out."""


class BufferTensorDesc(ctypes.Structure):
    """DML_BUFFER_TENSOR_DESC."""

    _fields_ = (
        ("data_type", ctypes.c_int32),
        ("flags", ctypes.c_int32),
        ("dimension_count", ctypes.c_uint32),
        ("sizes", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("total_size", ctypes.c_uint64),
        ("alignment", ctypes.c_uint32),
    )


class Tagged(ctypes.Structure):
    """DML_TENSOR_DESC, DML_OPERATOR_DESC and DML_BINDING_DESC: a number that says what `desc` points to."""

    _fields_ = (("type", ctypes.c_int32), ("desc", ctypes.c_void_p))


class Pair(ctypes.Structure):
    """DML_SIZE_2D."""

    _fields_ = (("first", ctypes.c_uint32), ("second", ctypes.c_uint32))


Tensor = Mapping[str, Any]
"""`data_type`, `sizes`, `strides` (None where it is packed), `flags`, `alignment` of a DML_BUFFER_TENSOR_DESC."""

_NUMBERS = {
    "uint": ctypes.c_uint32, "uint64": ctypes.c_uint64, "int": ctypes.c_int32, "float": ctypes.c_float,
    "bool": ctypes.c_int32, "scalar": ctypes.c_uint64,
}  # fmt: skip
_ARRAYS = {"uints": ctypes.c_uint32, "ints": ctypes.c_int32, "floats": ctypes.c_float, "scale_bias": ctypes.c_float}


def elements(tensor: Tensor) -> int:
    """The elements from the first of a tensor to its last, gaps included."""
    sizes, strides = tensor["sizes"], tensor["strides"]
    if strides is not None:
        return 1 + sum(int((size - 1) * stride) for size, stride in zip(sizes, strides))
    count = 1
    for size in sizes:
        count *= size
    return count


def total_bytes(tensor: Tensor) -> int:
    """TotalTensorSizeInBytes: what the tensor says, or as DMLCalcBufferTensorSize has it, a multiple of 4."""
    return int(tensor.get("total_bytes") or 0) or (elements(tensor) * ITEM_BYTES[tensor["data_type"]] + 3) // 4 * 4


class Structures:
    """What was made for a call, alive as long as this is. `root` is the DML_OPERATOR_DESC."""

    def __init__(self, call: Mapping[str, Any], inputs: Sequence[Tensor | None], outputs: Sequence[Tensor | None]):
        self._alive: list[Any] = []
        self._tensors = {
            "input": [None if tensor is None else self._tensor(tensor) for tensor in inputs],
            "output": [None if tensor is None else self._tensor(tensor) for tensor in outputs],
        }
        self.root = self._operator(call)

    def _tensor(self, tensor: Tensor) -> Tagged:
        sizes, strides = tensor["sizes"], tensor["strides"]
        desc = BufferTensorDesc(
            data_type=tensor["data_type"],
            flags=tensor.get("flags", 0),
            dimension_count=len(sizes),
            sizes=self._array(ctypes.c_uint32, sizes),
            strides=None if strides is None else self._array(ctypes.c_uint32, strides),
            total_size=total_bytes(tensor),
            alignment=tensor.get("alignment", 0),
        )
        return Tagged(TENSOR_TYPE_BUFFER, self._keep(desc))

    def _operator(self, call: Mapping[str, Any]) -> Tagged:
        values = [self._member(kind, value) for kind, value in call["members"]]
        layout = type("Desc", (ctypes.Structure,), {"_fields_": [(f"m{i}", t) for i, (t, _) in enumerate(values)]})
        return Tagged(call["type"], self._keep(layout(*[value for _, value in values])))

    def _member(self, kind: str, value: Any) -> tuple[Any, Any]:
        """The type of a member and its value."""
        if kind in ("input", "output"):
            tensor = None if value is None else self._tensors[kind][value]
            return ctypes.c_void_p, None if tensor is None else self._keep(tensor)
        if kind in ("inputs", "outputs"):
            return ctypes.c_void_p, self._structures([self._tensors[kind[:-1]][number] for number in value])
        if kind == "operator":
            return ctypes.c_void_p, None if value is None else self._keep(self._operator(value))
        if kind == "operators":
            return ctypes.c_void_p, self._structures([self._operator(nested) for nested in value or ()])
        if kind == "size_2d":
            return Pair, Pair(*value)
        if kind in _ARRAYS:
            return ctypes.c_void_p, self._array(_ARRAYS[kind], value)
        if kind == "scalar":
            value = int.from_bytes(bytes.fromhex(value), "little")
        return _NUMBERS[kind], float(value) if kind == "float" else value

    def _array(self, kind: Any, values: Any) -> int | None:
        """The address of an array of numbers; None for one without elements."""
        if not values:
            return None
        number = float if kind is ctypes.c_float else int
        return self._keep((kind * len(values))(*map(number, values)))

    def _structures(self, values: Sequence[Any]) -> int | None:
        return self._keep((Tagged * len(values))(*values)) if values else None

    def _keep(self, thing: Any) -> int:
        self._alive.append(thing)
        return ctypes.addressof(thing)
