"""What a target's own precision changes in a bound."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from epcheck.conformance.comparison import compare, precision
from epcheck.conformance.comparison.precision import Precision
from epcheck.conformance.targets.config import load_config
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.target import CPU, DML, Target, TargetError
from epcheck.generators import suite
from epcheck.generators.bounds import bounds, elementary
from epcheck.generators.citation import statement
from epcheck.generators.node import Node, Operand
from epcheck.generators.operators.arithmetic.cast import truth as cast_truth
from epcheck.generators.truth import Exact, Output, Outputs, Refusal, Truth, Undefined
from tests.command_line import refused

HALF = Precision("float16", "https://example.test/")
A_SOURCE = statement("a source")


def truth(output: Output) -> Outputs:
    return Outputs((output,))


def erf_of_1() -> Output:
    x, y = np.array([1.0]), np.array([0.8427007929497149])
    return bounds.round_output("y", y, np.dtype(np.float32), elementary.bound_of("erf", x, y, np.dtype(np.float32)))


def is_wrong(output: Output, got: float, stated: Precision | None = None, on_cpu: bool = False) -> bool:
    judged = precision.apply_precision(truth(output), stated, on_cpu)
    assert isinstance(judged, Outputs)
    return bool(compare.differences(judged, {output.name: np.array([got], output.value.dtype)}))


def test_a_cpu_gets_no_shader_s_allowance() -> None:
    off_by_half_of_1_in_1024 = 0.8427007929497149 + 0.5 / 1024
    assert not is_wrong(erf_of_1(), off_by_half_of_1_in_1024)
    assert is_wrong(erf_of_1(), off_by_half_of_1_in_1024, on_cpu=True)
    within_opencl = float(np.float32(0.8427007929497149)) + 8 * 2.0**-24
    assert not is_wrong(erf_of_1(), within_opencl, on_cpu=True)


def test_what_is_undefined_is_rounded_as_what_is_defined() -> None:
    """Two elements: 55 is defined, the other is one of the inputs or 0."""
    value = np.array([55, 3], np.float32)
    output = Output("y", value, undefined=Undefined(np.array([False, True]), np.array([0, 3, 55], np.float32)))
    for got, exactly, in_half in (
        ((55, 3), False, False), ((55.000004, 3), True, False), ((55, 54.999996), True, False),
        ((55.2, 3), True, True), ((55, 4), True, True), ((55, -0.00001), True, False),
    ):  # fmt: skip
        answer = {"y": np.array(got, np.float32)}
        for stated, expected in ((None, exactly), (HALF, in_half)):
            judged = precision.apply_precision(Outputs((output,), "written twice"), stated, False)
            assert isinstance(judged, Outputs)
            assert judged.undefined == "written twice"
            assert bool(compare.differences(judged, answer)) == expected, (got, stated)
    lowered = precision.apply_precision(truth(output), HALF, False)
    assert isinstance(lowered, Outputs)
    (found,) = compare.differences(lowered, {"y": np.array([55, 4], np.float32)})
    assert found.reason.startswith("1 of 2 elements are wrong; each defined element must be within 8192 ULP")
    assert found.reason.endswith("and every undefined element must be 0 or an element of an input")


def test_a_cpu_keeps_denormals() -> None:
    exact = np.array([1e-40])
    output = bounds.round_output("y", exact, np.dtype(np.float32), bounds.ulp(1, (A_SOURCE,), np.dtype(np.float32)))
    assert not is_wrong(output, 0.0)
    assert is_wrong(output, 0.0, on_cpu=True)


def test_a_small_result_keeps_what_its_roundings_may_add_up_to() -> None:
    """Of a thousand factors that is less than the smallest normal number, where the product is 1e-34."""
    exact = np.array([1e-34])
    bound = bounds.ulp(1, (A_SOURCE,), np.dtype(np.float32), np.array([6e-39]))
    output = bounds.round_output("y", exact, np.dtype(np.float32), bound)
    assert not is_wrong(output, 1.00002e-34, on_cpu=True)
    assert is_wrong(output, 1.0003e-34, on_cpu=True)


def test_what_a_sum_may_be_off_by_stays() -> None:
    bound = bounds.bound_sum(1000, np.dtype(np.float32), np.array([1000.0]))
    output = bounds.round_output("y", np.array([1e-3]), np.dtype(np.float32), bound)
    assert not is_wrong(output, 2e-3, on_cpu=True)


@pytest.mark.parametrize(("name", "ulps_of_float32"), [("float16", 2**13), ("tf32", 2**13), ("bfloat16", 2**16)])
def test_a_lower_precision_is_judged_in_its_own_ulp(name: str, ulps_of_float32: int) -> None:
    output = Output("y", np.array([1.0], np.float32), Exact())
    stated = Precision(name, "a source")
    step = 2.0**-23
    assert is_wrong(output, 1 + step)
    assert not is_wrong(output, 1 + ulps_of_float32 * step, stated)
    assert is_wrong(output, 1 + 2 * ulps_of_float32 * step, stated)


def test_operands_that_are_rounded_to_the_format_are_allowed_for() -> None:
    """QNN's simulator gives 0.21875 for a product that is 0.2185842: its operands were rounded as well."""
    product = np.array([0.2185842394241142])
    output = bounds.round_output("y", product, np.dtype(np.float32), bounds.ulp(1, (A_SOURCE,), np.dtype(np.float32)))
    ulp_of_half = float(np.spacing(np.float16(0.2185)))
    assert not is_wrong(output, 0.21875, HALF)
    assert not is_wrong(output, product[0] + 2.9 * ulp_of_half, HALF)
    assert is_wrong(output, product[0] + 3.1 * ulp_of_half, HALF)


