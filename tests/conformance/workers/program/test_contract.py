"""What a worker observes of a provider's library: registered again, and asked for a version."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from epcheck.conformance.workers.program.backends import contract
from epcheck.conformance.workers.program.backends.plugin import RegisteredPlugin

LIBRARY = """
#include <stddef.h>
#include <stdint.h>
struct Base { const void *(*GetApi)(uint32_t); const char *(*GetVersionString)(void); };
void *CreateEpFactories(const char *name, const struct Base *base, const void *logger, void **factories, size_t most,
                        size_t *count) {
  if (base->GetVersionString()[0] == '1') base->GetApi(24);
  *(volatile int *)0 = 1;
  return 0;
}
"""
"""A plugin that does not survive without an API."""

ASK = """
import sys, types
from epcheck.conformance.workers.program.backends import contract
held = types.SimpleNamespace(session=1)
plugin = types.SimpleNamespace(library=sys.argv[1], unregister=lambda: print("unregistered mine", flush=True))
contract.ask_version(types.SimpleNamespace(plugin=plugin, held=held), lambda answer: print(answer, flush=True))
"""


@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
def test_a_library_is_asked_for_the_version_of_the_api_that_it_wants(tmp_path: Path) -> None:
    (tmp_path / "plugin.c").write_text(LIBRARY, encoding="utf-8")
    library = tmp_path / "libplugin.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(tmp_path / "plugin.c")], check=True)
    done = subprocess.run([sys.executable, "-c", ASK, str(library)], capture_output=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["unregistered mine", "{'stage': 'done', 'api_version': 24}"]


@dataclass
class Hardware:
    """A device of `get_ep_devices`."""

    vendor: str = "Me"
    vendor_id: int = 1
    device_id: int = 2
    type: str = "CPU"


@dataclass
class EpDevice:
    """What `get_ep_devices` gives."""

    ep_name: str = "MyEP"
    ep_vendor: str = "Me"
    device: Hardware = field(default_factory=Hardware)
    ep_metadata: dict[str, str] = field(default_factory=dict)
    ep_options: dict[str, str] = field(default_factory=dict)


class Session:
    """One of the backend's: it adds, and is wrong by so much as the library was registered again."""

    def __init__(self, error: float) -> None:
        self.error = error

    def run(self, _names: None, feeds: dict[str, Any]) -> list[Any]:
        return [feeds["a"] + feeds["b"] + np.float32(self.error)]


class Backend:
    """A backend whose plugin's devices are `offered`."""

    def __init__(self, forgets: bool, drifts: float) -> None:
        self.offered: list[EpDevice] = []
        self.forgets, self.drifts, self.error = forgets, drifts, 0.0
        self.held = type("Held", (), {"session": None})()
        self.plugin: Any = None

    def session(self, _request: dict[str, Any], _model: bytes) -> Session:
        return Session(self.error)

    def unregister(self, _name: str) -> None:
        if not self.forgets:
            self.offered = []

    def register(self, _name: str, _library: str) -> None:
        self.offered, self.error = [EpDevice()], self.drifts if self.plugin else 0.0


@pytest.mark.parametrize(
    ("forgets", "drifts", "offered", "same"),
    [(False, 0.0, [1, 0, 1], True), (True, 0.0, [1, 1, 1], True), (False, 1.0, [1, 0, 1], False)],
)
def test_a_library_that_is_registered_again_is_compared(
    monkeypatch: pytest.MonkeyPatch, forgets: bool, drifts: float, offered: list[int], same: bool
) -> None:
    backend = Backend(forgets, drifts)
    monkeypatch.setattr(onnxruntime, "get_ep_devices", lambda: backend.offered)
    monkeypatch.setattr(onnxruntime, "unregister_execution_provider_library", backend.unregister)
    monkeypatch.setattr(onnxruntime, "register_execution_provider_library", backend.register)
    backend.plugin = RegisteredPlugin({"package": "", "library": "libmy.so", "provider": "MyEP", "device": {}})
    answer = contract.register_again(backend, {"providers": [["MyEP", {}]]})
    assert answer == {"stage": "done", "offered": offered, "same": same}
    assert backend.plugin.device is backend.offered[0]
    (listed,) = contract.list_devices("MyEP")
    assert (listed["vendor"], listed["hardware"]) == ("Me", "cpu of Me (0x0001:0x0002)")


def test_a_session_that_writes_leaves_and_opens_is_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    backend = Backend(False, 0.0)
    kept: list[socket.socket] = []

    def session(_request: dict[str, Any], _model: bytes) -> Session:
        os.write(1, b"loading ...\n")
        (tmp_path / "left.log").write_text("x", encoding="utf-8")
        kept.append(socket.socket())
        return Session(0.0)

    monkeypatch.setattr(backend, "session", session)
    answer = contract.describe(backend, {"providers": [["CPUExecutionProvider", {}]]})
    kept[0].close()
    assert (answer["stdout"], answer["stdout_bytes"]) == ("loading ...\n", 12)
    assert str(tmp_path / "left.log") in answer["files"]
    assert answer["sockets"] == (1 if Path("/proc/self/fd").exists() else None)
    assert {each["role"] for each in answer["libraries"]} == {"runtime"}
