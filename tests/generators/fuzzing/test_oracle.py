"""Where the oracles end: a node that they cannot judge is open, with the reason, and in a bounded time."""

from __future__ import annotations

import time

import ml_dtypes
import numpy as np
import pytest

from epcheck.generators import registry
from epcheck.generators.array import Array
from epcheck.generators.fuzzing import oracle
from epcheck.generators.fuzzing.domains import families
from epcheck.generators.fuzzing.oracle import Open
from epcheck.generators.node import Node, Operand
from epcheck.generators.truth import Outputs, Refusal


def judged(op_type: str, version: int, *inputs: tuple[str, Array], domain: str = "", **attributes: object) -> object:
    operands = tuple(Operand(name, value) for name, value in inputs)
    node = Node(op_type, domain, version, operands, ("output",), attributes)  # type: ignore[arg-type]
    return oracle.judge(registry.operator_of(f"{domain}::{op_type}" if domain else op_type), node)


def reason(*args: object, **kwargs: object) -> str:
    found = judged(*args, **kwargs)  # type: ignore[arg-type]
    assert isinstance(found, Open), found
    return found.reason


F32 = np.ones((2, 3), np.float32)


def test_what_the_oracle_knows_has_a_truth() -> None:
    found = judged("Softmax", 13, ("input", np.zeros((1, 4), np.float32)), axis=1)
    assert isinstance(found, Outputs)
    assert found.outputs[0].value.tolist() == [[0.25] * 4]


def test_a_tensor_as_an_attribute_is_no_empty_list() -> None:
    found = judged("ConstantOfShape", 9, ("input", np.array([2])), value=np.array([7], np.int32))
    assert isinstance(found, Outputs)
    assert found.outputs[0].value.tolist() == [7, 7]


def test_a_reflection_is_held_against_the_axis_that_is_padded() -> None:
    data, pads = ("data", np.array([[1, 2, 3]], np.float32)), ("pads", np.array([0, 2, 0, 0]))
    found = judged("Pad", 18, data, pads, mode="reflect")
    assert isinstance(found, Outputs)
    assert found.outputs[0].value.tolist() == [[3, 2, 1, 2, 3]]
    last = ("axes", np.array([-1]))
    operands = tuple(Operand(n, v) for n, v in (data, ("pads", np.array([2, 0]))))
    node = Node("Pad", "", 18, (*operands, None, Operand(*last)), ("output",), {"mode": "reflect"})
    assert isinstance(oracle.judge(registry.operator_of("Pad"), node), Outputs)


def test_a_real_node_may_have_what_no_sample_has() -> None:
    node = Node("Relu", "", 14, (Operand("X", np.ones(2**19, np.float32)),), ("Y",))
    assert isinstance(oracle.judge(registry.operator_of("Relu"), node), Open)
    assert isinstance(oracle.judge_real(registry.operator_of("Relu"), node), Outputs)


def test_a_moved_node_is_asked_what_its_page_leaves_open_and_nothing_else() -> None:
    operator, x = registry.operator_of("GridSample"), Operand("X", np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3))
    for place, kind in ((0.25, Outputs), (1 / 3, Open)):  # one third of 3 is half-way between two elements
        grid = np.full((1, 1, 1, 2), place, np.float32)
        node = Node("GridSample", "", 16, (x, Operand("grid", grid)), ("Y",), {"mode": "nearest"})
        assert isinstance(oracle.judge_moved(operator, node), kind)
        assert isinstance(oracle.judge(operator, node), kind)
    large = Node("Relu", "", 14, (Operand("X", np.zeros((1,) * 9, np.float32)),), ("Y",))
    found = oracle.judge_moved(registry.operator_of("Relu"), large)
    assert isinstance(found, Open)
    assert found.reason == "an output has more than 8 dimensions"


def test_the_mean_of_a_window_of_padding_is_open() -> None:
    scale = np.ones((), np.float32)
    zero = np.zeros((), np.int8)
    operands = [("X", np.zeros((1, 1, 1), np.int8)), ("x_scale", scale), ("x_zero_point", zero), ("y_scale", scale)]
    inputs = tuple(Operand(name, value) for name, value in (*operands, ("y_zero_point", zero)))
    operator = registry.operator_of("com.microsoft::QLinearAveragePool")
    for pads, kind in (((0, 1), Open), ((0, 0), Outputs)):
        attributes = {"kernel_shape": (1,), "pads": pads}
        node = Node("QLinearAveragePool", "com.microsoft", 1, inputs, ("Y",), attributes)
        assert isinstance(oracle.judge(operator, node), kind)


