"""SwiftShader, a Vulkan driver in software, and Vulkan's loader, from Debian's packages, without root."""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from epcheck.conformance.lab.errors import LabError
from epcheck.conformance.lab.folder import Layout
from epcheck.conformance.lab.packages.apt import Archive, Package
from epcheck.conformance.lab.process import Say
from epcheck.conformance.lab.vulkan.drivers import machine_drivers

PACKAGES = ("chromium-common", "libvulkan1")
"""Chromium's package has SwiftShader; the loader is found in one or the other."""

DRIVER, DRIVER_FILE, LOADER = "libvk_swiftshader.so", "vk_swiftshader_icd.json", "libvulkan.so.1"

SUITES = (((2, 41), "trixie"), ((2, 36), "bookworm"))
"""The glibc that a suite of Debian was built for, and its name: programs run with that glibc or a newer one."""


def is_needed() -> bool:
    """Whether this machine has no Vulkan driver of its own, and can have SwiftShader."""
    return sys.platform == "linux" and platform.machine() == "x86_64" and not machine_drivers()


def install(folder: Path, mirror: str | None, say: Say) -> str:
    """Put driver, its ICD file and loader into `folder`; what was downloaded is deleted. Returns what it is, in words.

    Raises LabError.
    """
    layout = Layout.of(folder.with_name(f"{folder.name}.download"))
    try:
        archive = Archive(layout, mirror, say, suite=suite_for(platform.libc_ver()[1]))
        packages = archive.fetch_only(PACKAGES)
        archive.unpack(packages, layout.root)
        folder.mkdir(parents=True, exist_ok=True)
        for name in (DRIVER, DRIVER_FILE, LOADER):
            found = sorted(path for path in layout.root.rglob(name) if path.is_file())
            if not found:
                raise LabError(f"Debian's {' and '.join(PACKAGES)} have no {name}; name another --mirror")
            shutil.copyfile(found[0].resolve(), folder / name)
    finally:
        shutil.rmtree(layout.folder, ignore_errors=True)
    return _words(packages)


def environment(folder: Path, libraries: str) -> Mapping[str, str]:
    """What is set for a program that uses it. libraries: LD_LIBRARY_PATH as it is."""
    return {
        "LD_LIBRARY_PATH": ":".join(filter(None, (str(folder), libraries))),
        "VK_DRIVER_FILES": str(folder / DRIVER_FILE),
        "VK_ICD_FILENAMES": str(folder / DRIVER_FILE),
        "ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER": "1",
    }


def suite_for(glibc: str) -> str:
    """The newest suite of Debian whose programs run with a release of glibc. Raises LabError."""
    release = tuple(int(part) for part in glibc.split(".") if part.isdecimal())
    for needed, suite in SUITES:
        if release >= needed:
            return suite
    raise LabError(f"SwiftShader needs glibc 2.36 or later and this machine has {glibc or 'none'}; use its own driver")


def _words(packages: list[Package]) -> str:
    return f"SwiftShader of {packages[0].name} {packages[0].version}"
