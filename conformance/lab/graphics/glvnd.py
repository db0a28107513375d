"""Vendor-neutral OpenGL (GLVND): libraries that NVIDIA's Vulkan driver needs, also where nothing is drawn."""

from __future__ import annotations

from epcheck.conformance.lab.folder import Layout
from epcheck.conformance.lab.packages.apt import Archive, describe_other_versions

PACKAGES = ("libglvnd0", "libglx0", "libopengl0", "libegl1")


def install(layout: Layout, archive: Archive) -> tuple[str, dict[str, str]]:
    """Unpack the libraries beside the lab's own, without Mesa's OpenGL, which they need for drawing alone.

    Returns detail and facts. Raises LabError.
    """
    packages = archive.fetch_only(PACKAGES)
    archive.unpack(packages, layout.root)
    version = packages[0].version.partition("-")[0]
    return describe_other_versions(packages) or f"vendor-neutral OpenGL {version}, for drivers of the machine", {}
