"""Whether the causes of a run are the faults planted in a backend, each with the condition under which it was planted.

    python benchmarks/conditions.py                           # runs each backend over the cases of its operators
    python benchmarks/conditions.py --only B01,B07            # of these alone
    python benchmarks/conditions.py backends.py --runs other  # those of another file, in a folder of their own

The backends are those of `fault_injection/planted_backends.py`, written by somebody who knew public documentation
alone. Another file has BACKENDS, too: name -> faults, each with `operators`, `when(call)` and `effect(call, outputs)`.
What was run stays under `--runs`, and is read again the next time. A backend counts where it has as many causes as
faults that show, and each fault one of its own. A condition is the planted one (`=`) where it holds for the same cases
of the fault's operators as `when`, and tells the cases (`~`) where only cases differ for which the fault gives the
right answer, or which another fault makes wrong. Not counted: what the baseline shows too, a refusal that is missing,
and cases that are neither right nor wrong because of the fault, as those that may be refused.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import onnx

from epcheck import api
from epcheck.conformance.records.case_facts import CaseFacts
from epcheck.conformance.records.facts import describe_case
from epcheck.conformance.records.record import Record
from epcheck.conformance.records.terms import FAILURE, FLAKY, PASS
from epcheck.generators import suite
from epcheck.reports.causes.cause import Cause, Causes
from epcheck.reports.causes.find import NOT_ALONE
from epcheck.reports.causes.symptom import ACCEPTED, WRONG_VALUES
from epcheck.reports.runs.causes import find_causes_of_run
from epcheck.reports.runs.run_folder import read_records

HERE = Path(__file__).parent
PLANTED = HERE / "fault_injection/planted_backends.py"


@dataclass(frozen=True)
class Plant:
    """A fault and the cases of its operators that have one node. meant: those for which it holds. shown: those that
    fail. others: those that another fault makes wrong."""

    name: str
    operators: tuple[str, ...]
    condition: str
    cases: frozenset[str]
    meant: frozenset[str]
    shown: frozenset[str]
    others: frozenset[str]


@dataclass(frozen=True)
class Row:
    """A fault, the cause that is nearest to it, and the cases for which their conditions differ: all, and those where
    the difference shows."""

    plant: Plant
    cause: Cause | None
    differing: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()

    @property
    def mark(self) -> str:
        """`=`, `~`, `x` where the condition is another, and `-` of a fault that no case shows."""
        if not self.plant.shown:
            return "-"
        return "x" if self.cause is None or self.shown else "~" if self.differing else "="


@dataclass(frozen=True)
class Compared:
    """A backend: its faults, the causes that are none of them, and the CPU seconds of the search."""

    name: str
    rows: tuple[Row, ...]
    causes: tuple[Cause, ...]
    seconds: float

    @property
    def is_told(self) -> bool:
        """Whether the causes are the faults."""
        shown = [row for row in self.rows if row.plant.shown]
        return len(self.causes) == len(shown) and all(row.cause for row in shown)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("backends", type=Path, nargs="?", default=PLANTED, help="file with BACKENDS")
    parser.add_argument("--only", default="", help="names of backends, separated by commas")
    parser.add_argument("--runs", type=Path, default=Path("conditions-runs"), help="folder of the runs")
    options = parser.parse_args()
    enter(options.backends, options.runs)
    names = options.only.split(",") if options.only else sorted(_backends())
    for name in names:
        run_backend(name)
    with ProcessPoolExecutor(2) as pool:
        found = list(pool.map(compare_backend, names))
    for compared in found:
        print("\n".join(describe(compared)))
    marks = [row.mark for compared in found for row in compared.rows if row.plant.shown]
    print(
        f"{sum(compared.is_told for compared in found)} of {len(found)} backends; conditions of {len(marks)} faults: "
        f"{marks.count('=')} are the planted ones, {marks.count('~')} tell the cases; "
        f"{sum(compared.seconds for compared in found):.0f} s of CPU"
    )


def enter(backends: Path, runs: Path) -> None:
    """Go to the folder of the runs, from which workers import the backends."""
    runs.mkdir(parents=True, exist_ok=True)
    for file in (backends, HERE / "fault_injection/faulty_nodes.py"):
        content = file.read_bytes()
        (runs / ("backends.py" if file == backends else file.name)).write_bytes(content)
    os.chdir(runs)
    sys.path.insert(0, str(Path.cwd()))


def run_backend(name: str) -> None:
    """Run a backend over the cases of its operators, where there is no run of it."""
    root = Path(name)
    if (root / "planted.json").is_file():
        return
    shutil.rmtree(root, ignore_errors=True)
    faults = _backends()[name]
    wanted = {operator for fault in faults for operator in fault.operators}
    keys = sorted({case.operator_key for case in _cases()})
    operators = tuple(key for key in keys if key.rpartition("::")[2] in wanted)
    target = f"python:faulty_nodes:{name}"
    api.run(api.RunOptions((target,), operators=operators, whole=True, reference=False, root=root, jobs=2))
    records = {record.case_id: record for record in read_records(_folder(root))}
    found = [[sorted(part) for part in parts] for parts in _plants(faults, records)]
    (root / "planted.json").write_text(json.dumps(found))


def compare_backend(name: str) -> Compared:
    """The faults of a backend beside the causes of its run."""
    folder = _folder(Path(name))
    started = time.process_time()
    causes = find_causes_of_run(folder)
    seconds = time.process_time() - started
    records = {record.case_id: record for record in read_records(folder)}
    parts = json.loads((Path(name) / "planted.json").read_text())
    plants = [
        Plant(fault.name, fault.operators, fault.condition, *map(frozenset, part))
        for fault, part in zip(_backends()[name], parts, strict=True)
    ]
    listed = tuple(cause for cause in causes.all if _is_counted(cause))
    return Compared(name, tuple(_pair(plants, listed, causes, records)), listed, seconds)


def _is_counted(cause: Cause) -> bool:
    if not cause.target.startswith("python:") or cause.reading not in (FAILURE, FLAKY) or cause.shared:
        return False
    return not cause.text.startswith(ACCEPTED)


def _plants(faults: Sequence[Any], records: Mapping[str, Record]) -> Iterator[tuple[set[str], ...]]:
    """Of each fault the cases, and those meant, shown and of others, as Plant has them."""
    failing = {
        case_id
        for case_id, record in records.items()
        if record.reading in (FAILURE, FLAKY) and record.blame not in NOT_ALONE
    }
    calls = dict(_calls(records))
    cases = [{case_id for case_id, call in calls.items() if call.op_type in fault.operators} for fault in faults]
    meant = [{i for i in of_fault if fault.when(calls[i])} for fault, of_fault in zip(faults, cases, strict=True)]
    for place, of_fault in enumerate(meant):
        others = set[str]().union(*(each for other, each in enumerate(meant) if other != place))
        yield cases[place], of_fault, of_fault & failing, others & cases[place]


def _pair(
    plants: Sequence[Plant], causes: Sequence[Cause], found: Causes, records: Mapping[str, Record]
) -> Iterator[Row]:
    """Each fault with the cause whose cases are most like those where it shows."""
    cases_of: dict[str, set[str]] = {cause.key: set() for cause in causes}
    for (_, case_id), cause in found.of_case.items():
        cases_of.get(cause.key, set()).add(case_id)
    left = list(causes)
    for plant in plants:
        likeness = {cause.key: _likeness(cases_of[cause.key] & plant.cases, plant.shown) for cause in left}
        cause = max(left, key=lambda each: likeness[each.key], default=None)
        if cause is None or not likeness[cause.key]:
            yield Row(plant, None)
            continue
        left.remove(cause)
        judged = {
            i for i in plant.cases
            if i in plant.shown or (records[i].status == PASS and not records[i].case.may_refuse)
        }  # fmt: skip
        held = {i for i in judged if _holds(cause, records[i].case)}
        silent = {i for i in held if cause.text.startswith(WRONG_VALUES) and _is_empty(records[i].case)}
        shown = sorted(held - plant.meant - plant.others - silent) + sorted(plant.shown - held)
        yield Row(plant, cause, tuple(sorted(held ^ (plant.meant & judged))), tuple(shown))


def _is_empty(case: CaseFacts) -> bool:
    """Whether no output has an element, so that none can be wrong."""
    return all(0 in value.shape for value in case.values if value.where == "output")


def _likeness(cases: set[str], shown: frozenset[str]) -> float:
    return len(cases & shown) / max(1, len(cases | shown))


def _holds(cause: Cause, case: CaseFacts) -> bool:
    """Whether the condition holds for a case of the cause's operators: of a graph, for a node of it."""
    if cause.evidence.startswith("no condition"):
        return False
    nodes = [each for each in (case, *case.nodes_alone) if each.operator_key in cause.operators]
    return any(cause.matches(describe_case(each)) for each in nodes)


