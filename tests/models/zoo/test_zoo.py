"""The zoo: every architecture is a valid model, the same one each time, that the CPU provider runs at once."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from typer.testing import CliRunner

from epcheck.api.models import zoo as written
from epcheck.cli.main import app
from epcheck.generators.array import Array
from epcheck.models import zoo
from epcheck.models.feeds import feeds
from epcheck.models.zoo import Architecture, ZooError, exports

KINDS = {
    "mobilenet_qlinear", "mobilenet_qdq", "resnet", "unet", "vit", "bert", "bert_gelu", "decoder", "lstm_tagger", "ssd",
    "whisper_encoder", "super_resolution", "control_flow", "local_function", "sequences",
}  # fmt: skip

each = pytest.mark.parametrize("architecture", zoo.all(), ids=lambda architecture: architecture.name)


@cache
def session(name: str) -> onnxruntime.InferenceSession:
    content = zoo.named(name).build().SerializeToString()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # threads that wait for each other cost more than the model
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def run(name: str, inputs: dict[str, feeds.Feed]) -> dict[str, Array]:
    outputs = [value.name for value in session(name).get_outputs()]
    return dict(zip(outputs, session(name).run(None, inputs), strict=True))


def operators(model: onnx.ModelProto) -> set[str]:
    found: set[str] = set()
    pending: list[onnx.GraphProto | onnx.FunctionProto] = [model.graph, *model.functions]
    for graph in pending:
        found |= {node.op_type for node in graph.node}
        pending += [a.g for node in graph.node for a in node.attribute if a.HasField("g")]
    return found


def test_the_zoo_has_every_kind() -> None:
    assert {architecture.name for architecture in zoo.all()} >= KINDS
    assert len({architecture.name for architecture in zoo.all()}) == len(zoo.all())


@each
def test_a_model_is_valid_down_to_its_shapes(architecture: Architecture) -> None:
    onnx.checker.check_model(architecture.build(), full_check=True)


@each
def test_a_model_is_the_same_each_time(architecture: Architecture) -> None:
    once, again = (architecture.build().SerializeToString(deterministic=True) for _ in range(2))
    assert once == again


@each
def test_every_node_and_value_has_a_name_of_its_own(architecture: Architecture) -> None:
    graph = architecture.build().graph
    names = [node.name for node in graph.node]
    values = [name for node in graph.node for name in node.output if name]
    assert all(names)
    assert len(names) == len(set(names))
    assert len(values) == len(set(values))


@each
def test_a_model_runs_in_every_size_and_gives_numbers_of_an_ordinary_size(architecture: Architecture) -> None:
    model = architecture.build()
    for dims in feeds.combinations(model, architecture.dims):
        for name, value in run(architecture.name, feeds.generate(model, 0, dims)).items():
            if value.dtype.kind == "f":
                assert np.isfinite(value).all(), (name, dims)
                assert 1e-3 < np.abs(value).max() < 100, (name, dims)


@each
def test_what_goes_in_matters_to_what_comes_out(architecture: Architecture) -> None:
    model = architecture.build()
    first, second = (run(architecture.name, feeds.generate(model, seed)) for seed in (0, 1))
    assert any(
        a.shape != b.shape or not np.array_equal(a, b) for a, b in zip(first.values(), second.values(), strict=True)
    )


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("mobilenet_qlinear", {"QLinearConv", "QLinearAdd", "QLinearMatMul"}),
        ("mobilenet_qdq", {"QuantizeLinear", "DequantizeLinear", "Conv"}),
        ("unet", {"Resize", "Concat", "MaxPool"}),
        ("bert", {"Erf", "LayerNormalization"}),
        ("bert_gelu", {"Gelu", "LayerNormalization"}),
        ("lstm_tagger", {"LSTM"}),
        ("ssd", {"TopK", "NonMaxSuppression"}),
        ("whisper_encoder", {"STFT"}),
        ("super_resolution", {"DepthToSpace"}),
        ("control_flow", {"If", "Loop"}),
        ("local_function", {"RootMeanSquare", "Mix"}),
        ("sequences", {"SplitToSequence", "SequenceAt", "SequenceInsert", "ConcatFromSequence"}),
    ],
)
def test_an_architecture_has_what_its_kind_is_known_for(name: str, wanted: set[str]) -> None:
    assert operators(zoo.named(name).build()) >= wanted


def test_weights_are_quantised_for_each_channel() -> None:
    model = zoo.named("mobilenet_qlinear").build()
    sizes = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "QLinearConv":
            assert sizes[node.input[4]] == sizes[node.input[3]][:1]


def test_both_ways_to_quantise_give_the_same_within_a_step() -> None:
    inputs = feeds.generate(zoo.named("mobilenet_qdq").build(), 3, {"batch": 3})
    first, second = (run(name, inputs)["logits"] for name in ("mobilenet_qlinear", "mobilenet_qdq"))
    assert np.abs(first - second).max() <= 8 / 255 + 1e-6


def test_gelu_in_its_parts_is_gelu() -> None:
    inputs = feeds.generate(zoo.named("bert").build(), 3, {"batch": 2, "sequence": 9})
    first, second = (run(name, inputs)["last_hidden_state"] for name in ("bert", "bert_gelu"))
    np.testing.assert_allclose(first, second, atol=1e-5)


def test_a_decoder_that_is_given_its_cache_back_says_what_it_says_of_the_whole_text() -> None:
    """The point of the cache: five tokens at once, or four and then one, are the same."""
    model = zoo.named("decoder").build()
    whole = feeds.generate(model, 0, {"batch": 1, "sequence_length": 5, "past_sequence_length": 0})
    whole["attention_mask"] = np.ones((1, 5), np.int64)
    expected = run("decoder", whole)
    tokens, positions = np.asarray(whole["input_ids"]), np.arange(5, dtype=np.int64)[None]
    first = run("decoder", {**whole, "input_ids": tokens[:, :4], "position_ids": positions[:, :4],
                            "attention_mask": np.ones((1, 4), np.int64)})  # fmt: skip
    cache_of = {name.replace("present", "past_key_values"): value for name, value in first.items() if name != "logits"}
    last = {"input_ids": tokens[:, 4:], "position_ids": positions[:, 4:], "attention_mask": np.ones((1, 5), np.int64)}
    np.testing.assert_allclose(run("decoder", last | cache_of)["logits"], expected["logits"][:, 4:], atol=1e-5)


def test_padding_does_not_change_what_bert_says_of_the_words_before_it() -> None:
    model = zoo.named("bert").build()
    inputs = {name: np.asarray(value) for name, value in feeds.generate(model, 0, {"batch": 1, "sequence": 7}).items()}
    short = run("bert", inputs)["last_hidden_state"]
    padded = {name: np.pad(value, ((0, 0), (0, 5))) for name, value in inputs.items()}
    np.testing.assert_allclose(run("bert", padded)["last_hidden_state"][:, :7], short, atol=1e-5)


def test_what_lies_behind_the_end_of_a_sequence_does_not_reach_the_tagger() -> None:
    model = zoo.named("lstm_tagger").build()
    inputs = feeds.generate(model, 0, {"batch": 1, "sequence": 6}) | {"lengths": np.array([4], np.int32)}
    other = np.array(inputs["words"])
    other[:, 4:] = (other[:, 4:] + 1) % 53
    first, second = run("lstm_tagger", inputs), run("lstm_tagger", {**inputs, "words": other})
    np.testing.assert_array_equal(first["log_probabilities"][:, :4], second["log_probabilities"][:, :4])


def test_detections_are_the_boxes_that_were_selected() -> None:
    found = run("ssd", feeds.generate(zoo.named("ssd").build(), 0, {"batch": 2}))
    batch, _, box = found["selected"].T
    assert len(batch) > 0
    np.testing.assert_array_equal(found["detections"], found["kept_boxes"][batch, box])


def test_a_loop_ends_with_its_count() -> None:
    inputs = feeds.generate(zoo.named("control_flow").build(), 0)
    counts = [len(run("control_flow", {**inputs, "max_steps": np.array(n, np.int64)})["tokens"]) for n in (0, 1, 2)]
    assert counts == [0, 1, 2]


def test_an_unknown_architecture_is_refused_with_those_that_are_near() -> None:
    with pytest.raises(ZooError, match=r"unknown model 'resnat'\. Did you mean resnet"):
        zoo.named("resnat")


def test_the_command_lists_every_architecture() -> None:
    result = CliRunner().invoke(app, ["zoo", "list"])
    assert result.exit_code == 0
    names = [architecture.name for architecture in (*zoo.all(), *exports.all())]
    assert [line.split()[0] for line in result.stdout.splitlines()] == names


def test_the_command_writes_a_model_with_feeds_that_can_be_read_back(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["zoo", "write", "bert", "--out", str(tmp_path), "--seed", "5"])
    assert result.exit_code == 0, result.output
    model = onnx.load(tmp_path / "bert" / "model.onnx")
    assert model == zoo.named("bert").build()
    sets = feeds.read(tmp_path / "bert", model)
    assert [feed_set.name for feed_set in sets] == [f"test_data_set_{index}" for index in range(6)]
    expected = feeds.generate(model, 5, {"batch": 2, "sequence": 7})
    assert all(np.array_equal(np.asarray(sets[4].inputs[name]), np.asarray(value)) for name, value in expected.items())


def test_the_command_refuses_what_the_zoo_does_not_have(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["zoo", "write", "resnet50", "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "unknown model 'resnet50'" in result.stderr


def test_the_test_data_has_the_oracle_s_outputs_and_replay_agrees(tmp_path: Path) -> None:
    """A reverse LSTM, which onnx's ReferenceEvaluator gets wrong: it said what is right before."""
    written = CliRunner().invoke(app, ["zoo", "write", "lstm_tagger", "--out", str(tmp_path)])
    assert written.exit_code == 0, written.output
    folders = sorted((tmp_path / "lstm_tagger").glob("test_data_set_*"))
    assert len(folders) == 4
    for folder in folders:
        assert (folder / "output_0.pb").is_file()
    done = CliRunner().invoke(app, ["replay", str(tmp_path / "lstm_tagger"), "--target", "cpu"])
    assert done.exit_code == 0, done.output
    assert done.output.count("pass: test_data_set_") == 4


