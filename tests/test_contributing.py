"""What CONTRIBUTING.md, the editor's settings, the hooks and the workflows name is there."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from epcheck.conformance.records.terms import PASS, SKIPPED, STATUSES
from tests.programs import checked_run

ROOT = Path(__file__).parents[1]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").iterdir())
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").iterdir())
NAME_TASKS = (
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    ".ci/run",
    ".github/workflows/ci.yml",
    ".github/pull_request_template.md",
)


@pytest.fixture(scope="module")
def tasks() -> set[str]:
    """The sessions of noxfile.py."""
    listed = checked_run([sys.executable, "-m", "nox", "--list"], ROOT)
    return set(re.findall(r"^[*-] (\w+)", listed, re.MULTILINE))


def tasks_named(text: str) -> set[str]:
    """The sessions that `nox -s` is given in a text."""
    return {task for found in re.findall(r"\bnox -s((?: [a-z]\w*)+)", text) for task in found.split()}


def parsed(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_the_tasks_of_a_text_are_found() -> None:
    assert tasks_named("`nox -s lint`, nox -s fast types -- -k x; nox --list") == {"lint", "fast", "types"}


@pytest.mark.parametrize("name", NAME_TASKS)
def test_every_task_that_is_named_exists(name: str, tasks: set[str]) -> None:
    assert tasks_named((ROOT / name).read_text(encoding="utf-8")) - tasks == set()


def test_every_task_is_in_contributing(tasks: set[str]) -> None:
    assert tasks - tasks_named(CONTRIBUTING) == set()


def test_the_tests_that_pytest_leaves_out_have_a_task_that_ci_runs() -> None:
    folders = PROJECT["tool"]["pytest"]["ini_options"]["norecursedirs"]
    left_out = {name for name in folders if (ROOT / "tests" / name).is_dir()}
    assert left_out == {"installs"}
    assert left_out <= tasks_named((ROOT / ".ci" / "run").read_text(encoding="utf-8"))


def test_every_file_that_contributing_links_or_names_exists() -> None:
    linked = re.findall(r"\]\((?!https?:)([^)#]+)", CONTRIBUTING)
    named = re.findall(r"`((?:generators|conformance|tests|docs|\.vscode|\.ci)/[a-z_./]*)`", CONTRIBUTING)
    assert len(linked) >= 5
    assert len(named) >= 5
    assert [path for path in (*linked, *named) if not (ROOT / path).exists()] == []


def test_the_fast_tests_leave_out_markers_that_exist() -> None:
    markers = {marker.partition(":")[0] for marker in PROJECT["tool"]["pytest"]["ini_options"]["markers"]}
    assert markers == {"lab", "browser", "slow"}
    expression = " and ".join(f"not {marker}" for marker in ("lab", "browser", "slow"))
    assert f'"{expression}"' in (ROOT / "noxfile.py").read_text(encoding="utf-8")
    assert json.loads((ROOT / ".vscode" / "settings.json").read_text())["python.testing.pytestArgs"][-1] == expression


def test_hooks_are_local_and_fetch_nothing() -> None:
    (repository,) = parsed(ROOT / ".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    assert {hook["language"] for hook in repository["hooks"]} == {"system"}
    tools = {hook["entry"].split()[0] for hook in repository["hooks"]}
    requirements = PROJECT["project"]["optional-dependencies"]["test"]
    assert tools <= {re.split(r"[\[>]", requirement)[0] for requirement in requirements}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_has_jobs_whose_steps_do_something(path: Path) -> None:
    workflow = parsed(path)
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert {"runs-on", "timeout-minutes", "steps"} <= job.keys()
        assert all(("run" in step) != ("uses" in step) for step in job["steps"])


def test_the_workflow_runs_what_the_checkout_has() -> None:
    commands = [step.get("run", "") for job in parsed(WORKFLOWS[0])["jobs"].values() for step in job["steps"]]
    assert ".ci/run" in commands
    assert sys.platform == "win32" or (ROOT / ".ci" / "run").stat().st_mode & 0o111


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_a_form_asks_for_something_by_unique_ids(path: Path) -> None:
    form = parsed(path)
    ids = [field["id"] for field in form["body"]]
    assert form["name"]
    assert form["description"]
    assert len(set(ids)) == len(ids)
    assert any(field.get("validations", {}).get("required") for field in form["body"])
    assert all(field["attributes"]["label"] for field in form["body"])


def test_a_deviation_can_have_every_status_that_is_one() -> None:
    form = parsed(ROOT / ".github" / "ISSUE_TEMPLATE" / "deviation.yml")
    (dropdown,) = (field for field in form["body"] if field["type"] == "dropdown")
    assert set(dropdown["attributes"]["options"]) == set(STATUSES) - {PASS, SKIPPED}


def test_editor_settings_name_folders_that_exist() -> None:
    settings = json.loads((ROOT / ".vscode" / "settings.json").read_text(encoding="utf-8"))
    assert (ROOT / settings["python.testing.pytestArgs"][0]).is_dir()
    recommended = json.loads((ROOT / ".vscode" / "extensions.json").read_text(encoding="utf-8"))["recommendations"]
    assert settings["[python]"]["editor.defaultFormatter"] in recommended


def test_pyright_looks_where_pytest_does_and_ignores_only_what_is_there() -> None:
    pyright = PROJECT["tool"]["pyright"]
    assert pyright["extraPaths"] == PROJECT["tool"]["pytest"]["ini_options"]["pythonpath"] == ["."]
    assert [glob for glob in pyright["ignore"] if not [*ROOT.glob(glob)]] == []


def test_the_changelog_has_the_version_of_the_project_below_what_is_unreleased() -> None:
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[:2] == ["Unreleased", PROJECT["project"]["version"]]
