"""What the steps of an installation share."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from epcheck.conformance.lab import plan as plan_module
from epcheck.conformance.lab.folder import Config, Layout
from epcheck.conformance.lab.plan import plan


class Opened:
    """In place of a private apt: how often one is made, and who is heard."""

    made = 0

    def __init__(self, _layout: Layout, _mirror: str | None, say: Any, _keep_open: int | None) -> None:
        Opened.made += 1
        self.say = say

    def heard_by(self, say: Any) -> Opened:
        view = copy.copy(self)
        view.say = say
        return view


def test_the_steps_share_one_archive_which_tells_the_one_at_work(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def install(_layout: Layout, archive: Any, *_rest: Any) -> tuple[str, dict[str, str]]:
        archive.say("at work", None, None)
        return "", {}

    monkeypatch.setattr(plan_module.apt, "Archive", Opened)
    monkeypatch.setattr(plan_module.wine, "install_private", install)
    monkeypatch.setattr(plan_module.glvnd, "install", install)
    steps = {step.name: step for step in plan(Layout(tmp_path), Config())}
    heard: list[str] = []
    for name in ("wine", "glvnd"):
        steps[name].work(lambda message, _done, _total, name=name: heard.append(f"{name}: {message}"))  # type: ignore[misc]
    assert (Opened.made, heard) == (1, ["wine: at work", "glvnd: at work"])
