"""epcheck beside a bare loop of sessions of the same runtime, on any target: its interpreter, provider and options.

    python benchmarks/providers.py --target webgpu openvino qnn [--repeats 3] [--cases 300] [--rounds 4] [--json FILE]

The cases are the first of the thin suite, in the order of a hash of their ids, that the target passes. Each repeat
runs, one after the other and each in processes of its own: the bare loop; the bare loop beside one session that is
kept, since some providers make their device anew for each session that is the only one; epcheck, with a session for
each case; and epcheck as it is, which packs where a sample of the target agrees. epcheck's cache has the prepared
cases, and its seconds are those from its first record to its last: the bare loop's leave the start of its process out.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # a script is given its own folder alone

from benchmarks import epcheck_rate
from benchmarks.epcheck_rate import Setting
from benchmarks.peers import stored_cases
from benchmarks.rates import child_process, larger_suite, measurement
from benchmarks.rates.measurement import Measurement
from benchmarks.rates.peer_rates import BENCHMARKS, PEERS
from benchmarks.rates.workload import Workload, built
from epcheck.conformance.records import terms
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.target import Target
from epcheck.generators.case import Case

CANDIDATES = 8
"""Cases that are tried for each one that is wanted: a provider need not take it, nor compute it rightly."""

ROWS = ("bare", "bare-kept", "unpacked", "epcheck")


@dataclass(frozen=True)
class Bench:
    """A target's cases. cache: epcheck's, with the prepared cases and the parity of packs."""

    target: Target
    workload: Workload
    cache: Path


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", nargs="+", required=True)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cases", type=int, default=300, help="different cases")
    parser.add_argument("--rounds", type=int, default=4, help="how often each, with other random data")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything that was measured")
    arguments = parser.parse_args()
    results: dict[str, list[dict[str, Measurement]]] = {}
    with tempfile.TemporaryDirectory(prefix="epcheck-benchmark-") as folder:
        for name in arguments.target:
            bench = prepared(resolve(name), Path(folder), arguments.cases, arguments.rounds)
            results[name] = [{row: measured(bench, row) for row in ROWS} for _ in range(arguments.repeats)]
            print("\n".join(lines(name, results[name])), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(document(results), indent=1), encoding="utf-8")


def prepared(target: Target, folder: Path, wanted: int, rounds: int) -> Bench:
    """Choose the cases, store them for the bare loop, and run them once, so that the cache has them."""
    cache = folder / f"{target.name}.sqlite"
    passing = epcheck_rate.passing(candidates(target, wanted * CANDIDATES), target.name)
    if not passing:
        raise SystemExit(f"target '{target.name}' passes none of the cases that were tried")
    ids = set(sorted(passing, key=order)[:wanted])
    workload = Workload(folder / f"{target.name}.json", rounds, folder / f"{target.name}.cases")
    cases = larger_suite.cases(rounds, ids)
    workload.only.write_text(json.dumps(sorted(ids)), encoding="utf-8")
    stored_cases.write(workload.stored, built(cases))
    epcheck_rate.run(cases, Setting(target.name, cache=cache), lambda _: None)
    return Bench(target, workload, cache)


def candidates(target: Target, most: int) -> list[Case]:
    """Cases that must give an answer, and that the target does not say it declines."""
    cases = [case for case in larger_suite.cases(1) if is_claimed(target, case)]
    return sorted(sorted(cases, key=lambda case: order(case.id))[:most], key=lambda case: case.id)


def is_claimed(target: Target, case: Case) -> bool:
    """Whether the target claims some node of the case's operator version, or has no claims."""
    return target.claims is None or case.since_version in target.claims.versions(case.domain, case.operator)


def order(case_id: str) -> bytes:
    """Random, the same everywhere, and the same when the suite grows."""
    return sha256(case_id.encode()).digest()


def measured(bench: Bench, row: str) -> Measurement:
    """One row of one repeat, in a process of its own."""
    if row.startswith("bare"):
        return measurement.of(child_process.run(loop(bench, row == "bare-kept"), bench.target.environment).report)
    options = ["--target", bench.target.name, "--cache", str(bench.cache), *bench.workload.arguments]
    script = [
        sys.executable,
        str(BENCHMARKS / "epcheck_rate.py"),
        *options,
        *(["--no-pack"] if row == "unpacked" else []),
    ]
    found = measurement.of(child_process.run(script, None, BENCHMARKS).report, "later_")
    wrong = {status: count for status, count in found.report["statuses"].items() if status != terms.PASS}
    if wrong:
        print(f"{bench.target.name}, {row}: not all pass: {wrong}", flush=True)
    return found


def loop(bench: Bench, is_kept: bool) -> list[str]:
    """The command of the bare loop in the target's interpreter."""
    target, arguments = bench.target, bench.target.arguments
    plugin = json.loads(arguments[arguments.index("--plugin") + 1]) if target.is_plugin else {}
    return [
        *target.command,
        str(PEERS / "bare_loop.py"),
        str(bench.workload.stored),
        *("--provider", target.provider or "", "--options", json.dumps(dict(target.options)), "--unoptimised"),
        *(["--package", plugin["package"]] if plugin else []),
        *(["--keep"] if is_kept else []),
    ]


def lines(name: str, repeats: Collection[Mapping[str, Measurement]]) -> list[str]:
    """A table of one target: the median rate of each row, and its ratio to both bare loops, least to greatest."""
    first = next(iter(repeats))
    found = [f"{name}: {first['bare'].cases} cases, {first['bare'].report['refused']} of them refused in the bare loop"]
    for row in ROWS:
        rate = statistics.median(each[row].rate for each in repeats)
        ratios = [sorted(each[row].rate / each[other].rate for each in repeats) for other in ROWS[:2]]
        ratios_in_words = ", ".join(
            f"{statistics.median(ratio):.2f} x {other} ({ratio[0]:.2f} to {ratio[-1]:.2f})"
            for other, ratio in zip(ROWS, ratios, strict=False)
        )
        found.append(f"  {row:10} {rate:8.1f} cases/s   {ratios_in_words}")
    return found


def document(results: Mapping[str, Collection[Mapping[str, Measurement]]]) -> dict[str, list[dict[str, object]]]:
    """Everything that was measured: target -> its repeats, row -> report."""
    return {
        name: [{row: dict(each.report) for row, each in repeat.items()} for repeat in repeats]
        for name, repeats in results.items()
    }


if __name__ == "__main__":
    main()
