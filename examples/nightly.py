"""A night on every target of this machine that works, kept in a store; for cron or Task Scheduler.

    python nightly.py --store /data/epcheck-store
    python nightly.py --store /data/epcheck-store --target dml --target cpu --thin

Exit code: 0 every target is as good as in its last good night, 1 one became worse, 2 one could not run.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from epcheck import api
from epcheck.reports.diff import assessment


def main() -> int:
    arguments = argparse.ArgumentParser(description="A night on every target.")
    arguments.add_argument("--store", type=Path, default=Path("epcheck-store"))
    arguments.add_argument("--target", action="append", default=[])
    arguments.add_argument("--op", action="append", default=[], help="only these operators")
    arguments.add_argument("--thin", action="store_true")
    arguments.add_argument("--fuzz-minutes", type=float, help="0 for no search; default: a tenth of the run's time")
    chosen = arguments.parse_args()
    targets = chosen.target or [target.name for target in api.status().targets if target.ready]
    results = [night(target, chosen) for target in targets]
    if trend := api.trend(api.TrendOptions(store=chosen.store, html=chosen.store / "trend.html")):
        print(f"{len(trend.events)} events so far: {chosen.store / 'trend.html'}")
    return max(results, default=2)


def night(target: str, chosen: argparse.Namespace) -> int:
    """Run one target, so that one that cannot start keeps no other from running."""
    run = api.RunOptions((target,), operators=tuple(chosen.op), thin=chosen.thin, root=chosen.store.parent / "runs")
    try:
        found = api.nightly(api.NightlyOptions(run, store=chosen.store, fuzz_minutes=chosen.fuzz_minutes))
    except api.EpcheckError as error:
        print(f"{target}: {error}", file=sys.stderr)
        return 2
    print(f"{found.title}: {found.files[0]}")
    for each in found.assessments:
        print(f"  {each.sentences}")
    results = [each.result for each in found.assessments]
    return 2 if assessment.NOT_RUN in results else 1 if assessment.WORSE in results else 0


if __name__ == "__main__":
    sys.exit(main())
