"""What a worker can say of the machine and the interpreter it runs in, whatever its backend."""

from __future__ import annotations

import platform
import struct
import sys
from pathlib import Path

INSTRUCTIONS = ("fma", "avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8")
"""Flags of /proc/cpuinfo on which floating-point and quantised results depend."""


def facts() -> dict[str, str]:
    """Interpreter, system, processor, and the version of numpy, which this imports."""
    import numpy as np

    return {
        "python": platform.python_version(),
        "interpreter": sys.executable,
        "os": platform.platform(),
        "machine": platform.machine(),
        "processor": processor(),
        "numpy": np.__version__,
    }


def processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's name and those of its INSTRUCTIONS where Linux tells them: kernels are chosen by these."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
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