def test_what_breaks_a_rule_is_a_refusal() -> None:
    found = judged("Transpose", 13, ("data", F32), perm=(0, 0))
    assert isinstance(found, Refusal)


def test_a_range_of_a_billion_elements_is_open_at_once() -> None:
    started = time.monotonic()
    scalars = [("start", 0), ("limit", 10**9), ("delta", 1)]
    found = reason("Range", 11, *((name, np.array(value, np.int64)) for name, value in scalars))
    assert found == "the oracle would make more than 262,144 elements"
    assert time.monotonic() - started < 1


NEAR_A_TIE = np.array([[[[0.0, -0.11111111]]]], np.float32)
CORNERS = np.arange(6).reshape(1, 1, 2, 3)


@pytest.mark.parametrize(
    ("op_type", "version", "inputs", "attributes", "words"),
    [
        (
            "GridSample",
            20,
            [("X", np.ones((1, 1, 9, 1), np.float32)), ("grid", NEAR_A_TIE)],
            {"mode": "nearest"},
            "a location is half-way between two elements",
        ),
        ("Clip", 6, [("input", F32)], {"min": 0.0, "max": -1.0}, "the minimum is above the maximum"),
        (
            "MaxUnpool",
            11,
            [("X", np.ones((1, 1, 2, 3), np.float32)), ("I", CORNERS), ("output_shape", np.array([1, 2, 5, 6]))],
            {"kernel_shape": (2, 2)},
            "output_shape has other batches or channels",
        ),
        (
            "MaxUnpool",
            11,
            [("X", np.ones((1, 1, 2, 3), np.float32)), ("I", CORNERS), ("output_shape", np.array([1, 1, 5, 6]))],
            {"kernel_shape": (2, 2)},
            "indices may count in output_shape or in the inferred shape",
        ),
    ],
)
def test_what_a_page_leaves_to_rounding_or_to_the_reader_is_open(
    op_type: str, version: int, inputs: list[tuple[str, Array]], attributes: dict[str, object], words: str
) -> None:
    assert reason(op_type, version, *inputs, **attributes) == words


def test_beside_what_is_left_open_there_is_a_truth() -> None:
    """A location that is no tie, a Clip whose page says what comes out, rows below those that are inferred."""
    x, grid = ("X", np.arange(9, dtype=np.float32).reshape(1, 1, 9, 1)), ("grid", NEAR_A_TIE + np.float32(0.05))
    sampled = judged("GridSample", 20, x, grid, mode="nearest")
    clipped = judged("Clip", 13, ("input", F32), ("min", np.float32(0)), ("max", np.float32(-1)))
    image = np.arange(1, 7, dtype=np.float32).reshape(1, 1, 2, 3)
    shape = ("output_shape", np.array([1, 1, 4, 4]))
    unpooled = judged("MaxUnpool", 11, ("X", image), ("I", CORNERS), shape, kernel_shape=(2, 2))
    values = [found.outputs[0].value.tolist() for found in (sampled, clipped, unpooled) if isinstance(found, Outputs)]
    assert values[:2] == [[[[[4.0]]]], [[-1.0] * 3] * 2]
    assert values[2] == [[[[1, 2, 3, 4], [5, 6, 0, 0], [0] * 4, [0] * 4]]]


