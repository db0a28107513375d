"""Whether a parent on Windows and one on Linux say the same of a provider: `nox -s parity`.

Both make all cases of the suite (`case_summaries.py`), which are the same but for last digits. Then both ask the same
workers: DirectML, and the CPU provider of its runtime, by the lab's Windows Python. What a case or a model becomes is
what the two parents make of the answers. They may differ in times, in what they run on themselves, and in the last
digits of a number.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper

from epcheck import reports
from epcheck.conformance import lab
from epcheck.models import zoo
from tests import windows_session
from tests.models import small_models

CONFIGURATION = """
[targets.runtime-cpu]
base = "dml"
provider = "CPUExecutionProvider"
device = "cpu"
config = { "session.disable_cpu_ep_fallback" = "0" }
"""
"""The baseline of both parents, which have an ONNX Runtime of their own each."""

TARGETS = ("--target", "dml", "--baseline", "runtime-cpu")

SUITE = ("run", *TARGETS, "--no-reference", "--thin", "--shard", "1/36", "--root", "runs")
"""A part of the suite, 551 cases of all operators."""

CASES = "cases.json"
"""What each case is."""

VALIDATE = ("validate", *TARGETS, "--json", "validations.json", "--html", "validations.html")

PRECISION = 1e-3
"""The relative difference of two numbers that are the same: threads of a driver add in any order."""

OF_THE_PARENT = frozenset(("facts", "path", "create_s", "run_s", "judged_s", "seconds", "shared"))
"""Fields that are times, what follows from times (how many cases share a session), or what the parent runs on."""

SECONDS, WINDOWS_PATH = re.compile(r"\b[\d.]+ s\b"), re.compile(r"\bZ:(\\\S*)")
"""What a sentence has of the parent: a time, and a path as the lab's Windows names it."""

EXIT_CODE = re.compile(r"\bexit code (0x[0-9a-f]+|\d+)")
"""Of a process of Windows, which Linux sees the last 8 bits of."""

OF_WINE = re.compile(r"^wine: .*\n?", re.MULTILINE)
"""A line of Wine itself on stderr, which a parent on Windows does not see."""

NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")
"""A number in a sentence or in a list of values, which two releases of numpy do not print alike: 6.55e+04, 65500.0."""

Difference = tuple[str, Any, Any]
"""Where, what Linux says, what Windows says."""


