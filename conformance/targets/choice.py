"""Which targets are meant where the user names none."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from epcheck.conformance import lab
from epcheck.conformance.targets.target import DML


@dataclass(frozen=True)
class Choice:
    """The best candidate of this machine. reason: why not a better one, or what has to be installed first."""

    specification: str
    reason: str
    install_lab: bool = False


def best_choice() -> Choice:
    """DirectML where the machine can offer it: native on Windows, in the lab on Linux; otherwise the CPU provider."""
    obstacle = why_no_dml()
    if obstacle is None:
        return Choice("dml", "native DirectML" if sys.platform == "win32" else "DirectML in the lab")
    if sys.platform != "win32" and lab.can_install() is None:
        return Choice("dml", "DirectML in the lab, which is installed first", install_lab=True)
    return Choice("cpu", obstacle)


def default_baseline(candidates: Sequence[str]) -> str:
    """What candidates are compared with by default: the CPU provider, or `reference` where that is the candidate."""
    return "reference" if tuple(candidates) == ("cpu",) else "cpu"


def why_no_dml() -> str | None:
    """What the target `dml` lacks on this machine, in one sentence; None when it is ready."""
    if sys.platform == "win32":
        import onnxruntime

        ready = DML in onnxruntime.get_available_providers()
        return None if ready else "this onnxruntime has no DmlExecutionProvider; install onnxruntime-directml"
    if lab.status().installed:
        return None
    return lab.can_install() or "the lab is not installed; run: epcheck lab install"
