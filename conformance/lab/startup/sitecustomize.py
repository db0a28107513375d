"""What Python executes in the lab before a program of ours: it has modules come from one file (`module_store`).

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


sys.modules["_wmi"] = management = type(sys)("_wmi")
management.exec_query = _version  # type: ignore[attr-defined]

_own = os.path.dirname(__file__)  # noqa: PTH120  (pathlib takes 20 ms to import)
sys.path[:] = [folder for folder in sys.path if folder != _own]
module_store.use(os.environ["EPCHECK_MODULE_STORE"])
if _prelude := os.environ.get("EPCHECK_LAB_PRELUDE"):  # `epcheck lab python`; a worker executes it by itself
    import runpy

    runpy.run_path(_prelude)
