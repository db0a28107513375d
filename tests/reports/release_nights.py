"""Makes `release_nights.json`: what releases of onnxruntime-directml really gave a sample of cases.

    python tests/reports/release_nights.py RUN... > tests/reports/release_nights.json

RUN are run folders of the same suite, one for each release, oldest first.
"""

from __future__ import annotations

import hashlib
import json
import string
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from epcheck.conformance.records.record import Record, accuracy_of
from epcheck.conformance.records.terms import FLAKY, ORDER_DEPENDENT, PASS, SKIPPED, TIMEOUT
from epcheck.reports import read_records, read_run

CHANGING, STEADY = 150, 150
"""How many cases are taken that releases disagree about, and how many that always pass."""

ALIKE, OF_AN_OPERATOR = 3, 10
"""At most so many changing cases of an operator with the same history, and so many steady cases of an operator."""

FACTS = ("onnxruntime", "DirectML.dll")
UNSTEADY = {FLAKY, ORDER_DEPENDENT, TIMEOUT, SKIPPED}
"""Statuses that a release may give or not: a case that ever has one is no sample of what the release does."""


def sample(folders: Iterable[Path]) -> dict[str, Any]:
    """The document: releases, verdicts, and [id, domain, opset, ULP, one letter per release] of each case."""
    runs = [read_run(folder) for folder in folders]
    nights = [{record.case_id: record for record in read_records(folder)} for folder in folders]
    common = sorted(set.intersection(*map(set, nights)))
    verdicts: dict[tuple[str, str, str], str] = {}
    chosen = []
    for case_id in _chosen(common, nights):
        records = [night[case_id] for night in nights]
        letters = "".join(verdicts.setdefault(_verdict(r), string.ascii_letters[len(verdicts)]) for r in records)
        last = records[-1]
        accuracy = accuracy_of(last.case, last.candidate)
        error = None if accuracy is None or last.status != PASS else round(accuracy.max_ulp, 3)
        chosen.append([case_id, last.case.domain, last.case.opset, error, letters])
    releases = [{name: run.targets[run.candidates[0]][name] for name in FACTS} for run in runs]
    return {"releases": releases, "verdicts": list(verdicts), "cases": sorted(chosen)}


def _chosen(common: Iterable[str], nights: list[Mapping[str, Record]]) -> list[str]:
    """Changing cases of many operators, and steady ones of a few, in an order that is by chance but always the same."""
    histories: dict[str, tuple[str, ...]] = {c: tuple(night[c].status for night in nights) for c in common}
    steady = [case_id for case_id, statuses in histories.items() if set(statuses) == {PASS}]
    changing = [c for c, statuses in histories.items() if len(set(statuses)) > 1 and not UNSTEADY & set(statuses)]
    operator = {case_id: case_id.partition("/")[0].rpartition("-")[0] for case_id in common}
    steady.sort(key=lambda case_id: (_digest(operator[case_id]), _digest(case_id)))
    changing.sort(key=_digest)
    few = _at_most(OF_AN_OPERATOR, steady, operator)
    return few[:STEADY] + _at_most(ALIKE, changing, {c: (operator[c], *histories[c]) for c in changing})[:CHANGING]


def _at_most(count: int, case_ids: Iterable[str], alike: Mapping[str, Any]) -> list[str]:
    seen: Counter[Any] = Counter()
    kept = []
    for case_id in case_ids:
        seen[alike[case_id]] += 1
        if seen[alike[case_id]] <= count:
            kept.append(case_id)
    return kept


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _verdict(record: Record) -> tuple[str, str, str]:
    return record.status, record.blame, record.reading


if __name__ == "__main__":
    document = sample([Path(folder) for folder in sys.argv[1:]])
    head = {name: document[name] for name in ("releases", "verdicts")}
    lines = ",\n".join(json.dumps(case) for case in document["cases"])
    print(f'{json.dumps(head)[:-1]}, "cases": [\n{lines}\n]}}')
