"""The suite as a whole: how many cases, their ids, no copies, and the selection of cases from it."""

from __future__ import annotations

import collections
from collections.abc import Mapping
from functools import cache

import numpy as np
import pytest

from epcheck.generators import graph, operator, registry, schema, suite
from epcheck.generators.array import Array
from epcheck.generators.case import Case, CaseContext, Sample
from epcheck.generators.case_pattern import matches
from tests.generators.built_suite import FIRST, built_case
from tests.generators.case_ids import released, summed_up
from tests.whole_suite import whole_suite, whole_suite_ids


def test_there_are_at_least_twenty_thousand_cases() -> None:
    assert len(whole_suite()) >= 20_000


def test_every_version_of_the_three_operators_has_cases() -> None:
    counts = collections.Counter(f"{case.operator}-{case.since_version}" for case in suite.cases(FIRST))
    assert set(counts) == {
        "Slice-1", "Slice-10", "Slice-11", "Slice-13", "TopK-1", "TopK-10", "TopK-11", "TopK-24", "QLinearConv-10",
    }  # fmt: skip
    assert min(counts.values()) >= 80


def test_no_two_cases_have_the_same_id() -> None:
    assert [case_id for case_id, count in collections.Counter(whole_suite_ids()).items() if count > 1] == []


def test_ids_are_those_that_were_released() -> None:
    before, now = released(), summed_up(whole_suite())
    changed = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
    how = "if this is deliberate, run `python tests/generators/case_ids.py` and commit case_ids.txt"
    assert changed == [], f"{len(changed)} operator versions have other ids: {changed[:10]}; {how}"


def test_an_id_is_operator_version_dtype_sample_and_binding() -> None:
    case = next(suite.cases(["Slice"], ["float16"], ["negative_step_past_both_ends[runtime]"]))
    assert case.id == "Slice-13/float16/negative_step_past_both_ends[runtime]"
    assert (case.operator, case.domain, case.since_version) == ("Slice", "", 13)
    assert (case.dtype, case.sample, case.binding) == ("float16", "negative_step_past_both_ends", "runtime")


def test_a_domain_stands_before_the_id() -> None:
    case = next(suite.cases(["TopK"]))
    custom = Case("Gelu", "com.microsoft", 1, "float32", "defaults", "runtime", case.builder)
    assert custom.id == "com.microsoft::Gelu-1/float32/defaults[runtime]"


