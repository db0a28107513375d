"""Plays the steps of a composite action in their order, as GitHub's runner does: conditions, variables, outputs.

Steps that use another action are not played but noted, with what they are asked for; a test may say what one does.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
_NAME = re.compile(r"\b(?:inputs|steps|github|runner)(?:\.[\w-]+)+")


@dataclass
class Played:
    """What the steps left behind. used: of steps that use another action, name -> its inputs. log: what was printed, by
    the name of the step. codes: exit codes. summary: the Markdown of all steps."""

    outputs: dict[str, str] = field(default_factory=dict)
    used: dict[str, dict[str, str]] = field(default_factory=dict)
    log: dict[str, str] = field(default_factory=dict)
    codes: dict[str, int] = field(default_factory=dict)
    summary: str = ""


class Expressions:
    """The expressions of GitHub Actions, as far as our action has them."""

    def __init__(self, contexts: Mapping[str, Any]) -> None:
        self.contexts = contexts
        self.failed = False

    def fill(self, text: str) -> str:
        return _EXPRESSION.sub(lambda found: self._text(self.value(found[1])), text)

    def holds(self, condition: str) -> bool:
        if "always()" not in condition and self.failed:
            return False
        return bool(self.value(condition))

    def value(self, expression: str) -> Any:
        """A condition or a name; evaluated as Python once its operators are Python's."""
        names: list[Any] = []

        def kept(found: re.Match[str]) -> str:
            names.append(self.lookup(found[0]))
            return f"names[{len(names) - 1}]"

        python = _NAME.sub(kept, expression).replace("&&", " and ").replace("||", " or ").replace("!names", "not names")
        functions = {"always": lambda: True, "contains": lambda whole, part: part.lower() in whole.lower()}
        return eval(python, {"__builtins__": {}}, {"names": names, **functions})

    def lookup(self, name: str) -> str:
        """A part of a context; what is not there is empty, as GitHub has it."""
        found: Any = self.contexts
        for part in name.split("."):
            found = found.get(part, "") if isinstance(found, Mapping) else ""
        return found if isinstance(found, str) else ""

    @staticmethod
    def _text(value: Any) -> str:
        return {True: "true", False: "false"}.get(value, value) if isinstance(value, bool) else str(value)


def play(
    action: Path,
    inputs: Mapping[str, str],
    folder: Path,
    variables: Mapping[str, str],
    stand_ins: Mapping[str, Callable[[dict[str, str]], dict[str, str]]],
) -> Played:
    """Play an `action.yml` in a working directory `folder/work`. inputs: the others have their defaults. variables: of
    the environment. stand_ins: name of a step -> what is done in its place, with its inputs or its variables."""
    described = yaml.safe_load(action.read_text(encoding="utf-8"))
    assert inputs.keys() <= described["inputs"].keys()
    github = {"token": "secret", "event_name": "push", "event": {"repository": {"default_branch": "main"}}}
    temporary = folder / "temp"
    for each in (temporary, folder / "work"):
        each.mkdir(exist_ok=True)
    steps: dict[str, dict[str, dict[str, str]]] = {}
    contexts = {
        "github": github, "steps": steps, "runner": {"os": "Linux", "arch": "X64"},
    }  # fmt: skip
    expressions = Expressions(contexts)
    defaults = {name: expressions.fill(str(each.get("default", ""))) for name, each in described["inputs"].items()}
    expressions.contexts = {**contexts, "inputs": {**defaults, **inputs}}
    places = {"GITHUB_ACTION_PATH": str(action.parent), "RUNNER_TEMP": str(temporary)}
    played, environment = Played(), {**os.environ, **variables, **places}
    for step in described["runs"]["steps"]:
        name = step["name"]
        if not expressions.holds(step.get("if", "True")):
            continue
        if "uses" in step or name in stand_ins:
            played.used[name] = {
                key: expressions.fill(str(value)) for key, value in (step.get("with") or step.get("env", {})).items()
            }
            steps[step.get("id", name)] = {"outputs": stand_ins.get(name, lambda _: {})(played.used[name])}
            continue
        files = {each: folder / each for each in ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_STEP_SUMMARY")}
        for path in files.values():
            path.write_text("")
        own = {key: expressions.fill(str(value)) for key, value in step.get("env", {}).items()}
        assert not _EXPRESSION.search(step["run"]), f"{name}: a value that is put into a script can be a script"
        done = subprocess.run(
            [shutil.which("bash") or "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=folder / "work",
            env={**environment, **own, **{key: str(path) for key, path in files.items()}},
            capture_output=True, encoding="utf-8", check=False,
        )  # fmt: skip
        outputs = dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())
        environment |= dict(line.split("=", 1) for line in files["GITHUB_ENV"].read_text().splitlines())
        steps[step.get("id", name)] = {"outputs": outputs}
        played.log[name], played.codes[name] = done.stdout + done.stderr, done.returncode
        played.summary += files["GITHUB_STEP_SUMMARY"].read_text(encoding="utf-8")
        expressions.failed |= done.returncode != 0
    played.outputs = {name: expressions.fill(str(each["value"])) for name, each in described["outputs"].items()}
    return played
