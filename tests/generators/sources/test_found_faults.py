"""What the fuzzer found, as lines and as cases: the ids are those of the fuzzer, and a stranger's line does no harm."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from epcheck.generators import registry, suite
from epcheck.generators.fuzzing import drawn_case
from epcheck.generators.fuzzing.drawing import Source
from epcheck.generators.fuzzing.graphs import graph_case, graph_truth
from epcheck.generators.graphs.node_graph import NodeGraph, Step
from epcheck.generators.node import Node, Operand
from epcheck.generators.serialization import node_json
from epcheck.generators.serialization.node_json import DocumentError, SerializedNode
from epcheck.generators.sources import case_source, found_faults
from epcheck.generators.sources.harvested import HarvestError
from epcheck.generators.suite import SelectionError
from epcheck.generators.truth import Open, Outputs

NUMBERS = np.array([1, -2, 3], np.float32)
RELU = SerializedNode(Node("Relu", "", 14, (Operand("X", NUMBERS),), ("Y",)), ("float32",), "runtime")


def small_graph() -> NodeGraph:
    """Neg, then Relu."""
    steps = [
        Step("Neg", Node("Neg", "", 13, (Operand("X", NUMBERS),), ("Y",)), ("x",), ("negative",)),
        Step("Relu", Node("Relu", "", 14, (Operand("X", -NUMBERS),), ("Y",)), ("negative",), ("y",)),
    ]
    found = graph_truth.judge_graph(steps, [Operand("x", NUMBERS)], ("y",))
    assert isinstance(found, NodeGraph)
    return found


def folder(path: Path, *lines: str) -> Path:
    path.mkdir(exist_ok=True)
    (path / case_source.FAULTS_FILE).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_a_case_has_the_id_and_the_values_that_the_fuzzer_judged(tmp_path: Path) -> None:
    operators = [registry.operator_of(key) for key in ("Slice", "Conv", "ReduceSum", "If")]
    drawn = {drawn_case.case_of(each).id: each for each in Source(operators, 3).draw(40)}
    place = folder(tmp_path / "kept", *(node_json.encode(each.serialized) for each in drawn.values()))
    cases = list(suite.cases(source=place))
    assert {case.id for case in cases} == drawn.keys()
    for case in cases:
        assert (case.folder, case.source) == (str(place), "harvested")
        assert case.build().model == drawn_case.case_of(drawn[case.id]).build().model


def test_a_graph_runs_with_all_optimisations(tmp_path: Path) -> None:
    graph = small_graph()
    place = folder(tmp_path / "kept", found_faults.encode(graph), found_faults.encode(RELU))
    found = {case.sample.partition("_")[2].startswith("graph_"): case for case in suite.cases(source=place)}
    assert found[True].id == graph_case.case_of(graph).id
    built = found[True].build()
    assert built.node.surroundings is not None
    assert built.node.surroundings.level == "all"
    assert isinstance(built.truth, Outputs)
    assert built.truth.outputs[0].value.tolist() == [0, 2, 0]
    assert found[False].build().node.surroundings is None


def changed(**fields: Any) -> str:
    return json.dumps({**json.loads(node_json.encode(RELU)), **fields})


def operand(**fields: Any) -> list[dict[str, Any]]:
    return [{**json.loads(node_json.encode(RELU))["inputs"][0], **fields}]


def around(proto: onnx.NodeProto) -> Mapping[str, Any]:
    empty: dict[str, Any] = {"inputs": ["X"], "outputs": ["Y"], "results": {}, "types": {}, "after": [], "graphs": {}}
    return {**empty, "before": [base64.b64encode(proto.SerializeToString()).decode()]}


def in_a_file() -> onnx.NodeProto:
    tensor = onnx.TensorProto(name="secret", data_type=1, dims=[1], data_location=onnx.TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="/etc/passwd")
    return helper.make_node("Constant", [], ["c"], value=tensor)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{]", "not a node: JSONDecodeError"),
        ("[" * 100_000, "RecursionError"),
        (changed(since_version=float("inf")), "OverflowError"),
        (changed(inputs=operand(dtype="int64", values=[1 << 70, 1, 1])), "OverflowError"),
        (changed(inputs=operand(dtype="object")), "no dtype of numbers: 'object'"),
        (changed(inputs=operand(dtype="U100000000")), "no dtype of numbers"),
        (changed(inputs=operand(dtype="V1000000000")), "no dtype of numbers"),
        (changed(inputs=operand(dtype="finfo")), "no dtype of numbers: 'finfo'"),
        (changed(inputs=operand(shape=[4])), "cannot reshape"),
        (changed(surroundings=around(in_a_file())), "the values of the tensor 'secret' are in a file"),
        (changed(surroundings={**around(in_a_file()), "before": ["AAAA"]}), "DecodeError"),
        (found_faults.encode(small_graph()).replace('"inputs": ["negative"]', '"inputs": ["nowhere"]'), "not a graph"),
        (found_faults.encode(small_graph()).replace('"key": "Relu"', '"key": "Os"'), "not a graph: KeyError"),
        (found_faults.GRAPH + '"key": ' * 65, "the graph has more than 64 nodes"),
        ("x" * (found_faults.MOST_LINE_BYTES + 1), "16,777,217 characters; 16,777,216 are the most"),
    ],
)
def test_a_line_that_is_no_node_is_one_sentence(line: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(DocumentError) as caught:
        found_faults.decode(line)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    place = folder(tmp_path / "kept", found_faults.encode(RELU), line)
    with pytest.raises((HarvestError, SelectionError), match=r"faults\.jsonl, line 2: .*; correct or delete the line"):
        list(suite.cases(source=place))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (changed(op_type="Rilu"), "the suite has no Rilu"),
        (changed(since_version=99), "the suite has no Relu of version 99"),
        (changed(dtypes=["int4"]), "the suite has no Relu of int4"),
        (changed(binding="sometimes"), "no binding: 'sometimes'"),
        (changed(inputs=operand(shape=[1 << 40, 0], values=[])), "an input has a dimension above 262,144"),
        (changed(attributes={"slope": {"int": 1}}), "the schema has no attribute slope"),
    ],
)
def test_what_the_oracle_cannot_judge_is_open(line: str, why: str) -> None:
    found = found_faults.decode(line)
    assert isinstance(found, Open)
    assert found.reason == why


def test_a_file_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = folder(tmp_path / "kept", *[found_faults.encode(RELU)] * 3)
    assert len(list(found_faults.read(place / case_source.FAULTS_FILE))) == 3
    assert len(list(found_faults.cases(place))) == 3
    monkeypatch.setattr(found_faults, "MOST_LINES", 2)
    with pytest.raises(DocumentError, match=r"the file has 3 lines; 2 are the most"):
        list(found_faults.read(place / case_source.FAULTS_FILE))
    monkeypatch.setattr(found_faults, "MOST_BYTES", 10)
    with pytest.raises(DocumentError, match=r"bytes; 10 are the most"):
        list(found_faults.read(place / case_source.FAULTS_FILE))
    (place / case_source.FAULTS_FILE).write_bytes(b"\xff")
    monkeypatch.undo()
    with pytest.raises(DocumentError, match="not text in UTF-8"):
        list(found_faults.read(place / case_source.FAULTS_FILE))


def test_bindings_and_values_are_part_of_the_id() -> None:
    other = replace(RELU, binding="symbolic")
    assert found_faults.case_of(RELU).sample == found_faults.case_of(other).sample
    assert found_faults.case_of(other).id.endswith("[symbolic]")
    node = replace(RELU.node, inputs=(Operand("X", -NUMBERS),))
    assert found_faults.case_of(replace(RELU, node=node)).sample != found_faults.case_of(RELU).sample
