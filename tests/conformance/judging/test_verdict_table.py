"""Every combination of statuses, claims, echoes and expectations has the verdict that `verdicts.txt` records.

The file has blocks, each of all that may stand beside a candidate: a line for each status of the baseline, a column for
each combination of EXPECTED and ECHOES. Then it names the block of every candidate: a line for each target, case and
message, a column for each status. To record a change that is meant:

    python tests/conformance/judging/test_verdict_table.py
"""

from __future__ import annotations

import itertools
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

from epcheck.conformance.judging.evidence import Evidence
from epcheck.conformance.judging.verdict import TABLE, verdict
from epcheck.conformance.preparation import prepared_case
from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.records import terms
from epcheck.conformance.records.opinion import Opinion
from epcheck.conformance.records.record import Record
from epcheck.conformance.records.terms import BLAMES, READINGS, STATUSES
from epcheck.conformance.targets.expectation import Expectation
from epcheck.conformance.targets.target import DML, Target
from epcheck.generators import suite

FILE = Path(__file__).with_name("verdicts.txt")

TARGETS = {
    "publishes": Target("dml", (), (), provider=DML),
    "silent": Target("silent", (), (), provider="SilentExecutionProvider"),
    "direct": Target("directml", (), (), calls_directml=True),
}
CASES = {
    "claimed": "Slice-13/float32/steps_omitted[initializer]",
    "unclaimed": "TopK-24/float32/defaults[initializer]",
    "violating": "TopK-11/float32/default_attributes_k_7[initializer]",  # the page, not the table
    "refusal": "Slice-13/float32/refused_step_0[runtime]",
    "unclaimed-refusal": "TopK-24/float32/refused_k_beyond_dim[initializer]",
}
MESSAGES = {"any": "it says so", "invalid": "80070057 E_INVALIDARG"}
BASELINES = (None, *STATUSES)
ECHOES = ((), ("reference",))
EXPECTED = ("nothing", "this", "another", "another and this")


def expectations(kind: str, status: str) -> tuple[Expectation, ...]:
    this = Expectation("*", status, "this")
    another = Expectation("*", terms.TIMEOUT if status != terms.TIMEOUT else terms.CRASH, "another")
    return {"nothing": (), "this": (this,), "another": (another,), "another and this": (another, this)}[kind]


def code(found: Record) -> str:
    """Three letters: blame, reading, and which expectation the record shows."""
    shown = found.expectation.reason[0] if found.expectation else "-"
    return f"{'-cbBo'[BLAMES.index(found.blame)]}{'oflexn'[READINGS.index(found.reading)]}{shown}"


def block(target: Target, prepared: PreparedCase, opinion: Opinion) -> str:
    """The verdicts on a candidate, whatever stands beside it."""

    def line(baseline: str | None) -> Iterator[str]:
        yield f"{baseline or 'no baseline':16}"
        other = None if baseline is None else Opinion("cpu", baseline)
        for expected, echoes in itertools.product(EXPECTED, ECHOES):
            evidence = Evidence(opinion, other, {}, echoes, expectations(expected, opinion.status))
            yield code(verdict(prepared, target, evidence))

    return "".join(f"  {' '.join(line(baseline))}\n" for baseline in BASELINES)


def text() -> str:
    """The content of the file."""
    names: dict[str, str] = {}
    lines: list[str] = []
    for (where, target), (what, case_id) in itertools.product(TARGETS.items(), CASES.items()):
        prepared = prepared_case.of(suite.case_by_id(case_id).build())
        for words, message in MESSAGES.items():
            blocks = [block(target, prepared, Opinion(target.name, status, message=message)) for status in STATUSES]
            letters = [names.setdefault(found, string.ascii_uppercase[len(names)]) for found in blocks]
            lines.append(f"{where:10} {what:18} {words:8} {' '.join(f'{letter:15}' for letter in letters)}".rstrip())
    heading = f"{'target':10} {'case':18} {'message':8} {' '.join(f'{status:15}' for status in STATUSES)}".rstrip()
    written = "".join(f"{name}\n{found}\n" for found, name in names.items())
    return written + "\n".join([heading, *lines]) + "\n"


def test_every_combination_has_its_recorded_verdict() -> None:
    assert text() == FILE.read_text(encoding="utf-8")


def test_the_table_has_a_row_for_every_condition_with_and_without_a_wrong_baseline() -> None:
    conditions = {condition for condition, _ in TABLE}
    assert TABLE.keys() == set(itertools.product(conditions, (False, True)))


@pytest.mark.parametrize("row", TABLE.values())
def test_a_row_speaks_of_blame_and_readings_that_exist(row: tuple[str, ...]) -> None:
    blame, *readings = row
    assert blame in BLAMES
    assert set(readings) <= set(READINGS)


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
