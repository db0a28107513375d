"""The worker program: runs cases in a process of its own. This folder needs numpy, onnxruntime and Python 3.9.

    python worker.py BACKEND [--prelude FILE] [--path FOLDER]... [--fork-server SOCKET] [--plugin JSON [--describe]]
        [--jail JSON]
    python worker.py --within POLICY ...

BACKEND: `onnxruntime`, `reference` (onnx.reference.ReferenceEvaluator), `directml` (DirectML without ONNX Runtime; it
takes a program in the place of a model) or `python:module:function` (any callable (model, feeds) -> outputs).
--prelude: a file that is executed before anything is imported; it may put facts about the machine into
`sys._epcheck_facts`, a function that returns them. --path: a folder that is put first on `sys.path`. --fork-server: a
file descriptor; the process
imports everything once and forks a worker for each request on it (`fork.py`). --plugin: the library that `onnxruntime`
takes a provider from (`backends/plugin.py`); with --describe it only writes one line of JSON, the `provider` that the
library holds and the `trouble` that there is with it, and ends. --jail: what the system is to keep it from (`jail.py`).
--within: it does not run sessions, but executes a command in that jail.

The frames over stdin and stdout are described in `protocol.py`. epcheck need not be importable: this file loads the
folder it stands in as the package `epcheck_worker`, so a copy of the folder is a worker anywhere.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

PACKAGE = "epcheck_worker"
"""The name of this folder as a package: no module of the user's has it."""


def main(arguments: list[str]) -> None:
    """Load the program and run it."""
    folder = Path(__file__).resolve().parent
    spec = importlib.util.spec_from_file_location(
        PACKAGE, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE] = package
    spec.loader.exec_module(package)
    if arguments[:1] == ["--within"]:
        importlib.import_module(f"{PACKAGE}.jail").main(arguments[1:])
    else:
        importlib.import_module(f"{PACKAGE}.main").main(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(0)  # taking down interpreter and providers takes longer than a hundred sessions, and no case asks for it
