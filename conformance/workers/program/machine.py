"""What a worker can say of the machine and the interpreter it runs in, whatever its backend."""

from __future__ import annotations

import os
import platform
import struct
import sys
from pathlib import Path

INSTRUCTIONS = ("fma", "avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8")
"""Flags of /proc/cpuinfo on which floating-point and quantised results depend."""

CLIENTS = ((22000, "11"), (0, "10"))
SERVERS = ((26100, "2025Server"), (20348, "2022Server"), (17763, "2019Server"), (0, "2016Server"))
"""The first build of each release of Windows 10.0, the newest first."""


def facts() -> dict[str, str]:
    """Interpreter, system, processor, and the version of numpy, which this imports."""
    import numpy as np

    return {
        "python": platform.python_version(),
        "interpreter": sys.executable,
        "os": system(),
        "machine": architecture(),
        "processor": processor(),
        "numpy": np.__version__,
    }


def system() -> str:
    """System and release in the words of `platform.platform`, which on Windows has WMI asked: that takes from
    milliseconds to minutes, where its service is stopped or Wine stands in for it."""
    if sys.platform != "win32":
        return platform.platform()
    windows = sys.getwindowsversion()
    major, minor, build = windows.platform_version or windows[:3]
    releases = SERVERS if windows.product_type == 3 else CLIENTS  # VER_NT_SERVER
    release = next(name for first, name in releases if build >= first) if (major, minor) == (10, 0) else str(major)
    return f"Windows-{release}-{major}.{minor}.{build}-SP{windows.service_pack_major}"


def architecture() -> str:
    """As `platform.machine` says it: x86_64, AMD64, ARM64."""
    if sys.platform != "win32":
        return platform.machine()
    return os.environ.get("PROCESSOR_ARCHITEW6432") or os.environ.get("PROCESSOR_ARCHITECTURE", "")


def processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's name and those of its INSTRUCTIONS where Linux tells them: kernels are chosen by these."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return os.environ.get("PROCESSOR_IDENTIFIER", "") if sys.platform == "win32" else platform.processor()
    fields = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in reversed(lines))}
    found = [name for name in INSTRUCTIONS if name in fields.get("flags", "").split()]
    return ", ".join([fields.get("model name") or platform.processor(), *found])


def file_version(path: Path) -> str:
    """The version resource of a Windows DLL, as 1.2.3.4; an empty string when it has none."""
    content = path.read_bytes()
    at = content.find(b"\xbd\x04\xef\xfe")  # VS_FIXEDFILEINFO.dwSignature
    if at < 0:
        return ""
    high, low = struct.unpack_from("<II", content, at + 8)
    return f"{high >> 16}.{high & 0xFFFF}.{low >> 16}.{low & 0xFFFF}"
