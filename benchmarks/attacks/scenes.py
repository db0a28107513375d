"""What is attacked while it runs: a command, the same command again, and what must come of it in the end."""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import onnx
import onnx.parser

from epcheck import reports
from epcheck.conformance.lab.status import status as lab_status
from epcheck.reports.store.query import query_store
from epcheck.reports.store.store import open_store
from tests.reports.stored_records import a_run, many, stored

RECORDS = 2000
CONFIG = """\
[targets.attacked]
{}
deadline_s = {}
jobs = 2
[targets.reference-5s]
base = "reference"
deadline_s = 5
jobs = 2
"""
"""A worker that is stopped costs its deadline. Of many attacks at once none may start a worker for each core."""

CALLABLE = "callable"
"""The target whose workers call a Python function; it starts processes, as one does that asks a server of its own."""

BACKEND = """\
import multiprocessing
import subprocess
import time

import onnx
from onnx.reference import ReferenceEvaluator

multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,), daemon=True).start()
subprocess.Popen(["sleep", "600"])


def compute(model, feeds):
    return ReferenceEvaluator(onnx.load_from_string(model)).run(None, feeds)
"""

MODEL = (
    '<ir_version: 8, opset_import: ["" : 17]> g (float[4, 4] x) => (float[4, 4] z) <float[4] w = {1, 2, 3, 4}> '
    "{ a = Add (x, w)  b = MatMul (a, x)  c = Softmax (b)  z = Relu (c) }"
)
OPERATORS = ("--op", "Relu", "--op", "Softmax", "--dtype", "float32")
"""None of whose cases asks for more time or memory than there is: which of both ends first were chance."""

UNPREPARED = ("--op", "Slice", "--op", "Pad", "--op", "Transpose")
"""So many cases that processes are started to prepare them, where none is in the cache."""


@dataclass(frozen=True)
class Scene:
    """command: its arguments. again: those with which it goes on, or is done again, in the folder. kept: what is
    recorded so far. result: what has come of it; equal each time. prepare: makes what it reads. is_cold: whether its
    cache is empty each time."""

    name: str
    command: tuple[str, ...]
    again: Callable[[Path], tuple[str, ...]]
    kept: Callable[[Path], dict[str, str]]
    result: Callable[[Path], Any]
    prepare: Callable[[Path], None]
    is_cold: bool = False

    def cache(self, folder: Path, shared: Path) -> Path:
        """Where the command in the folder keeps its cache. shared: that of all commands."""
        return folder / "cache" if self.is_cold else shared


def runs_of(root: Path) -> list[Path]:
    """The run folders, the oldest first."""
    return sorted(path.parent for path in root.glob("*/run.json"))


def statuses(folder: Path) -> dict[str, str]:
    """Case and target -> status, of the newest run; nothing where there is none."""
    runs = runs_of(folder / "runs")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = reports.read_records(runs[-1]) if runs else ()
        return {f"{record.case_id} {record.candidate.target}": record.status for record in found}


