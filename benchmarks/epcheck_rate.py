"""What epcheck takes for some cases, in a process of its own.

    python benchmarks/epcheck_rate.py --target cpu --no-pack [--only IDS.json] [--rounds 3 | --cases 50000]

Prints one line of JSON: `cases` and the `seconds` of the whole run (start of workers, preparing, running, judging,
confirming; not the import of epcheck nor the planning of ids); `later_cases` and `later_seconds` after the first
record, which leaves the start of the workers out; `peak_bytes`, the greatest resident memory of this process, the
runner's; and how often each status came.

`run` is the one place of the benchmark that knows how epcheck is asked to run cases in a process.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[1]))  # a script is given its own folder alone

from benchmarks.rates import larger_suite
from epcheck.conformance.cache.cache import Cache
from epcheck.conformance.records.record import Record
from epcheck.conformance.records.terms import PASS
from epcheck.conformance.scheduling.plan import Plan, Sink
from epcheck.conformance.scheduling.run import run_plan
from epcheck.conformance.targets.specification import resolve
from epcheck.generators.case import Case

KIBIBYTE = 1 << 10


@dataclass(frozen=True)
class Setting:
    """How epcheck runs. jobs: workers at most, None for the target's own number. cache: a file, None for no cache."""

    target: str = "cpu"
    pack: bool = True
    jobs: int | None = None
    cache: Path | None = None


def run(cases: Sequence[Case], setting: Setting, sink: Sink) -> None:
    """One candidate against the oracles that are built in: no baseline, no ReferenceEvaluator."""
    plan = Plan(cases, (resolve(setting.target),), jobs=setting.jobs, pack=setting.pack)
    with closing(Cache(setting.cache)) as cache:
        run_plan(plan, sink, cache=cache)


def statuses(cases: Sequence[Case], target: str) -> dict[str, str]:
    """How each case ends on a target: id -> status."""
    records: list[Record] = []
    run(cases, Setting(target), records.append)
    return {record.case_id: record.status for record in records}


def passing(cases: Sequence[Case], target: str) -> set[str]:
    """The ids of the cases that pass on a target."""
    return {case_id for case_id, status in statuses(cases, target).items() if status == PASS}


@dataclass
class Clock:
    """When records came. Times are of time.perf_counter, in seconds."""

    statuses: Counter[str] = field(default_factory=Counter)
    first: float = 0.0
    last: float = 0.0

    def take(self, record: Record) -> None:
        """The sink of a run."""
        self.last = time.perf_counter()
        self.first = self.first or self.last
        self.statuses[record.status] += 1


def measure(cases: Sequence[Case], setting: Setting) -> dict[str, object]:
    """Run the cases once; the report that the module's docstring describes."""
    clock = Clock()
    started = time.perf_counter()
    run(cases, setting, clock.take)
    seconds = time.perf_counter() - started
    if clock.statuses.total() != len(cases):
        raise RuntimeError(f"{len(cases)} cases gave {clock.statuses.total()} records")
    return {
        "cases": len(cases),
        "seconds": seconds,
        "later_cases": len(cases) - 1,
        "later_seconds": clock.last - clock.first,
        "peak_bytes": peak_resident_bytes(),
        "statuses": dict(clock.statuses),
    }


def peak_resident_bytes() -> int:
    """The greatest resident memory of this process; `getrusage` would count what it was before exec as well."""
    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (peak,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(peak) * KIBIBYTE


def main() -> None:
    """Print the report as one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--pack", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--jobs", type=int, help="workers at most; default: the target's own number")
    parser.add_argument("--cache", type=Path, help="the cache's file; default: no cache")
    parser.add_argument("--only", type=Path, help="a JSON list of the ids that are wanted, instead of all")
    parser.add_argument("--rounds", type=int, default=1, help="how often, each time with other random data")
    parser.add_argument("--cases", type=int, help="exactly so many, evenly spread over the rounds that they need")
    arguments = parser.parse_args()
    only = None if arguments.only is None else frozenset(json.loads(arguments.only.read_text(encoding="utf-8")))
    cases = (
        larger_suite.cases(arguments.rounds, only) if arguments.cases is None else larger_suite.exactly(arguments.cases)
    )
    print(json.dumps(measure(cases, Setting(arguments.target, arguments.pack, arguments.jobs, arguments.cache))))


if __name__ == "__main__":
    main()
