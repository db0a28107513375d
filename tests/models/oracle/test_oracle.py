"""The oracle of whole models: against numpy by hand, against onnx's node tests, and saying so where it cannot."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from epcheck.generators.array import Array
from epcheck.models import zoo
from epcheck.models.feeds import feeds
from epcheck.models.oracle import control_flow, convolution, oracle
from epcheck.models.oracle.node import OracleError
from epcheck.models.oracle.oracle import OracleTooLargeError
from tests.models.written_models import model

RNG = np.random.default_rng(5)


def says(built: onnx.ModelProto, inputs: Mapping[str, feeds.Feed], *outputs: str) -> dict[str, Array]:
    return {name: np.asarray(value) for name, value in oracle.evaluate(built, inputs, outputs).values.items()}


def normal(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)


def cast_and_back(source: int, to: int, count: int, **attributes: int) -> onnx.ModelProto:
    nodes = [helper.make_node("Cast", ["x"], ["a"], to=to, **attributes),
             helper.make_node("Cast", ["a"], ["y"], to=source)]  # fmt: skip
    ends = [helper.make_tensor_value_info(name, source, [count]) for name in "xy"]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize(("to", "source", "x"), [
    *((to, TensorProto.FLOAT, HALVES[np.isfinite(HALVES)]) for to in (
        TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E4M3FNUZ, TensorProto.FLOAT8E5M2, TensorProto.FLOAT8E5M2FNUZ)),
    (TensorProto.INT4, TensorProto.INT8, np.arange(-8, 8, dtype=np.int8)),
    (TensorProto.UINT4, TensorProto.UINT8, np.arange(16, dtype=np.uint8)),
])  # fmt: skip
def test_a_cast_to_8_bit_floats_and_4_bit_integers_is_what_the_cpu_provider_gives(
    to: int, source: int, x: Array
) -> None:
    built = cast_and_back(source, to, x.size)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(built.SerializeToString(), options, providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(says(built, {"x": x})["y"], session.run(None, {"x": x})[0])


def test_two_layers_are_what_numpy_computes_in_float64() -> None:
    x, w, b, v = normal(3, 5), normal(5, 4), normal(4), normal(4, 2)
    built = model("g (float[3,5] x, float[5,4] w, float[4] b, float[4,2] v) => (float[3,2] y) {"
                  " h = Gemm(x, w, b) r = Tanh(h) y = MatMul(r, v) }")  # fmt: skip
    wide = [array.astype(np.float64) for array in (x, w, b, v)]
    expected = np.tanh(wide[0] @ wide[1] + wide[2]) @ wide[3]
    found = says(built, {"x": x, "w": w, "b": b, "v": v})["y"]
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert np.abs(found - expected.astype(np.float32)).max() > 1e-9, "float32 would have been enough to pass"


def test_attention_by_hand() -> None:
    q, k, v = normal(1, 4, 6), normal(1, 4, 6), normal(1, 4, 6)
    built = model("""g (float[1,4,6] q, float[1,4,6] k, float[1,4,6] v) => (float[1,4,6] y) <float d = {2.4494898}> {
        t = Transpose<perm = [0, 2, 1]>(k)
        s = MatMul(q, t)
        scaled = Div(s, d)
        p = Softmax<axis = -1>(scaled)
        y = MatMul(p, v)
    }""")
    wide = [array[0].astype(np.float64) for array in (q, k, v)]
    scores = wide[0] @ wide[1].T / float(np.float32(2.4494898))
    weights = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    np.testing.assert_allclose(says(built, {"q": q, "k": k, "v": v})["y"][0], weights @ wide[2], rtol=1e-13)


def test_layer_normalization_and_gelu_by_hand() -> None:
    x, scale = normal(2, 8), normal(8)
    built = model("g (float[2,8] x, float[8] s) => (float[2,8] y) {"
                  " n = LayerNormalization<epsilon = 0.125>(x, s) y = Gelu(n) }", opset=20)  # fmt: skip
    wide = x.astype(np.float64)
    centred = wide - wide.mean(1, keepdims=True)
    normalised = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 0.125) * scale
    expected = 0.5 * normalised * (1 + np.vectorize(math.erf)(normalised / math.sqrt(2)))
    np.testing.assert_allclose(says(built, {"x": x, "s": scale})["y"], expected, rtol=1e-13)


def test_nothing_is_rounded_on_the_way_not_even_by_a_cast() -> None:
    """1 + 2^-20 survives a detour through float16, which would make it 1."""
    built = model("g (float[1] x) => (float[1] y) { h = Cast<to = 10>(x) s = Add(h, h) y = Cast<to = 1>(s) }")
    assert says(built, {"x": np.array([1 + 2**-20], np.float32)})["y"].tolist() == [2 + 2**-19]


def test_float16_and_bfloat16_weights_are_taken_exactly() -> None:
    for dtype in (TensorProto.FLOAT16, TensorProto.BFLOAT16):
        weight = helper.make_tensor("w", dtype, (1,), np.array([0.1], helper.tensor_dtype_to_np_dtype(dtype)))
        graph = helper.make_graph(
            [helper.make_node("Mul", ["w", "w"], ["y"])], "g", [], [helper.make_tensor_value_info("y", dtype, (1,))],
            [weight],
        )  # fmt: skip
        built = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        exact = float(numpy_helper.to_array(weight).astype(np.float64)[0])
        assert says(built, {})["y"].tolist() == [exact * exact]


def test_constants_are_widened_whatever_attribute_holds_them() -> None:
    built = model("""g () => (float[2] y) {
        a = Constant<value_floats = [0.5, 0.25]>()
        b = Constant<value_float = 0.125>()
        c = Constant<value = float {2.0}>()
        n = Constant<value_ints = [2]>()
        z = ConstantOfShape<value = float[1] {3.0}>(n)
        s = Sum(a, b, c, z)
        y = Identity(s)
    }""")
    found = says(built, {})["y"]
    assert (found.dtype, found.tolist()) == (np.float64, [5.625, 5.375])


def test_a_quantisation_in_the_middle_stays_one() -> None:
    x = np.array([0.26, -0.9, 3.0, 100.0], np.float32)
    built = model("g (float[4] x) => (float[4] y) <float s = {0.5}, uint8 z = {2}> {"
                  " q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }")  # fmt: skip
    assert says(built, {"x": x})["y"].tolist() == [0.5, -1.0, 3.0, 100.0]


def test_a_scalar_zero_point_beside_a_scale_of_one_element_is_read_as_runtimes_do() -> None:
    built = model("g (uint8[3] x, float[1] s, uint8 z) => (float[3] y) { y = DequantizeLinear(x, s, z) }")
    inputs = {"x": np.array([0, 5, 9], np.uint8), "s": np.array([0.5], np.float32), "z": np.array(5, np.uint8)}
    assert says(built, inputs)["y"].tolist() == [-2.5, 0, 2]


def test_values_of_the_middle_can_be_asked_for() -> None:
    built = model("g (float[2] x) => (float[2] y) { h = Neg(x) y = Relu(h) }")
    found = says(built, {"x": np.array([1, -2], np.float32)}, "h", "y")
    assert {name: value.tolist() for name, value in found.items()} == {"h": [-1, 2], "y": [0, 2]}


def test_local_functions_with_attributes_are_computed() -> None:
    built = zoo.named("local_function").build()
    tokens = normal(1, 16, 24)
    weights = {tensor.name: numpy_helper.to_array(tensor).astype(np.float64) for tensor in built.graph.initializer}

    def mix(x: Array, prefix: str) -> Array:
        root = np.sqrt((x * x).mean(-1, keepdims=True) + float(np.float32(1e-5)))
        hidden = (x / root * weights[f"{prefix}.scale"]) @ weights[f"{prefix}.inner"]
        update: Array = (hidden / (1 + np.exp(-hidden))) @ weights[f"{prefix}.outer"]
        return x + update

    x = tokens.astype(np.float64)
    for index in range(3):
        x = mix(mix(x.transpose(0, 2, 1), f"tokens{index}").transpose(0, 2, 1), f"channels{index}")
    np.testing.assert_allclose(
        says(built, {"tokens": tokens})["logits"], x.mean(1) @ weights["head.weight"], rtol=1e-12
    )


def test_the_lstm_tagger_by_hand() -> None:
    """One word, so that the backward direction sees what the forward one sees; gates in ONNX's order i, o, f, c."""
    built = zoo.named("lstm_tagger").build()
    weights = {tensor.name: numpy_helper.to_array(tensor).astype(np.float64) for tensor in built.graph.initializer}

    def sigmoid(x: Array) -> Array:
        return 1 / (1 + np.exp(-x))

    x = weights["embedding.weight"][[3]]
    for layer in ("lstm0", "lstm1"):
        halves = []
        for way in (0, 1):
            gates = x @ weights[f"{layer}.weight_ih"][way].T + weights[f"{layer}.bias"][way].reshape(2, -1).sum(0)
            i, o, _, c = np.split(gates, 4, axis=1)
            halves.append(sigmoid(o) * np.tanh(sigmoid(i) * np.tanh(c)))
        x = np.concatenate(halves, axis=1)
    logits = x @ weights["tags.weight"] + weights["tags.bias"]
    expected = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    found = says(built, {"words": np.array([[3]]), "lengths": np.array([1], np.int32)})
    np.testing.assert_allclose(found["log_probabilities"][0], expected, rtol=1e-12)
    assert found["tags"].tolist() == [expected.argmax(1).tolist()]


