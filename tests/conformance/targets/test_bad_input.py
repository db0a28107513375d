"""Whatever is wrong with what the user gives: exit code 2, one sentence that says what, and no traceback."""

from __future__ import annotations

import contextlib
import json
import shutil
from pathlib import Path

import pytest

from epcheck import reports
from tests.command_line import call, epcheck, refused

RUN = ("run", "--baseline", "none", "--no-reference", "--limit", "3")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("-t", "rocm"), "unknown target 'rocm'. Known targets: cpu, dml, directml, reference, webgpu, openvino, "
                         "openvino-plugin, qnn, cuda, NAME@RELEASE, python:module:function, ep:PACKAGE, and the path "
                         "of a Python interpreter"),
        (("-t", "gpu"), "unknown target 'gpu'. Did you mean webgpu or cpu? `epcheck list targets` prints all."),
        (("-t", "direct"), "unknown target 'direct'. Did you mean directml? `epcheck list targets` prints all."),
        (("-t", "[red]gpu\x1b\n"), r"unknown target '[red]gpu\x1b\n'. Known targets: cpu, dml, directml, reference, "),
        (("-t", "[red]a[/red]\x1b\n"), r"target '[red]a[/red]\x1b\n': no such interpreter: [red]a[/red]\x1b\n"),
        (("-t", "cpu@newest"), "target 'cpu@newest': 'newest' is not a release; write for example cpu@1.20.1"),
        (("-t", "cpu@1.x"), "target 'cpu@1.x': '1.x' is not a release; write for example cpu@1.20.1"),
        (("-t", "python:os"), "target 'python:os': write python:module:function"),
        (("-t", "./python"), "target './python': no such interpreter: ./python"),
        (("-t", "/no/python#DmlExecutionProvider"), "target '/no/python#DmlExecutionProvider': no such interpreter: "
                                                    "/no/python"),
        (("-t", "cpu", "--op", "Slize"), "unknown operator 'Slize'. Did you mean Size, Slice or Resize?"),
        (("-t", "cpu", "--dtype", "float33"), "unknown dtype 'float33'. Did you mean float32, "),
        (("-t", "cpu", "--dtype", "half"), "unknown dtype 'half'. The suite has: bfloat16, bool, float16, float32, "),
        (("-t", "cpu", "--op", "Slice", "-k", "nothing_like_it"), "no case matches the selection; `epcheck list` "
                                                                  "prints all case ids"),
        (("-t", "cpu", "--config", "none.toml"), "none.toml cannot be read: [Errno 2] No such file or directory: "
                                                 "'none.toml'"),
        (("-t", "cpu", "--expect", "none.toml"), "expectations 'none.toml' cannot be read: [Errno 2] No such file or "
                                                 "directory: 'none.toml'"),
        (("-t", "cpu", "--resume", "nowhere"), "nowhere: is not a run folder (no run.json)"),
        (("-t", "cpu", "--resume", "latest"), "epcheck-runs: cannot look for runs ("),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)  # fmt: skip
def test_what_cannot_be_run_is_named(arguments: tuple[str, ...], sentence: str) -> None:
    assert refused(*RUN, *arguments).startswith(sentence)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[targets.x", "epcheck.toml is not valid TOML: Expected ']' at the end of a table declaration (at "),
        ("[target.x]", "epcheck.toml: unknown key 'target'; it may have tables [targets.NAME] and [validate]"),
        ("targets = 3", "epcheck.toml: targets must be tables [targets.NAME]"),
        ("targets.x = 3", "epcheck.toml: [targets.x] must be a table"),
        ("[targets.x]\nbse = 'cpu'", "epcheck.toml: [targets.x]: unknown key 'bse'; a target has base, python, "),
        ("[targets.x]\nbase = 3", "epcheck.toml: [targets.x]: 'base' has the wrong type, int"),
        ("[targets.x]\nwindow = true", "epcheck.toml: [targets.x]: 'window' has the wrong type, bool"),
        ("[targets.x]\nwindow = 0", "epcheck.toml: [targets.x]: 'window' must be positive, not 0"),
        ("[targets.x]\ndeadline_s = -1", "epcheck.toml: [targets.x]: 'deadline_s' must be positive, not -1"),
        ("[targets.x]\ndeadline_s = nan", "epcheck.toml: [targets.x]: 'deadline_s' must be positive, not nan"),
        ("[targets.x]\nmemory_mib = 1.5", "epcheck.toml: [targets.x]: 'memory_mib' has the wrong type, float"),
        ("[targets.x]\noptions = ['a']", "epcheck.toml: [targets.x]: 'options' has the wrong type, list"),
        ("[targets.x.options]\na = {b = 1}", "epcheck.toml: [targets.x]: 'options' holds a dict ('a'); write text "),
        ("[targets.x.options]\na = true", "epcheck.toml: [targets.x]: 'options' holds a bool ('a'); write text or a "),
        ('[targets.x.env]\nA = "\\u0000"', "epcheck.toml: [targets.x]: 'env' holds a NUL character"),
        ('[targets.x]\npython = "a\\u0000"', "epcheck.toml: [targets.x]: 'python' holds a NUL character"),
        ("[targets.x]\nbase = 'cpu'\nfunction = 'a:b'", "epcheck.toml: [targets.x]: give one of base, python, f"),
        ("[targets.x]\nbase = 'gpu'", "[targets.x]: unknown target 'gpu'. Did you mean webgpu or cpu? "),
        ("[targets.x]\nfunction = 'os'", "[targets.x]: target 'python:os': write python:module:function"),
        ("[targets.x]\npython = '/none'", "[targets.x]: target 'x': no such interpreter: /none"),
        ("[targets.x]\nexpectations = 'none.toml'", "expectations 'none.toml' cannot be read: "),
    ],
)  # fmt: skip
def test_a_mistake_in_the_configuration_is_named(text: str, sentence: str) -> None:
    Path("epcheck.toml").write_text(text)
    assert refused(*RUN, "-t", "x").startswith(sentence)


