"""What Python executes in the lab before a program of ours: it has modules come from one file (`module_store`), and
asks for the processor's matrix tiles.

Python imports a module of this name from `sys.path` when it starts (https://docs.python.org/3/library/site.html), where
`epcheck.conformance.lab.python_launch` puts this folder first.
"""

import os
import sys

import module_store  # type: ignore[import-not-found]  # beside this file, where there is no epcheck


def _version(query: str) -> str:
    """What `_wmi.exec_query` answers `platform`, from what Python knows: Wine starts threads and services to find out.

    Without an answer `platform` starts a command interpreter to ask. Raises OSError for what it knows by itself.
    """
    if "FROM Win32_OperatingSystem" not in query:
        raise OSError(query)
    windows = sys.getwindowsversion()  # type: ignore[attr-defined]
    fields = {
        "Version": f"{windows.major}.{windows.minor}.{windows.build}",
        "ProductType": windows.product_type,
        "BuildType": "Multiprocessor Free",
        "ServicePackMajorVersion": windows.service_pack_major,
        "ServicePackMinorVersion": windows.service_pack_minor,
    }
    return "\0".join(f"{name}={value}" for name, value in fields.items())


ALLOW_TILES = bytes.fromhex("57 56 b8 9e 00 00 00 bf 23 10 00 00 be 12 00 00 00 0f 05 5e 5f c3")
"""push rdi; push rsi; eax = 158, arch_prctl; edi = 0x1023, ARCH_REQ_XCOMP_PERM; esi = 18, tile data; syscall"""


def _allow_tiles() -> None:
    """Ask Linux for the tiles of AMX, as a program must before it uses them.

    ONNX Runtime's CPU kernels for 8-bit integers use them wherever the processor has them, and ask Windows only. Wine
    does not pass that on, so that MatMulInteger would end the process: an illegal instruction, exit code 0xC000001D.
    https://docs.kernel.org/arch/x86/xstate.html
    """
    import ctypes  # from the store

    kernel = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined]
    kernel.VirtualAlloc.restype = ctypes.c_void_p
    place = kernel.VirtualAlloc(None, len(ALLOW_TILES), 0x3000, 0x40)  # reserved and committed, executable
    ctypes.memmove(place, ALLOW_TILES, len(ALLOW_TILES))
    ctypes.CFUNCTYPE(ctypes.c_longlong)(place)()  # an older kernel, or a processor without tiles, refuses


sys.modules["_wmi"] = management = type(sys)("_wmi")
management.exec_query = _version  # type: ignore[attr-defined]

_own = os.path.dirname(__file__)  # noqa: PTH120  (pathlib takes 20 ms to import)
sys.path[:] = [folder for folder in sys.path if folder != _own]
module_store.use(os.environ["EPCHECK_MODULE_STORE"])
_allow_tiles()
if _prelude := os.environ.get("EPCHECK_LAB_PRELUDE"):  # `epcheck lab python`; a worker executes it by itself
    import runpy

    runpy.run_path(_prelude)
