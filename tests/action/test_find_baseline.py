"""Which run is compared with: one that this repository itself started, whose artifact is of its commit."""

from __future__ import annotations

import hashlib
import io
import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from tests.action.github_service import ELSEWHERE, FORK, ON_BRANCH, OURS, Service, run, serving

PROGRAM = Path(__file__).parents[2] / "action" / "find_baseline.py"
A_RUN = {"runs/20261120-000000-aaaa/run.json": b"{}"}

on_posix = pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for gh is a shell script")


@pytest.fixture
def find(tmp_path: Path) -> Callable[..., tuple[str, str, list[str]]]:
    """Runs the program on a service, in this process: the id of the run, what is on stderr, the files fetched."""

    def find_baseline(service: Service, **changes: str) -> tuple[str, str, list[str]]:
        folder = tmp_path / "before"
        with serving(service) as variables, pytest.MonkeyPatch.context() as patch:
            for name, value in {**environment_of(tmp_path, folder), **variables, **changes}.items():
                patch.setenv(name, value)
            with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
                runpy.run_path(str(PROGRAM), run_name="__main__")
        word, _, number = out.getvalue().strip().partition("=")
        assert word == "run-id"
        files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
        return number, err.getvalue(), files

    return find_baseline


def environment_of(path: Path, folder: Path) -> dict[str, str]:
    """What `action.yml` sets. path: where programs are looked for. folder: where the artifact goes."""
    return {"PATH": str(path), "ARTIFACT": "epcheck-main", "BRANCH": "main", "FOLDER": str(folder), "TOKEN": "secret"}


def test_the_program_starts_as_the_action_starts_it(tmp_path: Path) -> None:
    service = Service()
    service.add(run(3, 19))
    with serving(service) as variables:
        environment = {**os.environ, **environment_of(tmp_path, tmp_path / "before"), **variables}
        done = subprocess.run(
            [sys.executable, str(PROGRAM)], env=environment, capture_output=True, encoding="utf-8", check=True
        )
    assert done.stdout == "run-id=3\n"


Find = Callable[..., tuple[str, str, list[str]]]


def test_the_newest_run_of_the_branch_is_fetched(find: Find) -> None:
    service = Service()
    service.add(run(3, 19))
    service.add(run(5, 21, event="schedule", conclusion="success"))
    service.add(run(4, 20, event="workflow_dispatch"))
    number, notice, files = find(service)
    assert number == "5"
    assert notice == (
        "::notice title=epcheck::GitHub shows no attestation of the artifact 'epcheck-main'; it is held by its run "
        "alone\n"
    )
    assert files == ["commit.txt", "runs/20261120-000000-aaaa/run.json"]


@pytest.mark.parametrize("filters", [True, False])
@pytest.mark.parametrize(
    "changes",
    [
        {"event": "pull_request", "head_repository": {"id": FORK}},
        {"head_repository": {"id": FORK}},
        {"head_repository": None},
        {"repository": {"id": FORK}},
        {"event": "pull_request"},
        {"event": "pull_request_target"},
        {"event": "workflow_run"},
        {"path": ".github/workflows/other.yml"},
        {"head_branch": "topic"},
        {"status": "in_progress", "conclusion": None},
        {"conclusion": "cancelled"},
        {"head_sha": ELSEWHERE},
        {"id": 9},
    ],
    ids=str,
)
def test_no_other_run_is_used(find: Find, changes: dict[str, Any], filters: bool) -> None:
    """Neither where GitHub's filters leave it out, nor where they let it pass."""
    service = Service(filters=filters)
    service.add(run(7, 22) | changes)
    assert find(service)[::2] == ("", [])
    service.add(run(3, 19))
    assert find(service)[0] == "3"


@pytest.mark.parametrize(
    "changes",
    [
        {"expired": True},
        {"name": "epcheck-main-2"},
        {"workflow_run": {"id": 7, "head_repository_id": FORK, "head_sha": ON_BRANCH}},
        {"workflow_run": {"id": 8, "head_repository_id": OURS, "head_sha": ON_BRANCH}},
        {"workflow_run": {"id": 7, "head_repository_id": OURS, "head_sha": ELSEWHERE}},
        {"workflow_run": None},
    ],
    ids=str,
)
def test_no_other_artifact_is_used(find: Find, changes: dict[str, Any]) -> None:
    service = Service()
    service.add(run(7, 22), **changes)
    service.add(run(3, 19))
    assert find(service)[0] == "3"


