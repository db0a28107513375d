"""Environments of recipes: what their targets mean, what is missing, and one that is really made."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from epcheck import api
from epcheck.conformance.comparison.precision import Precision
from epcheck.conformance.lab.errors import LabError
from epcheck.conformance.targets.recipes import environment, swiftshader
from epcheck.conformance.targets.recipes.recipe import RECIPES
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.target import TargetError
from tests.command_line import call


@pytest.fixture
def runtimes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EPCHECK_RUNTIMES", str(tmp_path))
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    return tmp_path


def made(runtimes: Path, name: str, driver: str = "") -> Path:
    """What marks an environment as complete, and a file in the place of its interpreter."""
    folder = runtimes / name.replace("@", "-")
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    python.parent.mkdir(parents=True)
    python.write_bytes(b"x" * 1000)
    versions = {"onnxruntime": "1.31.1", "the-provider": "0.4.0"}
    (folder / "environment.json").write_text(json.dumps({"versions": versions, "driver": driver}))
    return python


def test_a_recipe_that_was_not_made_names_the_command_that_makes_it(runtimes: Path) -> None:
    for name in RECIPES:
        with pytest.raises(TargetError, match=rf"environment was not made; run: epcheck env create {name}$"):
            resolve(name)
    assert list(runtimes.iterdir()) == []


def test_a_plugin_s_target_runs_in_its_environment_on_its_driver(runtimes: Path) -> None:
    python = made(runtimes, "webgpu", "SwiftShader of chromium-common 1.2")
    target = resolve("webgpu")
    assert (target.command, target.provider, target.is_plugin) == ((str(python),), "WebGpuExecutionProvider", True)
    assert target.environment is not None
    driver = python.parents[1] / "swiftshader"
    assert target.environment["LD_LIBRARY_PATH"] == str(driver)
    assert target.environment["VK_DRIVER_FILES"] == str(driver / "vk_swiftshader_icd.json")
    assert target.environment["ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER"] == "1"
    assert target.stated_facts() == {
        "packages": "onnxruntime 1.31.1, the-provider 0.4.0", "graphics_stack": "SwiftShader of chromium-common 1.2",
    }  # fmt: skip


def test_a_machine_s_own_driver_needs_nothing_set(runtimes: Path) -> None:
    made(runtimes, "webgpu")
    assert resolve("webgpu").environment is None


def test_a_built_in_provider_has_the_options_of_its_recipe(runtimes: Path) -> None:
    python = made(runtimes, "openvino")
    target = resolve("openvino")
    assert (target.command, target.provider, target.is_plugin) == ((str(python),), "OpenVINOExecutionProvider", False)
    assert target.options == {"device_type": "CPU"}
    assert (target.device, target.jobs) == ("cpu", 0)


def test_cuda_computes_float32_as_such_and_binds_outputs_on_the_gpu(runtimes: Path) -> None:
    made(runtimes, "cuda")
    target = resolve("cuda")
    assert (target.provider, target.device, target.options) == ("CUDAExecutionProvider", "cuda", {"use_tf32": "0"})
    assert target.expectations
    assert RECIPES["cuda"].packages == ("onnxruntime-gpu[cuda,cudnn]",)
    assert RECIPES["cuda"].distributions == ("onnxruntime-gpu",)


def test_a_table_may_start_from_a_recipe(runtimes: Path) -> None:
    made(runtimes, "qnn")
    table = {"base": "qnn", "options": {"backend_type": "saver"}}
    target = resolve("null", {"targets": {"null": table}})
    assert dict(target.options) == {"backend_type": "saver", "htp_arch": "75", "soc_model": "57"}


def test_the_precision_of_a_recipe_holds_with_its_own_options(runtimes: Path) -> None:
    made(runtimes, "qnn")
    own = {"format": "bfloat16", "source": "its manual"}
    tables: dict[str, dict[str, object]] = {
        "renamed": {"base": "qnn", "jobs": 1},
        "other": {"base": "qnn", "options": {"backend_type": "cpu"}},
        "stated": {"base": "qnn", "options": {"backend_type": "gpu"}, "float32_precision": own},
    }
    stated = resolve("qnn").float32_precision
    assert stated
    assert stated.format == "float16"
    found = [resolve(name, {"targets": tables}).float32_precision for name in tables]
    assert found == [stated, None, Precision(**own)]


def test_environments_are_listed_and_removed(runtimes: Path) -> None:
    made(runtimes, "webgpu@0.4.0")
    names = {found.name: found.is_complete for found in api.environments()}
    assert names == {**dict.fromkeys(RECIPES, False), "webgpu@0.4.0": True}
    assert "webgpu@0.4.0: onnxruntime 1.31.1, the-provider 0.4.0; in " in call("env", "list").out
    assert api.remove_env(api.RemoveEnvOptions("webgpu@0.4.0")) > 1000
    assert not (runtimes / "webgpu-0.4.0").exists()
    done = call("env", "remove", "webgpu@0.4.0")
    assert (done.code, done.err.strip()) == (
        2, "epcheck: the environment 'webgpu@0.4.0' was not made; `epcheck env list` shows which were",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("rocm", "no recipe 'rocm'. Known are webgpu, openvino, openvino-plugin, qnn, cuda."),
        ("webgpu@new", "'webgpu@new': 'new' is not a release; write for example webgpu@1.2.3"),
    ],
)
def test_what_is_no_recipe_is_named(runtimes: Path, name: str, sentence: str) -> None:
    done = call("env", "create", name)
    assert (done.code, done.err.strip()) == (2, f"epcheck: {sentence}")
    assert list(runtimes.iterdir()) == []


@pytest.mark.slow
def test_a_release_that_does_not_exist_leaves_nothing_complete(runtimes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(
        environment.RuntimeInstallError, match=r"environment 'openvino' cannot be made: ERROR: No match"
    ):
        environment.create("openvino")
    assert not environment.environment("openvino").is_complete
    assert not (runtimes / "openvino/environment.json").exists()


def test_the_suite_of_debian_is_one_that_the_machine_s_glibc_can_run() -> None:
    assert [swiftshader.suite_for(glibc) for glibc in ("2.36", "2.39", "2.41", "3.0")] == [
        "bookworm", "bookworm", "trixie", "trixie",
    ]  # fmt: skip
    with pytest.raises(LabError, match=r"needs glibc 2\.36 or later and this machine has 2\.31; use its own driver"):
        swiftshader.suite_for("2.31")
