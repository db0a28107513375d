"""How many files and functions of epcheck one case passes from its declaration to the report, in the main process.

    python benchmarks/trace_case.py [CASE]

The case runs on the CPU provider, without baseline and without cache. A function counts once, however often it is
called. The depth is the most calls of epcheck's functions that are open at once.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from pathlib import Path
from types import CodeType, FrameType

import epcheck.api
from epcheck.api import RunOptions, run

ROOTS = tuple(f"{Path(folder)}/" for folder in (*epcheck.api.__path__, Path(epcheck.api.__path__[0]).resolve()))
PACKAGES = tuple(str(Path(root).parent) + "/" for root in ROOTS)

codes: set[CodeType] = set()
depths: dict[int, int] = {}
deepest = 0


def profile(frame: FrameType, event: str, _: object) -> None:
    """Count calls of epcheck's functions, by thread."""
    global deepest
    if event not in ("call", "return") or not frame.f_code.co_filename.startswith(PACKAGES):
        return
    thread = threading.get_ident()
    depths[thread] = depths.get(thread, 0) + (1 if event == "call" else -1)
    deepest = max(deepest, depths[thread])
    codes.add(frame.f_code)


if __name__ == "__main__":
    case_id = sys.argv[1] if len(sys.argv) > 1 else "Slice-13/float16/negative_step_past_both_ends[runtime]"
    operator = case_id.partition("/")[0].rpartition("-")[0]
    with tempfile.TemporaryDirectory() as root:
        options = RunOptions(("cpu",), operators=(operator,), patterns=(case_id,), root=Path(root), cache=False)
        threading.setprofile(profile)
        sys.setprofile(profile)
        try:
            result = run(options)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    assert result.summary.recorded == 1
    modules = [name for name in sys.modules if name.startswith("epcheck.")]
    files = {code.co_filename for code in codes}
    print(f"{len(files)} files, {len(codes)} functions, at most {deepest} deep; {len(modules)} modules imported")