def test_the_report_names_the_precision_and_its_source() -> None:
    judged = precision.apply_precision(truth(erf_of_1()), HALF, False)
    assert isinstance(judged, Outputs)
    (wrong,) = compare.differences(judged, {"y": np.array([0.5], np.float32)})
    assert "float32 is computed in float16 (https://example.test/)" in wrong.reason


def test_other_dtypes_and_refusals_stay_as_they_are() -> None:
    output = Output("y", np.array([1.0], np.float64), Exact())
    assert is_wrong(output, 1 + 2.0**-40, HALF)
    refusal: Truth = Refusal("a rule")
    assert precision.apply_precision(refusal, HALF, True) is refusal


def test_a_target_that_keeps_to_ieee_754_rounds_a_cast_to_the_nearest() -> None:
    """1 + 3/4 of an ULP of float16 is nearest to 1 + 1 ULP; toward zero it is 1, which Direct3D allows."""
    node = Node(
        "Cast", "", 13, (Operand("input", np.array([1 + 0.75 * 2.0**-10], np.float32)),), ("output",), {"to": 10}
    )
    cast = cast_truth(node)
    assert isinstance(cast, Outputs)
    answers = {True: np.array([1 + 2.0**-10], np.float16), False: np.array([1], np.float16)}
    for is_ieee, accepts_zero in ((False, True), (True, False)):
        judged = precision.apply_precision(cast, None, False, is_ieee)
        assert isinstance(judged, Outputs)
        assert not compare.differences(judged, {"output": answers[True]})
        assert bool(compare.differences(judged, {"output": answers[False]})) != accepts_zero


@pytest.mark.parametrize(
    ("case_id", "is_one_rounding"),
    [
        ("Add-14/float32/same_shape[runtime]", True),
        ("Div-14/float16/same_shape[runtime]", True),
        ("Sqrt-13/float32/squares[runtime]", True),
        ("Pow-15/float32/same_shape[runtime]", False),
    ],
)
def test_single_operations_of_ieee_754_are_known(case_id: str, is_one_rounding: bool) -> None:
    judged = precision.apply_precision(suite.case_by_id(case_id).build().truth, None, False, is_ieee=True)
    assert isinstance(judged, Outputs)
    assert isinstance(judged.outputs[0].bound, Exact) == is_one_rounding


def test_which_targets_compute_on_a_cpu() -> None:
    assert Target("cpu", (), (), provider=CPU).on_cpu
    assert Target("ov", (), (), provider="OpenVINOExecutionProvider", options={"device_type": "CPU_FP32"}).on_cpu
    assert not Target("ov", (), (), provider="OpenVINOExecutionProvider", options={"device_type": "GPU"}).on_cpu
    assert not Target("dml", (), (), provider=DML).on_cpu


def test_which_targets_keep_to_ieee_754() -> None:
    assert Target("cpu", (), (), provider=CPU).is_ieee
    assert Target("cuda", (), (), provider="CUDAExecutionProvider").is_ieee
    assert not Target("dml", (), (), provider=DML).is_ieee


def test_epcheck_toml_states_a_precision(tmp_path: Path) -> None:
    config = tmp_path / "epcheck.toml"
    config.write_text(
        "[targets.t]\nbase = 'cpu'\nfloat32_precision = { format = 'bfloat16', source = 'the page' }\n", "utf-8"
    )
    target = resolve("t", load_config(config))
    assert target.float32_precision == Precision("bfloat16", "the page")
    assert target.stated_facts()["float32_precision"] == "bfloat16 (the page)"


@pytest.mark.parametrize(
    ("stated", "why"),
    [
        ("{ format = 'float16' }", "'float32_precision' needs format and source"),
        ("{ format = 'int8', source = 'x' }", "float32 may be computed in float16, bfloat16, tf32"),
    ],
)
def test_a_precision_without_a_source_is_refused(tmp_path: Path, stated: str, why: str) -> None:
    config = tmp_path / "epcheck.toml"
    config.write_text(f"[targets.t]\nbase = 'cpu'\nfloat32_precision = {stated}\n", encoding="utf-8")
    with pytest.raises(TargetError, match=why):
        load_config(config)
    assert why in refused("run", "-t", "t", "--config", str(config))
