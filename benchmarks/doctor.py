"""Whether `epcheck doctor` names planted faults of precision and of quantisation, and nothing else.

    python benchmarks/doctor.py                     # 20 float16 models on `reference`, 16 quantised ones on `cpu`
    python benchmarks/doctor.py --float16 dml --quantised dml

A model in float16 counts where it is right with exactly the smallest set of nodes in float32; a quantised one where
exactly the planted node is named. The feeds are the model's own.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).parents[1]))  # a script is given its own folder alone

from benchmarks.fault_injection import planted_precision, planted_quantizers
from epcheck import api


def diagnosed(model: onnx.ModelProto, feeds: Mapping[str, Any], target: str) -> api.Diagnosis:
    """The doctor's answer."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(model.SerializeToString())
        np.savez(path.with_suffix(".npz"), **feeds)
        options = api.DoctorOptions(path, target=target, feeds=path.with_suffix(".npz"), own_process=False)
        return api.doctor(options)


def of_float16(target: str) -> Iterator[tuple[str, bool, str]]:
    """(model, whether it is right with the smallest set, the result)."""
    for planted in planted_precision.every():
        found = diagnosed(planted.model, planted.feeds, target)
        exact = found.status == "mended" and {node.name for node in found.keep} == planted.smallest
        yield planted.name, exact, found.headline


def of_quantisers(target: str) -> Iterator[tuple[str, bool, str]]:
    """(fault, whether its node alone is named, the result). A model without a fault is the last."""
    for fault in (*planted_quantizers.FAULTS, ""):
        model, feeds, node, _ = planted_quantizers.planted(fault)
        found = diagnosed(model, feeds, target)
        named = {each.node.name for each in found.quantization.faults} if found.quantization else set()
        yield fault or "no fault", named == ({node} if fault else set()), found.headline


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--float16", default="reference", help="target of the models in float16")
    parser.add_argument("--quantised", default="cpu", help="target of the quantised models")
    options = parser.parse_args()
    for what, target, rows in (
        ("float16", options.float16, of_float16(options.float16)),
        ("quantised", options.quantised, of_quantisers(options.quantised)),
    ):
        started, exact = time.monotonic(), []
        for name, is_exact, headline in rows:
            exact.append(is_exact)
            if not is_exact:
                print(f"{what}, {name}: {headline}", flush=True)
        print(
            f"{what} on {target}: {sum(exact)} of {len(exact)} exactly, {time.monotonic() - started:.0f} s", flush=True
        )


if __name__ == "__main__":
    main()
