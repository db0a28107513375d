"""Reproductions: in the way of a variant, and of cases whose generator fails."""

from __future__ import annotations

import functools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from epcheck import api
from epcheck.api.runs.archive import archive
from epcheck.api.suite import repro
from epcheck.conformance.records import terms
from epcheck.conformance.records.repro_command import quote_command
from epcheck.conformance.targets import variants
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.target import Target, TargetError
from epcheck.conformance.targets.variants import load_context, variant_of
from epcheck.conformance.test_data import repro as folders
from epcheck.conformance.test_data import run_settings
from epcheck.conformance.test_data.model_file import ModelFileError
from epcheck.conformance.test_data.repro import ReproError
from epcheck.generators import suite
from epcheck.generators.truth import Output

CASE = "Slice-13/float32/steps_omitted[runtime]"


def test_a_page_has_no_archive_of_a_case_that_cannot_be_built(monkeypatch: pytest.MonkeyPatch) -> None:
    assert archive(CASE)
    assert archive("Slice-13/float32/no_such_sample[runtime]") is None
    monkeypatch.setattr(suite, "case_by_id", broken)
    assert archive(CASE) is None


def test_a_case_that_cannot_be_built_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(suite, "case_by_id", broken)
    with pytest.raises(ReproError, match=r"^case 'broken' cannot be built: ArithmeticError: no$"):
        api.repro(api.ReproOptions(CASE, out=tmp_path / "repro"))
    assert not (tmp_path / "repro").exists()


def broken(_case_id: str, _source: Path | None = None) -> SimpleNamespace:
    def build() -> None:
        raise ArithmeticError("no")

    return SimpleNamespace(id="broken", build=build)


RELU = "Relu-14/float32/ordinary[runtime]"


@pytest.mark.parametrize(
    ("variant", "in_session"),
    [
        ("level=all", {"context": "", "device": "", "prefixes": []}),
        ("io_binding=device", {"device": "cpu"}),
        ("packing=packed", {"device": "", "context": ""}),
        ("options=arena", {"settings": {"arena": True}, "use": ""}),
        ("options=threads", {"settings": {"threads": 4}}),
        ("options=prepacking", {"config": {"session.disable_prepacking": "1"}}),
    ],
)
def test_the_script_of_a_variant_runs_it_in_that_way(
    tmp_path: Path, variant: str, in_session: dict[str, object]
) -> None:
    options = api.ReproOptions(RELU, target="cpu", variant=variant, out=tmp_path)
    folder = api.repro(options)
    assert folder.name == f"Relu-14_float32_ordinary_runtime__{variant.replace('=', '_')}"
    case = json.loads((folder / "case.json").read_text())
    assert case["session"].items() >= {"target": "cpu", "variant": variant, "plugin": None, **in_session}.items()
    assert case["level"] == ("ORT_ENABLE_ALL" if variant == "level=all" else "ORT_DISABLE_ALL")
    assert len(case["session"]["prefixes"]) == (2 if variant == "packing=packed" else 0)
    assert (folder / "varied.onnx").exists() == (variant == "packing=packed")
    code, lines = script(folder)
    right = ["Y as expected"] * (2 if variant == "packing=packed" else 1)
    last = f"right on CPUExecutionProvider, onnxruntime {onnxruntime.__version__}"
    assert (code, lines) == (0, [f"as the target cpu runs it with {variant}", *right, last])


@pytest.mark.parametrize("variant", ["reruns=shapes", "lifecycle=repeated"])
def test_the_script_of_a_use_repeats_it(tmp_path: Path, variant: str) -> None:
    folder = api.repro(api.ReproOptions(RELU, target="cpu", variant=variant, out=tmp_path))
    code, lines = script(folder)
    assert code == 0
    assert lines[-1] == "wrong in 0 of 10 runs"
    assert lines.count("Y as expected") == 10
    assert "not reduced: no more than half of the runs of the whole use are wrong" in lines[1]


