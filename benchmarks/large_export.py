"""What `validate_export` takes for a torch module of some gigabytes: seconds, and the memory of its processes.

    python benchmarks/large_export.py --gib 2.3           # a right export
    python benchmarks/large_export.py --gib 2.3 --wrong   # one weight of the middle layer is 2 % larger than exported

The module is a chain of linear layers of 4,096 features in float32, exported by torch.onnx with its weights in one file
beside the model. Memory is the largest sum of the resident sets of this process, which has the module, and of those
that it starts; mapped pages of the model's file are included.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from threading import Event, Thread
from typing import Any

import psutil
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))  # a script is given its own folder alone

from benchmarks.large_model import POLL_S, family
from epcheck.api import ValidateOptions, validate_export

WIDTH, ROWS = 4096, 4


def build(size: float) -> Any:
    """A module of about so many bytes, at least one layer."""
    torch.manual_seed(0)
    parts: list[Any] = []
    for _ in range(max(1, round(size / 4 / WIDTH / WIDTH))):
        parts += [torch.nn.Linear(WIDTH, WIDTH, bias=False), torch.nn.ReLU()]
        torch.nn.init.kaiming_normal_(parts[-2].weight, nonlinearity="relu")
    return torch.nn.Sequential(*parts).eval()


class Memory:
    """Samples the memory of this process and of its descendants while it is entered. peak: bytes together."""

    def __init__(self) -> None:
        self.peak = 0
        self._done = Event()
        self._thread = Thread(target=self._sample)

    def _sample(self) -> None:
        while not self._done.wait(POLL_S):
            total = 0
            for member in family(os.getpid()):
                try:
                    total += member.memory_info().rss
                except psutil.Error:
                    continue
            self.peak = max(self.peak, total)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()


def main() -> int:
    """Build, export, validate, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gib", type=float, default=2.3, help="size of the module")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--wrong", action="store_true", help="change a weight after the export")
    options = parser.parse_args()
    module, x = build(options.gib * 2**30), torch.randn(ROWS, WIDTH)
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "export.onnx"
        torch.onnx.export(module, (x,), path, dynamo=True, external_data=True, verbose=False)
        size = sum(file.stat().st_size for file in path.parent.iterdir())
        if options.wrong:
            with torch.no_grad():
                module[len(module) // 4 * 2].weight.mul_(1.02)
        started = time.perf_counter()
        with Memory() as memory:
            found = validate_export(module, (x,), path, options=ValidateOptions((), (options.target,)))
        seconds = time.perf_counter() - started
    print(found.headline)
    print(f"{size / 2**30:.2f} GiB: {seconds:.0f} s, all processes {memory.peak / 2**30:.2f} GiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
