"""Every node of a model that runs is judged alone, and none within its bound is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from epcheck.models.execution.model_outcome import DONE
from epcheck.models.feeds.trials import Trial
from epcheck.models.validation import truth
from epcheck.models.wrong_nodes.all_wrong_nodes import all_wrong_nodes
from epcheck.models.wrong_nodes.culprit import Kind
from epcheck.models.wrong_nodes.fusion import is_beyond_rounding
from epcheck.models.wrong_nodes.judged_nodes import JudgedNodes, judge_nodes
from epcheck.models.wrong_nodes.options import SearchOptions
from epcheck.models.wrong_nodes.search import Search
from tests.models.in_process_targets import Cpu, Failing, Wrong
from tests.models.small_models import floats, model

Array = np.ndarray[Any, np.dtype[Any]]


def half(depth: int = 3) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """Conv with bias and Relu in float16, `depth` times, and a Gemm of 1024 terms; node i is `n{i}`."""
    rng = np.random.default_rng(1)
    nodes, weights, value = [], {}, "x"
    for layer in range(depth):
        weights[f"w{layer}"] = (rng.standard_normal((16, 16, 3, 3)) / 12).astype(np.float16)
        weights[f"b{layer}"] = rng.standard_normal(16).astype(np.float16)
        nodes += [
            helper.make_node(
                "Conv", [value, f"w{layer}", f"b{layer}"], [f"c{layer}"], name=f"n{2 * layer}", pads=[1, 1, 1, 1]
            ),
            helper.make_node("Relu", [f"c{layer}"], [f"r{layer}"], name=f"n{2 * layer + 1}"),
        ]
        value = f"r{layer}"
    weights["m"] = (rng.standard_normal((1024, 10)) / 32).astype(np.float16)
    nodes += [helper.make_node("Flatten", [value], ["f"], name=f"n{2 * depth}"),
              helper.make_node("MatMul", ["f", "m"], ["y"], name=f"n{2 * depth + 1}")]  # fmt: skip
    kinds = [helper.make_tensor_value_info(name, TensorProto.FLOAT16, dims)
             for name, dims in (("x", [1, 16, 8, 8]), ("y", [1, 10]))]  # fmt: skip
    found = model(nodes, kinds[:1], [], weights)
    found.graph.output.append(kinds[1])
    return found, {"x": rng.standard_normal((1, 16, 8, 8)).astype(np.float16)}


def judge(proto: onnx.ModelProto, feeds: dict[str, Array], candidate: Any) -> JudgedNodes:
    known = truth.of_trials(proto, {0: Trial("the feeds", feeds, ())}, 1)
    assert known.inner
    return judge_nodes(proto, feeds, candidate, Cpu(), SearchOptions(truth=known.inner))


def gain(by: float) -> Callable[[onnx.NodeProto, Array], Array]:
    return lambda _node, value: (value.astype(np.float64) * by).astype(value.dtype)


@pytest.mark.parametrize(("place", "by"), [(0, 1.02), (2, 1.005), (3, 0.95), (7, 1.02)])
def test_a_node_in_float16_that_is_a_little_wrong_is_named_alone(place: int, by: float) -> None:
    found = judge(*half(), Wrong(wrong={f"n{place}": gain(by)}))
    assert found.wrong is not None
    assert [each.node for each in found.wrong] == [place]
    assert "allowed are 8 times (the operator's oracle)" in found.culprits[0].words
    assert found.words == "all 8 nodes were judged alone, on the oracle's values: 1 beyond the bound"


def test_a_wrong_bias_of_one_channel_is_named() -> None:
    def move(_node: onnx.NodeProto, value: Array) -> Array:
        moved = value.copy()
        moved[:, 3] += np.float16(0.02)
        return moved

    found = judge(*half(), Wrong(wrong={"n4": move}))
    assert found.wrong is not None
    assert [each.node for each in found.wrong] == [4]


def test_an_honest_target_and_one_that_cuts_digits_off_have_no_wrong_node() -> None:
    def cut(_node: onnx.NodeProto, value: Array) -> Array:
        """Toward zero, as DirectML converts a sum in float32 to float16."""
        return np.where(value == 0, value, np.nextafter(value, np.float16(0)))

    for candidate in (Wrong(), Wrong(wrong={f"n{place}": cut for place in range(8)})):
        found = judge(*half(), candidate)
        assert (found.wrong, found.culprits) == ((), ())
        assert found.words.endswith("none beyond the bound")


@pytest.mark.parametrize("by", [1.02, 0.95])
def test_a_quantised_node_is_named_and_a_value_between_two_steps_is_not(by: float) -> None:
    rng = np.random.default_rng(2)
    weights = {"s": np.float32(0.02), "z": np.uint8(128), "x": rng.uniform(-2, 2, (1, 4, 16, 16)).astype(np.float32)}
    nodes = [helper.make_node("Abs", ["x"], ["a"], name="n0"),
             helper.make_node("QuantizeLinear", ["a", "s", "z"], ["y"], name="n1")]  # fmt: skip
    feeds = {"x": weights.pop("x")}
    proto = model(nodes, [floats("x", 1, 4, 16, 16)], [], weights)
    proto.graph.output.append(helper.make_tensor_value_info("y", TensorProto.UINT8, [1, 4, 16, 16]))

    def wrong(_node: onnx.NodeProto, value: Array) -> Array:
        return np.clip(np.rint((value.astype(np.float64) - 128) * by + 128), 0, 255).astype(np.uint8)

    def one_off(_node: onnx.NodeProto, value: Array) -> Array:
        moved = value.copy()
        moved.reshape(-1)[:5] -= np.uint8(1)
        return moved

    found = judge(proto, feeds, Wrong(wrong={"n1": wrong}))
    assert found.wrong is not None
    assert [each.node for each in found.wrong] == [1]
    assert judge(proto, feeds, Wrong(wrong={"n1": one_off})).wrong == ()


def test_a_node_whose_session_fails_is_not_judged_and_that_is_said() -> None:
    found = judge(*half(), Failing(name="n3"))
    assert found.wrong == ()
    assert found.words == "7 of 8 nodes were judged alone, on the oracle's values: none beyond the bound"


def test_without_a_truth_the_nodes_are_judged_on_the_values_of_the_baseline() -> None:
    found = judge_nodes(*half(), Wrong(wrong={"n2": gain(1.02)}), Cpu(), SearchOptions())
    assert found.wrong is not None
    assert [each.node for each in found.wrong] == [2]
    assert found.words == "all 8 nodes were judged alone, on the baseline's values: 1 beyond the bound"


def test_what_is_known_to_be_wrong_alone_is_not_looked_for_again() -> None:
    proto, feeds = half()
    candidate = Wrong(wrong={"n2": gain(1.2)})
    judged = judge(proto, feeds, candidate)
    outcome = candidate(proto, feeds)
    found = all_wrong_nodes(proto, feeds, candidate, Cpu(), SearchOptions(wrong_alone=judged.wrong), outcome)
    assert outcome.stage == DONE
    assert [[node.index for node in culprit.nodes] for culprit in found.culprits] == [[2]]
    assert found.culprits[0].sessions[0] == 0


def test_nodes_within_their_bounds_are_not_named_where_the_outputs_are_wrong() -> None:
    """A Softmax of large scores amplifies the last digit of a Gemm: no node is at fault, alone or with others."""
    rng = np.random.default_rng(5)
    weights = {
        "w": rng.standard_normal((64, 32)).astype(np.float32),
        "k": np.float32(3e5),
        "axes": np.array([1], np.int64),
    }
    nodes = [helper.make_node("Gemm", ["x", "w"], ["g"], name="n0"),
             helper.make_node("Mul", ["g", "k"], ["h"], name="n1"),
             helper.make_node("Sin", ["h"], ["t"], name="n2"),
             helper.make_node("ReduceSum", ["t", "axes"], ["y"], name="n3", keepdims=0)]  # fmt: skip
    proto = model(nodes, [floats("x", 4, 64)], ["y"], weights)
    feeds = {"x": rng.standard_normal((4, 64)).astype(np.float32)}

    def last_digit(_node: onnx.NodeProto, value: Array) -> Array:
        return np.nextafter(value, np.float32(np.inf))

    candidate = Wrong(wrong={"n0": last_digit})
    found = all_wrong_nodes(proto, feeds, candidate, Cpu())
    assert [culprit.kind for culprit in found.culprits] == [Kind.ACCUMULATED]
    assert "together" not in found.culprits[0].words


def test_neighbours_that_amplify_a_rounding_are_not_wrong_together() -> None:
    """A Softmax of large scores turns the last digit of its input into another distribution, as any rounding does."""
    rng = np.random.default_rng(6)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["g"], name="n0"),
             helper.make_node("Mul", ["g", "k"], ["h"], name="n1"),
             helper.make_node("Softmax", ["h"], ["y"], name="n2")]  # fmt: skip
    weights = {"w": rng.standard_normal((64, 8)).astype(np.float16), "k": np.float16(3000)}
    kinds = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT16, dims) for name, dims in (("x", [4, 64]), ("y", [4, 8]))
    ]
    proto = model(nodes, kinds[:1], [], weights)
    proto.graph.output.append(kinds[1])
    feeds = {"x": (rng.standard_normal((4, 64)) / 1000).astype(np.float16)}

    def up(_node: onnx.NodeProto, value: Array) -> Array:
        return np.nextafter(value, np.float16(np.inf))

    search = Search(proto, feeds, Wrong(wrong={"n0": up, "n1": up}), Cpu(), SearchOptions())
    search.expect(search.possible_outputs())
    assert not is_beyond_rounding(search, (0, 1, 2))
    far = Search(proto, feeds, Wrong(wrong={"n1": gain(-1)}), Cpu(), SearchOptions())
    far.expect(far.possible_outputs())
    assert is_beyond_rounding(far, (0, 1, 2))


def test_weights_of_a_part_are_those_of_the_model() -> None:
    """The planted fault of a bias is seen in the node that reads it."""
    proto, feeds = half()

    class Biased(Cpu):
        def __call__(self, part: onnx.ModelProto, values: Any, *, level: str = "all") -> Any:
            changed = onnx.ModelProto.FromString(part.SerializeToString())
            for tensor in changed.graph.initializer:
                if tensor.name == "b1":
                    tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float16(1.02), "b1"))
            return super().__call__(changed, values, level=level)

    found = judge(proto, feeds, Biased())
    assert found.wrong is not None
    assert [each.node for each in found.wrong] == [2]
