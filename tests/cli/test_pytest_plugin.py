"""The suite under pytest: ids, options, verdicts as outcomes, and words instead of tracebacks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from epcheck.cli import pytest_plugin
from tests.command_line import call
from tests.conformance.small_cases import HERE

ROOT = HERE.parents[1]
PACKAGE = ("--pyargs", "epcheck.conformance")
PYTEST = (sys.executable, "-m", "pytest", "-p", "no:hypothesispytest")
"""Without a plugin that a user of the suite does not have: importing it takes a third of the time."""


def run_pytest(*arguments: str, cwd: Path) -> tuple[int, str]:
    """Exit code, and everything it printed."""
    done = subprocess.run(
        [*PYTEST, "-ra", "-p", "no:cacheprovider", *arguments],
        cwd=cwd, env={**os.environ, "COLUMNS": "250"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        encoding="utf-8", check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


@pytest.mark.slow
def test_the_tests_are_the_cases_of_the_suite_by_their_ids() -> None:
    """In the checkout, whose own tests run in parallel by default; the suite does not."""
    options = ("--ep", "cpu", "--baseline", "none", "--op", "Slice", "--dtype", "int8")
    code, output = run_pytest("conformance", *options, "-v", cwd=ROOT)
    ids = re.findall(r"::test_case\[(.*)\] PASSED", output)
    assert code == 0, output
    assert ids == call("list", "--op", "Slice", "--dtype", "int8").out.splitlines()
    assert "workers" not in output.split("test_case")[0]


@pytest.mark.slow
def test_the_tests_of_the_installed_suite_run_in_parallel_where_the_user_asks(tmp_path: Path) -> None:
    options = ("--ep", "cpu", "--baseline", "none", "--op", "Slice", "--dtype", "int8", "-v", "-n", "2")
    code, output = run_pytest(*PACKAGE, *options, cwd=tmp_path)
    ids = re.findall(r"PASSED .*::test_case\[(.*)\]", output)
    assert code == 0, output
    assert sorted(ids) == sorted(call("list", "--op", "Slice", "--dtype", "int8").out.splitlines())


@pytest.mark.slow
def test_several_options_and_pytest_s_own_selection_narrow_it(tmp_path: Path) -> None:
    code, output = run_pytest(
        *PACKAGE, "--ep", "reference", "--baseline", "cpu", "--op", "Slice", "--op", "TopK", "--dtype", "float32",
        "-k", "k_equals_dim or rank_1_last_axis", "-q", cwd=tmp_path,
    )  # fmt: skip
    ids = call(
        "list", "--op", "Slice", "--op", "TopK", "--dtype", "float32", "-k", "rank_1_last_axis", "-k", "k_equals_dim"
    ).out.split()
    assert (code, f"{len(ids)} passed" in output) == (0, True), output


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_a_failure_is_told_in_words() -> None:
    code, output = run_pytest(
        *PACKAGE, "--ep", "python:faulty_backends:aborts_always", "--baseline", "cpu", "--op", "Slice",
        "-k", "Slice-1/float32/steps_omitted[runtime]", cwd=HERE,
    )  # fmt: skip
    assert code == 1
    crash = "crashes: the worker process ended: killed by SIGABRT; cpu is right"
    assert f"crash, blame: candidate: python:faulty_backends:aborts_always {crash}" in output
    command = 'epcheck show "Slice-1/float32/steps_omitted[runtime]" --target "python:faulty_backends:aborts_always"'
    assert f"reproduce with: {command}" in output
    assert "Traceback" not in output
    assert ".py:" not in output.split("= FAILURES =")[1].split("short test summary")[0]


@pytest.mark.slow
def test_wrong_elements_are_listed(tmp_path: Path) -> None:
    tmp_path.joinpath("zeros.py").write_text(
        "import numpy as np\ndef f(model, feeds):\n    return [np.zeros((4, 2), 'f4'), np.zeros((4, 2), 'i8')]\n"
    )
    (case_id, *_) = call("list", "--op", "TopK", "--dtype", "float32").out.splitlines()
    code, output = run_pytest(
        *PACKAGE, "--ep", "python:zeros:f", "--baseline", "none", "--op", "TopK", "-k", case_id, "-q", cwd=tmp_path
    )
    assert (code, "mismatch, blame: candidate: python:zeros:f" in output) == (1, True), output


@pytest.mark.slow
def test_pytest_runs_the_last_failures_again(tmp_path: Path) -> None:
    tmp_path.joinpath("zeros.py").write_text(
        "import numpy as np\ndef f(model, feeds):\n    return [np.zeros(0, 'f4')]\n"
    )
    arguments = ("--ep", "python:zeros:f", "--baseline", "none", "--op", "TopK", "--dtype", "int8", "--thin")
    command = [*PYTEST, *PACKAGE, *arguments]

    def summary(*options: str) -> str:
        return subprocess.run(
            [*command, *options], cwd=tmp_path, capture_output=True, encoding="utf-8", check=False
        ).stdout

    first = summary("-k", "TopK-11")
    failed, everything = (
        int(found[1])
        for found in (re.search(r"(\d+) failed", first), re.search(r"collected (\d+) items", first))
        if found
    )
    assert 0 < failed < everything
    assert f"run-last-failure: rerun previous {failed} failures\n" in summary("--lf", "-k", "TopK-11")


@pytest.fixture
def configured(tmp_path: Path) -> Path:
    """A folder whose target `mine` is the CPU provider with two expectations, one of which no longer fails."""
    tmp_path.joinpath("dead.py").write_text("def f(model, feeds):\n    raise RuntimeError('not today')\n")
    tmp_path.joinpath("epcheck.toml").write_text(
        '[targets.mine]\nfunction = "dead:f"\nexpectations = "known.toml"\n'
        '[targets.fine]\nbase = "cpu"\nexpectations = "known.toml"\n'
    )
    tmp_path.joinpath("known.toml").write_text(
        '[[expect]]\ncase = "Slice-1/*"\nstatus = "refused"\nreason = "it rests on Fridays"\nwhen = { os = "*" }\n'
    )
    return tmp_path


@pytest.mark.slow
def test_an_expected_failure_is_an_xfail_with_its_reason(configured: Path) -> None:
    code, output = run_pytest(
        *PACKAGE, "--ep", "mine", "--baseline", "none", "--op", "Slice", "-k", "Slice-1/float32/rank", cwd=configured
    )
    assert code == 0
    assert "expected where os is *)" in output
    assert re.search(r"XFAIL .*test_case\[Slice-1/float32/rank_1_last_axis\[runtime\]\] - it rests on Fridays", output)


@pytest.mark.slow
@pytest.mark.parametrize(("options", "code"), [((), 0), (("--epcheck-strict",), 1)])
def test_an_expectation_that_no_longer_fails_fails_a_strict_session(
    configured: Path, options: tuple[str, ...], code: int
) -> None:
    arguments = ("--ep", "fine", "--baseline", "none", "--op", "Slice", "-k", "Slice-1/float32/rank_1_last")
    found, output = run_pytest(*PACKAGE, *arguments, *options, cwd=configured)
    assert (found, "the expectation of this case no longer fails: remove it" in output) == (code, bool(code)), output


@pytest.mark.slow
def test_what_the_provider_does_not_claim_is_skipped_with_the_reason(tmp_path: Path) -> None:
    """The CPU provider has no kernel for TopK in uint16; the claim table of its release says so, where there is one."""
    options = ("--ep", "cpu", "--baseline", "none", "--op", "TopK", "--dtype", "uint16")
    code, output = run_pytest(*PACKAGE, *options, cwd=tmp_path)
    assert code == 0
    why = r"(TopK-\d+ is not claimed for T = uint16|.*NOT_IMPLEMENTED)"
    assert re.search(rf"SKIPPED \[\d+\] .*: cpu does not take the node: {why}", output)


@pytest.mark.slow
def test_variants_are_run(tmp_path: Path) -> None:
    suite = ("--pyargs", "epcheck.conformance", "--ep", "cpu", "--op", "Relu", "-k", "float32 and ordinary")
    code, out = run_pytest(*suite, "--variants", "level,packing", cwd=tmp_path)
    assert code == 0, out


NO_OPERATOR = ("--op", "Slize"), 4, "ERROR: epcheck: unknown operator 'Slize'. Did you mean Size, "
NO_TARGET = (
    ("--ep", "gpu", "--op", "Slice"),
    2,
    "Exit: epcheck: unknown target 'gpu'. Did you mean webgpu or cpu? `epcheck list",
)


@pytest.mark.parametrize(
    ("options", "code", "sentence", "parallel"),
    [
        pytest.param(*NO_OPERATOR, (), id="operator"),
        pytest.param(*NO_OPERATOR, ("-n", "1"), id="operator, parallel", marks=pytest.mark.slow),
        pytest.param(*NO_TARGET, (), id="target", marks=pytest.mark.slow),
        pytest.param(*NO_TARGET, ("-n", "2"), id="target, parallel", marks=pytest.mark.slow),
    ],
)
def test_what_does_not_exist_is_one_sentence(
    tmp_path: Path, options: tuple[str, ...], code: int, sentence: str, parallel: tuple[str, ...]
) -> None:
    found, output = run_pytest(*PACKAGE, *options, *parallel, cwd=tmp_path)
    (line,) = (line for line in output.splitlines() if "epcheck: " in line)
    assert (found, line[: len(sentence)], "Traceback" in output) == (code, sentence, False)


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("--dtype", ["float33"], "epcheck: unknown dtype 'float33'. Did you mean float32, "),
        ("--baseline", "./no", "epcheck: target './no': no such interpreter: ./no"),
        ("--variants", ["speed"], "epcheck: --variants: unknown axis 'speed'; write some of level, io_binding, cont"),
    ],
)
def test_other_options_are_refused_before_anything_is_collected(
    monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config, option: str, value: object, sentence: str
) -> None:
    """As those of the sessions above, with exit code 4 for a usage error and 2 for a target."""
    monkeypatch.delattr(pytestconfig, "workerinput", raising=False)
    monkeypatch.setattr(pytestconfig.option, option.removeprefix("--"), value)
    with pytest.raises((pytest.UsageError, pytest.exit.Exception)) as refusal:
        pytest_plugin.pytest_configure(pytestconfig)
    assert str(refusal.value).startswith(sentence)
    assert getattr(refusal.value, "returncode", 4) == (2 if option == "--baseline" else 4)


@pytest.mark.slow
def test_a_target_that_does_not_start_is_one_sentence(tmp_path: Path) -> None:
    arguments = (
        *PACKAGE,
        "--ep",
        "python:nothing:f",
        "--baseline",
        "none",
        "--op",
        "Slice",
        "-k",
        "Slice-1/float32/rank_1_last",
    )
    why = (
        "epcheck: target 'python:nothing:f': its worker does not start: the worker process ended: exit code 1; it said"
    )
    code, output = run_pytest(*arguments, cwd=tmp_path)
    assert (code, why in output, "Traceback" in output) == (2, True, False), output
    code, output = run_pytest(*arguments, "-n", "1", cwd=tmp_path)
    assert (code, why in output, "Traceback" in output, "crashed" in output) == (1, True, False, False), output


def test_without_its_options_the_plugin_imports_nothing_of_epcheck_but_itself(tmp_path: Path) -> None:
    tmp_path.joinpath("test_other.py").write_text(
        "import sys\ndef test_it():\n"
        "    loaded = {name for name in sys.modules if name.startswith('epcheck.')}\n"
        "    assert loaded == {'epcheck.cli', 'epcheck.cli.pytest_plugin'}\n"
        "    assert 'onnx' not in sys.modules\n"
    )
    code, output = run_pytest("test_other.py", cwd=tmp_path)
    assert code == 0, output
