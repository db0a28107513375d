"""The adapter that a target of DirectML uses, named by its number or its name: `dml:1`, `dml:nvidia`.

The number is DXGI's, as `device_id` of DirectML's provider is. The worker program lists the adapters, on Windows and in
the lab alike.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from epcheck.conformance import lab
from epcheck.conformance.start_process import run_process
from epcheck.conformance.targets.target import Target, TargetError
from epcheck.generators.case_pattern import matches


class Adapter(NamedTuple):
    """An adapter of the machine, as `program/backends/directml/adapters.py` describes it."""

    place: int | None
    name: str
    is_software: bool = False


LIST_S = 120.0
"""Seconds until the adapters have to be listed: Wine may have to be started."""


def choose_adapter(target: Target, wanted: str) -> Target:
    """The target on the adapter that is meant: its number; a part of its name, or a glob over it; case does not count.

    Raises TargetError where there is none, or several.
    """
    with lab.in_use() if target.in_lab else contextlib.nullcontext():
        found = find_adapter(target.name, _list_adapters(target), wanted)
    options = {name: value for name, value in target.options.items() if name != "device_id"}
    chosen = {"device_filter": "npu"} if found.place is None else {"device_id": str(found.place)}
    return replace(target, options={**options, **chosen})


def find_adapter(name: str, known: Sequence[Adapter], wanted: str) -> Adapter:
    """The adapter that is meant. name: of the target, for messages. Raises TargetError, as `choose_adapter`."""
    listed = ", ".join(_describe(each) for each in known) or "none"
    if wanted.isascii() and wanted.isdigit():
        found = [each for each in known if each.place == int(wanted)]
        what = f"adapter {wanted}"
    else:
        found = [each for each in known if matches(each.name.lower(), wanted.lower())]
        what = f"adapter whose name matches '{wanted}'"
    if len(found) > 1:
        raise TargetError(f"target '{name}': '{wanted}' means several adapters; write the number of one: {listed}")
    if not found:
        raise TargetError(f"target '{name}': this machine has no {what}; it has {listed}")
    if found[0].is_software:
        raise TargetError(
            f"target '{name}': DirectML's provider takes no adapter of software; this machine has {listed}"
        )
    if found[0].place is None and sum(each.place is None for each in known) > 1:
        raise TargetError(f"target '{name}': of several NPUs DirectML's provider chooses one itself; it has {listed}")
    return found[0]


def _describe(adapter: Adapter) -> str:
    software = " (software)" if adapter.is_software else ""
    return f"{'NPU' if adapter.place is None else adapter.place}: {adapter.name}{software}"


def _list_adapters(target: Target) -> list[Adapter]:
    """The adapters of the machine, as a worker of the target sees them. Raises TargetError."""
    line = [*target.command, target.worker, "--list-adapters"]
    try:
        done = run_process(line, timeout=LIST_S, env=target.environment)
        listed = json.loads(done.stdout.strip().splitlines()[-1])
        return [Adapter(each["place"], each["name"], each["is_software"]) for each in listed]
    except subprocess.TimeoutExpired:
        raise TargetError(f"target '{target.name}': the adapters were not listed within {LIST_S:g} s") from None
    except OSError as error:
        raise TargetError(f"target '{target.name}': its interpreter does not start: {error}") from None
    except (IndexError, KeyError, TypeError, ValueError):
        last = (done.stderr.strip().splitlines() or ["without a message"])[-1]
        raise TargetError(
            f"target '{target.name}': listing the adapters ended with exit code {done.returncode}: {last}"
        ) from None