@pytest.mark.parametrize("variant", ["weights=file", "weights=memory"])
def test_the_script_of_weights_elsewhere_has_them_in_a_file(tmp_path: Path, variant: str) -> None:
    case = "MatMul-13/float32/rank_7_by_matrix[initializer]"
    folder = api.repro(api.ReproOptions(case, target="cpu", variant=variant, out=tmp_path))
    assert (folder / "weights.bin").stat().st_size > 0
    code, lines = script(folder)
    assert (code, lines[-1].startswith("right on CPUExecutionProvider")) == (0, True)
    (folder / "weights.bin").write_bytes(bytes((folder / "weights.bin").stat().st_size))
    assert script(folder)[0] == 1
    with pytest.raises(ReproError, match="has no initializer whose data can be elsewhere"):
        api.repro(api.ReproOptions(RELU, target="cpu", variant=variant, out=tmp_path / "none"))


def test_the_script_of_a_use_finds_what_the_use_finds(tmp_path: Path) -> None:
    folder = api.repro(api.ReproOptions(RELU, target="cpu", variant="reruns=feeds", out=tmp_path))
    script_of_uses = folder / "uses.py"
    found = 'raise UseError("3 sessions that were released leave 3 handles")\n    '
    text = script_of_uses.read_text()
    text = text.replace("    others = change_values(create, feeds)", f"    {found}others = {{}}", 2)
    script_of_uses.write_text(text)
    code, lines = script(folder)
    assert code == 1
    assert "WRONG: 3 sessions that were released leave 3 handles" in lines
    assert lines[-1] == "wrong in 3 of 3 runs"


def test_the_script_of_a_use_says_how_often_it_is_wrong(tmp_path: Path) -> None:
    """Each third run is wrong, the first one is not."""
    options = api.ReproOptions(RELU, target="cpu", variant="reruns=feeds", out=tmp_path, reduce=False)
    folder = api.repro(options)
    counted = """
    count = Path(__file__).with_name("count")
    count.write_text((count.read_text() if count.exists() else "") + "x")
    if len(count.read_text()) % 3 == 0:
        raise UseError("each third is wrong")
"""
    text = (folder / "uses.py").read_text()
    start = text.index("    if not feeds:", text.index("def run_again("))
    (folder / "uses.py").write_text(text[:start] + counted + text[start:])
    code, lines = script(folder)
    assert (code, lines[-1]) == (1, "wrong in 6 of 20 runs")
    assert json.loads((folder / "case.json").read_text())["session"]["reduced"] == []


def test_a_use_has_the_extent_of_its_folder(tmp_path: Path) -> None:
    options = api.ReproOptions(RELU, target="cpu", variant="threads=4", out=tmp_path, reduce=False)
    folder = api.repro(options)
    case = json.loads((folder / "case.json").read_text())
    assert case["session"]["extent"] == {}
    case["session"]["extent"] = {"threads": 2, "runs": 1, "own": True, "large": False}
    (folder / "case.json").write_text(json.dumps(case))
    text = (folder / "uses.py").read_text()
    first = "    expected = make()(feeds)\n"
    assert text.count(first) == 1
    seen = "    print('extent', extent.threads, extent.sessions, extent.runs, extent.large)\n"
    (folder / "uses.py").write_text(text.replace(first, seen + first))
    code, lines = script(folder)
    assert (code, lines.count("extent 2 2 1 False")) == (0, 10)


