"""Whether sessions that a provider refuses leave its workers alive.

    python benchmarks/refused_sessions.py                         # 5,000 sessions on DirectML
    python benchmarks/refused_sessions.py --target cpu --sessions 1000

Runs the suite's models that a runtime must refuse (samples `refused_...`), each in a session of its own, over and
over until so many sessions have been made, and prints how many workers ended or hung meanwhile, with the reasons. A
case that ends its worker every time it runs is named: that is the case's fault, not what earlier sessions left behind.
Exit code 1 where a worker hung, or ended in a case that other sessions survive.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # a script is given its own folder alone

from benchmarks.rates import larger_suite
from epcheck.conformance.cache.cache import Cache
from epcheck.conformance.scheduling.plan import Plan
from epcheck.conformance.scheduling.run import run_plan
from epcheck.conformance.scheduling.trace import Span, Trace
from epcheck.conformance.targets.specification import resolve
from epcheck.generators.case import Case
from epcheck.generators.registry import all_operators

HUNG = "no response"
"""How the reason begins for which a worker that hangs is given up."""


def refused_cases() -> list[Case]:
    """The cases of the suite that a runtime must refuse."""
    return [
        case
        for operator in all_operators().values()
        for refused in ({sample.name for sample in operator.samples() if sample.refused},)
        for case in operator.cases()
        if case.sample in refused
    ]


def spans_of(cases: Sequence[Case], target: str) -> list[Span]:
    """What the target's workers did: each case in sessions of its own, without baseline, reference or cache."""
    trace = Trace()
    plan = Plan(cases, (resolve(target),), pack=False)
    with closing(Cache(None)) as cache:
        run_plan(plan, lambda _record: None, cache=cache, trace=trace)
    return [span for span in trace.spans if span.target == plan.candidates[0].name]


def first_name(name: str) -> str:
    """The case of a span, without the number of its repetition: `Add-13/float32/refused_two_dtypes[runtime]`."""
    case, _, variant = name.partition("[")
    return f"{case.partition('_again')[0]}[{variant.partition(']')[0]}]"


def report(spans: Sequence[Span]) -> tuple[str, bool]:
    """What came of it in words, and whether a worker hung or ended where other sessions of the case survive."""
    answered = Counter(first_name(span.name) for span in spans if span.kind == "session")
    lost = [span for span in spans if span.kind == "lost"]
    reasons = Counter(span.name.rpartition("]: ")[2] for span in lost)
    deadly = Counter(first_name(span.name) for span in lost)
    stray = {name: count for name, count in deadly.items() if answered[name]}
    hung = sum(count for reason, count in reasons.items() if reason.startswith(HUNG))
    lines = [f"{answered.total() + len(lost):,} sessions, {len(lost):,} ended their worker, of which {hung:,} hung"]
    lines += [f"  {count:,} x {reason}" for reason, count in reasons.most_common()]
    lines += [f"ends its worker every time: {name} ({deadly[name]} sessions)" for name in deadly if name not in stray]
    lines += [f"ended its worker {count} times of {count + answered[name]}: {name}" for name, count in stray.items()]
    return "\n".join(lines), bool(hung or stray)


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="dml")
    parser.add_argument("--sessions", type=int, default=5000)
    options = parser.parse_args()
    once = refused_cases()
    text, bad = report(spans_of(list(larger_suite.repeated(once, -(-options.sessions // len(once)))), options.target))
    print(text)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