@pytest.mark.parametrize(
    ("op_type", "version", "inputs", "attributes", "words"),
    [
        ("ReduceSum", 13, [("data", F32)], {"keepdims": 3}, "keepdims is a flag, and 3 is neither 0 nor 1"),
        ("LRN", 13, [("X", np.ones((1, 3, 2, 2), np.float32))], {}, "the attribute size is required"),
        ("Softmax", 13, [("input", F32)], {"axes": 1}, "the schema has no attribute axes"),
        ("Div", 14, [("A", np.ones(1, np.int32)), ("B", np.zeros(1, np.int32))], {}, "integers are divided by 0"),
        ("ReduceMean", 18, [("data", np.array([1, 2], np.int32))], {}, "the result is a fraction"),
        ("Pad", 18, [("data", np.ones(2, np.float32)), ("pads", np.array([2, 0]))], {"mode": "reflect"}, "reflected"),
        ("MaxPool", 12, [("X", np.ones((1, 1, 4), np.float32))], {"kernel_shape": (2,), "auto_pad": "VALID",
         "pads": (1, 1)}, "pads cannot be used together with auto_pad"),
        ("Conv", 11, [("X", np.ones((1, 1, 4), np.float32))], {}, "the input W is required"),
        ("Shrink", 9, [("input", np.ones(1, np.uint8))], {"bias": 1e-6}, "a fraction is taken from an integer"),
        ("Relu", 14, [("X", np.ones((1,) * 9, np.float32))], {}, "more than 8 dimensions"),
        ("Relu", 14, [("X", np.ones(2**19, np.float32))], {}, "more than 262,144 elements"),
    ],
)  # fmt: skip
def test_what_the_standard_leaves_open_is_not_judged(
    op_type: str, version: int, inputs: list[tuple[str, Array]], attributes: dict[str, object], words: str
) -> None:
    assert words in reason(op_type, version, *inputs, **attributes)


IMAGE = ("X", np.ones((1, 1, 4, 4), np.float32))
BATCH = ("batch_indices", np.zeros(1, np.int64))
SCALAR = np.float32(0.5)
THETA = ("theta", np.zeros((1, 2, 3), np.float32))


@pytest.mark.parametrize(
    ("op_type", "version", "inputs", "attributes", "words"),
    [
        ("AffineGrid", 20, [THETA, ("size", np.array([1, 0, 0, 0]))], {}, "the image has no pixels"),
        ("AffineGrid", 20, [THETA, ("size", np.array([1, 1, 1, 3]))], {"align_corners": 1}, "one pixel has both"),
        ("QuantizeLinear", 21, [("x", F32), ("y_scale", SCALAR)], {"block_size": 1}, "one scale for all elements"),
        ("Split", 18, [("input", F32)], {"num_outputs": 4}, "the chunks are more than there are elements"),
        ("OneHot", 11, [("indices", np.array([0])), ("depth", np.array([-1])), ("values", np.zeros(2, np.float32))], {},
         "depth is below 1"),
        ("RoiAlign", 16, [IMAGE, ("rois", np.zeros((1, 4), np.float32)), BATCH], {}, "a region has no extent"),
        ("RoiAlign", 16, [IMAGE, ("rois", np.array([[0, 0, 1, 5]], np.float32)), BATCH], {}, "beyond the image"),
        ("Squeeze", 1, [("data", np.ones((1, 2), np.float32))], {"axes": ()}, "no sample has axes without elements"),
        ("Expand", 13, [("input", F32), ("shape", np.array([-1, 3]))], {}, "an element below 0"),
        ("ConvTranspose", 11, [("X", np.ones((31, 3, 4, 5), np.float32)), ("W", np.ones((3, 2, 31, 31), np.float32))],
         {}, "the oracle would make more than"),
    ],
)  # fmt: skip
def test_sizes_and_counts_outside_of_what_pages_define_are_not_judged(
    op_type: str, version: int, inputs: list[tuple[str, Array]], attributes: dict[str, object], words: str
) -> None:
    operands = tuple(Operand(n, np.asarray(v), parameter=i > 0) for i, (n, v) in enumerate(inputs))
    node = Node(op_type, "", version, operands, ("output",), attributes)  # type: ignore[arg-type]
    found = oracle.judge(registry.operator_of(op_type), node)
    assert isinstance(found, Open)
    assert words in found.reason


@pytest.mark.parametrize(
    ("key", "inputs", "attributes", "words"),
    [
        ("com.microsoft::QLinearAdd", [("A", np.zeros(1, np.int8)), ("A_scale", SCALAR), ("A_zero_point", np.int8(1)),
         ("B", np.zeros(1, np.int8)), ("B_scale", SCALAR), ("B_zero_point", np.int8(0)), ("C_scale", np.float32(1)),
         ("C_zero_point", np.int8(1))], {}, "ties beside an odd zero point"),
        ("com.microsoft::FusedMatMulActivation", [("A", F32), ("B", F32.T[None])], {"activation": "Softmax"},
         "no activation_axis"),
        ("com.microsoft.dml::DmlFusedSum", [("data_0_0", F32), ("data_0_1", F32)], {"fused_activation": "LeakyRelu",
         "fused_activation_domain": "", "fused_activation_since_version": 1}, "LeakyRelu has no version 1"),
    ],
)  # fmt: skip
def test_what_documentation_of_runtimes_leaves_open_is_not_judged(
    key: str, inputs: list[tuple[str, Array]], attributes: dict[str, object], words: str
) -> None:
    domain, _, op_type = key.rpartition("::")
    assert words in reason(op_type, 1, *((n, np.asarray(v)) for n, v in inputs), domain=domain, **attributes)


