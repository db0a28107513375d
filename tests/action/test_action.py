"""The GitHub action: its steps played in their order, with summary and annotations as the golden files have them.

`EPCHECK_GOLDEN=write pytest tests/action` writes the golden files anew; read the difference before committing it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import onnx
import pytest
from small_models import layers
from workflow import Played, play

from epcheck import reports

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden"
TARGETS = """
[targets.demo]
function = "epcheck.api.machine.demo_provider:provider"
[targets.doubles]
function = "doubles:run"
"""

DOUBLES = """
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

class Relu(OpRun):
    def _run(self, x):
        return (2 * x.clip(0),)

def run(model, feeds):
    return ReferenceEvaluator(model, new_ops=[Relu]).run(None, feeds)
"""
"""A backend whose Relu gives twice what it should."""
SELECTION = "--op Concat --op Transpose --dtype int8 --limit 40"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="the folders of Git's bash are not those of this Python"),
]


class Artifacts(BaseHTTPRequestHandler):
    """Answers as GitHub's service of artifacts does."""

    artifacts: tuple[dict[str, Any], ...] = ()

    def do_GET(self) -> None:
        assert self.path == "/repos/someone/provider/actions/artifacts?name=epcheck-main&per_page=100"
        assert self.headers["Authorization"] == "Bearer secret"
        body = json.dumps({"artifacts": self.artifacts}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        pass


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Artifacts) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def artifact(run: int, created: str, branch: str = "main", **changes: Any) -> dict[str, Any]:
    return {"workflow_run": {"id": run, "head_branch": branch}, "created_at": created, "expired": False, **changes}


def github(service: str) -> dict[str, str]:
    """The variables of GitHub's runner that the action reads."""
    return {
        "GITHUB_API_URL": service, "GITHUB_REPOSITORY": "someone/provider", "GITHUB_RUN_ID": "9",
        "GITHUB_REF_NAME": "main",
    }  # fmt: skip


def played(folder: Path, service: str = "", before: Path | None = None, **inputs: str) -> Played:
    """The action with these inputs. before: what the artifact of the earlier run has."""
    folder.mkdir(exist_ok=True)
    (folder / "work").mkdir(exist_ok=True)
    (folder / "work" / "epcheck.toml").write_text(TARGETS, encoding="utf-8")
    scripts = folder / "bin"
    scripts.mkdir(exist_ok=True)
    start = scripts / "epcheck"
    start.write_text(f"#!/bin/sh\nexec {sys.executable} -c 'from epcheck.cli.start import main; main()' \"$@\"\n")
    start.chmod(0o755)
    path = f"{scripts}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    variables = {"PATH": path, "COLUMNS": "200", "NO_COLOR": "1", **github(service)}

    def fetched(asked: dict[str, str]) -> None:
        assert before is not None
        shutil.copytree(before, asked["path"])

    stand_ins = {"Install epcheck": lambda _: None, "Fetch the run to compare with": fetched}
    return play(ROOT / "action.yml", {name.replace("_", "-"): text for name, text in inputs.items()},
                folder, variables, stand_ins)  # fmt: skip


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """A run on the provider of the demonstration, which refuses empty tensors."""
    return played(tmp_path_factory.mktemp("suite"), target="demo", selection=SELECTION)


