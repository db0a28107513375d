"""`epcheck fix` as its user calls it, on the CPU provider and on the reference evaluator."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from benchmarks.fault_injection.planted_precision import planted as planted_precision
from benchmarks.fault_injection.planted_quantizers import planted as planted_quantizers
from epcheck import api
from epcheck.conformance.test_data import model_file
from epcheck.conformance.test_data.model_file import ModelFileError
from epcheck.models.graph.external_data import pack
from epcheck.models.precision import doctor
from tests.command_line import call


@pytest.fixture
def int8(tmp_path: Path) -> Path:
    model, feeds, _, _ = planted_quantizers("activation saturates")
    np.savez(tmp_path / "feeds.npz", **feeds)
    onnx.save(model, tmp_path / "int8.onnx")
    return tmp_path / "int8.onnx"


def test_a_wrong_scale_is_corrected_and_the_bias_follows(int8: Path) -> None:
    out, feeds = int8.with_name("fixed.onnx"), int8.with_name("feeds.npz")
    done = call("fix", str(int8), "--target", "cpu", "--feeds", str(feeds), "-o", str(out))
    assert done.code == 0, done.out + done.err
    assert "applied: its range is that of its values: scale 0.02" in done.out
    assert "node 7 `x1_q` (QuantizeLinear)" in done.out
    assert "int8.onnx is fixed on CPUExecutionProvider" in done.out
    found = api.doctor(api.DoctorOptions(out, target="cpu", feeds=feeds, own_process=False))
    assert found.status == "right"
    assert found.quantization is not None
    assert found.quantization.error is not None
    assert found.quantization.error < 0.03
    kept = {tensor.name for tensor in onnx.load(out).graph.initializer}
    assert {tensor.name for tensor in onnx.load(int8).graph.initializer} <= kept


def test_a_dry_run_writes_nothing_and_the_document_has_all(int8: Path) -> None:
    out, data = int8.with_name("fixed.onnx"), int8.with_name("fix.json")
    feeds = str(int8.with_name("feeds.npz"))
    done = call("fix", str(int8), "-t", "cpu", "--feeds", feeds, "-o", str(out), "--dry-run", "--json", str(data))
    assert done.code == 0, done.out + done.err
    assert "No model was written" in done.out
    assert not out.exists()
    written = json.loads(data.read_text(encoding="utf-8"))
    assert written["status"] == "fixed"
    assert written["written"] is None
    assert written["error_after"] < written["error_before"] / 10
    parts = {each["part"]: (each["before"], each["after"]) for each in written["differences"]}
    assert parts["x1_q"][0].startswith("QuantizeLinear(y0, x1_scale=0.00")
    assert parts["x1_q"][1].startswith("QuantizeLinear(y0, x1_q_scale_suggested=0.0")
    assert written["before"]["status"] == written["after"]["status"] == "right"


def test_weights_that_are_lost_remain(tmp_path: Path) -> None:
    model, feeds, _, _ = planted_quantizers("weights saturate")
    np.savez(tmp_path / "feeds.npz", **feeds)
    onnx.save(model, tmp_path / "int8.onnx")
    out = tmp_path / "fixed.onnx"
    done = call("fix", str(tmp_path / "int8.onnx"), "-t", "cpu", "--feeds", str(tmp_path / "feeds.npz"), "-o", str(out))
    assert done.code == 1, done.out + done.err
    assert "left out: correct it (node 5 `w1_dq`" in done.out or "`w1_dq` (DequantizeLinear)" in done.out
    assert "what is right is not known" in done.out
    assert not out.exists()


def test_a_float16_model_is_mended_on_the_reference_evaluator(tmp_path: Path) -> None:
    subject = planted_precision("scaled up and down", 2, 0)
    onnx.save(subject.model, tmp_path / "half.onnx")
    np.savez(tmp_path / "feeds.npz", **subject.feeds)
    options = api.FixOptions(
        tmp_path / "half.onnx", target="reference", out=tmp_path / "fixed.onnx", feeds=tmp_path / "feeds.npz"
    )
    found = api.fix(options)
    assert (found.before.status, found.after.status, found.status) == ("wrong", "right", "fixed")
    changed = {each.part for each in found.differences if each.before and each.after}
    assert subject.smallest <= changed | {each.part for each in found.differences}
    onnx.checker.check_model(onnx.load(tmp_path / "fixed.onnx"), full_check=True)


def test_a_model_that_is_right_stays_and_nothing_is_written(tmp_path: Path) -> None:
    model = onnx.parser.parse_model('<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) '
                                    "{ y = Relu(x) }")  # fmt: skip
    onnx.save(model, tmp_path / "model.onnx")
    done = call("fix", str(tmp_path / "model.onnx"), "-t", "cpu", "-o", str(tmp_path / "fixed.onnx"))
    assert done.code == 0, done.err
    assert "nothing to fix on CPUExecutionProvider" in done.out
    assert not (tmp_path / "fixed.onnx").exists()


@pytest.mark.parametrize("link", [False, True])
def test_the_input_is_never_overwritten(int8: Path, link: bool) -> None:
    before, out = int8.read_bytes(), int8
    if link:
        out = int8.with_name("link.onnx")
        out.hardlink_to(int8)
    done = call("fix", str(int8), "-t", "cpu", "-o", str(out))
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert "is the model itself, which is never overwritten" in done.err
    assert int8.read_bytes() == before


def test_an_output_is_needed(int8: Path) -> None:
    done = call("fix", str(int8), "-t", "cpu")
    assert done.code == 2
    assert "write --out FILE, or --dry-run" in done.err


@pytest.mark.parametrize("is_large", [False, True])
def test_external_data_is_written_beside_the_output(
    is_large: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_large:
        monkeypatch.setattr(doctor, "LARGE_BYTES", 100)
        monkeypatch.setattr(model_file, "MAPPED_BYTES", 100)
    (tmp_path / "in").mkdir()
    source = tmp_path / "in" / "int8.onnx"
    model, feeds, _, _ = planted_quantizers("activation saturates")
    onnx.save(model, source, save_as_external_data=True, location="weights", size_threshold=0)
    np.savez(tmp_path / "feeds.npz", **feeds)
    weights = (tmp_path / "in" / "weights").read_bytes()
    out = tmp_path / "out" / "fixed.onnx"
    found = api.fix(api.FixOptions(source, target="cpu", out=out, feeds=tmp_path / "feeds.npz", own_process=False))
    assert found.status == "fixed"
    kept = [tensor.name for tensor in model_file.external_tensors(onnx.load(out, load_external_data=False))]
    assert bool(kept) == is_large
    assert (tmp_path / "in" / "weights").read_bytes() == weights
    session = onnxruntime.InferenceSession(out, providers=["CPUExecutionProvider"])
    assert session.run(None, dict(feeds))[0].shape == (8, 16)


def test_a_packed_model_has_one_file_of_external_data(tmp_path: Path) -> None:
    value = np.arange(3000, dtype=np.float32)
    node = helper.make_node("Add", ["x", "w"], ["y"], name="add")
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3000])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3000])],
        [numpy_helper.from_array(value, "w"), numpy_helper.from_array(value + 1, "v")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "model.onnx", save_as_external_data=True, location="data", size_threshold=0)
    stored = onnx.load(tmp_path / "model.onnx", load_external_data=False)
    content, parts = pack(stored, tmp_path / "model.onnx", "fixed.onnx.data")
    assert [(part.file, part.offset, part.length, part.target) for part in parts] == [
        ("data", 0, 12000, 0), ("data", 12000, 12000, 12288),
    ]  # fmt: skip
    packed = onnx.ModelProto.FromString(content)
    assert {entry.value for t in packed.graph.initializer for entry in t.external_data if entry.key == "location"} == {
        "fixed.onnx.data"
    }
    from epcheck.api.models.written_files import write_parts

    (tmp_path / "out").mkdir()
    copied = [(part.file, part.offset, part.length, part.target) for part in parts]
    write_parts(tmp_path / "out" / "fixed.onnx.data", tmp_path, copied)
    (tmp_path / "out" / "fixed.onnx").write_bytes(content)
    fixed = onnx.load(tmp_path / "out" / "fixed.onnx")
    np.testing.assert_array_equal(numpy_helper.to_array(fixed.graph.initializer[1]), value + 1)
    for name in ("../secret", "/etc/hostname", "missing"):
        with pytest.raises(ModelFileError, match="no regular file of the model's folder"):
            write_parts(tmp_path / "out" / "other", tmp_path / "out", [(name, 0, 4, 0)])
    with pytest.raises(ModelFileError, match="has the external data of the model itself"):
        write_parts(tmp_path / "data", tmp_path, copied)