PATHS = "write a path in single quotes, 'C:\\python\\python.exe', or with forward slashes"


@pytest.mark.parametrize("key", ["python", "ep", "claims"])
@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        (r"C:\Users\me\python.exe", "epcheck.toml is not valid TOML: "),
        (r"C:\python\python.exe", "epcheck.toml is not valid TOML: "),
        (r"\\server\share\python.exe", "epcheck.toml is not valid TOML: "),
        (
            r"C:\new\tools",
            "epcheck.toml: [targets.x]: 'KEY' is 'C:\\new\\tools', with a backslash that TOML read as an ",
        ),
    ],
)
def test_a_path_of_windows_in_double_quotes_is_told_how_to_be_written(key: str, path: str, sentence: str) -> None:
    Path("epcheck.toml").write_text(f'[targets.x]\n{key} = "{path}"\n', encoding="utf-8")
    found = refused(*RUN, "-t", "x")
    assert found.startswith(sentence.replace("KEY", key))
    assert found.endswith(f"; {PATHS}")


def test_other_mistakes_are_no_paths() -> None:
    Path("epcheck.toml").write_text('[targets.x]\nbase = "cpu"\n# "C:\\x"\n[targets.y\n', encoding="utf-8")
    assert "single quotes" not in refused(*RUN, "-t", "x")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[[expect]", "known.toml is not valid TOML: "),
        ("[expect]", "known.toml: write [[expect]] with two brackets, one table for each expectation"),
        ("link = 7", "known.toml: 'link' has the wrong type, int"),
        ("expect = [1]", "known.toml: write [[expect]] with two brackets, one table for each expectation"),
        ("[[expect]]\ncase = 'a'\nstatus = 'pass'", "known.toml, entry 1: 'reason' is missing"),
        ("[[expect]]\ncase = 'a'\nstatus = 'odd'\nreason = 'b'", "known.toml, entry 1: unknown status 'odd'; one of "),
        (
            "[[expect]]\ncase = 'a'\nstatus = 'crash'\nreason = 'b'\nbound = 'c'",
            "known.toml, entry 1: 'bound' has the ",
        ),
    ],
)
def test_a_mistake_in_an_expectation_file_is_named(text: str, sentence: str) -> None:
    Path("known.toml").write_text(text)
    assert refused(*RUN, "-t", "cpu", "--expect", "known.toml").startswith(sentence)


def test_a_configuration_that_is_no_text() -> None:
    Path("epcheck.toml").write_bytes(b"\xff\xfe")
    assert refused(*RUN, "-t", "cpu").startswith("epcheck.toml cannot be read: 'utf-8' codec can't decode byte 0xff")


