"""Signals in the first moments of a command, before anything of it is imported: exit code 130, and no traceback.

    python benchmarks/attacks/starts.py                 # 400 signals, in the time that `epcheck list targets` takes
    python benchmarks/attacks/starts.py --count 40 --within 0.05

The moment is counted from the first line of the program that `pip install` makes: before it Python starts, which ends
as Python does. SIGINT, SIGTERM and SIGHUP are sent; a command that had ended already is counted as such.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT)]

from benchmarks.attacks import shards  # noqa: E402

PROGRAM = "import os; os.close({0}); from epcheck.cli.start import main; main()"
"""The console script; that its first line is done is known when the descriptor is closed."""

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
HANG_S = 60.0
INTERRUPTED = 130


@dataclass(frozen=True)
class Ended:
    """code: exit code, or minus the signal. seconds: from the first line of the program to its end."""

    code: int
    printed: str
    seconds: float


def started(folder: Path, after_s: float | None, number: signal.Signals = signal.SIGINT) -> Ended:
    """Start `epcheck list targets`, and send it a signal so many seconds after its first line; None for no signal."""
    begun, descriptor = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(descriptor), "list", "targets"], cwd=folder, pass_fds=[descriptor],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", preexec_fn=_heard,
    )  # fmt: skip
    os.close(descriptor)
    os.read(begun, 1)
    os.close(begun)
    began = time.monotonic()
    if after_s is not None:
        time.sleep(after_s)
        process.send_signal(number)
    try:
        printed, _ = process.communicate(timeout=HANG_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return Ended(-1000, "", HANG_S)
    return Ended(process.returncode, printed, time.monotonic() - began)


def fault(ended: Ended) -> str:
    """What is wrong with how it ended; empty for nothing."""
    if ended.code == -1000:
        return "hangs"
    if "Traceback" in ended.printed:
        return f"traceback: {ended.printed[-400:]}"
    return "" if ended.code in (0, INTERRUPTED) else f"exit code {ended.code}"


def _heard() -> None:
    """Signals are not ignored, as they are in what a shell runs in the background."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--within", type=float, help="seconds; as long as the command takes, without it")
    shards.add_options(parser)
    options = parser.parse_args()
    if (code := shards.in_shards(__file__, options)) is not None:
        return code
    folder = Path(tempfile.mkdtemp(prefix="epcheck-starts-"))
    within = options.within or started(folder, None).seconds
    codes: Counter[str] = Counter()
    faults = 0
    for number in range(options.count)[shards.part(options)]:
        draw = random.Random(f"{options.seed} {number}")
        after_s, sent = draw.uniform(0, within), draw.choice(SIGNALS)
        ended = started(folder, after_s, sent)
        codes[str(ended.code)] += 1
        if wrong := fault(ended):
            faults += 1
            print(f"{number}: {sent.name} after {after_s * 1000:.1f} ms: {wrong}", flush=True)
    print(json.dumps({"signals": codes.total(), "faults": faults, "within_ms": within * 1000, "codes": dict(codes)}))
    return int(bool(faults))


if __name__ == "__main__":
    raise SystemExit(main())