def test_a_flood_of_artifacts_of_a_fork_hides_nothing(find: Find) -> None:
    service = Service()
    for number in range(100, 400):
        service.add(run(number, 23, event="pull_request", head_repository={"id": FORK}))
    service.add(run(3, 19))
    assert find(service)[0] == "3"
    assert len(service.asked) < 10  # GitHub itself leaves them out
    service.filters = False
    assert find(service)[0] == "3"
    assert any("page=4" in asked for asked in service.asked)
    assert not any("page=5" in asked for asked in service.asked)


def test_pages_have_a_bound(find: Find) -> None:
    service = Service(filters=False)
    for number in range(100, 1200):
        service.add(run(number, 23, event="pull_request", head_repository={"id": FORK}))
    service.add(run(3, 19))
    number, notice, _ = find(service)
    assert number == ""
    assert "no earlier run of .github/workflows/conformance.yml on main has the artifact 'epcheck-main'" in notice
    assert len(service.asked) == 30


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({**A_RUN, "commit.txt": ELSEWHERE.encode()}, "it states another commit"),
        ({**A_RUN, "commit.txt": b"\xff::error::\n"}, "it states another commit"),
        (A_RUN, "it does not state its commit"),
        ({"commit.txt": ON_BRANCH.encode()}, "it has no run"),
    ],
)
def test_an_artifact_that_is_not_of_its_commit_is_not_used(find: Find, files: dict[str, bytes], why: str) -> None:
    service = Service()
    service.add(run(7), files)
    number, notice, fetched = find(service)
    assert (number, fetched) == ("", [])
    assert notice.startswith("::warning title=epcheck::the artifact 'epcheck-main' of run 7 is not compared with: ")
    assert why in notice


def test_an_artifact_whose_bytes_are_others_is_not_used(find: Find) -> None:
    service = Service()
    service.add(run(7), digest=f"sha256:{'0' * 64}")
    number, notice, fetched = find(service)
    assert (number, fetched) == ("", [])
    assert "as GitHub says" in notice


def test_what_is_no_archive_is_not_used(find: Find) -> None:
    service = Service()
    service.add(run(7), digest="")
    service.archives[7] = b"no archive"
    number, notice, _ = find(service)
    assert number == ""
    assert "cannot be asked for" in notice


@on_posix
@pytest.mark.parametrize("holds", [True, False])
def test_an_attestation_has_to_hold(find: Find, tmp_path: Path, holds: bool) -> None:
    service = Service()
    service.add(run(7))
    service.attested = {f"sha256:{hashlib.sha256(service.archives[7]).hexdigest()}"}
    number, notice, _ = find(service)
    assert number == "7"
    assert "is not checked: there is no program gh here" in notice
    gh = tmp_path / "gh"
    gh.write_text(f'#!/bin/sh\necho "$GH_TOKEN $@" > {tmp_path}/asked\nexit {0 if holds else 1}\n')
    gh.chmod(0o755)
    (tmp_path / "before" / "commit.txt").unlink()
    number, notice, files = find(service)
    assert (number, "commit.txt" in files) == (("7", True) if holds else ("", False))
    assert ("its attestation does not hold" in notice) is not holds
    words = (tmp_path / "asked").read_text().split()
    assert words[:3] == ["secret", "attestation", "verify"]
    wanted = ["--repo", "someone/provider", "--source-digest", ON_BRANCH, "--source-ref", "refs/heads/main"]
    assert words[4:] == wanted


def test_without_an_earlier_run_there_is_none_to_compare_with(find: Find) -> None:
    number, notice, _ = find(Service(), BRANCH="")  # the branch is that of the event
    assert number == ""
    assert notice == (
        "::notice title=epcheck::no earlier run of .github/workflows/conformance.yml on main has the artifact "
        "'epcheck-main'\n"
    )


def test_a_service_that_does_not_answer_is_no_error(find: Find) -> None:
    number, notice, _ = find(Service(), GITHUB_API_URL="http://127.0.0.1:1")
    assert number == ""
    assert notice.startswith("::warning title=epcheck::the run to compare with cannot be asked for: ")
