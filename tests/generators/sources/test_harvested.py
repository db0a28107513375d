"""Harvested nodes as lines, and as cases of the suite."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from epcheck.generators import suite
from epcheck.generators.harvested import document
from epcheck.generators.harvested.harvested_node import HarvestedInput, HarvestedNode, digest
from epcheck.generators.harvested.value_spread import Spread
from epcheck.generators.serialization.node_json import DocumentError
from epcheck.generators.sources import harvested as harvested_cases
from epcheck.generators.sources.harvested import CASES, HarvestError
from epcheck.generators.suite import SelectionError, Source
from epcheck.generators.truth import Outputs

WIDE = Spread(tuple(np.linspace(-2, 2, 9).tolist()), zeros=0.25)
RELU = HarvestedNode(
    "Relu", "", 14, ("float32",), (HarvestedInput("X", "float32", (3, 40), WIDE, False),), ("Y",), {}, {"a.onnx": 2}
)
RESHAPE = HarvestedNode(
    "Reshape", "", 14, ("float32",),
    (
        HarvestedInput("data", "float32", (3, 40), WIDE, False),
        HarvestedInput("shape", "int64", (2,), np.array([40, -1], np.int64), True),
    ),
    ("reshaped",), {"allowzero": 0}, {"a.onnx": 1},
)  # fmt: skip


def folder(path: Path, *nodes: HarvestedNode) -> Path:
    path.mkdir(exist_ok=True)
    (path / CASES).write_text("".join(f"{document.encode(node)}\n" for node in nodes), encoding="utf-8")
    return path


def test_a_line_says_all_that_a_node_is() -> None:
    assert document.decode(document.encode(RELU)) == RELU
    again = document.decode(document.encode(RESHAPE))
    assert document.encode(again) == document.encode(RESHAPE)
    assert digest(again) == digest(RESHAPE)


def test_a_digit_that_flipped_in_a_line_is_noticed() -> None:
    line = document.encode(RELU)
    for old, new in (('"zeros": 0.25', '"zeros": 0.26'), ('"a.onnx": 2', '"a.onnx": 3'), ('"crc32', '"crb32')):
        assert old in line
        with pytest.raises(document.DocumentError, match=r"its checksum does not fit|has the member 'crb32'"):
            document.decode(line.replace(old, new))


def changed(**fields: Any) -> str:
    line = json.loads(document.encode(RELU))
    del line["crc32"]
    line["inputs"][0].update(fields)
    return json.dumps(line)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"shape": [1 << 40]}, "an input of 1,099,511,627,776 elements; 4,194,304 are the most"),
        ({"shape": [-1]}, "no tensor: float32 [-1]"),
        ({"dtype": "object"}, "no tensor: object [3, 40]"),
        ({"dtype": "finfo"}, "no tensor: finfo [3, 40]"),
        ({"spread": {**vars(WIDE), "quantiles": [1.0]}}, "1 quantiles; 9 finite ones are wanted, in rising order"),
        ({"spread": {**vars(WIDE), "quantiles": [1.0] * 8 + [0.0]}}, "9 quantiles; 9 finite ones are wanted, in ris"),
        ({"spread": {**vars(WIDE), "quantiles": ["nan"] * 9}}, "9 quantiles; 9 finite ones are wanted, in rising"),
        ({"spread": {**vars(WIDE), "zeros": 2}}, "a share is not between 0 and 1"),
        ({"spread": 7}, "TypeError"),
    ],
)
def test_a_line_that_is_no_node_says_why(fields: Mapping[str, Any], words: str) -> None:
    with pytest.raises(DocumentError) as caught:
        document.decode(changed(**fields))
    assert words in str(caught.value)


def test_a_case_has_the_same_values_each_time(tmp_path: Path) -> None:
    (case,) = suite.cases(source=folder(tmp_path, RELU))
    assert case.id == f"Relu-14/float32/harvest_3x40_{digest(RELU)}[runtime]"
    built, again = case.build(), pickle.loads(pickle.dumps(case)).build()
    assert isinstance(built.truth, Outputs)
    x = built.feeds["X"]
    assert (x.shape, x.dtype) == ((3, 40), np.float32)
    assert np.array_equal(x, again.feeds["X"])
    assert np.array_equal(built.truth.outputs[0].value, np.maximum(x, 0))
    assert -2 <= x.min() < -1 < 1 < x.max() <= 2
    onnx.checker.check_model(onnx.load_model_from_string(built.model))


def test_constants_of_the_model_are_initializers_of_the_case(tmp_path: Path) -> None:
    (case,) = suite.cases(source=folder(tmp_path, RESHAPE))
    built = case.build()
    assert (case.binding, list(built.feeds)) == ("initializer", ["data"])
    assert isinstance(built.truth, Outputs)
    assert built.truth.outputs[0].value.shape == (40, 3)


def test_the_id_is_that_of_how_the_node_computes_not_of_its_values() -> None:
    data, shape = RESHAPE.inputs
    assert data is not None
    assert shape is not None
    trained = replace(RESHAPE, inputs=(replace(data, values=replace(WIDE, zeros=0.5)), shape), models={"b.onnx": 7})
    other = replace(RESHAPE, inputs=(data, replace(shape, values=np.array([3, 40], np.int64))))
    assert digest(trained) == digest(RESHAPE)
    assert len({digest(RESHAPE), digest(other), digest(replace(RESHAPE, attributes={"allowzero": 1}))}) == 3
    joined = trained.join(RESHAPE)
    assert joined.models == {"a.onnx": 1, "b.onnx": 7}


def test_sources_are_run_together_and_selected_alike(tmp_path: Path) -> None:
    path = folder(tmp_path, RELU, RESHAPE)
    both = [case.id for case in suite.cases(("Relu",), source=(Source.SUITE, path))]
    own = [case.id for case in suite.cases(("Relu",))]
    assert both == [*own, f"Relu-14/float32/harvest_3x40_{digest(RELU)}[runtime]"]
    assert [case.operator for case in suite.cases(source=path, dtypes=("float32",))] == ["Relu", "Reshape"]
    assert [case.operator for case in suite.cases(source=path, patterns=("Reshape-14/*",))] == ["Reshape"]
    with pytest.raises(SelectionError, match=r"unknown dtype 'float16'\. Did you mean float32\?"):
        list(suite.cases(source=path, dtypes=("float16",)))


def test_a_folder_that_changed_is_read_again(tmp_path: Path) -> None:
    path = folder(tmp_path, RELU)
    (case,) = suite.cases(source=path, dtypes=("float32",))
    assert suite.case_by_id(case.id, path) == case
    folder(tmp_path, RESHAPE)
    (other,) = suite.cases(source=path, dtypes=("float32",))
    assert other.operator == "Reshape"
    with pytest.raises(SelectionError, match=r"unknown case 'Relu-14/.*'. `epcheck list` prints all case ids"):
        suite.case_by_id(case.id, path)


def test_what_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SelectionError, match="unknown source 'onxx'; write suite, onnx, onnx@dml or a folder of"):
        suite.sources_of("onxx")
    with pytest.raises(HarvestError, match=f"has no {CASES}; make it: epcheck harvest model.onnx"):
        list(suite.cases(source=tmp_path))
    (tmp_path / CASES).write_text(f"{document.encode(RELU)}\n{{}}\n", encoding="utf-8")
    with pytest.raises(HarvestError, match="line 2: not a harvested node: KeyError: 'op_type'"):
        list(suite.cases(source=tmp_path))
    path = folder(tmp_path, replace(RELU, op_type="Relo"))
    with pytest.raises(HarvestError, match="line 1: this suite has no Relo of version 14; harvest the model again"):
        list(suite.cases(source=path))
    with pytest.raises(SelectionError, match=r"harvested cases need --source FOLDER"):
        suite.case_by_id("Relu-14/float32/harvest_3x40_0123456789ab[runtime]")


def test_a_source_is_named_or_a_folder(tmp_path: Path) -> None:
    path = folder(tmp_path, RELU)
    assert suite.sources_of(["suite", str(path), "suite"]) == (Source.SUITE, path)
    assert suite.list_sources(Source.ONNX) == (Source.ONNX,)
    assert harvested_cases.read_nodes(path) == (RELU,)
