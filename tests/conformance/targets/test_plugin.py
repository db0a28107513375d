"""Plugin targets: what their specifications mean, and what is said when their library cannot be used."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from epcheck.conformance.targets import config, expectation_file
from epcheck.conformance.targets.plugin import Plugin, device_of
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.target import WORKER, TargetError
from epcheck.conformance.workers.program.backends.plugin import PluginError, find_library


def broken_library(folder: Path) -> Path:
    """A file that is named like a library and is none."""
    library = folder / ("none.dll" if sys.platform == "win32" else "none.so")
    library.write_text("this is no library")
    return library


def test_a_package_and_a_library_are_told_apart(tmp_path: Path) -> None:
    library = broken_library(tmp_path)
    assert Plugin.parse("onnxruntime_ep_webgpu") == Plugin(package="onnxruntime_ep_webgpu")
    assert Plugin.parse(f"{library}#MineExecutionProvider") == Plugin(
        library=str(library), provider="MineExecutionProvider"
    )


def test_a_named_provider_is_not_asked_for_and_reaches_the_worker_with_its_device(tmp_path: Path) -> None:
    library = broken_library(tmp_path)
    table = {"ep": str(library), "provider": "MineExecutionProvider", "ep_device": {"vendor": "0x10de", "index": 1}}
    target = resolve("mine", {"targets": {"mine": {**table, "env": {"MINE": 1}, "options": {"level": 2}}}})
    assert (target.provider, target.is_plugin, target.device) == ("MineExecutionProvider", True, "cpu")
    assert target.config["session.disable_cpu_ep_fallback"] == "1"
    assert target.arguments[:2] == ("onnxruntime", "--plugin")
    assert json.loads(target.arguments[2]) == {
        "package": "", "library": str(library), "provider": "MineExecutionProvider",
        "device": {"vendor": "0x10de", "index": "1"},
    }  # fmt: skip
    assert target.stated_facts() == {"provider_options": "level=2", "environment": "MINE=1"}
    assert target.environment is not None
    assert target.environment["MINE"] == "1"


def test_a_package_has_the_expectations_that_its_environment_has() -> None:
    target = resolve("ep:onnxruntime_ep_webgpu#WebGpuExecutionProvider")
    assert target.expectations == expectation_file.load_shipped("webgpu") != ()
    assert resolve("ep:epcheck_of_nobody#MineExecutionProvider").expectations == ()


@pytest.mark.parametrize(
    ("specification", "sentence"),
    [
        ("ep:", "write ep:PACKAGE, as ep:onnxruntime_ep_webgpu, or ep:PATH of a library"),
        ("ep:a package", "write ep:PACKAGE, as ep:onnxruntime_ep_webgpu, or ep:PATH of a library"),
        ("ep:/nowhere/lib.so", "no such file: /nowhere/lib.so"),
        ("/nowhere/python#ep:onnxruntime_ep_webgpu", "no such interpreter: /nowhere/python"),
        ("ep:epcheck_lacks_it", "no module epcheck_lacks_it; install epcheck-lacks-it, or name the env"),
        ("ep:json", "json is no package of a provider: it has none of get_library_path, library_path, EP_LIBRARY"),
    ],
)
def test_what_is_no_plugin_is_told_in_one_sentence(specification: str, sentence: str) -> None:
    with pytest.raises(TargetError, match=re.escape(sentence)):
        resolve(specification)


@pytest.mark.parametrize(
    "content",
    [
        "from pathlib import Path\ndef get_library_path():\n    return Path(__file__).parent / 'it.so'\n",
        "import os\ndef library_path():\n    return os.path.join(os.path.dirname(__file__), 'it.so')\n",
        "import os\nEP_LIBRARY = os.path.join(os.path.dirname(__file__), 'it.so')\n",
        "",
    ],
    ids=["get_library_path", "library_path", "EP_LIBRARY", "in the folder"],
)
def test_a_package_gives_its_library_by_any_of_the_names_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    folder = tmp_path / "epcheck_some_ep"
    folder.mkdir()
    (folder / "__init__.py").write_text(content)
    (folder / "it.so").write_bytes(b"\x7fELF... CreateEpFactories ...")
    (folder / "helper.so").write_bytes(b"\x7fELF")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "epcheck_some_ep", raising=False)
    package = importlib.import_module("epcheck_some_ep")
    assert find_library(package) == str(folder / "it.so")
    if not content:
        (folder / "other.so").write_bytes(b"CreateEpFactories")
        with pytest.raises(PluginError, match="2 of its libraries export CreateEpFactories"):
            find_library(package)


def test_a_library_that_does_not_load_is_named_with_the_reason(tmp_path: Path) -> None:
    library = broken_library(tmp_path)
    with pytest.raises(TargetError, match=rf"onnxruntime cannot load {re.escape(str(library))}: .+"):
        resolve(f"ep:{library}")


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"colour": "red"}, "'ep_device' cannot name 'colour'; it may name vendor, device_id, type, index"),
        ({"type": "tpu"}, "'type' of 'ep_device' is 'tpu'; write \"cpu\", \"gpu\" or \"npu\""),
        ({"index": -1}, "'index' of 'ep_device' is '-1'; write the place among those that are left, from 0"),
        ({"device_id": "big"}, "'device_id' of 'ep_device' is 'big'; write the PCI id of the device"),
    ],
)
def test_a_device_that_cannot_be_meant_is_refused(table: dict[str, object], sentence: str) -> None:
    with pytest.raises(TargetError, match=re.escape(sentence)):
        device_of(table)


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ('ep = "m"\nfunction = "m:f"', "'ep' goes with 'python', not with base or function"),
        ("ep_device = { index = 0 }", "'ep_device' chooses a device of the plugin that 'ep' names; add ep"),
    ],
)
def test_a_table_that_mixes_kinds_of_targets_is_refused(tmp_path: Path, table: str, sentence: str) -> None:
    file = tmp_path / "epcheck.toml"
    file.write_text(f"[targets.mine]\n{table}\n")
    with pytest.raises(TargetError, match=re.escape(sentence)):
        config.load_config(file)


def test_what_proves_placement_is_no_fact_of_a_target() -> None:
    cpu = resolve("cpu")
    assert cpu.stated_facts() == {}
    assert replace(cpu, config={**cpu.config, "a.b": "1"}).stated_facts() == {"session_config": "a.b=1"}


@pytest.mark.skipif(sys.platform != "linux", reason="the jail is Linux's")
@pytest.mark.parametrize("switch", ["", "landlock"])
def test_a_library_that_is_asked_for_its_provider_is_jailed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, switch: str
) -> None:
    """What it runs when it is loaded stands for any of its code."""
    code = tmp_path / "code.py"
    code.write_text(f"import socket\ntry: open({str(tmp_path / 'written')!r}, 'w')\nexcept OSError: print('no file')\n"
                    "try: socket.socket()\nexcept OSError: print('no socket')\n")  # fmt: skip
    monkeypatch.setenv("EPCHECK_JAIL", switch)
    line = [sys.executable, str(WORKER), "onnxruntime", "--prelude", str(code), "--plugin"]
    line += [Plugin(library=str(broken_library(tmp_path))).arguments()[1], "--describe"]
    done = subprocess.run(line, capture_output=True, encoding="utf-8", check=False)
    assert done.stderr.split("\n")[:2] == ["no file", "no socket"]
    assert not (tmp_path / "written").exists()
    assert "none.so" in json.loads(done.stdout)["trouble"]