@pytest.mark.parametrize("attributes", ["strides = [2, 1], pads = [1, 0, 2, 1]", "dilations = [2, 2]", "group = 2"])
def test_a_convolution_by_the_definition(attributes: str) -> None:
    x, w, b = normal(2, 4, 7, 6), normal(6, 2 if "group" in attributes else 4, 3, 2), normal(6)
    built = model(f"g (float[2,4,7,6] x, float[6,M,3,2] w, float[6] b) => (float[N,C,H,W] y) {{"
                  f" y = Conv<{attributes}>(x, w, b) }}")  # fmt: skip
    attributes = {a.name: list(a.ints) or a.i for a in built.graph.node[0].attribute}
    strides, dilations = attributes.get("strides", [1, 1]), attributes.get("dilations", [1, 1])
    top, left, bottom, right = attributes.get("pads", [0] * 4)
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (top, bottom), (left, right)))
    found = says(built, {"x": x, "w": w, "b": b})["y"]
    channels = w.shape[1]
    for n, m, row, column in np.ndindex(*found.shape):
        first = m // (6 // attributes.get("group", 1)) * channels
        rows, columns = row * strides[0], column * strides[1]
        window = padded[n, first : first + channels, rows : rows + 2 * dilations[0] + 1 : dilations[0],
                        columns : columns + dilations[1] + 1 : dilations[1]]  # fmt: skip
        assert found[n, m, row, column] == pytest.approx((window * w[m]).sum() + b[m], rel=1e-12, abs=1e-12)


