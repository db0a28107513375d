"""The doctor on onnx's ReferenceEvaluator, which computes float16 as float16; the CPU provider does not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from benchmarks.fault_injection.planted_precision import FAULTS, planted
from epcheck import api
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.test_data import model_file
from epcheck.models.feeds.trials import Feeding
from epcheck.models.precision import doctor, page
from epcheck.models.precision.diagnosis import Diagnosis, document
from epcheck.models.precision.doctor import DiagnosisRequest, DoctorError, diagnose
from epcheck.models.precision.node_precision import PrecisionFault


def diagnosed(tmp_path: Path, model: onnx.ModelProto, feeds: Any, **settings: Any) -> Diagnosis:
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return diagnose(DiagnosisRequest(path, resolve("reference"), Feeding(inputs=feeds), **settings))


@pytest.mark.parametrize("fault", FAULTS)
def test_the_smallest_set_is_found_and_written(fault: str, tmp_path: Path) -> None:
    subject = planted(fault, 2, 0)
    found = diagnosed(tmp_path, subject.model, subject.feeds, mended=True)
    assert found.status == "mended"
    assert not found.before.right
    assert found.is_minimal
    assert {node.name for node in found.keep} == subject.smallest
    assert found.after is not None
    assert found.after.right
    assert found.mended is not None
    fixed = onnx.ModelProto.FromString(found.mended)
    onnx.checker.check_model(fixed, full_check=True)
    assert [value.type.tensor_type.elem_type for value in fixed.graph.input] == [TensorProto.FLOAT16]


def test_a_float32_model_is_asked_what_it_were_in_float16(tmp_path: Path) -> None:
    subject = planted("scaled up and down", 2, 0, np.float32)
    found = diagnosed(tmp_path, subject.model, subject.feeds, converted=True, mended=True)
    assert found.status == "mended"
    assert {node.name for node in found.keep} == subject.smallest
    assert found.mended is not None
    fixed = onnx.ModelProto.FromString(found.mended)
    assert sum(tensor.data_type == TensorProto.FLOAT16 for tensor in fixed.graph.initializer) == 4
    assert [value.type.tensor_type.elem_type for value in fixed.graph.input] == [TensorProto.FLOAT]


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_large_model_keeps_its_weights_where_they_are(
    dtype: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = planted("scaled up and down", 2, 0, dtype)
    path, out = tmp_path / "in" / "model.onnx", tmp_path / "out" / "mended.onnx"
    path.parent.mkdir()
    onnx.save(subject.model, path, save_as_external_data=True, location="weights", size_threshold=100)
    np.savez(tmp_path / "feeds.npz", **subject.feeds)
    options = api.DoctorOptions(path, target="reference", feeds=tmp_path / "feeds.npz", write=out, own_process=False,
                                float16=dtype == np.float32)  # fmt: skip
    small = api.doctor(options)
    embedded = onnx.load(out, load_external_data=False)
    assert not any(True for _ in model_file.external_tensors(embedded))
    monkeypatch.setattr(doctor, "LARGE_BYTES", 100)
    monkeypatch.setattr(model_file, "MAPPED_BYTES", 100)
    large = api.doctor(options)
    assert (large.status, {node.name for node in large.keep}) == ("mended", subject.smallest)
    assert [replace(each, alone=None, inside=None) for each in large.nodes] == [
        replace(each, alone=None, inside=None) for each in small.nodes
    ]
    mended = onnx.load(out, load_external_data=False)
    assert {place.file.name for place in model_file.external_data(mended, out)} == {"mended.onnx.data"}
    assert [tensor.data_type for tensor in model_file.external_tensors(mended)] == [
        helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    ] * 2  # as they were
    of_both = [ReferenceEvaluator(onnx.load(out)).run(None, subject.feeds)[0], ReferenceEvaluator(embedded).run(
        None, subject.feeds)[0]]  # fmt: skip
    np.testing.assert_array_equal(*of_both)


def test_what_float16_does_is_said_of_each_node(tmp_path: Path) -> None:
    subject = planted("scaled up and down", 2, 0)
    found = diagnosed(tmp_path, subject.model, subject.feeds)
    faults = {each.node.op_type: each.fault for each in found.nodes if each.keeps}
    assert faults == {"Mul": PrecisionFault.OVERFLOWS, "Div": PrecisionFault.OVERFLOWS}
    (mul,) = [each for each in found.nodes if each.node.op_type == "Mul"]
    assert mul.values.overflow == 1.0
    assert 60000 < mul.values.largest < 1e6
    assert document(found)["status"] == "mended"
    assert "overflows" in page.render(found)


def test_a_model_that_is_right_stays_as_it_is(tmp_path: Path) -> None:
    subject = planted("scaled up and down", 2, 5)  # behind no layer
    found = diagnosed(tmp_path, subject.model, subject.feeds)
    assert (found.status, found.keep, found.after) == ("right", (), None)


def test_digits_are_lost_where_near_values_are_subtracted(tmp_path: Path) -> None:
    near = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17]>
        g (float16[8] x, float16[8] z) => (float16[8] y) {
          a = Mul(x, x)
          c = Mul(z, z)
          b = Sub(a, c)
          y = Relu(b)
        }""")
    x = (30 + np.arange(1, 9) / 32).astype(np.float16)
    found = diagnosed(tmp_path, near, {"x": x, "z": x - np.float16(1 / 64)})
    assert [node.op_type for node in found.keep] == ["Mul", "Mul", "Sub"]
    assert found.nodes[2].fault == PrecisionFault.LOSES_DIGITS


def test_a_model_without_float16_is_refused_in_a_sentence(tmp_path: Path) -> None:
    subject = planted("scaled up and down", 1, 0, np.float32)
    with pytest.raises(DoctorError, match="--float16"):
        diagnosed(tmp_path, subject.model, subject.feeds)


def test_the_call_writes_page_and_document_from_a_process_of_its_own(tmp_path: Path) -> None:
    subject = planted("exponent", 1, 0)
    path = tmp_path / "model.onnx"
    path.write_bytes(subject.model.SerializeToString())
    np.savez(tmp_path / "feeds.npz", **subject.feeds)
    options = api.DoctorOptions(
        path, target="reference", feeds=tmp_path / "feeds.npz", html=tmp_path / "page.html", json=tmp_path / "d.json"
    )
    found = api.doctor(options)
    assert found.status == "mended"
    assert json.loads((tmp_path / "d.json").read_text(encoding="utf-8"))["keep"]
    assert "need float32" in (tmp_path / "page.html").read_text(encoding="utf-8")
