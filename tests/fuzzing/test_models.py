"""Hostile models: a sentence of ours, or a result; never an exception of another kind where they are read."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import hypothesis
import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper

from epcheck.conformance.test_data import model_file
from epcheck.conformance.test_data.model_file import ModelFileError
from epcheck.generators.error import EpcheckError
from epcheck.models.feeds import feeds
from epcheck.models.graph import feedable
from epcheck.models.oracle import oracle
from epcheck.models.oracle.node import OracleError
from epcheck.models.validation.runnable import runnable
from tests.command_line import call, refused
from tests.fuzzing.damage import examples
from tests.fuzzing.hostile_models import MODELS, hostile


def looked_at(path: Path) -> None:
    """What is made of a model before a session is: whatever goes wrong is one of our errors."""
    model, _ = feedable.add_casts(model_file.parse(path))
    whole = model_file.embed_data(model, path)
    values = feeds.generate(whole, 0, {})
    oracle.evaluate(whole, {name: value for name, value in values.items() if value is not None}, max_seconds=2.0)


@examples(300)
@hypothesis.given(data=hostile())
def test_a_hostile_model_is_one_sentence_or_has_values(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    sentence = ""
    try:
        looked_at(path)
    except EpcheckError as error:
        sentence = str(error)
    assert len(sentence) < 20_000


@pytest.mark.slow
@examples(8)
@hypothesis.given(data=hostile())
def test_a_hostile_model_ends_no_command(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    done = call("validate", str(path), "-t", "cpu", "--seed", "0", "--timeout", "20")
    assert done.code in (0, 1, 2)
    assert "please report it" not in done.err
    taken = call("harvest", str(path), "--out", str(tmp_path / "out"), "--timeout", "20")
    assert taken.code in (0, 2)
    assert "please report it" not in taken.err
    assert all(c.isprintable() or c in "\n\t" for c in done.out + done.err)


# What was found, each by its name.


def refusal(tmp_path: Path, model: onnx.ModelProto) -> str:
    onnx.save(model, tmp_path / "model.onnx")
    with pytest.raises(ModelFileError) as caught:
        model_file.parse(tmp_path / "model.onnx")
    return str(caught.value).removeprefix(f"'{tmp_path / 'model.onnx'}' is not a valid ONNX model: ")


def an_add(index: int = 0) -> onnx.ModelProto:
    model = onnx.ModelProto()
    model.CopyFrom(MODELS[index])
    return model


@pytest.mark.parametrize(
    ("dims", "words"),
    [
        ([-3], "tensor 'w' has the dimensions [-3]"),
        ([2**40], "tensor 'w' has 3 numbers of data; [1099511627776] of FLOAT needs 1,099,511,627,776"),
        ([2**62, 8], "tensor 'w' has the dimensions [4611686018427387904, 8], which is too large"),
        ([2**32, 2**32], "tensor 'w' has the dimensions [4294967296, 4294967296], which is too large"),
        ([4], "tensor 'w' has 3 numbers of data; [4] of FLOAT needs 4"),
    ],
)
def test_sizes_that_no_tensor_has_are_refused_before_anything_is_allocated(
    tmp_path: Path, dims: list[int], words: str
) -> None:
    model = an_add()
    del model.graph.initializer[0].dims[:]
    model.graph.initializer[0].dims.extend(dims)
    assert refusal(tmp_path, model) == words


def test_bytes_for_elements_are_counted(tmp_path: Path) -> None:
    model = an_add()
    model.graph.initializer[0].CopyFrom(TensorProto(name="w", data_type=1, dims=[3], raw_data=b"\0" * 13))
    assert refusal(tmp_path, model) == "tensor 'w' has 13 bytes of data; [3] of FLOAT needs 12"


@pytest.mark.parametrize("number", [0, 99, -1])
def test_element_types_that_onnx_does_not_have_are_refused(tmp_path: Path, number: int) -> None:
    model = an_add()
    model.graph.initializer[0].data_type = number
    assert refusal(tmp_path, model) == f"tensor 'w' has the element type {number}, which ONNX does not have"
    model = an_add()
    model.graph.input[0].type.tensor_type.elem_type = number
    if number:
        assert refusal(tmp_path, model) == f"a value has the element type {number}, which ONNX does not have"


def test_tensors_without_an_element_type_are_refused(tmp_path: Path) -> None:
    model = an_add()
    model.graph.initializer.add()
    assert refusal(tmp_path, model) == "tensor '' has no element type"
    model = an_add()
    model.graph.node.add(op_type="Constant", name="c", output=["v"]).attribute.add(name="value", type=4)
    assert refusal(tmp_path, model) == "node 'c' (Constant) has a tensor without an element type in 'value'"


def test_a_segment_of_a_tensor_is_refused(tmp_path: Path) -> None:
    model = an_add()
    model.graph.initializer[0].segment.begin = 1
    assert refusal(tmp_path, model) == "tensor 'w' is a segment of another, which is not supported"


def test_bytes_where_text_is_expected_are_refused(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(an_add().SerializeToString().replace(b"Relu", b"\xff\xfeRe"))
    with pytest.raises(ModelFileError, match=r"a op_type of NodeProto is not text: b'\\xff\\xfeRe'"):
        model_file.parse(tmp_path / "model.onnx")


def test_a_node_without_outputs_is_refused(tmp_path: Path) -> None:
    model = an_add()
    model.graph.node.add(op_type="Relu", name="n", input=["x"])
    assert refusal(tmp_path, model) == "node 'n' (Relu) has no output"


@pytest.mark.parametrize("through", [0, 1, 3])
def test_a_function_that_calls_itself_is_refused(tmp_path: Path, through: int) -> None:
    model = an_add(2)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    names = ["Twice", *(f"F{number}" for number in range(through))]
    del model.functions[:]
    for name, called in zip(names, [*names[1:], "Twice"], strict=True):
        node = helper.make_node(called, ["a"], ["b"], domain="own")
        model.functions.append(helper.make_function("own", name, ["a"], ["b"], [node], opsets))
    assert refusal(tmp_path, model) == f"its function '{min(names)}' calls itself"


@pytest.mark.parametrize(
    ("depth", "words"),
    [
        (500, "its functions call each other more than 100 deep"),
        (60, "it has more than 1,048,576 nodes, with those of the functions that it calls"),
        (21, "it has more than 1,048,576 nodes, with those of the functions that it calls"),
        (10, ""),
    ],
)
def test_functions_that_double_with_each_call_are_counted(tmp_path: Path, depth: int, words: str) -> None:
    model = an_add(2)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    names = ["Twice", *(f"F{number}" for number in range(depth))]
    del model.functions[:]
    for name, called in pairwise(names):
        nodes = [
            helper.make_node(called, ["a"], ["m"], domain="own"),
            helper.make_node(called, ["m"], ["b"], domain="own"),
        ]
        model.functions.append(helper.make_function("own", name, ["a"], ["b"], nodes, opsets))
    neg = helper.make_node("Neg", ["a"], ["b"])
    model.functions.append(helper.make_function("own", names[-1], ["a"], ["b"], [neg], opsets))
    if words:
        assert refusal(tmp_path, model) == words
    else:
        assert model_file.parse(saved(tmp_path, model)) == model


def saved(tmp_path: Path, model: onnx.ModelProto) -> Path:
    onnx.save(model, tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


def test_an_if_without_a_condition_is_an_error_of_the_oracle() -> None:
    model = an_add(1)
    del model.graph.node[0].input[:]
    with pytest.raises(OracleError, match="breaks the standard"):
        oracle.evaluate(model, {})


def test_a_call_with_too_many_inputs_is_an_error_of_the_oracle() -> None:
    model = an_add(2)
    model.graph.node[0].input.append("x")
    with pytest.raises(OracleError, match="cannot be put in place"):
        oracle.evaluate(model, {})


def with_external_data(folder: Path, **entries: str) -> onnx.ModelProto:
    """A model whose weight has its bytes in the file `data`, of which `hard` is a second name."""
    (folder / "data").write_bytes(np.array([1, 2, 3], np.float32).tobytes())
    (folder / "hard").hardlink_to(folder / "data")
    model = an_add()
    weight = model.graph.initializer[0]
    weight.CopyFrom(TensorProto(name="w", data_type=1, dims=[3], data_location=TensorProto.EXTERNAL))
    for key, value in entries.items():
        weight.external_data.add(key=key, value=value)
    onnx.save_model(model, folder / "model.onnx")
    return model


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"location": "data", "offset": "x"}, "does not say where its data is"),
        ({"location": "\\\\\\\\host\\\\share"}, "not a path inside the model's folder"),
        ({"location": "../data"}, "outside the model's folder"),
        ({"location": "data", "offset": str(2**62)}, "has its data at bytes 4611686018427387904"),
    ],
)
def test_harvest_reads_external_data_as_validate_does(tmp_path: Path, entries: dict[str, str], words: str) -> None:
    model = with_external_data(tmp_path, **entries)
    with pytest.raises(ModelFileError, match=words):
        model_file.array_of(model.graph.initializer[0], tmp_path)
    assert words in refused("harvest", str(tmp_path / "model.onnx"), "--out", str(tmp_path / "out"))


def test_a_file_with_two_names_is_read(tmp_path: Path) -> None:
    model = with_external_data(tmp_path, location="hard", length="12")
    assert model_file.array_of(model.graph.initializer[0], tmp_path).tolist() == [1, 2, 3]


@pytest.mark.parametrize("model", MODELS, ids=range(len(MODELS)))
def test_what_the_accidents_begin_with_is_a_model(tmp_path: Path, model: onnx.ModelProto) -> None:
    onnx.save(model, tmp_path / "model.onnx")
    assert model_file.parse(tmp_path / "model.onnx") == model


@pytest.mark.parametrize(
    ("name", "count", "raw"),
    [("INT4", 3, 2), ("UINT2", 5, 2), ("FLOAT4E2M1", 3, 2), ("BFLOAT16", 3, 6), ("FLOAT8E8M0", 3, 3), ("BOOL", 3, 3)],
)
def test_packed_and_small_elements_are_counted_as_they_lie_in_files(
    tmp_path: Path, name: str, count: int, raw: int
) -> None:
    kind = TensorProto.DataType.items()
    numbers = dict(kind)
    if name not in numbers:
        pytest.skip(f"this onnx has no {name}")
    model = an_add()
    model.graph.initializer.append(TensorProto(name="v", data_type=numbers[name], dims=[count], raw_data=bytes(raw)))
    onnx.save(model, tmp_path / "model.onnx")
    assert model_file.parse(tmp_path / "model.onnx") == model


def more_inputs(model: onnx.ModelProto) -> None:
    model.graph.node[0].input.append("x")


def more_outputs(model: onnx.ModelProto) -> None:
    model.graph.node[0].output.append("own")


def no_outputs(model: onnx.ModelProto) -> None:
    model.functions[0].ClearField("output")


def two_of_a_name(model: onnx.ModelProto) -> None:
    model.functions.append(model.functions[0])


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (more_inputs, "Number of actual parameters cannot exceed number of formal parameters"),
        (more_outputs, "Number of actual parameters cannot exceed number of formal parameters"),
        (no_outputs, "Number of actual parameters cannot exceed number of formal parameters"),
        (two_of_a_name, "Model contains multiple local functions with the same implementation id 'own::Twice'"),
    ],
)
def test_calls_that_do_not_suit_their_functions_are_refused(
    tmp_path: Path, change: Callable[[onnx.ModelProto], None], why: str
) -> None:
    """onnx's inliner raises RuntimeError of one and ValidationError of the other."""
    model = an_add(2)
    change(model)
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    with pytest.raises(ModelFileError) as caught:
        runnable(path, model_file.parse(path))
    reason = f"its functions cannot be put in place of their calls: {why}"
    assert str(caught.value) == f"'{path}' is not a valid ONNX model: {reason}"
    with pytest.raises(OracleError) as unknown:
        oracle.evaluate(model, {"x": np.ones((2, 2), np.float32)})
    assert str(unknown.value) == reason