def test_a_convolution_of_each_channel_with_its_own_kernel() -> None:
    x, w = normal(2, 5, 7, 6), normal(5, 1, 3, 2)
    attributes = "strides = [2, 1], pads = [1, 0, 2, 1], dilations = [1, 2]"
    whole = model(f"g (float[2,5,7,6] x, float[5,1,3,2] w) => (float[N,C,H,W] y) {{"
                  f" y = Conv<group = 5, {attributes}>(x, w) }}")  # fmt: skip
    single = model(f"g (float[2,1,7,6] x, float[1,1,3,2] w) => (float[N,C,H,W] y) {{ y = Conv<{attributes}>(x, w) }}")
    found = says(whole, {"x": x, "w": w})["y"]
    assert found.shape == (2, 5, 4, 5)
    for channel in range(5):
        part = slice(channel, channel + 1)
        expected = says(single, {"x": x[:, part], "w": w[part]})["y"]
        np.testing.assert_allclose(found[:, part], expected, rtol=1e-12, atol=1e-12)


def test_a_convolution_that_the_standard_forbids_is_named() -> None:
    built = model("g (float[1,4,3,3] x, float[2,3,2,2] w) => (float[1,2,2,2] y) { y = Conv(x, w) }")
    built.graph.node[0].name = "first"
    with pytest.raises(OracleError, match=r"node 'first' \(Conv\) must be refused: x has 4 channels"):
        oracle.evaluate(built, {"x": normal(1, 4, 3, 3), "w": normal(2, 3, 2, 2)})


