"""Which cases share a session, by what the target has declined in this run."""

from __future__ import annotations

from dataclasses import replace

from epcheck.conformance.preparation import prepared_case
from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.records import terms
from epcheck.conformance.scheduling.grouping import Grouping
from epcheck.conformance.targets.specification import resolve
from epcheck.generators import suite

CPU, OTHER = resolve("cpu"), replace(resolve("cpu"), name="other")


def case(name: str) -> PreparedCase:
    return prepared_case.of(suite.case_by_id(name).build())


HALF, HALF_OF_ANOTHER = case("Relu-14/float16/ordinary[runtime]"), case("Abs-13/float16/matrix[runtime]")
SINGLE, TO_HALF = case("Relu-14/float32/ordinary[runtime]"), case("Cast-13/float32-float16/boundary_values[runtime]")


def shares(grouping: Grouping, prepared: PreparedCase) -> bool:
    return bool(grouping.group(prepared, CPU, terms.PASS, {}))


def test_what_is_declined_keeps_others_of_its_kind_to_themselves() -> None:
    grouping = Grouping()
    grouping.note_declined(HALF, CPU)
    assert [shares(grouping, each) for each in (HALF, HALF_OF_ANOTHER, SINGLE)] == [False, True, True]


def test_a_dtype_that_the_device_lacks_keeps_all_that_have_it_to_themselves() -> None:
    grouping = Grouping()
    grouping.note_declined(HALF, CPU, "float16")
    shared = [shares(grouping, each) for each in (HALF, HALF_OF_ANOTHER, TO_HALF, SINGLE)]
    assert shared == [False, False, False, True]


def test_what_one_target_lacks_says_nothing_of_another() -> None:
    grouping = Grouping()
    grouping.note_declined(HALF, OTHER, "float16")
    assert shares(grouping, HALF)