@pytest.mark.slow
def test_no_case_is_a_copy_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given the same random numbers, two cases still differ: in attributes, shapes, parameters or the kind of data."""
    monkeypatch.setattr(operator, "random_source", lambda _: np.random.default_rng(0))
    first: dict[object, Case] = {}
    copies = []
    for case in whole_suite():
        other = first.setdefault(without_its_truth(case), case)
        if other is not case:
            left, right = other.build(), case.build()
            if fed(left.model, left.feeds) == fed(right.model, right.feeds):
                copies.append(f"{case.id} is {other.id}")
    assert copies == []


def fed(model: bytes, feeds: Mapping[str, Array]) -> tuple[object, ...]:
    """What a provider is given."""
    return model, *((name, v.dtype.name, v.shape, v.tobytes()) for name, v in feeds.items())


def without_its_truth(case: Case) -> tuple[object, ...]:
    """What a provider is given, but for dtypes and ranks of the outputs, which only the truth knows."""
    if case.kind:  # its random numbers come from its id all the same
        built = built_case(case)
        return fed(built.model, built.feeds)
    declared, sample = registry.operator_of(case.operator_key), samples_of(case.operator_key)[case.sample]
    dtypes = tuple(np.dtype(name) for name in case.dtype.split("-"))
    node = declared.node(sample, CaseContext(case.since_version, dtypes, operator.random_source(case.id)))
    types = dict.fromkeys(schema.signature(node.op_type, node.since_version, node.domain).constraints, "float32")
    model = graph.model(node, case.binding, types, (0,) * len(node.results))
    return fed(model, graph.feeds(node, case.binding))


@cache
def samples_of(key: str) -> dict[str, Sample]:
    return {sample.name: sample for sample in registry.operator_of(key).samples()}


def test_every_sample_that_is_declared_has_a_case() -> None:
    with_cases = collections.defaultdict(set)
    for case in whole_suite():
        if not case.kind:
            with_cases[case.operator_key].add(case.sample)
    for name, declared in registry.all_operators().items():
        samples = [sample.name for sample in declared.samples()]
        assert len(set(samples)) == len(samples)
        assert with_cases[name] == set(samples), name


def test_every_operator_is_tried_in_every_binding_that_differs() -> None:
    """A node without parameters has no binding of its own in which they are initializers."""
    bindings = collections.defaultdict(set)
    for case in whole_suite():
        bindings[case.operator_key].add(case.binding)
    assert bindings.keys() == registry.all_operators().keys()
    for name in FIRST:
        assert bindings[name] == set(graph.BINDINGS)
    for name, tried in bindings.items():
        assert tried & {graph.RUNTIME, graph.INITIALIZER}, name


def test_random_data_comes_from_the_id_alone() -> None:
    first, again, other = (operator.random_source(i).integers(2**63, size=4).tolist() for i in ("a", "a", "b"))
    assert first == again != other
    assert operator.random_source("Slice-13/float32/steps_omitted[runtime]").integers(2**63) == 4019624714463541524


def test_selection_by_operator_keeps_the_order_of_the_names_given() -> None:
    operators = [case.operator for case in suite.cases(["TopK", "Slice"])]
    assert operators == ["TopK"] * operators.count("TopK") + ["Slice"] * operators.count("Slice")


@pytest.mark.slow
def test_selection_by_dtype_matches_any_of_the_varied_dtypes() -> None:
    assert {case.dtype for case in suite.cases(["Slice"], ["float16"])} == {"float16"}
    assert {case.dtype for case in suite.cases(["QLinearConv"], ["int8"])} == {
        f"{x}-{w}-{y}" for x in ("int8", "uint8") for w in ("int8", "uint8") for y in ("int8", "uint8")
        if "int8" in (x, w, y)
    }  # fmt: skip
    assert {case.dtype for case in suite.cases(dtypes=["uint8-int8-uint8"])} == {"uint8-int8-uint8"}


@pytest.mark.slow
def test_selection_by_a_part_of_the_id() -> None:
    assert {case.sample for case in suite.cases(patterns=["past_both_ends"])} == {"negative_step_past_both_ends"}


def test_brackets_in_a_glob_are_literal() -> None:
    selected = [
        case.id for case in suite.cases(patterns=["Slice-13/float32/steps_omitted[[]*", "*/steps_omitted[run*"])
    ]
    assert "Slice-13/float32/steps_omitted[runtime]" in selected
    assert {case_id.split("/")[2] for case_id in selected} == {"steps_omitted[runtime]"}
    assert matches("Slice-13/float32/steps_omitted[runtime]", "*[runtime]")
    assert not matches("Slice-13/float32/steps_omitted[runtime]", "*[r]")
    assert not matches("Slice-13/float32/steps_omitted[runtime]", "steps_omitted[rst]*")


@pytest.mark.slow
def test_thin_takes_two_cases_of_each_version_dtypes_and_rule_at_most() -> None:
    def group(case: Case) -> tuple[str, int, str, str]:
        return case.operator_key, case.since_version, case.dtype, case.kind

    thin = list(suite.cases(thin=True))
    counts = collections.Counter(map(group, thin))
    everything = collections.Counter(map(group, whole_suite()))
    assert counts.keys() == everything.keys()
    assert counts == {where: min(2, count) for where, count in everything.items()}
    assert {case.id for case in thin} <= set(whole_suite_ids())


def test_selection_stops_at_the_limit() -> None:
    assert [case.id for case in suite.cases(limit=3)] == list(whole_suite_ids()[:3])
    assert list(suite.cases(limit=0)) == []


def test_an_unknown_operator_is_refused_with_what_there_is() -> None:
    with pytest.raises(
        suite.SelectionError,
        match=r"^unknown operator 'slice'\. Did you mean Slice\?$",
    ):
        next(suite.cases(["slice"]))


def test_an_unknown_dtype_is_refused_with_what_there_is() -> None:
    with pytest.raises(
        suite.SelectionError, match=r"^unknown dtype 'float'\. Did you mean float64, float32 or float16\?$"
    ):
        next(suite.cases(dtypes=["float32", "float"]))


def test_a_selection_that_leaves_nothing_is_refused() -> None:
    with pytest.raises(suite.SelectionError, match="no case matches the selection; `epcheck list`"):
        next(suite.cases(["Slice"], patterns=["no such case"]))


def test_a_case_by_its_id() -> None:
    assert suite.case_by_id("TopK-24/float16/defaults[initializer]").id == "TopK-24/float16/defaults[initializer]"


def test_an_id_that_is_almost_right_gets_a_hint() -> None:
    with pytest.raises(suite.SelectionError) as raised:
        suite.case_by_id("Slice-13/float128/steps_omitted[runtime]")
    assert str(raised.value) == (
        "unknown case 'Slice-13/float128/steps_omitted[runtime]'. Did you mean "
        "Slice-13/float32/steps_omitted[runtime], "
        "Slice-13/float16/steps_omitted[runtime] or Slice-1/float32/steps_omitted[runtime]?"
    )


def test_an_id_without_what_the_brackets_hold_gets_those_that_have_it() -> None:
    with pytest.raises(suite.SelectionError) as raised:
        suite.case_by_id("Slice-13/float32/axes_omitted_steps")
    assert str(raised.value) == (
        "unknown case 'Slice-13/float32/axes_omitted_steps'. Did you mean "
        "Slice-13/float32/axes_omitted_steps[initializer], Slice-13/float32/axes_omitted_steps[runtime], "
        "Slice-13/float32/axes_omitted_steps[symbolic] or Slice-13/float32/axes_omitted_steps[constant]?"
    )


def test_an_id_without_its_binding_gets_all_that_it_may_have() -> None:
    with pytest.raises(suite.SelectionError) as raised:
        suite.case_by_id("TopK-24/float16/defaults")
    named = str(raised.value).partition("Did you mean ")[2].rstrip("?").replace(" or ", ", ").split(", ")
    assert "TopK-24/float16/defaults[initializer]" in named
    assert {case_id.partition("[")[0] for case_id in named} == {"TopK-24/float16/defaults"}


def test_an_id_that_is_nowhere_near_gets_directions() -> None:
    with pytest.raises(suite.SelectionError, match=r"^unknown case 'Foo'\. `epcheck list` prints all case ids\.$"):
        suite.case_by_id("Foo")


def test_an_id_with_a_misspelt_operator_gets_the_case_of_the_operator() -> None:
    with pytest.raises(suite.SelectionError) as raised:
        suite.case_by_id("slice-13/float32/steps_omitted[runtime]")
    assert str(raised.value).startswith(
        "unknown case 'slice-13/float32/steps_omitted[runtime]'. Did you mean Slice-13/float32/steps_omitted[runtime]?"
    )