@pytest.mark.slow
def test_the_fast_convolution_is_the_suites() -> None:
    from epcheck.generators import suite
    from epcheck.generators.truth import Outputs

    count = 0
    for case in suite.cases(["Conv"], ["float32"], ["Conv-22/float32/*"]):
        built = case.build()
        if isinstance(built.truth, Outputs):
            found = convolution.evaluate(built.node)
            exact = built.truth.outputs[0].exact
            np.testing.assert_allclose(np.asarray(found, np.float64), exact, rtol=1e-11, atol=1e-12)
            count += 1
    assert count > 20


@pytest.mark.parametrize("architecture", zoo.all(), ids=lambda architecture: architecture.name)
def test_the_cpu_provider_is_near_the_oracle_on_every_architecture(architecture: zoo.Architecture) -> None:
    """Two computations that share nothing: ours in float64, and onnxruntime's; fused, float16 where the model is;
    without the 16-bit sums of uint8 by int8 that saturate on x86 processors without VNNI (ONNX Runtime's documentation
    of quantisation)."""
    built = architecture.build()
    inputs = feeds.generate(built, 1, {name: sizes[-1] for name, sizes in architecture.dims.items()})
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.x64quantprecision", "1")
    session = onnxruntime.InferenceSession(built.SerializeToString(), options, providers=["CPUExecutionProvider"])
    truth = says(built, inputs)
    for output, value in zip(session.get_outputs(), session.run(None, inputs), strict=True):
        if value.dtype.kind == "f":
            eps = float(np.finfo(value.dtype).eps)
            np.testing.assert_allclose(value, truth[output.name], rtol=100 * eps, atol=100 * eps, err_msg=output.name)
        else:
            np.testing.assert_array_equal(value, truth[output.name])


def test_who_computed_an_operator_is_told() -> None:
    judges = oracle.evaluate(zoo.named("ssd").build(), feeds.generate(zoo.named("ssd").build())).judges
    assert (judges["Conv"], judges["NonMaxSuppression"]) == ("epcheck.generators", "epcheck.generators")
    built = model("g (string[2] x) => (string[2] y) { y = StringConcat(x, x) }")
    assert oracle.evaluate(built, {"x": np.array(["a", "b"], object)}).judges == {"StringConcat": "onnx.reference"}


def test_random_numbers_have_no_truth() -> None:
    built = model("g (float[3] x) => (float[3] y) { y = RandomNormalLike(x) }")
    built.graph.node[0].name = "noise"
    with pytest.raises(OracleError, match=r"node 'noise' \(RandomNormalLike\) draws random numbers"):
        oracle.evaluate(built, {"x": normal(3)})


def test_a_dropout_that_is_not_training_is_nothing() -> None:
    built = model("g (float[3] x) => (float[3] y) { y = Dropout(x) }")
    x = normal(3)
    np.testing.assert_array_equal(says(built, {"x": x})["y"], x)


def test_an_operator_of_which_nobody_knows_is_named() -> None:
    built = model("g (float[3] x) => (float[3] y) { y = other.Secret(x) }", imports=', "other": 1')
    with pytest.raises(
        OracleError, match=r"the other::Secret that writes 'y' has no oracle: neither epcheck nor .* knows it"
    ):
        oracle.evaluate(built, {"x": normal(3)})


def test_a_model_that_is_too_large_is_refused_at_once() -> None:
    built = model("g (float[N,N] x) => (float[N,N] y) { y = MatMul(x, x) }")
    with pytest.raises(OracleTooLargeError, match=r"takes 2\.0e\+06 operations; the oracle does 1\.0e\+06"):
        oracle.evaluate(built, {"x": normal(100, 100)}, max_operations=1_000_000)


def test_what_only_the_run_shows_to_be_too_large_is_ended_there() -> None:
    built = zoo.named("control_flow").build()
    inputs = feeds.generate(built) | {"max_steps": np.array(10**6, np.int64)}
    with pytest.raises(OracleTooLargeError, match="exceeds the"):
        oracle.evaluate(built, inputs, max_operations=3000)


def test_a_loop_that_never_ends_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_flow, "MOST_ITERATIONS", 50)
    built = model(
        """g (bool go) => (int64 y) <int64 zero = {0}> {
        y = Loop ("", go, zero) <body = b (int64 i, bool c, int64 v) => (bool d, int64 w) {
            d = Identity(c)
            w = Identity(i)
        }>
    }""".replace('""', "")
    )
    with pytest.raises(OracleError, match="goes on beyond 50 iterations"):
        oracle.evaluate(built, {"go": np.array(True)})


