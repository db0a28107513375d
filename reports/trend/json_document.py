"""A trend as one JSON document, for programs."""

from __future__ import annotations

from typing import Any

from epcheck.conformance.records import strict_json
from epcheck.conformance.records.typed_json import to_json
from epcheck.reports.store.machines import Machine
from epcheck.reports.store.nights import Night
from epcheck.reports.trend.trend import Trend

TREND_SCHEMA = 1


def document(trend: Trend) -> bytes:
    """`schema` (TREND_SCHEMA; a reader refuses a newer one) and `trend`, a Trend named as in `docs/reports/store.md`.

    Fields that hold their default are left out. Counts are `[passes, failing, other]`; a night has its `rate`, null
    where it is not whole.
    """
    fields = {
        "schema": TREND_SCHEMA,
        "trend": {
            "store": str(trend.store),
            "labels": trend.labels,
            "machines": [_machine(machine) for machine in trend.machines],
            "events": to_json(trend.events),
            "flakes": to_json(trend.flaky_cases),
            "single_nights": to_json(trend.single_nights),
            "troubles": [{"file": t.path.name, "kind": str(t.kind), "sentence": t.sentence} for t in trend.problems],
        },
    }
    return strict_json.dumps(fields).encode("ascii") + b"\n"


def _machine(machine: Machine) -> dict[str, Any]:
    return {
        "name": machine.name,
        "class": to_json(machine.fingerprint_class),
        "nights": [_night(night) for night in machine.nights],
    }


def _night(night: Night) -> dict[str, Any]:
    fields = {"ran" if name == "completeness" else name: value for name, value in to_json(night).items()}
    return {**fields, "ran": str(night.completeness), "rate": night.rate()}
