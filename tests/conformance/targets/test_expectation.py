"""Expectations: what a file may say, what each mistake is told, and what an expectation covers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import onnxruntime
import pytest

from epcheck.conformance.preparation import case_facts
from epcheck.conformance.records.opinion import Difference, Opinion
from epcheck.conformance.records.record import Expected
from epcheck.conformance.records.terms import STATUSES
from epcheck.conformance.targets import environments, expectation, expectation_file
from epcheck.conformance.targets.condition import Condition
from epcheck.conformance.targets.expectation import Expectation, ExpectationError
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.target import Target
from epcheck.generators import suite
from epcheck.generators.case_pattern import matches
from tests.whole_suite import whole_suite_ids

ROOT = Path(__file__).parents[3]

VALID = """
[[expect]]
case = "TopK-*/float32/nan_*"
status = "mismatch"
reason = "NaN loses its place"
link = "issue 1"
bound = 2

[[expect]]
case = "Slice-10/float32/end_int32_max_step_minus_1[initializer]"
status = "crash"
reason = "the end is not clamped"
"""


def complaint(text: str) -> str:
    with pytest.raises(ExpectationError) as raised:
        expectation_file.parse(text, "dml.toml")
    return str(raised.value)


def entry(**fields: str) -> str:
    """A valid entry with some fields replaced; a value is TOML."""
    values = {"case": '"Slice-*"', "status": '"mismatch"', "reason": '"known"'} | fields
    return "[[expect]]\n" + "\n".join(f"{name} = {value}" for name, value in values.items() if value)


def mismatch(*max_ulps: float | None) -> Opinion:
    differences = tuple(Difference("y", "float32", (1,), "wrong", 1, 1, max_ulp) for max_ulp in max_ulps)
    return Opinion("dml", "mismatch", differences=differences)


def test_a_valid_file() -> None:
    assert expectation_file.parse(VALID, "dml.toml") == (
        Expectation("TopK-*/float32/nan_*", "mismatch", "NaN loses its place", "issue 1", 2),
        Expectation("Slice-10/float32/end_int32_max_step_minus_1[initializer]", "crash", "the end is not clamped"),
    )


def test_an_empty_file_expects_nothing() -> None:
    assert expectation_file.parse("", "dml.toml") == ()


@pytest.mark.parametrize("status", STATUSES)
def test_every_status_may_be_expected(status: str) -> None:
    (found,) = expectation_file.parse(entry(status=f'"{status}"'), "dml.toml")
    assert found.status == status


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[expect]\n", "dml.toml is not valid TOML: "),
        ("[[expected]]\n", "dml.toml: unknown key 'expected'; entries are tables named [[expect]]"),
        (
            "[expect]\ncase = 'x'\n",
            "dml.toml: write [[expect]] with two brackets, one table for each expectation",
        ),
        ("expect = ['Slice-*']\n", "dml.toml: write [[expect]] with two brackets, one table for each expectation"),
        (
            entry(because='"x"'),
            "dml.toml, entry 1: unknown field 'because'; "
            "an expectation has case, status, variant, gives, reason, link, where, bound, when",
        ),
        (
            entry(where='"dtype = float16 and"'),
            "dml.toml, entry 1: 'where' is 'dtype = float16 and': a term of the condition is empty",
        ),
        (
            entry(case=""),
            "dml.toml, entry 1: 'case' is missing; an expectation needs case, status and reason",
        ),
        (
            entry(status=""),
            "dml.toml, entry 1: 'status' is missing; an expectation needs case, status and reason",
        ),
        (
            entry(reason='"  "'),
            "dml.toml, entry 1: 'reason' is missing; an expectation needs case, status and reason",
        ),
        (entry(case="7"), "dml.toml, entry 1: 'case' has the wrong type, int"),
        (entry(link="[]"), "dml.toml, entry 1: 'link' has the wrong type, list"),
        (entry(bound='"2"'), "dml.toml, entry 1: 'bound' has the wrong type, str"),
        (entry(bound="true"), "dml.toml, entry 1: 'bound' has the wrong type, bool"),
        (entry(bound="-1"), "dml.toml, entry 1: 'bound' is -1; it is a number of ULP, 0 or more"),
        (entry(bound="nan"), "dml.toml, entry 1: 'bound' is nan; it is a number of ULP, 0 or more"),
        (
            entry() + "\n" + entry(status='"fail"'),
            f"dml.toml, entry 2: unknown status 'fail'; one of {', '.join(STATUSES)}",
        ),
    ],
)
def test_each_mistake_is_one_sentence(text: str, message: str) -> None:
    assert complaint(text).startswith(message)
    assert "\n" not in complaint(text)
    if "valid TOML" not in message:
        assert complaint(text) == message


def test_a_file_is_read_and_named_in_errors(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(VALID, encoding="utf-8")
    assert expectation_file.load(path) == expectation_file.parse(VALID, "")
    path.write_text("[[expect]]", encoding="utf-8")
    with pytest.raises(ExpectationError) as raised:
        expectation_file.load(path)
    assert str(raised.value).startswith(f"{path}, entry 1: 'case' is missing")


def test_a_file_that_is_not_there_or_no_text_is_told(tmp_path: Path) -> None:
    with pytest.raises(ExpectationError, match=r"cannot be read: .*No such file"):
        expectation_file.load(tmp_path / "missing.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ExpectationError, match=r"cannot be read: .*decode"):
        expectation_file.load(tmp_path / "binary.toml")


def test_only_its_own_status_is_covered() -> None:
    expected = Expectation("*", "crash", "known")
    assert expected.covers(Opinion("dml", "crash"))
    assert not expected.covers(Opinion("dml", "timeout"))
    assert not expected.covers(Opinion("dml", "pass"))


@pytest.mark.parametrize(
    ("bound", "opinion", "covered"),
    [
        (None, mismatch(1e9), True),
        (None, mismatch(None), True),
        (2.0, mismatch(2.0), True),
        (2.0, mismatch(2.5), False),
        (2.0, mismatch(1.0, 3.0), False),
        (2.0, mismatch(None), False),
        (2.0, mismatch(1.0, None), False),
        (2.0, mismatch(), False),
        (0.0, mismatch(0.0), True),
    ],
)
def test_a_bound_covers_finite_ulp_up_to_it_and_nothing_else(
    bound: float | None, opinion: Opinion, covered: bool
) -> None:
    assert Expectation("*", "mismatch", "known", bound=bound).covers(opinion) is covered


def test_a_bound_says_nothing_of_other_statuses() -> None:
    assert Expectation("*", "crash", "known", bound=2.0).covers(Opinion("dml", "crash"))


def test_a_target_s_expectations_keep_the_order_of_the_file_and_takes_brackets_literally() -> None:
    first, second, third = (
        Expectation(case, "mismatch", "known")
        for case in ("Slice-13/*[runtime]", "Slice-13/float32/steps_omitted[runtime]", "Slice-13/*[rt]")
    )
    target = Target("mine", (), (), expectations=(second, third, first))
    assert target.match_globs("Slice-13/float32/steps_omitted[runtime]") == (second, first)
    assert target.match_globs("Slice-10/float32/steps_omitted[runtime]") == ()


def test_an_entry_with_a_condition_is_about_cases_of_every_source() -> None:
    (negative,) = expectation_file.parse(entry(where='"a value of steps < 0"'), "dml.toml")
    target = Target("mine", (), (), expectations=(negative,))
    backward, forward = "Slice-13/float32/whole_axis_step_minus_1[runtime]", "Slice-13/float32/steps_omitted[runtime]"
    node_test = "Slice-13/float32/test_slice_neg_steps[onnx]"
    for case_id, found in ((backward, (negative,)), (forward, ()), (node_test, (negative,))):
        assert target.match_globs(case_id) == (negative,)
        assert target.find_expectations(case_facts.of(suite.case_by_id(case_id).build())) == found, case_id
    assert str(negative) == "Slice-* (a value of steps < 0)"
    assert negative.as_expected().where == "a value of steps < 0"


@pytest.mark.slow
@pytest.mark.parametrize("target", ["dml", "cpu", "directml", "webgpu", "openvino", "qnn", "cuda"])
def test_no_expectation_is_overlooked_by_looking_at_those_of_the_operator(target: str) -> None:
    shipped = expectation_file.load_shipped(target)
    mine = Target("mine", (), (), expectations=shipped)
    ids = [e.case for e in shipped if "*" not in e.case][::5] + list(whole_suite_ids()[::503])
    for case_id in ids:
        assert mine.match_globs(case_id) == tuple(e for e in shipped if matches(case_id, e.case)), case_id


@pytest.mark.parametrize(
    ("case", "found"),
    [
        ("Gelu-1/float32/wide[runtime]", True),
        ("com.microsoft::Gelu-1/float32/wide[runtime]", True),
        ("float32/wide[", True),
        ("1/float32/wide[runtime]", True),
        ("lu-1/float32/wide[runtime]", True),
        ("FastGelu-1/float32/wide[runtime]", False),
    ],
)
def test_a_part_of_an_id_is_found_in_it(case: str, found: bool) -> None:
    mine = Target("mine", (), (), expectations=(Expectation(case, "crash", "known"),))
    assert bool(mine.match_globs("com.microsoft::Gelu-1/float32/wide[runtime]")) is found


def test_an_expectation_that_matches_no_case_is_stale() -> None:
    ids = ["Slice-13/float32/a[runtime]", "TopK-11/int8/b[runtime]"]
    used, stale = Expectation("Slice-*", "crash", "known"), Expectation("Slice-9*", "crash", "known")
    assert expectation.stale((used, stale), iter(ids)) == (stale,)
    assert expectation.stale((used, stale), []) == (used, stale)


def test_a_record_keeps_what_was_expected_and_why() -> None:
    kept = Expectation("Slice-*", "crash", "known", "issue 2", 3.0).as_expected()
    assert kept == Expected("Slice-*", "crash", "known", "issue 2")


@pytest.mark.parametrize("target", ["dml", "cpu", "directml", "webgpu", "openvino", "qnn", "cuda"])
def test_shipped_expectations_are_valid_and_have_a_reason(target: str) -> None:
    assert [e.case for e in expectation_file.load_shipped(target) if len(e.reason) < 20] == []


@pytest.mark.parametrize("target", ["dml", "cpu", "directml", "webgpu", "openvino", "qnn", "cuda"])
def test_every_shipped_expectation_links_to_a_page_that_exists(target: str) -> None:
    links = {e.link for e in expectation_file.load_shipped(target)}
    pages = {link for link in links if not link.startswith("https://")}
    assert pages
    assert [page for page in sorted(pages) if not (ROOT / page).is_file()] == []


def test_the_link_of_a_file_is_that_of_entries_without_one() -> None:
    entry = '[[expect]]\ncase = "{}"\nstatus = "crash"\nreason = "why"\n'
    text = 'link = "docs/findings.md"\n' + entry.format("Slice-1*") + entry.format("TopK-1*") + 'link = "ticket 7"\n'
    assert [e.link for e in expectation_file.parse(text, "dml.toml")] == ["docs/findings.md", "ticket 7"]


def test_the_condition_of_a_file_holds_for_every_entry_and_an_own_one_adds_to_it() -> None:
    text = f"""when = {{ runtime = ">=1.20", os = "Windows-*" }}
{entry()}
{entry(when='{ runtime = "1.24.*", vendor = "0x10de" }')}"""
    plain, own = (e.when for e in expectation_file.parse(text, "dml.toml"))
    assert plain == Condition((("runtime", (">=1.20",)), ("os", ("Windows-*",))))
    assert own == Condition((("runtime", ("1.24.*",)), ("os", ("Windows-*",)), ("vendor", ("0x10de",))))
    wrong = 'when = { release = "1.20" }\n'
    assert complaint(wrong + entry()).startswith("dml.toml: 'when' cannot name 'release'; it may name adapter, ")
    assert complaint("when = {}\n").startswith("dml.toml: 'when' is empty; write for example when = {")


def test_targets_of_other_names_have_none() -> None:
    nothing: tuple[Any, ...] = ()
    assert expectation_file.load_shipped("migraphx") == nothing


def test_a_list_of_globs_is_an_expectation_for_each() -> None:
    text = '[[expect]]\ncase = ["Slice-1*", "TopK-1*"]\nstatus = "crash"\nreason = "why"\n'
    assert [(e.case, e.reason) for e in expectation_file.parse(text, "dml.toml")] == [
        ("Slice-1*", "why"),
        ("TopK-1*", "why"),
    ]


@pytest.mark.parametrize("globs", ["[1]", '[""]', '["Slice-1*", 2]'])
def test_a_list_holds_globs_only(globs: str) -> None:
    text = f'[[expect]]\ncase = {globs}\nstatus = "crash"\nreason = "why"\n'
    with pytest.raises(expectation.ExpectationError, match="'case' is a glob or a list of globs"):
        expectation_file.parse(text, "dml.toml")


@pytest.mark.parametrize("target", ["dml", "cpu", "directml", "webgpu", "openvino", "qnn", "cuda"])
def test_every_shipped_expectation_matches_a_case(target: str) -> None:
    shipped = expectation_file.load_shipped(target)
    assert len(shipped) >= 9
    of_node_tests = [e for e in shipped if expectation.is_about_node_tests(e)]
    of_suite = [e for e in shipped if not expectation.is_about_node_tests(e)]
    operators = sorted({e.case.partition("-")[0] for e in of_node_tests})
    source = suite.sources_of(f"onnx@{target}") if of_node_tests else suite.Source.SUITE
    converted = [case.id for case in suite.cases(operators, source=source)] if of_node_tests else []
    assert expectation.stale(of_suite, whole_suite_ids()) == ()
    assert expectation.stale(of_node_tests, (*whole_suite_ids(), *converted)) == ()


def test_an_expectation_of_a_node_test_is_no_matter_of_the_suite() -> None:
    of_suite, of_onnx = (Expectation(f"Slice-13/float32/a[{way}]", "crash", "known") for way in ("runtime", "onnx@dml"))
    assert [expectation.is_about_node_tests(entry) for entry in (of_suite, of_onnx)] == [False, True]


def test_a_release_of_its_own_keeps_what_says_for_which_releases_it_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Today's expectations were seen on today's release."""
    seen = Expectation("Abs-*", "mismatch", "seen")
    ranged = Expectation("Neg-*", "mismatch", "seen", when=Condition((("runtime", (">=1.17",)),)))
    adapter = Expectation("Log-*", "mismatch", "seen", when=Condition((("adapter", ("*llvmpipe*",)),)))
    monkeypatch.setattr(expectation_file, "load_shipped", lambda _name: (seen, ranged, adapter))
    monkeypatch.setattr(environments, "ensure", lambda _package, _version: Path(sys.executable))
    today = onnxruntime.__version__
    assert resolve("cpu").expectations == (seen, ranged, adapter)
    assert resolve(f"cpu@{today}").expectations == (seen, ranged, adapter)
    assert resolve("cpu@1.20.1").expectations == (ranged,)
