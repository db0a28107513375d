"""Two providers, releases or targets of one run stand side by side: a difference between them is no regression."""

import io
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from epcheck.cli.main import app
from epcheck.cli.terminal import comparison
from epcheck.cli.terminal.terminal import Terminal
from epcheck.reports.diff import assessment
from epcheck.reports.diff.difference import compare, compare_nights
from epcheck.reports.diff.junit import junit
from epcheck.reports.diff.markdown import markdown
from epcheck.reports.diff.page import write_page
from epcheck.reports.diff.wording import Sides
from tests.reports.compared_rows import a_compared_run, a_row
from tests.reports.stored_records import a_run, a_slice, a_wrong_slice, stored

NIGHTLY = ("new failure", "fixed", "worse now", "Worse:", "before", "Before", "as good as", "takes now", "→")


def facts(provider: str = "DmlExecutionProvider", release: str = "1.24.4", **more: str) -> dict[str, dict[str, str]]:
    return {"dml": {"execution_provider": provider, "onnxruntime": release, **more}}


ROWS = [a_row("a"), a_row("b", "mismatch"), a_row("c", "unplaced"), a_row("d")]
OTHERS = [a_row("a", "mismatch"), a_row("b"), a_row("c", "refused", reading="noted"), a_row("d")]


@pytest.mark.parametrize(
    ("older", "newer", "sides"),
    [
        (facts(), facts(), None),
        (facts(driver_version="1"), facts(driver_version="2"), None),
        (facts(release="1.20.1"), facts(), Sides("DmlExecutionProvider 1.20.1", "DmlExecutionProvider 1.24.4")),
        (facts(release=""), facts(), None),
        (facts("CPUExecutionProvider"), facts(), Sides("CPUExecutionProvider 1.24.4", "DmlExecutionProvider 1.24.4")),
        (
            facts("WebGpuExecutionProvider", plugin="onnxruntime-ep-webgpu 0.3.0"),
            facts("WebGpuExecutionProvider", plugin="onnxruntime-ep-webgpu 0.4.0"),
            Sides("WebGpuExecutionProvider 0.3.0", "WebGpuExecutionProvider 0.4.0"),
        ),
    ],
)
def test_another_provider_or_release_is_another_side(
    older: dict[str, dict[str, str]], newer: dict[str, dict[str, str]], sides: Sides | None
) -> None:
    runs = a_compared_run(a_row(), targets=older, run_id="a"), a_compared_run(a_row(), targets=newer, run_id="b")
    assert compare(*runs).sides == sides
    assert compare_nights(*runs).sides is None  # a night is held against the one before, whatever was updated


def test_two_targets_of_one_run_are_sides_whatever_they_run() -> None:
    both = {**facts(), "mine": facts()["dml"]}
    runs = (a_compared_run(a_row(), target=target, targets=both, run_id="a") for target in ("dml", "mine"))
    assert compare(*runs).sides == Sides("dml", "mine")


def found() -> assessment.Assessment:
    older = a_compared_run(*ROWS, targets=facts("CPUExecutionProvider", "1.32.0"), run_id="a")
    newer = a_compared_run(*OTHERS, targets=facts(), run_id="b")
    return assessment.assess(compare(older, newer))


def test_the_assessment_says_what_differs_between_the_two() -> None:
    assert found().result == assessment.DIFFERS
    assert found().title == "differs between CPUExecutionProvider 1.32.0 and DmlExecutionProvider 1.24.4"
    assert found().sentences.startswith(
        "Differs between CPUExecutionProvider 1.32.0 and DmlExecutionProvider 1.24.4: 1 case in 1 group worse on "
        "DmlExecutionProvider 1.24.4, 1 case in 1 group worse on CPUExecutionProvider 1.32.0, 1 otherwise different, "
        "of 4 common cases."
    )
    assert "onnxruntime: 1.32.0 / 1.24.4" in found().sentences
    assert comparison.choose_exit_code([found()]) == 1


def test_what_is_right_on_both_is_no_difference() -> None:
    older, newer = (a_compared_run(a_row(), targets=facts(release=name), run_id=name) for name in ("1.20.1", "1.24.4"))
    same = assessment.assess(compare(older, newer))
    assert (same.result, comparison.choose_exit_code([same])) == (assessment.SAME, 0)
    assert same.sentences.startswith(
        "No difference between DmlExecutionProvider 1.20.1 and DmlExecutionProvider 1.24.4 in 1 cases."
    )


def test_a_side_that_did_not_run_to_its_end_is_not_run() -> None:
    older = a_compared_run(*ROWS, targets=facts(release="1.20.1"), run_id="a")
    newer = a_compared_run(*OTHERS[:2], targets=facts(), run_id="b", planned=4, status="interrupted")
    cut = assessment.assess(compare(older, newer))
    assert (cut.result, comparison.choose_exit_code([cut])) == (assessment.NOT_RUN, 2)


def shown(kind: str) -> str:
    if kind == "markdown":
        return markdown(found().title, [found()])
    if kind == "junit":
        return junit([found()]).decode()
    if kind == "page":
        file = io.BytesIO()
        write_page(file, found().title, [found()])
        main = file.getvalue().decode().partition("<main")[2].partition("</main>")[0]
        return re.sub(r"<[^>]*>", " ", main)
    file = io.StringIO()
    terminal = Terminal(file, width=200)
    comparison.show(terminal, found())
    return file.getvalue()


@pytest.mark.parametrize("kind", ["terminal", "markdown", "page", "junit"])
def test_no_form_calls_it_a_regression(kind: str) -> None:
    text = shown(kind)
    assert [word for word in NIGHTLY if word in text] == []
    assert "worse on DmlExecutionProvider 1.24.4" in text
    if kind != "junit":
        assert "differs between CPUExecutionProvider 1.32.0 and DmlExecutionProvider 1.24.4" in text


def test_the_command_compares_two_releases(tmp_path: Path) -> None:
    for name, record in (("1.20.1", a_slice("float16", "s")), ("1.24.4", a_wrong_slice("float16", "s"))):
        stored(tmp_path / name, [record], a_run(1, run_id=f"run-{name}", targets=facts(release=name)))
    result = CliRunner().invoke(app, ["diff", str(tmp_path / "1.20.1"), str(tmp_path / "1.24.4")])
    assert result.exit_code == 1
    assert "differs between DmlExecutionProvider 1.20.1 and DmlExecutionProvider 1.24.4" in result.stdout
    assert "new failure" not in result.stdout