def _calls(records: Mapping[str, Record]) -> Iterator[tuple[str, Any]]:
    """(case id, its node as the faults see it), of the cases with one node."""
    faulty_nodes = importlib.import_module("faulty_nodes")
    for case in _cases():
        if case.id in records:
            built = case.build()
            with contextlib.suppress(Exception):
                proto = onnx.load_model_from_string(built.model)
                (node,) = proto.graph.node
                yield case.id, faulty_nodes.read_call(proto, node, built.feeds)


def _backends() -> Mapping[str, Sequence[Any]]:
    found: Mapping[str, Sequence[Any]] = importlib.import_module("backends").BACKENDS
    return found


@cache
def _cases() -> tuple[Any, ...]:
    return tuple(suite.cases())


def _folder(root: Path) -> Path:
    return max(root.glob("*/"))


def describe(compared: Compared) -> Iterator[str]:
    """What a person reads of a backend."""
    shown = sum(bool(row.plant.shown) for row in compared.rows)
    mark = "" if compared.is_told else " (!)"
    yield f"{compared.name}: {len(compared.causes)} causes of {shown} faults{mark}; {compared.seconds:.1f} s"
    for row in compared.rows:
        plant, cause = row.plant, row.cause
        yield (f"  {row.mark} {plant.name} [{', '.join(plant.operators)}] {plant.condition} "
               f"({len(plant.shown)} of {len(plant.meant)})")  # fmt: skip
        yield f"      -> {cause.title} ({cause.evidence})" if cause else "      -> none"
        if row.mark == "x" and cause:
            yield f"      differs: {' '.join(row.shown[:4])}"
    for cause in compared.causes:
        if all(cause is not row.cause for row in compared.rows):
            operators = ", ".join(cause.operators)
            yield f"  + {operators}: {cause.title} ({cause.evidence}; {cause.cases} cases, {cause.smallest})"


if __name__ == "__main__":
    main()