def compare(name: str, text: str) -> None:
    """With the golden file of that name, once versions and the machine are left out."""
    text = re.sub(r"(\| \S+ \| )[^|]*\| [^|]*\|( [\d,]+ \| [\d,]+ \|)", r"\1RELEASE | MACHINE |\2", text)
    path = GOLDEN / name
    if os.environ.get("EPCHECK_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_a_run_is_shown_and_fails_the_step(suite: Played) -> None:
    assert suite.codes["Verdict"] == 1
    assert suite.outputs["code"] == "1"
    compare("run.md", suite.summary)
    compare("run.annotations.txt", suite.log["Show the run"].partition("annotations.txt\n")[2])


def test_the_report_is_kept_with_all_that_is_needed_to_compare(suite: Played) -> None:
    kept = suite.used["Keep the report"]
    assert kept == {"name": "epcheck", "path": suite.outputs["folder"], "if-no-files-found": "ignore"}
    folder = Path(kept["path"])
    run = reports.latest(folder / "runs")
    assert {path.name for path in folder.iterdir()} == {"runs", "summary.md", "badge.svg", "annotations.txt"}
    assert {"report.html", "junit.xml", "outcomes.parquet", "journal.jsonl"} <= {path.name for path in run.iterdir()}


def test_the_lab_is_kept_only_where_it_is_used(suite: Played) -> None:
    assert "Keep the DirectML lab" not in suite.used
    assert suite.used["Python"] == {"python-version": "3.12"}


def test_no_path_of_the_host_reaches_a_container() -> None:
    """In a job with a container these expressions are paths outside of it (actions/runner, issue 2185)."""
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    assert re.findall(r"\$\{\{[^}]*(?:action_path|runner\.temp|workspace)[^}]*\}\}", text) == []


def test_what_was_wrong_before_fails_no_step(suite: Played, service: str, tmp_path: Path) -> None:
    Artifacts.artifacts = (
        artifact(3, "2026-11-20T00:00:00Z"), artifact(5, "2026-11-21T00:00:00Z"),
        artifact(6, "2026-11-22T00:00:00Z", expired=True), artifact(7, "2026-11-22T00:00:00Z", "topic"),
        artifact(9, "2026-11-22T00:00:00Z"),
    )  # fmt: skip
    after = played(
        tmp_path / "after", service, Path(suite.outputs["folder"]),
        target="demo", selection=SELECTION, baseline_artifact="epcheck-main",
    )  # fmt: skip
    assert after.used["Fetch the run to compare with"]["run-id"] == "5"
    assert after.codes["Verdict"] == 0, after.log
    assert "As good as before" in after.summary
    assert after.summary.count("\n## ") == 1  # the comparison, below the run


def test_without_an_earlier_run_there_is_none_to_compare_with(service: str) -> None:
    Artifacts.artifacts = (artifact(7, "2026-11-22T00:00:00Z", "topic"),)
    variables = {**os.environ, **github(service), "ARTIFACT": "epcheck-main", "BRANCH": "", "TOKEN": "secret"}
    command = [sys.executable, str(ROOT / "action" / "find_baseline.py")]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    assert done.stdout == "run-id=\n"
    assert done.stderr == "::notice title=epcheck::no earlier run has the artifact 'epcheck-main'\n"
    Artifacts.artifacts = (artifact(7, "2026-11-22T00:00:00Z"),)  # the branch is that of the event
    assert subprocess.run(command, env=variables, capture_output=True, text=True, check=True).stdout == "run-id=7\n"


def test_a_target_that_cannot_be_used_ends_with_2_and_says_why(tmp_path: Path) -> None:
    done = played(tmp_path, "http://127.0.0.1:1", target="no-such-target", baseline_artifact="epcheck-main")
    assert "cannot be asked for" in done.log["Find the run to compare with"]
    assert (done.codes["Verdict"], done.outputs["code"]) == (2, "2")
    assert "no-such-target" in done.log["Run the suite"]


def test_models_are_validated_and_shown(tmp_path: Path) -> None:
    (tmp_path / "work" / "models").mkdir(parents=True)
    onnx.save(layers(2), tmp_path / "work" / "models" / "two layers.onnx")
    (tmp_path / "work" / "models" / "broken.onnx").write_bytes(b"no model")
    (tmp_path / "work" / "doubles.py").write_text(DOUBLES, encoding="utf-8")
    done = played(tmp_path, target="doubles", models="models", options="--seed 0 --baseline cpu")
    assert done.outputs["code"] == "1", done.log
    compare("models.md", done.summary)
    annotations = [line for line in done.log["Validate models"].splitlines() if line.startswith("::")]
    compare("models.annotations.txt", "\n".join(annotations).replace(str(tmp_path), "FOLDER") + "\n")
    (run,) = json.loads((Path(done.outputs["folder"]) / "models.sarif").read_text(encoding="utf-8"))["runs"]
    assert {result["ruleId"] for result in run["results"]} >= {"wrong", "unusable"}
