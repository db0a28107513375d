"""How `run.py` of a reproduction makes its session, where that is a target's way of running a case, or a variant of it.

What stands under `session` in case.json:

target     what the target is called, for messages
variant    as `level=all`; empty for the ordinary way
options    of the provider
config     session options, besides those that prove placement
plugin     `package` or `library`, and `device`, of a provider that has a library of its own; else null
device     where inputs and outputs are bound; empty where they are not
context    `file`, `bytes`, `moved`, `stale`, `damaged`, `from`: by which EPContext model it goes; else empty
model      the file that the session is made of
prefixes   what stands before each name in that model, once for each copy of the case; empty for one
weights    `file` or `memory`: where the model's initializers are; else empty
use        how sessions are used (`uses.USES`); empty for one session, which runs twice
extent     how much the use does (`uses.Extent`), of what it has
reduced    what was measured as the use was reduced to that, as sentences
others     the files of the other models of which the use makes sessions
settings   of the session: `arena`, `parallel`, `deterministic`, `threads`
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from epcheck.conformance.targets.target import STRICT, Target
from epcheck.conformance.test_data.repro import Judged
from epcheck.conformance.workers.program import protocol
from epcheck.conformance.workers.program.backends import contexts, uses

MODEL, VARIED = "model.onnx", "varied.onnx"
"""The model of the case, and the one of a variant that needs another."""

SETTINGS = ("arena", "parallel", "deterministic", "threads")


@dataclass(frozen=True)
class VariedModel:
    """The model of a variant. prefixes: what stands before the names of each copy of the case, where two share the
    session. weights: the file that its initializers are in; empty for none. others: the other models of a use.
    initializers: an npz file of those that its sessions share; empty for none."""

    model: bytes
    prefixes: tuple[str, ...] = ()
    weights: bytes = b""
    others: tuple[bytes, ...] = ()
    initializers: bytes = b""


def apply_target(judged: Judged, target: Target, varied: VariedModel | None, reduced: Sequence[str] = ()) -> Judged:
    """The same, run as the target does, which may be a variant. varied: its model, where it needs another. reduced:
    what was measured of its use, as sentences."""
    session = target.request_defaults
    files = {}
    if (context := str(session.get("context", ""))) and not target.compiled:
        files["contexts.py"] = Path(contexts.__file__).read_bytes()
    if use := str(session.get("use", "")):
        folder = Path(uses.__file__).parent
        files.update({name: (folder / name).read_bytes() for name in ("uses.py", "device_memory.py")})
    if target.compiled:
        files[protocol.CONTEXT_FILE] = target.compiled
    if varied:
        files[VARIED] = varied.model
    if varied and varied.weights:
        files[protocol.WEIGHTS_FILE] = varied.weights
    if varied and varied.initializers:
        files[protocol.INITIALIZERS_FILE] = varied.initializers
    names = [protocol.OTHER_FILE.format(number) for number in range(len(varied.others) if varied else 0)]
    if varied:
        files.update(zip(names, varied.others, strict=True))
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
            "model": VARIED if varied else MODEL,
            "prefixes": varied.prefixes if varied else (),
            "weights": str(session.get("weights", "")),
            "use": use,
            "extent": session.get("extent", {}),
            "reduced": reduced,
            "others": names,
            "settings": {name: session[name] for name in SETTINGS if name in session},
        },
        files=files,
    )


def _plugin(target: Target) -> dict[str, Any] | None:
    """The library of the provider, as the worker program is asked to register it."""
    if not target.is_plugin:
        return None
    plugin: dict[str, Any] = json.loads(target.arguments[target.arguments.index("--plugin") + 1])
    return plugin