def main(arguments: Sequence[str]) -> int:
    """Compare both parents. Returns 0 if they say the same; otherwise 1, and the differences are printed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="a new folder, which keeps what both parents write")
    chosen = parser.parse_args(arguments)
    with lab.in_use(), tempfile.TemporaryDirectory(prefix="epcheck-parity-") as scratch:
        folder = chosen.folder or Path(scratch, "parity")
        environments = {"linux": dict(os.environ), "windows": windows_session.make_environment(Path(scratch))}
        with ThreadPoolExecutor() as both:
            runs = [both.submit(ask, folder / name, environment) for name, environment in environments.items()]
        codes = [run.result() for run in runs]
        return report([*compare("exit codes", *codes), *compare_folders(folder / "linux", folder / "windows")])


def report(differences: Sequence[Difference]) -> int:
    """Print the differences; returns 1 if there are any."""
    for where, linux, windows in differences:
        print(f"{where}\n  Linux:   {linux!r}\n  Windows: {windows!r}")
    print(f"{len(differences)} differences")
    return int(bool(differences))


def ask(folder: Path, environment: Mapping[str, str]) -> list[int]:
    """Run a part of the suite and the validations by the parent whose name the folder has; returns the exit codes."""
    (folder / "models").mkdir(parents=True)
    (folder / "epcheck.toml").write_text(CONFIGURATION, encoding="utf-8")
    for name, model in make_models():
        onnx.save(model, folder / "models" / f"{name}.onnx")
    summarize_cases(folder, environment)
    return [run_epcheck(folder, environment, arguments) for arguments in (SUITE, (*VALIDATE, "models"))]


def make_models() -> Iterator[tuple[str, onnx.ModelProto]]:
    """Every architecture of the zoo, and models of a few nodes: one that falls back, and one that cannot run."""
    for architecture in zoo.all():
        yield architecture.name, architecture.build()
    yield "one_layer", small_models.layers(1)
    yield "four_layers", small_models.layers(4)
    square = small_models.floats("x", "batch", 4, 4)
    relu, det = helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Det", ["y"], ["z"])
    yield "falls_back", small_models.model([relu, det], [square], ["z"])
    cast = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.DOUBLE)
    yield "no_kernel", small_models.model([cast, helper.make_node("Erf", ["y"], ["z"])], [square], ["z"])


def run_epcheck(folder: Path, environment: Mapping[str, str], arguments: Sequence[str]) -> int:
    """Run epcheck in the folder; returns its exit code. Raises SystemExit where it neither passes nor fails."""
    done = run_python(folder, environment, "-m", "epcheck", *arguments)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{folder.name}: epcheck {' '.join(arguments)} ended with {done.returncode}: {done.stderr}")
    return done.returncode


def summarize_cases(folder: Path, environment: Mapping[str, str]) -> None:
    """Write CASES. Raises SystemExit where that fails."""
    program = Path(__file__).with_name("case_summaries.py")
    done = run_python(folder, environment, lab.windows_path(program) if is_windows(folder) else str(program), CASES)
    if done.returncode:
        raise SystemExit(f"{folder.name}: the cases cannot be made: {done.stderr}")


def run_python(folder: Path, environment: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the Python of the parent whose name the folder has to its end, in the folder."""
    python = lab.python_launch().argv if is_windows(folder) else (sys.executable,)
    cache = folder / "cache"
    started = time.monotonic()
    done = subprocess.run(
        [*python, *arguments],
        cwd=folder,
        env={**environment, "EPCHECK_CACHE": lab.windows_path(cache) if is_windows(folder) else str(cache)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    print(f"{folder.name}: {' '.join(arguments[:3])} took {time.monotonic() - started:.0f} s", flush=True)
    return done


def is_windows(folder: Path) -> bool:
    return folder.name == "windows"


def compare_folders(linux: Path, windows: Path) -> Iterator[Difference]:
    """The differences of the cases, the records and the validations of two folders in which `ask` was called."""
    for kind, read in (("case", read_cases), ("record", read_records), ("validation", read_validations)):
        here, there = read(linux), read(windows)
        print(f"{len(here)} {kind}s")
        yield from compare(kind, here, there)


def read_cases(folder: Path) -> dict[str, Any]:
    """Case id -> what `case_summaries.py` writes of it."""
    found: dict[str, Any] = json.loads((folder / CASES).read_text(encoding="utf-8"))
    return found


def read_records(folder: Path) -> dict[str, Any]:
    """Case id -> the fields of its record."""
    return {record.case_id: record.to_fields() for record in reports.read_records(reports.latest(folder / "runs"))}


def read_validations(folder: Path) -> dict[str, Any]:
    """Name of a model -> what was found."""
    document = json.loads((folder / "validations.json").read_text(encoding="utf-8"))
    return {result["model"]: result for result in document["results"]}


def compare(where: str, linux: Any, windows: Any) -> Iterator[Difference]:
    """The places at which two values differ by more than parents may."""
    if isinstance(linux, dict) and isinstance(windows, dict):
        for name in dict.fromkeys((*linux, *windows)):
            if name not in OF_THE_PARENT:
                yield from compare(f"{where}: {name}", *(side.get(name) for side in (linux, windows)))
    elif isinstance(linux, list) and isinstance(windows, list) and len(linux) == len(windows):
        for index, pair in enumerate(zip(linux, windows, strict=True)):
            yield from compare(f"{where}[{index}]", *pair)
    elif not is_same(linux, windows):
        yield where, linux, windows


def is_same(linux: Any, windows: Any) -> bool:
    """Whether two values are equal but for what parents may differ in. None is a text that is not there."""
    linux, windows = ("" if value is None else value for value in (linux, windows))
    if isinstance(linux, float) and isinstance(windows, float):
        return math.isclose(linux, windows, rel_tol=PRECISION) or (math.isnan(linux) and math.isnan(windows))
    if isinstance(linux, str) and isinstance(windows, str):
        return is_same_text(make_neutral(linux), make_neutral(windows))
    return type(linux) is type(windows) and bool(linux == windows)


def is_same_text(linux: str, windows: str) -> bool:
    """Whether two texts are equal but for the last digits of numbers; integers have to be equal."""
    if NUMBER.split(linux) != NUMBER.split(windows):
        return False
    pairs = zip(NUMBER.findall(linux), NUMBER.findall(windows), strict=True)
    return all(
        here == there or (not (here + there).isdigit() and math.isclose(float(here), float(there), rel_tol=PRECISION))
        for here, there in pairs
    )


def make_neutral(text: str) -> str:
    """The text without times, without the parent's own folders, and without what Wine has for a parent on Linux."""
    text = EXIT_CODE.sub(lambda code: f"exit code {int(code[1], 0) & 0xFF}", OF_WINE.sub("", text))
    paths = WINDOWS_PATH.sub(lambda path: path[1].replace("\\", "/"), SECONDS.sub("… s", text))
    return paths.replace("/windows/models/", "/linux/models/")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
