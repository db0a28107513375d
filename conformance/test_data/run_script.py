"""Runs model.onnx on an execution provider and compares its outputs with what is right. Needs onnxruntime and numpy.

    python run.py [PROVIDER] [--git-bisect]

case.json says what the model is, on which provider it is run by default, and what is right besides the outputs.

Exit code: 0 right on that provider, 1 wrong (also where the process dies or hangs), 2 it could not be run there, as
where this onnxruntime does not have the provider, or the provider does not take the node. With --git-bisect, 125 stands
for 2: `git bisect run python run.py PROVIDER --git-bisect` then skips that build.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

RIGHT, WRONG, CANNOT = 0, 1, 2
HERE = Path(__file__).resolve().parent
IN_THIS_PROCESS = "--in-this-process"
TIMEOUT_S = 300
NOBODY_TAKES_IT = re.compile(
    r"fallback to CPU EP has been explicitly disabled"
    r"|NOT_IMPLEMENTED : (Could not find an implementation|Failed to find kernel)"
    r"|Unsupported model IR version|Current official support for domain \S+ is till opset"
    r"|is not a registered function/op|IsNodeCompatibleWithProvider !node_provider_type\.empty\(\)"
)


def main() -> int:
    words = [word for word in sys.argv[1:] if word not in (IN_THIS_PROCESS, "--git-bisect")]
    case = json.loads((HERE / "case.json").read_text(encoding="utf-8"))
    provider = words[0] if words else case["provider"]
    if IN_THIS_PROCESS in sys.argv:
        try:
            return run(case, provider)
        except Exception:
            traceback.print_exc()
            return CANNOT
    command = [sys.executable, str(HERE / "run.py"), provider, IN_THIS_PROCESS]
    try:
        code = subprocess.run(command, timeout=TIMEOUT_S).returncode
    except subprocess.TimeoutExpired:
        print("WRONG: it does not end within", TIMEOUT_S, "s")
        code = WRONG
    if code not in (RIGHT, WRONG, CANNOT):
        print("WRONG: the process died with exit code", code)
        code = WRONG
    return 125 if code == CANNOT and "--git-bisect" in sys.argv else code


def run(case: dict[str, Any], provider: str) -> int:
    try:
        import numpy as np
        import onnxruntime as ort
    except ImportError as error:
        print("CANNOT RUN:", error)
        return CANNOT
    if provider not in ort.get_available_providers():
        available = ort.get_available_providers()
        print(f"CANNOT RUN: onnxruntime {ort.__version__} has no {provider}; it has {available}")
        return CANNOT
    data = dict(np.load(HERE / "data.npz"))
    try:
        session = make_session(ort, case, provider)
        names = [output.name for output in session.get_outputs()]
        feeds = {value.name: data["input." + value.name] for value in session.get_inputs()}
        got, again = (dict(zip(names, session.run(None, feeds))) for _ in range(2))
    except Exception as error:
        return refused(case, provider, str(error))
    if gap := placement_gap(case, provider, assignment(session)):
        print("CANNOT RUN:", gap)
        return CANNOT
    if case["refused"]:
        print("WRONG: accepted what must be refused:", case["refused"])
        return WRONG
    wrong = selection_wrong(np, case["selection"], data, got) if case["selection"] else outputs_wrong(np, data, got)
    for name in names:
        if got[name].tobytes() != again[name].tobytes():
            print(name, "WRONG: a second run of the same session gives another value")
            wrong = True
    print("WRONG" if wrong else "right", "on", provider + ", onnxruntime", ort.__version__)
    return WRONG if wrong else RIGHT


def make_session(ort: Any, case: dict[str, Any], provider: str) -> Any:
    ort.set_default_logger_severity(4)
    options = ort.SessionOptions()
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, case["level"])
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_mem_pattern = False
    if provider != "CPUExecutionProvider" and case["operator"]:
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    if hasattr(ort.InferenceSession, "get_provider_graph_assignment_info"):
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    else:
        options.enable_profiling = True
        options.profile_file_prefix = str(Path(tempfile.gettempdir()) / f"run-{os.getpid()}")
    return ort.InferenceSession(str(HERE / "model.onnx"), options, providers=[provider], enable_fallback=0)


def assignment(session: Any) -> list[tuple[str, str]]:
    """(provider, operator) of each node, as the session says."""
    if hasattr(session, "get_provider_graph_assignment_info"):
        parts = session.get_provider_graph_assignment_info()
        return [(part.ep_name, node.op_type) for part in parts for node in part.get_nodes()]
    profile = Path(session.end_profiling())
    events = json.loads(profile.read_text(encoding="utf-8"))
    profile.unlink()
    kernels = [event["args"] for event in events if event.get("name", "").endswith("_kernel_time")]
    return [(kernel.get("provider", ""), kernel.get("op_name", "")) for kernel in kernels]


def placement_gap(case: dict[str, Any], provider: str, assigned: list[tuple[str, str]]) -> str:
    """Why nothing proves that the provider ran the operator of the case, or any node of a model; empty if it did."""
    if not assigned:
        return "no proof of placement: the session records no node"
    for name, operator in assigned:
        if name != provider and operator == case["operator"]:
            return operator + " ran on " + name
    if not any(name == provider for name, _ in assigned):
        return "no node ran on " + provider
    return ""


def refused(case: dict[str, Any], provider: str, message: str) -> int:
    if NOBODY_TAKES_IT.search(message):
        print("CANNOT RUN:", provider, "does not take it:", message)
        return CANNOT
    if case["refused"]:
        print("right: refused, as it must be:", message)
        return RIGHT
    print("WRONG: refused:", message)
    return WRONG


def outputs_wrong(np: Any, data: dict[str, Any], got: dict[str, Any]) -> bool:
    found = [name for name in got if not output_right(np, data, name, got[name])]
    return bool(found)


def output_right(np: Any, data: dict[str, Any], name: str, value: Any) -> bool:
    """`output.NAME` is what is right; `allowed.NAME` how far from `exact.NAME` each element may be."""
    expected = data.get("output." + name)
    if expected is None:
        print(name, "nobody knows what is right")
        return True
    right = bool(value.shape == expected.shape and value.dtype == expected.dtype)
    if right:
        near = same(np, expected, value)
        if "allowed." + name in data:
            exact = data.get("exact." + name, expected).astype(np.float64)
            with np.errstate(all="ignore"):
                near |= np.abs(value.astype(np.float64) - exact) <= data["allowed." + name]
        right = bool(near.all())
    print(name, "as expected" if right else f"WRONG\n{value}\nexpected\n{expected}")
    return right


def same(np: Any, first: Any, second: Any) -> Any:
    """Equal bits, or both NaN."""
    if first.dtype.kind not in "fc":
        return first == second
    both_nan = np.isnan(first) & np.isnan(second)
    return (first == second) & (np.signbit(first.real) == np.signbit(second.real)) | both_nan


def selection_wrong(np: Any, selection: dict[str, Any], data: dict[str, Any], got: dict[str, Any]) -> bool:
    """Values and indices must be one of the accepted pairs, in any order where the order is not defined."""
    pair = [got[name] for name in selection["names"]]
    number = 0
    while f"accepted.{number}.0" in data:
        accepted = [data[f"accepted.{number}.{part}"] for part in range(2)]
        alike = all(a.shape == b.shape and a.dtype == b.dtype for a, b in zip(accepted, pair))
        if alike and not selection["ordered"]:
            ordered = [by_index(np, each, selection["axis"]) for each in (accepted, pair)]
        else:
            ordered = [accepted, pair]
        if alike and all(same(np, a, b).all() for a, b in zip(*ordered)):
            print("values and indices as expected")
            return False
        number += 1
    print(
        "values and indices WRONG\n{}\n{}\nexpected\n{}\n{}".format(*pair, data["accepted.0.0"], data["accepted.0.1"])
    )
    return True


def by_index(np: Any, pair: list[Any], axis: int) -> list[Any]:
    order = np.argsort(pair[1], axis=axis, kind="stable")
    return [np.take_along_axis(part, order, axis) for part in pair]


if __name__ == "__main__":
    sys.exit(main())
