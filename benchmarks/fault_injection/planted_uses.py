"""How many of the faults of use of `tests/plugin` a run with `--uses all` tells, and on which axis.

    python benchmarks/fault_injection/planted_uses.py            # the provider without a fault, then with each
    python benchmarks/fault_injection/planted_uses.py NAME ...   # some of them

A fault is told where a case is usage-dependent that is not without it. Needs g++.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

PLUGIN = Path(__file__).parents[2] / "tests" / "plugin"
PROVIDER = "PlantedExecutionProvider"
SWITCH = "EP_FAULT"
"""The environment variable that names the fault."""

LIMIT_S = 300.0
"""Seconds of a run. What it has recorded by then counts."""

USES: Mapping[str, str] = {
    "static_scratch": "threads=2", "bound_io_members": "threads=shared", "lazy_pack_race": "threads=first",
    "three_slots": "threads=shared", "run_end_clears": "threads=shared", "lock_order": "threads=creation",
    "parallel_mode_tls": "options=parallel", "weights_by_name": "weights=other", "weights_by_address": "weights=other",
    "shared_weights_erase": "lifecycle=order", "lazy_external_read": "weights=file",
    "no_prepack_path": "options=prepacking", "shape_hash8": "reruns=sizes", "stale_tail": "reruns=sizes",
    "capacity_forgotten": "reruns=sizes", "dtype_missing": "reruns=types", "empty_sticky": "reruns=shapes",
    "reshape_first_target": "reruns=sizes", "captured_pointers": "reruns=feeds", "alias_zero_first": "reruns=in_place",
    "writes_feed": "reruns=feeds", "round8_overrun": "reruns=bound", "fd_leak": "lifecycle=repeated",
    "thread_leak": "lifecycle=repeated", "shape_workspace_leak": "reruns=sizes",
    "failed_session_slots": "lifecycle=failed", "reregister_flag": "lifecycle=registered",
    "exit_joinable": "lifecycle=exit", "slot_shift": "lifecycle=order", "ftz_leak": "reruns=feeds",
}  # fmt: skip
"""Fault -> the use that is made for it."""

CASES = (
    "Mul-14/float64/length_1025",
    "Softmax-13/float32/conjunction_minus_infinity_first",
    "MatMul-13/float32/conjunction_above_65535_groups",
    "MatMul-13/float32/design_rank_8_by_matrix",
    "Add-14/float32/conjunction_above_65535_groups",
    "Mul-14/float32/same_shape",
    "Mul-14/int32/same_shape",
    "Sub-14/float32/same_shape",
    "Add-14/float32/same_shape",
    "Softmax-13/float32/border_length_513",
    "Softmax-13/float32/defaults",
    "ReduceSum-13/float32/defaults",
    "ReduceSum-13/float32/border_length_7",
    "ReduceSum-13/float32/pairs_usual",
    "Concat-13/float32/two",
    "Concat-13/float32/pairs_usual",
    "Reshape-21/float32/allowzero_1_new_rank",
    "Reshape-21/float64/design_scalar_to_1d_with_arguments_shape_c4d2d9",
    "Reshape-21/float32/design_zero_and_minus_1_with",
    "Reshape-25/float32/other_rank",
    "Conv-22/float32/defaults",
    "Conv-22/float32/depthwise_multiplier_2",
    "Transpose-25/float32/nchw_to_nhwc",
    "Transpose-25/float32/default",
    "Gemm-13/float32/pairs_usual",
    "Gemm-13/float32/alpha_minus_one",
    "Gemm-13/float32/border_n_65",
    "Gemm-13/float32/conjunction_both_transposed_tall",
    "Gemm-13/float32/graph_chain_gemm_relu_gemm",
    "MatMul-13/float32/matrices",
    "MatMul-13/float32/border_n_65",
    "MatMul-13/float32/conjunction_row_of_64_by_matrix",
    "MatMul-13/float32/graph_rule_transpose_matmul_scaled_equal_sizes",
    "Relu-14/float32/ordinary",
    "Relu-14/float32/graph_rule_add_relu_equal_sizes",
    "Sigmoid-13/float32/ordinary",
    "Sigmoid-13/float32/graph_fusion_conv_sigmoid",
    "Gather-13/float32/conjunction_one_index_of_a_negative_axis",
)
"""The cases of a run, as `-k` takes them: some of each operator of the provider."""


def build_library(folder: Path) -> Path:
    """The provider's library, built in the folder."""
    library = folder / "libplanted.so"
    command = ["g++", "-std=c++17", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", f"-I{PLUGIN / 'include'}"]
    # Worker threads and destructors of threads must not outlive the code, so that the library stays where it is.
    command += [str(PLUGIN / "plugin.cc"), "-o", str(library), "-pthread", "-Wl,-z,nodelete", "-Wl,-z,defs"]
    subprocess.run(command, check=True)
    return library


def name_target(library: Path) -> str:
    return f"ep:{library}#{PROVIDER}"


def run_uses(library: Path, fault: str, root: Path, cases: Sequence[str] = CASES) -> Path | None:
    """The folder of a run of the cases with all uses; None where there is none."""
    environment = {name: value for name, value in os.environ.items() if name != SWITCH}
    command = [str(Path(sys.executable).with_name("epcheck")), "run", "--target", name_target(library)]
    command += ["--thin", "--uses", "all", "--baseline", "none", "--no-reference", "--quiet", "--root", str(root)]
    command += [word for case in cases for word in ("-k", case)]
    process = subprocess.Popen(
        command, env={**environment, **({SWITCH: fault} if fault else {})}, stdout=subprocess.DEVNULL
    )
    try:
        process.wait(LIMIT_S)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        process.wait()
    return next(root.iterdir(), None) if root.is_dir() else None


def read_run(folder: Path) -> tuple[Counter[str], Counter[str]]:
    """How many cases have each status, and how many differ in each use."""
    statuses: Counter[str] = Counter()
    differing: Counter[str] = Counter()
    for line in (folder / "journal.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        statuses[record["status"]] += 1
        differing.update(each["variant"] for each in record.get("variants") or () if each["state"] == "differs")
    return statuses, differing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("faults", nargs="*", metavar="NAME", help="default: none, then all")
    faults = parser.parse_args().faults or ["", *USES]
    found = 0
    with tempfile.TemporaryDirectory() as folder:
        library = build_library(Path(folder))
        for fault in faults:
            began = time.monotonic()
            run = run_uses(library, fault, Path(folder) / "runs" / (fault or "none"))
            statuses, differing = read_run(run) if run else (Counter(), Counter())
            found += bool(fault) and statuses["usage-dependent"] > 0
            uses = ", ".join(f"{use} {count}" for use, count in differing.most_common()) or "nothing"
            print(f"{fault or '(none)':22} {time.monotonic() - began:4.0f} s  {uses}", flush=True)
    print(f"{found} of {sum(map(bool, faults))} faults are told")


if __name__ == "__main__":
    main()
