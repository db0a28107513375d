"""What Python executes in the lab before a program of ours: it has modules come from one file (`module_store`).

Python imports a module of this name from `sys.path` when it starts (https://docs.python.org/3/library/site.html), where
`epcheck.conformance.lab.python_launch` puts this folder first.
"""

import os
import sys

import module_store  # type: ignore[import-not-found]  # beside this file, where there is no epcheck

_own = os.path.dirname(__file__)  # noqa: PTH120  (pathlib takes 20 ms to import)
sys.path[:] = [folder for folder in sys.path if folder != _own]
module_store.use(os.environ["EPCHECK_MODULE_STORE"])
