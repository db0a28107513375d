"""How `run.py` of a reproduction makes its session, where that is a target's way of running a case, or a variant of it.

What stands under `session` in case.json:

target     what the target is called, for messages
variant    as `level=all`; empty for the ordinary way
options    of the provider
config     session options, besides those that prove placement
plugin     `package` or `library`, and `device`, of a provider that has a library of its own; else null
device     where inputs and outputs are bound; empty where they are not
context    `file`, `bytes`, `stale`, `damaged`: by which EPContext model it goes; else empty
prefixes   what stands before each name in packed.onnx, once for each copy of the case; empty for model.onnx
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from epcheck.conformance.targets.target import STRICT, Target
from epcheck.conformance.test_data.repro import Judged
from epcheck.conformance.workers.program import protocol
from epcheck.conformance.workers.program.backends import contexts

PACKED = "packed.onnx"
"""The model of a case and a copy of it."""


def apply_target(judged: Judged, target: Target, packed: tuple[bytes, tuple[str, ...]] | None) -> Judged:
    """The same, run as the target does, which may be a variant. packed: a model with the case and its copy, and what
    stands before the names of each, where they share a session."""
    session = target.request_defaults
    files = {}
    if context := str(session.get("context", "")):
        files["contexts.py"] = Path(contexts.__file__).read_bytes()
    if packed:
        files[PACKED] = packed[0]
    return replace(
        judged,
        provider=target.provider or judged.provider,
        level=protocol.LEVELS[str(session.get("level", "disabled"))],
        session={
            "target": target.base or target.name,
            "variant": target.variant,
            "options": dict(target.options),
            "config": {name: value for name, value in target.config.items() if name not in STRICT},
            "plugin": _plugin(target),
            "device": target.device or "cpu" if session.get("way") == "bound" else "",
            "context": context,
            "prefixes": packed[1] if packed else (),
        },
        files=files,
    )


def _plugin(target: Target) -> dict[str, Any] | None:
    """The library of the provider, as the worker program is asked to register it."""
    if not target.is_plugin:
        return None
    plugin: dict[str, Any] = json.loads(target.arguments[target.arguments.index("--plugin") + 1])
    return plugin