ML = ', "ai.onnx.ml": 3'


@pytest.mark.parametrize(
    ("node", "why"),
    [
        ("SVMClassifier <classlabels_ints=[0, 1]> (x)", "without support vectors"),
        ('Normalizer <norm="MAX"> (x)', "largest magnitude"),
        ("LinearClassifier <classlabels_ints=[0, 1], coefficients=[1.0, 2.0]> (x)", "one score becomes those of two"),
        ('LinearRegressor <post_transform="PROBIT", coefficients=[1.0, 2.0]> (x)', "does not define PROBIT"),
    ],
)
def test_what_the_reference_gets_wrong_has_no_oracle(node: str, why: str) -> None:
    built = model(f"g (float[3, 2] x) => (float[n, m] y) {{ y = ai.onnx.ml.{node} }}", imports=ML)
    with pytest.raises(OracleError, match=f"has no oracle: .*{why}"):
        oracle.evaluate(built, {"x": normal(3, 2)})


def test_two_classes_with_logistic_have_one() -> None:
    weights = "coefficients=[1.0, 2.0], intercepts=[0.5]"
    node = f'LinearClassifier <classlabels_ints=[0, 1], {weights}, post_transform="LOGISTIC"> (x)'
    built = model(f"g (float[3, 2] x) => (int64[3] l, float[3, 2] p) {{ l, p = ai.onnx.ml.{node} }}", imports=ML)
    x = normal(3, 2)
    score = 1 / (1 + np.exp(-(x.astype(np.float64) @ [1.0, 2.0] + 0.5)))
    np.testing.assert_allclose(says(built, {"x": x})["p"], np.stack([1 - score, score], 1), rtol=1e-6)


def test_batch_normalization_that_trains_has_no_oracle_before_opset_14() -> None:
    built = model("g (float[2, 3] x, float[3] s) => (float[2, 3] y, float[3] m) "
                  "{ y, m, v, a, b = BatchNormalization(x, s, s, s, s) }", opset=12)  # fmt: skip
    with pytest.raises(OracleError, match="has no oracle: in opset 12 it trains"):
        oracle.evaluate(built, {"x": normal(2, 3), "s": normal(3)})


def test_a_fourier_transform_of_a_signal_without_its_last_dimension() -> None:
    built = model(
        "g (float[1, 32] x, float[8] w) => (float[1, n, 5, 2] y) { s = Constant <value_int=4> () y = STFT(x, s, w) }"
    )
    x, w = normal(1, 32), np.ones(8, np.float32)
    frames = np.stack([x[0, at : at + 8].astype(np.float64) for at in range(0, 25, 4)])
    expected = np.fft.rfft(frames)
    found = says(built, {"x": x, "w": w})["y"][0]
    np.testing.assert_allclose(found, np.stack([expected.real, expected.imag], -1), atol=1e-12)


def test_the_oracle_stops_when_its_time_is_up() -> None:
    built = model("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    with pytest.raises(OracleTooLargeError, match="time limit reached at the Relu"):
        oracle.evaluate(built, {"x": normal(2)}, max_seconds=-1)


@pytest.mark.parametrize(("operator", "expected"), [("Add", 0.3), ("Sub", 0.1), ("Mul", 0.02), ("Div", 2.0)])
def test_arithmetic_is_never_rounded_to_float32(operator: str, expected: float) -> None:
    built = model(
        f"g (float[2, 3] x, float s) => (float[2, 3] y, float z) {{ y = {operator}(x, s) z = {operator}(s, s) }}"
    )
    x, s = np.full((2, 3), 0.2, np.float32), np.array(0.1, np.float32)
    found = says(built, {"x": x, "s": s})
    wide = getattr(np, {"Add": "add", "Sub": "subtract", "Mul": "multiply", "Div": "divide"}[operator])
    assert np.array_equal(found["y"], wide(x.astype(np.float64), s.astype(np.float64)))
    assert found["y"][0, 0] == pytest.approx(expected, rel=1e-6)
    assert (found["z"].shape, found["z"].dtype) == ((), np.float64)
