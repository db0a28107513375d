"""What is attacked while it runs: a command, the same command again, and what must come of it in the end."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
from stored_records import a_run, many, stored

from epcheck import reports
from epcheck.conformance.targets.target import TargetError
from epcheck.reports.store.query import query_store
from epcheck.reports.store.store import open_store

RECORDS = 2000
CONFIG = '[targets.attacked]\nbase = "cpu"\ndeadline_s = 5\n[targets.reference]\nbase = "reference"\ndeadline_s = 5\n'
"""A worker that is stopped costs its deadline."""

MODEL = (
    '<ir_version: 8, opset_import: ["" : 17]> g (float[4, 4] x) => (float[4, 4] z) <float[4] w = {1, 2, 3, 4}> '
    "{ a = Add (x, w)  b = MatMul (a, x)  c = Softmax (b)  z = Relu (c) }"
)
OPERATORS = ("--op", "Relu", "--op", "TopK", "--dtype", "float32")


@dataclass(frozen=True)
class Scene:
    """command: its arguments. again: those with which it goes on, or is done again, in the folder. kept: what is
    recorded so far. result: what has come of it; equal each time. prepare: makes what it reads."""

    name: str
    command: tuple[str, ...]
    again: Callable[[Path], tuple[str, ...]]
    kept: Callable[[Path], dict[str, str]]
    result: Callable[[Path], Any]
    prepare: Callable[[Path], None]


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


def resumed(folder: Path) -> tuple[str, ...]:
    """The run again: from where it was left, if it had begun."""
    if not runs_of(folder / "runs"):
        return RUN
    return ("run", "--resume", "latest", "--root", "runs")


def verdict_of_run(folder: Path) -> Any:
    """Its records; whether it is complete."""
    run = reports.read_run(runs_of(folder / "runs")[-1])
    return statuses(folder), run.status, run.planned


def verdict_of_night(folder: Path) -> Any:
    """The records of the night, and how many cases the store has of it."""
    table, opened = query_store(open_store(folder / "store"), "SELECT count(*) AS n FROM outcomes GROUP BY run_id")
    return statuses(folder), set(table.column("n").to_pylist()), len(opened.problems)


def verdict_of_model(folder: Path) -> Any:
    """What the document says of the model."""
    document = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    return document["status"], [output["right"] for output in document.get("verdicts", ())]


def rows_of_store(folder: Path) -> Any:
    """Rows, problems, and names of files that are no runs."""
    table, opened = query_store(open_store(folder / "store"), "SELECT count(*) AS n FROM outcomes")
    return table.column("n").to_pylist(), len(opened.problems), len(list((folder / "store").glob("*.parquet")))


def with_config(folder: Path) -> None:
    (folder / "epcheck.toml").write_text(CONFIG, encoding="utf-8")


def with_model(folder: Path) -> None:
    with_config(folder)
    onnx.save(onnx.parser.parse_model(MODEL), folder / "model.onnx")


def with_run(folder: Path) -> None:
    stored(folder / "run", tuple(many(RECORDS)), a_run(RECORDS))


def nothing(_folder: Path) -> dict[str, str]:
    """Nothing is recorded before the end."""
    return {}


RUN = ("run", "-t", "attacked", "--baseline", "reference", *OPERATORS, "--whole", "--root", "runs", "--no-reference")
NIGHT = ("nightly", "-t", "attacked", "--op", "Relu", "--thin", "--store", "store", "--root", "runs")
VALIDATE = ("validate", "model.onnx", "-t", "attacked", "--seed", "0", "--html", "out.html", "--json", "out.json")
STORE = ("store", "add", "run", "--store", "store")
SCENES = (
    Scene("run", RUN, resumed, statuses, verdict_of_run, with_config),
    Scene("nightly", NIGHT, lambda _folder: NIGHT, nothing, verdict_of_night, with_config),
    Scene("validate", VALIDATE, lambda _folder: VALIDATE, nothing, verdict_of_model, with_model),
    Scene("store add", STORE, lambda _folder: STORE, nothing, rows_of_store, with_run),
)
REASONS = (OSError, ValueError, TargetError)