def test_a_broken_configuration_is_named_by_every_command_that_reads_it() -> None:
    Path("epcheck.toml").write_text("nonsense")
    assert "epcheck.toml is not valid TOML" in refused("list", "targets")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three cases, which nobody changes."""
    with contextlib.chdir(tmp_path_factory.mktemp("recorded")):
        assert call(*RUN, "-t", "cpu", "-k", "rank_").code == 0
        (folder,) = Path("epcheck-runs").iterdir()
        return folder.absolute()


@pytest.fixture
def folder(recorded: Path) -> Path:
    """A copy of that run, in the working directory."""
    return Path(shutil.copytree(recorded, Path("epcheck-runs") / recorded.name))


def test_a_journal_that_was_cut_short_is_read_to_its_last_whole_line_and_completed(folder: Path) -> None:
    journal = folder / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-100])
    assert len(list(reports.read_records(folder))) == 2
    assert call("run", "--resume", str(folder)).code == 0
    assert len({item.case_id for item in reports.read_records(folder)}) == 3


@pytest.mark.parametrize("line", ["{", "[]", "{}", "null", '{"case_id": 3}', "\0"])
def test_a_journal_with_a_broken_line_is_refused_by_its_number(folder: Path, line: str) -> None:
    lines = (folder / "journal.jsonl").read_text().splitlines()
    (folder / "journal.jsonl").write_text("\n".join([lines[0], line, *lines[2:], ""]))
    sentence = refused("run", "--resume", str(folder))
    assert sentence.startswith(f"{folder / 'journal.jsonl'}, line 2: is not a record (")


@pytest.mark.parametrize(
    ("name", "value"), [("selection", []), ("planned", "1"), ("targets", {"cpu": 3}), ("run_id", 3)]
)
def test_a_description_of_the_wrong_kind_is_refused_before_anything_is_made_of_it(
    folder: Path, name: str, value: object
) -> None:
    description = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**description, name: value}))
    for command in (("run", "--resume"), ("report",)):
        assert refused(*command, str(folder)).startswith(f"{folder / 'run.json'}: does not describe a run (not a Run: ")


@pytest.mark.parametrize(
    ("name", "value"), [("since_version", "13"), ("values", {}), ("candidate", {"target": 3, "status": "pass"})]
)
def test_a_record_of_the_wrong_kind_is_refused_before_anything_is_made_of_it(
    folder: Path, name: str, value: object
) -> None:
    first, *rest = (folder / "journal.jsonl").read_text().splitlines()
    lines = [json.dumps({**json.loads(first), name: value}), *rest]
    (folder / "journal.jsonl").write_text("\n".join([*lines, ""]))
    sentence = refused("report", str(folder))
    assert sentence.startswith(f"{folder / 'journal.jsonl'}, line 1: is not a record (not a Record: ")


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "{}", '{"schema": 99}', '{"run_id": 3}', "[" * 100_000])
def test_a_description_that_is_no_run_is_refused(folder: Path, text: str) -> None:
    (folder / "run.json").write_text(text)
    assert refused("run", "--resume", str(folder)).startswith(f"{folder / 'run.json'}: does not describe a run (")


@pytest.mark.parametrize("selection", [{}, {"candidates": 3}, {"limit": "all"}, {"operators": [3]}, {"expect": "a"}])
def test_a_run_whose_selection_cannot_be_read_is_refused(folder: Path, selection: dict[str, object]) -> None:
    description = json.loads((folder / "run.json").read_text())
    changed = selection and {**description["selection"], **selection}
    (folder / "run.json").write_text(json.dumps({**description, "selection": changed}))
    assert f"run {folder.name}: its selection cannot be read" in refused("run", "--resume", str(folder))


def test_an_unknown_case_is_named_with_similar_ones() -> None:
    sentence = refused("repro", "Slice-13/float32/steps_omitted[none]")
    assert sentence.startswith(
        "unknown case 'Slice-13/float32/steps_omitted[none]'. Did you mean Slice-13/float32/steps_"
    )


def test_a_place_that_cannot_be_written_is_named() -> None:
    Path("taken").write_text("")
    sentence = refused("repro", "Slice-1/float32/steps_omitted[runtime]", "--out", "taken")
    folder = Path("taken", "Slice-1_float32_steps_omitted_runtime")
    case = "case 'Slice-1/float32/steps_omitted[runtime]'"
    assert sentence.startswith(f"{case} cannot be written to '{folder}': ")
    assert refused(*RUN, "-t", "cpu", "--root", "taken").startswith("taken")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("rnu",), "`epcheck` has no command 'rnu'. Did you mean run?"),
        (("planets",), "`epcheck` has no command 'planets'. `epcheck --help` lists its commands."),
        (("env", "creat", "webgpu"), "`epcheck env` has no command 'creat'. Did you mean create?"),
        (("--versoin",), "`epcheck` has no option --versoin. Did you mean --version?"),
        (("run", "--opp", "Relu"), "`epcheck run` has no option --opp. Did you mean --op?"),
        (("run", "--zzz"), "`epcheck run` has no option --zzz. `epcheck run --help` lists its options."),
        (("run", "--limit", "0"), "--limit: input should be greater than or equal to 1. `epcheck run --help` shows"),
        (("run", "--op"), "option '--op' requires an argument. `epcheck run --help` shows how to call it."),
        (("run", "Relu"), "`epcheck run` has no place for 'Relu'. `epcheck run --help` shows how to call it."),
        (("list", "operatrs"), "WHAT: unknown value 'operatrs'. Did you mean operators?"),
        (("list", "planets"), "WHAT: unknown value 'planets'. Write one of cases, operators, dtypes, targets, "),
        (("repro",), "`epcheck repro` needs CASE_ID. `epcheck repro --help` shows how to call it."),
        (("validate",), "`epcheck validate` needs MODEL. `epcheck validate --help` shows how to call it."),
    ],
)
def test_a_command_line_that_cannot_be_read_is_one_sentence(arguments: tuple[str, ...], sentence: str) -> None:
    assert refused(*arguments)[: len(sentence)] == sentence


@pytest.mark.slow
def test_it_is_the_same_in_a_process_of_its_own(tmp_path: Path) -> None:
    done = epcheck(*RUN, "-t", "gpu", cwd=tmp_path)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith("epcheck: unknown target 'gpu'")
    assert list(tmp_path.iterdir()) == []
