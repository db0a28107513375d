"""Providers that come as a library of their own: which library, which of its devices, and the provider's name.

The library is registered in the worker, through ONNX Runtime's plugin API (`register_execution_provider_library`,
`get_ep_devices`, `add_provider_for_devices`): naming such a provider in `providers=[...]` silently runs on CPU.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from epcheck.conformance.start_process import run_process
from epcheck.conformance.targets.target import WORKER, TargetError

PREFIX = "ep:"
"""What the specification of a plugin begins with: `ep:onnxruntime_ep_webgpu`, `ep:/path/library.so#NAME`."""

DEVICE: Mapping[str, str] = {
    "vendor": 'a part of the vendor\'s name, or its PCI id as "0x10de"',
    "device_id": 'the PCI id of the device, as "0x2204"',
    "type": '"cpu", "gpu" or "npu"',
    "index": "the place among those that are left, from 0",
}
"""What `ep_device` may say of the device that is meant."""

DESCRIBE_S = 120.0
"""Seconds until a library has to say which provider it holds."""

_TYPES = ("cpu", "gpu", "npu")
_PCI_ID = re.compile(r"0x[0-9a-fA-F]{1,8}|\d+")


@dataclass(frozen=True)
class Plugin:
    """Where a provider comes from. package: a Python module with `get_library_path`; or library: the file itself.
    provider: its name, empty where the library is to tell. device: which of its devices, by the names of DEVICE;
    without any, the first."""

    package: str = ""
    library: str = ""
    provider: str = ""
    device: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Plugin:
        """What stands after `ep:`: a module or a library, and `#PROVIDER` where it cannot tell. Raises TargetError."""
        name, _, provider = text.partition("#")
        if is_library(name):
            if not Path(name).is_file():
                raise TargetError(f"target '{PREFIX}{text}': no such file: {name}")
            return cls(library=str(Path(name).absolute()), provider=provider)
        if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", name):
            raise TargetError(
                f"target '{PREFIX}{text}': write ep:PACKAGE, as ep:onnxruntime_ep_webgpu, or ep:PATH of a library"
            )
        return cls(package=name, provider=provider)

    def arguments(self) -> tuple[str, ...]:
        """What the worker program is told of it."""
        return "--plugin", json.dumps({**asdict(self), "device": dict(self.device)})


def is_library(name: str) -> bool:
    """Whether a name means a file and not a Python module."""
    return "/" in name or "\\" in name or Path(name).suffix in (".so", ".dll", ".dylib")


def device_of(table: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """The device that `ep_device` means. Raises TargetError where a name or a value is none."""
    for name, value in table.items():
        text = str(value)
        if name not in DEVICE:
            raise TargetError(f"'ep_device' cannot name '{name}'; it may name {', '.join(DEVICE)}")
        valid = {
            "vendor": bool(text.strip()),
            "device_id": bool(_PCI_ID.fullmatch(text)),
            "type": text in _TYPES,
            "index": text.isdecimal(),
        }
        if not valid[name]:
            raise TargetError(f"'{name}' of 'ep_device' is '{text}'; write {DEVICE[name]}")
    return tuple((name, str(value)) for name, value in table.items())


def provider_of(name: str, plugin: Plugin, command: Sequence[str], environment: Mapping[str, str] | None) -> str:
    """The provider that the plugin holds, asked of the interpreter `command` unless the plugin itself says it.

    name: of the target, for messages. Raises TargetError with the reason when the library cannot be registered.
    """
    if plugin.provider:
        return plugin.provider
    line = [*command, str(WORKER), "onnxruntime", *plugin.arguments(), "--describe"]
    try:
        done = run_process(line, timeout=DESCRIBE_S, env=environment)
    except subprocess.TimeoutExpired:
        raise TargetError(f"target '{name}': the library did not name its provider within {DESCRIBE_S:g} s") from None
    except OSError as error:
        raise TargetError(f"target '{name}': its interpreter does not start: {error}") from None
    try:
        described = json.loads(done.stdout.strip().splitlines()[-1])
        provider, trouble = str(described["provider"]), str(described["trouble"])
    except (IndexError, KeyError, TypeError, ValueError):
        lines = [text for text in done.stderr.splitlines() if text.strip()]
        raise TargetError(
            f"target '{name}': asking its library for the provider ended with exit code {done.returncode}"
            f"{f': {lines[-1]}' if lines else ''}"
        ) from None
    if trouble:
        raise TargetError(f"target '{name}': {trouble}")
    return provider