def resumed(command: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    """The run again: from where it was left, if it had begun."""
    if not runs_of(folder / "runs"):
        return command
    return ("run", "--resume", "latest", "--root", "runs")


def verdict_of_run(folder: Path) -> Any:
    """Its records; whether it is complete."""
    run = reports.read_run(runs_of(folder / "runs")[-1])
    return statuses(folder), run.status, run.planned


def verdict_of_night(folder: Path) -> Any:
    """The records of the night, and how many cases the store has of each that ran to its end: it keeps others, too."""
    table, opened = query_store(open_store(folder / "store"), "SELECT run_id, count(*) AS n FROM outcomes GROUP BY ALL")
    whole = {found.run.run_id for found in opened.runs if found.run.status == "complete"}
    return statuses(folder), {row["n"] for row in table.to_pylist() if row["run_id"] in whole}, len(opened.problems)


def verdict_of_model(folder: Path) -> Any:
    """What the document says of the model."""
    document = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    return document["status"], [output["right"] for output in document.get("verdicts", ())]


def rows_of_store(folder: Path) -> Any:
    """Rows, problems, and names of files that are no runs."""
    table, opened = query_store(open_store(folder / "store"), "SELECT count(*) AS n FROM outcomes")
    return table.column("n").to_pylist(), len(opened.problems), len(list((folder / "store").glob("*.parquet")))


def with_config(folder: Path, target: str = "cpu") -> None:
    """target: the one that is attacked. A worker in the lab takes longer to start."""
    base = 'function = "backend:compute"' if target == CALLABLE else f'base = "{target}"'
    config = CONFIG.format(base, 20 if target == "dml" else 5)
    (folder / "backend.py").write_text(BACKEND, encoding="utf-8")
    (folder / "epcheck.toml").write_text(config, encoding="utf-8")


def with_model(folder: Path, target: str = "cpu") -> None:
    with_config(folder, target)
    onnx.save(onnx.parser.parse_model(MODEL), folder / "model.onnx")


def with_run(folder: Path) -> None:
    stored(folder / "run", tuple(many(RECORDS)), a_run(RECORDS))


def nothing(_folder: Path) -> dict[str, str]:
    """Nothing is recorded before the end."""
    return {}


RUN = (
    "run",
    "-t",
    "attacked",
    "--baseline",
    "reference-5s",
    *OPERATORS,
    "--whole",
    "--root",
    "runs",
    "--no-reference",
)
FIRST_RUN = ("run", "-t", "attacked", "--baseline", "none", *UNPREPARED, "--whole", "--root", "runs", "--no-reference")
NIGHT = (
    "nightly",
    "-t",
    "attacked",
    "--op",
    "Relu",
    "--thin",
    "--store",
    "store",
    "--root",
    "runs",
    "--fuzz-minutes",
    "0",
)
VALIDATE = ("validate", "model.onnx", "-t", "attacked", "--seed", "0", "--html", "out.html", "--json", "out.json")
STORE = ("store", "add", "run", "--store", "store")


def lab_of(folder: Path) -> Any:
    """Whether the lab is whole, and how many files it has. Their sizes depend on the folder's name."""
    lab = folder / "lab"
    files = [path for path in lab.rglob("*") if path.is_file() and not path.is_symlink()]
    kept = [path for path in files if path.relative_to(lab).parts[0] not in CHANGING]
    return lab_status(lab).installed, len(kept), sum(path.stat().st_size == 0 for path in kept)


CHANGING = ("prefix", "home", "apt", "scratch", "lock", "lab.json")
"""What is not equal in two labs: what Wine writes when it starts, and the records of an installation."""


def scenes(target: str = "cpu", pack: Path | None = None, mirror: str | None = None) -> tuple[Scene, ...]:
    """target: what run, nightly and validate are about. pack: a packed lab, which is unpacked. mirror: a Debian archive
    from which a lab is installed."""
    config, model = partial(with_config, target=target), partial(with_model, target=target)
    found = [
        Scene("run", RUN, partial(resumed, RUN), statuses, verdict_of_run, config),
        Scene("first run", FIRST_RUN, partial(resumed, FIRST_RUN), statuses, verdict_of_run, config, is_cold=True),
        Scene("nightly", NIGHT, lambda _folder: NIGHT, nothing, verdict_of_night, config),
        Scene("validate", VALIDATE, lambda _folder: VALIDATE, nothing, verdict_of_model, model),
        Scene("store add", STORE, lambda _folder: STORE, nothing, rows_of_store, with_run),
    ]
    if pack:
        unpack = ("lab", "unpack", str(pack.absolute()), "--folder", "lab")
        found.append(Scene("lab unpack", unpack, partial(unpacked_again, unpack), nothing, lab_of, with_config))
    if mirror:
        install = ("lab", "install", "--folder", "lab", "--mirror", mirror)
        found.append(Scene("lab install", install, lambda _folder: install, nothing, lab_of, with_config))
    return tuple(found)


def unpacked_again(unpack: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    """A lab that is there already is refused, so it is only looked at."""
    return ("lab", "status", "--folder", "lab") if (folder / "lab" / "lab.json").is_file() else unpack


def add_options(parser: argparse.ArgumentParser) -> None:
    """What chooses scenes."""
    parser.add_argument("--scenes", help="names, separated by commas; all without it")
    parser.add_argument("--target", default="cpu", help="whose runs are attacked: cpu, dml, callable")
    parser.add_argument("--pack", type=Path, help="a packed lab; makes the scene `lab unpack`")
    parser.add_argument("--mirror", help="URL of a Debian archive; makes the scene `lab install`")


def chosen(options: argparse.Namespace) -> list[Scene]:
    """The scenes that were asked for."""
    found = scenes(options.target, options.pack, options.mirror)
    return [scene for scene in found if not options.scenes or scene.name in options.scenes.split(",")]
