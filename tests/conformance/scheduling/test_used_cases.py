"""The sample of cases whose sessions are used as applications use them."""

from __future__ import annotations

from epcheck.conformance.scheduling import used_cases
from epcheck.conformance.targets.variants import USES, Axis
from epcheck.generators import suite


def test_the_sample_has_each_operator_and_does_not_depend_on_the_order_of_cases() -> None:
    cases = list(suite.cases(thin=True))
    sample = used_cases.choose_sample(cases)
    assert sample == used_cases.choose_sample(reversed(cases))
    assert set(sample) == set(USES)
    by_id = {case.id: case for case in cases}
    assert {by_id[case_id].operator_key for case_id in sample[Axis.RERUNS]} >= set(used_cases.OPERATORS)
    few = [by_id[case_id] for case_id in sample[Axis.THREADS]]
    assert sorted(case.operator_key for case in few) == sorted(used_cases.FEW)
    assert sample[Axis.THREADS] == sample[Axis.LIFECYCLE] == sample[Axis.OPTIONS]