def test_what_no_sample_shows_is_not_judged() -> None:
    scale = [("X", np.ones((2, 3), np.float32)), ("Scale", np.ones(3, np.float32))]
    assert "epsilon at -1.0: none is below 0" in reason("LayerNormalization", 17, *scale, epsilon=-1.0)
    zero = [("x", F32), ("y_scale", np.float32(0)), ("y_zero_point", np.uint8(1))]
    assert "y_scale at 0 or below" in reason("QuantizeLinear", 13, *((n, np.asarray(v)) for n, v in zero))
    assert "size of 0 in dimension" in reason("LpNormalization", 1, ("input", np.ones((2, 0), np.float32)))


def test_a_determinant_is_judged_as_long_as_that_takes_milliseconds() -> None:
    matrices = [("X", np.eye(size, dtype=np.float32)) for size in (33, 65)]
    small, large = (judged("Det", 22, matrix) for matrix in matrices)
    assert isinstance(small, Outputs)
    assert large == Open(f"the oracle would make more than {oracle.MOST_ELEMENTS:,} elements")


def test_an_oracle_that_raises_has_no_say(monkeypatch: pytest.MonkeyPatch) -> None:
    def raises(_node: Node) -> Outputs:
        raise ZeroDivisionError("no sample prepared it for that")

    relu = registry.operator_of("Relu")
    monkeypatch.setitem(vars(relu), "truth", raises)
    node = Node("Relu", "", 14, (Operand("X", F32),), ("Y",))
    assert oracle.judge(relu, node) == Open(
        "the oracle does not know the node: ZeroDivisionError: no sample prepared it for that"
    )


def test_a_negative_axis_of_flatten_is_refused_before_it_was_allowed() -> None:
    x = ("input", np.zeros((2, 3), np.float32))
    assert judged("Flatten", 9, x, axis=-1) == Refusal("axis -1 must be within [0, 2]")
    found = judged("Flatten", 11, x, axis=-1)
    assert isinstance(found, Outputs)
    assert found.outputs[0].value.shape == (2, 3)


def test_no_classes_have_no_index() -> None:
    inputs = (("indices", np.array([0])), ("values", np.zeros(2, np.float32)))
    assert reason("OneHot", 11, inputs[0], ("depth", np.array(0)), inputs[1]) == "depth is below 1"


@pytest.mark.parametrize(("shape", "is_open"), [((2, 4), False), ((1, 4), True), ((4,), True)])
def test_a_skip_of_one_batch_needs_batches(shape: tuple[int, ...], is_open: bool) -> None:
    inputs = (("input", np.ones((2, 4), np.float32)), ("skip", np.ones(shape, np.float32)))
    name = "SkipSimplifiedLayerNormalization"
    found = judged(name, 1, *inputs, ("gamma", np.ones(4, np.float32)), domain="com.microsoft")
    assert isinstance(found, Open) == is_open, found


@pytest.mark.parametrize(("x", "is_open"), [(-0.24800001084804535, True), (-0.247, False), (0.001, False)])
def test_a_quotient_beside_the_middle_of_two_values_of_float8_is_open(x: float, is_open: bool) -> None:
    """-247.999999 becomes -240, and -248, to which float32 rounds it, NaN."""
    zero = Operand("y_zero_point", np.zeros((), ml_dtypes.float8_e4m3fnuz), parameter=True)
    operands = (Operand("x", np.array([x], np.float32)), Operand("y_scale", np.array(0.001, np.float32)), zero)
    node = Node("QuantizeLinear", "", 23, operands, ("y",), {"saturate": 0})
    assert bool(families.why_open(node)) == is_open