@pytest.mark.parametrize(("content", "code", "last"), [
    (b"EPContext", 0, "right: refused, as what another target compiled may be: "),
    (None, 0, "right on CPUExecutionProvider"),
])  # fmt: skip
def test_the_script_loads_what_another_target_compiled(
    tmp_path: Path, content: bytes | None, code: int, last: str
) -> None:
    """On CPU, which loads what another one did not change; nothing is refused."""
    cpu, built = resolve("cpu"), suite.case_by_id(RELU).build()
    compiled = load_context(cpu, replace(cpu, name="other"))
    compiled = replace(compiled, compiled=content if content is not None else built.model)
    known = run_settings.apply_target(folders.judged(built), compiled, None)
    folder = folders.write(built, tmp_path, known)
    assert (folder / "compiled.onnx").read_bytes() == compiled.compiled
    found = script(folder)
    assert (found[0], found[1][-1][: len(last)]) == (code, last)
    assert found[1][0] == "as the target cpu runs it with context=from:other"


def test_a_folder_without_what_was_compiled_is_not_replayed(
    fused: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(variants, "NO_CONTEXT", ())
    options = api.ReplayOptions(
        fused / "ordinary", targets=("cpu",), baseline="none", variant="context=from:other", own_process=False
    )
    with pytest.raises(ModelFileError, match=r"has no compiled\.onnx; write the folder with `epcheck repro`$"):
        next(iter(api.replay(options)))
    shutil.copytree(fused / "ordinary", tmp_path / "m")
    (tmp_path / "m/compiled.onnx").write_bytes(b"")
    with pytest.raises(ModelFileError, match=r"compiled\.onnx' must have from 1 to 268,435,456 bytes; write it again$"):
        next(iter(api.replay(replace(options, folder=tmp_path / "m"))))


def script(folder: Path) -> tuple[int, list[str]]:
    done = subprocess.run(
        [sys.executable, "run.py"], cwd=folder, capture_output=True, encoding="utf-8", check=False, timeout=60
    )
    return done.returncode, done.stdout.splitlines()


def test_a_target_that_has_no_such_variant_is_one_sentence(tmp_path: Path) -> None:
    for variant, words in {
        "level=none": "target 'cpu' has no variant 'level=none'; it has level=basic, level=extended, level=all",
        "speed": "unknown variant 'speed'; write AXIS=VALUE with an axis of level, io_binding, context",
        "context=file": "unknown variant 'context=file': CPUExecutionProvider makes no EPContext models",
    }.items():
        with pytest.raises(TargetError, match=f"^{re.escape(words)}"):
            api.repro(api.ReproOptions(RELU, target="cpu", variant=variant, out=tmp_path))
    with pytest.raises(TargetError, match=r"^unknown variant 'level=all': target 'reference' does not run"):
        api.repro(api.ReproOptions(RELU, target="reference", variant="level=all", out=tmp_path))
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def fused(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """y = (1 / x) * w, which ONNX Runtime makes w / x of where it optimises: 1e30 instead of infinity."""
    x, w, y = (np.float32([value]) for value in (1e-40, 1e-10, np.inf))
    info = functools.partial(helper.make_tensor_value_info, elem_type=TensorProto.FLOAT, shape=[1])
    graph = helper.make_graph(
        [helper.make_node("Div", ["one", "x"], ["reciprocal"]), helper.make_node("Mul", ["reciprocal", "w"], ["y"])],
        "g", [info("x"), info("w")], [info("y")], [numpy_helper.from_array(np.float32([1]), "one")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8).SerializeToString()
    cpu = resolve("cpu")
    known = folders.Judged("a fusion", (Output("y", y),), cpu.provider or "")
    varied = run_settings.apply_target(known, variant_of(cpu, "level=basic"), None)
    for name, judged in {"ordinary": known, "varied": varied}.items():
        folders.write_folder(tmp_path_factory.getbasetemp() / "fused" / name, model, {"x": x, "w": w}, judged)
    return tmp_path_factory.getbasetemp() / "fused"


def test_a_replayed_variant_is_run_in_that_way_and_differs_as_in_its_run(fused: Path) -> None:
    found = {
        name: next(api.replay(api.ReplayOptions(fused / name, targets=("cpu",), baseline="none", own_process=False)))
        for name in ("ordinary", "varied")
    }
    assert (found["ordinary"].status, found["ordinary"].variants) == (terms.PASS, ())
    varied = found["varied"]
    assert varied.status == terms.VARIANT_DEPENDENT
    assert [(way.variant, way.state) for way in varied.variants] == [("level=basic", terms.DIFFERS)]
    assert "right in the plain run, but differs when run another way: level=basic: is wrong" in varied.reason
    assert varied.case.repro.endswith("--target cpu --variant level=basic")


def test_a_variant_can_be_named_for_any_folder(fused: Path) -> None:
    options = api.ReplayOptions(
        fused / "ordinary", targets=("cpu",), baseline="none", variant="io_binding=device", own_process=False
    )
    (record,) = api.replay(options)
    assert (record.status, [way.state for way in record.variants]) == (terms.PASS, [terms.SAME])


def test_the_script_of_a_variant_that_differs_says_wrong(fused: Path) -> None:
    assert script(fused / "ordinary")[0] == 0
    code, lines = script(fused / "varied")
    assert (code, lines[0]) == (1, "as the target cpu runs it with level=basic")


@pytest.mark.parametrize(
    "content", ['{"session": []}', "[]", "{", '{"session": {"variant": "' + "a" * (1 << 20) + '"}}']
)
def test_a_case_json_that_is_none_is_refused(fused: Path, tmp_path: Path, content: str) -> None:
    shutil.copytree(fused / "ordinary", tmp_path / "m")
    (tmp_path / "m/case.json").write_text(content)
    options = api.ReplayOptions(tmp_path / "m", targets=("cpu",), baseline="none", own_process=False)
    with pytest.raises(ModelFileError, match=r"case\.json' is no case\.json as `epcheck repro` writes it"):
        next(iter(api.replay(options)))


@pytest.mark.parametrize("context", ["file", "bytes", "stale"])
def test_the_script_says_where_a_provider_makes_no_context(tmp_path: Path, context: str) -> None:
    """The CPU provider compiles nothing. That a context is refused as it must be, or not, needs QNN or OpenVINO."""
    cpu = resolve("cpu")
    known = folders.judged(suite.case_by_id(RELU).build())
    compiled = replace(cpu, request_defaults={"way": "context", "context": context}, variant=f"context={context}")
    folder = folders.write(suite.case_by_id(RELU).build(), tmp_path, run_settings.apply_target(known, compiled, None))
    lines = [
        f"as the target cpu runs it with context={context}",
        "CANNOT RUN: the provider makes no EPContext node of it",
    ]
    assert script(folder) == (2, lines)


@pytest.mark.skipif(sys.platform == "win32", reason="the command is of a POSIX shell")
def test_the_command_sets_what_the_target_s_environment_has_besides(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    driver = {**os.environ, "VK_DRIVER_FILES": "/opt/a driver.json"}
    runs = ("onnxruntime",)
    target = Target("webgpu", ("/opt/python",), runs, provider="WebGpuExecutionProvider", environment=driver)
    monkeypatch.setattr(repro.stream, "choose", lambda *_: ((target,), None))
    line = repro.script_command(tmp_path, repro.ReproOptions("Abs-13/float32/tail[runtime]", target="webgpu"))
    assert line == f"env 'VK_DRIVER_FILES=/opt/a driver.json' /opt/python {tmp_path}/run.py"


def test_the_command_runs_the_script_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folders.write(suite.case_by_id(RELU).build(), tmp_path / "two words", None)
    monkeypatch.chdir(tmp_path)
    command = repro.script_command(folder, repro.ReproOptions(RELU))
    assert command == quote_command("python", str(folder / "run.py"), "CPUExecutionProvider")
    words = [sys.executable, *shlex.split(command, posix=sys.platform != "win32")[1:]]
    done = subprocess.run([word.strip('"') for word in words], capture_output=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stdout.splitlines()[-1].partition(",")[0]) == (0, "right on CPUExecutionProvider")
