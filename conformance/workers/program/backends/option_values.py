"""Values of options with which a provider starts and takes nothing, though it says no word against them.

OpenVINO's provider does so where `device_type` names a device that does not exist: every node stays on the CPU
provider. A provider that takes some of a few ordinary nodes by its own defaults, and none of them with its options,
cannot use the options.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

MODEL = zlib.decompress(base64.b64decode(
    b"eNptzz1PwzAQBuC8blWsA6ro2Jgqj51o+RhYUCMmxMLazUncNv1ISwsDmfiT/T+cUxUpVgYvj957z6cvno8dYoIlpIzsVpV3pjPJc285wTFmYq"
    b"N/mxMWjEJsfDJDWBIOhIqxEr438av7/LblV1G596J0du8z63NmI5mHlox0rwgbxlYCj6fuAWF7ntsJP5n+R2OKe5kt7f5neBnDdKMoeklwGOpY"
    b"Jaje8Du9kcO4T1carElp5Z/HtA3zGqmJrg3nNfaauGjDZY2qiesQU8Es/JLHWbjdYxEu8rgLO5MuRfH1H5SVQbU="
))  # fmt: skip
"""ONNX: Add of float32, float16 and int32, and one of uint8 between DequantizeLinear and QuantizeLinear, each of shape
[2, 2], opset 13."""


def unusable_option(backend: Any, sessions: dict[str, Any]) -> str:
    """The option without which the provider takes nodes, and with which it takes none, in one sentence; empty where the
    options make no such difference."""
    ((provider, options),) = sessions["providers"]
    if not options or _takes(backend, sessions, options) or not _takes(backend, sessions, {}):
        return ""
    without = ({other: options[other] for other in options if other != name} for name in options)
    names = [name for name, rest in zip(options, without) if rest and _takes(backend, sessions, rest)]
    listed = ", ".join(f"{name} = {options[name]}" for name in names or options)
    return f"{provider} takes no node with {listed}, but takes nodes without it; correct the option, or leave it out"


def _takes(backend: Any, sessions: dict[str, Any], options: dict[str, str]) -> bool:
    """Whether the provider takes any node of MODEL with these options; one that ends in an error takes none."""
    ((provider, _),) = sessions["providers"]
    try:
        session = backend.session({**sessions, "place": True, "providers": [[provider, options]]}, MODEL)
        return any(name == provider for name, _, _ in backend.assignment(session, recorded=True))
    except Exception:
        return False
