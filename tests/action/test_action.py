"""The GitHub action: its steps played in their order, with summary and annotations as the golden files have them.

`EPCHECK_GOLDEN=write pytest tests/action` writes the golden files anew; read the difference before committing it.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import onnx
import pytest

from epcheck import reports
from tests.action.github_service import ON_BRANCH, Service, packed_folder, run, serving, variables
from tests.action.workflow import Played, play
from tests.models.small_models import layers

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

NO_SERVICE = variables("http://127.0.0.1:1")
SELECTION = "--op Concat --op Transpose --dtype int8 --limit 40"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="the folders of Git's bash are not those of this Python"),
]


def played(folder: Path, github: Mapping[str, str] = NO_SERVICE, **inputs: str) -> Played:
    """The action with these inputs. github: the variables of GitHub's runner."""
    folder.mkdir(exist_ok=True)
    (folder / "work").mkdir(exist_ok=True)
    (folder / "work" / "epcheck.toml").write_text(TARGETS, encoding="utf-8")
    scripts = folder / "bin"
    scripts.mkdir(exist_ok=True)
    start = scripts / "epcheck"
    start.write_text(f"#!/bin/sh\nexec {sys.executable} -c 'from epcheck.cli.start import main; main()' \"$@\"\n")
    start.chmod(0o755)
    path = f"{scripts}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    stand_ins = {
        "Install epcheck": lambda _: dict[str, str](),
        "Keep the report": lambda _: {"artifact-digest": "12ab"},
    }
    return play(ROOT / "action.yml", {name.replace("_", "-"): text for name, text in inputs.items()},
                folder, {"PATH": path, "COLUMNS": "200", "NO_COLOR": "1", **github}, stand_ins)  # fmt: skip


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
    assert {path.name for path in folder.iterdir()} == {
        "runs",
        "summary.md",
        "badge.svg",
        "annotations.txt",
        "commit.txt",
    }
    assert (folder / "commit.txt").read_text() == f"{ON_BRANCH}\n"
    assert {"report.html", "junit.xml", "outcomes.parquet", "journal.jsonl"} <= {path.name for path in run.iterdir()}


def test_the_lab_is_kept_only_where_it_is_used(suite: Played) -> None:
    assert "Keep the DirectML lab" not in suite.used
    assert suite.used["Python"] == {"python-version": "3.12"}


def test_no_path_of_the_host_reaches_a_container() -> None:
    """In a job with a container these expressions are paths outside of it (actions/runner, issue 2185)."""
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    assert re.findall(r"\$\{\{[^}]*(?:action_path|runner\.temp|workspace)[^}]*\}\}", text) == []


def test_what_was_wrong_before_fails_no_step(suite: Played, tmp_path: Path) -> None:
    service = Service()
    service.add(run(5))
    service.archives[5] = packed_folder(Path(suite.outputs["folder"]))
    with serving(service) as github:
        after = played(tmp_path / "after", github, target="demo", selection=SELECTION, baseline_artifact="epcheck-main")
    assert after.codes["Verdict"] == 0, after.log
    assert "No new failure in" in after.summary
    assert after.summary.count("\n## ") == 1  # the comparison, below the run


def test_the_report_is_attested_where_the_workflow_wants_it(suite: Played, tmp_path: Path) -> None:
    assert "Attest the report" not in suite.used
    done = played(tmp_path, target="no-such-target", attest="true")
    assert done.used["Attest the report"] == {"subject-name": "epcheck.zip", "subject-digest": "sha256:12ab"}


@pytest.mark.parametrize("target", ["no-such-target", "python:no_such:target"])
def test_a_target_that_cannot_be_used_ends_with_2_and_says_why(tmp_path: Path, target: str) -> None:
    done = played(tmp_path, target=target, selection=SELECTION, baseline_artifact="epcheck-main")
    assert "cannot be asked for" in done.log["Find the run to compare with"]
    assert (done.codes["Verdict"], done.outputs["code"]) == (2, "2")
    assert f"target '{target}'" in done.log["Run the suite"]
    assert done.log["Show the run"] == ""


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
