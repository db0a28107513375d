"""Casts of whole models to the types that numpy lacks: values by hand, and what the page leaves open."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from epcheck.generators import registry
from epcheck.generators.array import Array
from epcheck.generators.fuzzing import oracle as node_oracle
from epcheck.generators.node import Node, Operand
from epcheck.generators.truth import Open, Refusal
from epcheck.models.oracle import oracle
from epcheck.models.oracle.node import OracleError

INF, NAN = float("inf"), float("nan")


def there_and_back(values: Array, to: int, back: int = TensorProto.FLOAT, **attributes: object) -> Array:
    """The values of a Cast to a narrow type and one behind it."""
    there = helper.make_node("Cast", ["x"], ["m"], to=to, **attributes)  # type: ignore[arg-type]
    nodes = [there, helper.make_node("Cast", ["m"], ["y"], to=back)]
    kind = helper.np_dtype_to_tensor_dtype(values.dtype)
    x, y = (helper.make_tensor_value_info(name, k, values.shape) for name, k in (("x", kind), ("y", back)))
    model = helper.make_model(helper.make_graph(nodes, "g", [x], [y]), opset_imports=[helper.make_opsetid("", 21)])
    return np.asarray(oracle.evaluate(model, {"x": values}, ["y"]).values["y"])


@pytest.mark.parametrize(("to", "attributes", "values", "expected"), [
    (TensorProto.FLOAT8E4M3FN, {}, [1.0, 17.0, 19.0, 1e3, -INF, NAN], [1, 16, 20, 448, -448, NAN]),
    (TensorProto.FLOAT8E4M3FN, {"saturate": 0}, [440.0, 1e3], [448, NAN]),
    (TensorProto.FLOAT8E5M2, {"saturate": 0}, [9.0, 1e6], [8, INF]),
    (TensorProto.INT4, {}, [0.5, 1.5, -7.6, 7.0], [0, 2, -8, 7]),
    (TensorProto.UINT4, {}, [2.5, 14.6], [2, 15]),
])  # fmt: skip
def test_floating_point_becomes_the_nearest_of_the_type(
    to: int, attributes: dict[str, object], values: list[float], expected: list[float]
) -> None:
    np.testing.assert_array_equal(there_and_back(np.array(values, np.float32), to, **attributes), expected)


def test_integers_keep_their_lower_bits_however_large_they_are() -> None:
    values = np.array([7, 8, -9, 2**62 + 3], np.int64)
    found = there_and_back(values, TensorProto.INT4, TensorProto.INT64)
    assert (found.tolist(), found.dtype.name) == ([7, -8, 7, 3], "int64")


def test_a_narrow_type_becomes_another() -> None:
    values = np.array([-8, -1, 7], np.int8).astype(ml_dtypes.int4)
    assert there_and_back(values, TensorProto.FLOAT8E5M2).tolist() == [-8, -1, 7]
    assert there_and_back(values, TensorProto.UINT4, TensorProto.INT32).tolist() == [8, 15, 7]


@pytest.mark.parametrize("value", [7.6, -9.0, NAN])
def test_beyond_the_range_nobody_knows(value: float) -> None:
    with pytest.raises(OracleError, match="floating point beyond the range of int4 is cast to it, which the page leav"):
        there_and_back(np.array([value], np.float32), TensorProto.INT4)


def test_a_node_alone_is_open_and_not_refused() -> None:
    """`to` of a type that numpy lacks is a type; 1000 is none."""
    cast = registry.operator_of("Cast")

    def truth(to: int) -> object:
        x = Operand("input", np.ones(2, np.float32))
        return node_oracle.judge_real(cast, Node("Cast", "", 21, (x,), ("output",), {"to": to}))

    found = truth(onnx.TensorProto.FLOAT8E4M3FN)
    assert isinstance(found, Open)
    assert found.reason.endswith("to float8e4m3fn this oracle does not cast")
    assert truth(1000) == Refusal("to = 1000 is no type that a tensor can be cast to")