def test_an_element_near_zero_is_judged_by_the_size_of_the_others() -> None:
    """The sum of a decoder's logit cancels to -1e-4 among values of 1: ONNX's rtol 1e-3 of that is no error."""
    exact = np.array([1.0, -1e-4, 3.0, 0.0])
    scale = 1e-3 * np.sqrt(np.mean(exact**2))
    assert np.allclose(written.compute_tolerance(exact), [scale, scale, 3e-3, scale], rtol=1e-12, atol=0)
    assert np.array_equal(written.compute_tolerance(np.array([np.inf, 2.0]))[1:], [2e-3])
    assert written.compute_tolerance(np.zeros((0, 3))).shape == (0, 3)
    assert written.compute_tolerance(np.float64(-2.0)).shape == ()


def test_cpu_is_right_where_sums_cancel(tmp_path: Path) -> None:
    assert CliRunner().invoke(app, ["zoo", "write", "super_resolution", "--out", str(tmp_path)]).exit_code == 0
    folder = tmp_path / "super_resolution"
    assert (folder / "test_data_set_1" / "allowed_0.pb").is_file()
    done = CliRunner().invoke(app, ["replay", str(folder), "--target", "cpu", "--baseline", "none"])
    assert (done.exit_code, "mismatch" in done.output) == (0, False), done.output
    path = folder / "test_data_set_1" / "output_0.pb"
    tensor = onnx.TensorProto.FromString(path.read_bytes())
    wrong = onnx.numpy_helper.to_array(tensor).copy()
    wrong.flat[0] += 0.01 * np.abs(wrong).max()
    path.write_bytes(onnx.numpy_helper.from_array(wrong, tensor.name).SerializeToString())
    done = CliRunner().invoke(app, ["replay", str(folder), "--target", "cpu", "--baseline", "none"])
    assert done.exit_code == 1
    assert "mismatch: test_data_set_1" in done.output
