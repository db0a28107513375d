"""What users install: the wheel and the sdist, in environments of their own, used from folders of their own."""

from __future__ import annotations

import json
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.programs import checked_run

pytestmark = pytest.mark.slow

DATA = {
    "epcheck/conformance/expectations/dml/stack/recurrent.toml",
    "epcheck/conformance/expectations/cpu/graphs/optimisers.toml",
    "epcheck/conformance/expectations/cpu/movement.toml",
    "epcheck/conformance/lab/packages/debian.json",
    "epcheck/conformance/lab/packages/glvnd.json",
    "epcheck/conformance/lab/packages/wheels.json",
    "epcheck/conformance/lab/graphics/vkd3d/entry.c",
    "epcheck/conformance/lab/graphics/vkd3d/hooks.h",
    "epcheck/generators/claims/dml_ep_operators.json",
    "epcheck/generators/directml/feature_levels.json",
    "epcheck/reports/page/assets/run/page.html.j2",
    "epcheck/reports/page/assets/run/page.css",
    "epcheck/reports/page/assets/run/page_main.js",
    *(f"epcheck/{package}/py.typed" for package in ("api", "cli", "conformance", "generators", "models", "reports")),
}
"""What is no Python module and has to be inside all the same."""


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of a new virtual environment that holds the wheel and what it asks for, nothing else.

    This environment's pip installs, and compiles no module: most are never imported.
    """
    home = tmp_path_factory.mktemp("clean") / "venv"
    checked_run([sys.executable, "-m", "venv", "--without-pip", str(home)], home.parent)
    scripts = home / ("Scripts" if sys.platform == "win32" else "bin")
    pip = [sys.executable, "-m", "pip", "--python", str(scripts / "python"), "--disable-pip-version-check"]
    checked_run([*pip, "install", "-q", "--no-compile", str(wheel)], home.parent)
    return scripts


def test_the_wheel_holds_code_and_data_of_every_package_and_nothing_loose(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert names >= DATA
    assert {name.split("/")[0] for name in names if not name.split("/")[0].endswith(".dist-info")} == {"epcheck"}
    assert "epcheck/__init__.py" not in names
    assert "epcheck/__main__.py" in names


def test_the_sdist_holds_what_the_wheel_is_made_of_and_what_its_readme_shows(distributions: Path) -> None:
    (sdist,) = distributions.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert {name.removeprefix("epcheck/") for name in DATA} <= names
    assert names >= {
        "docs/images/report.png",
        "docs/nightly.md",
        "CHANGELOG.md",
        "CITATION.cff",
        "examples/store.ipynb",
    }
    assert [name for name in names if "__pycache__" in name] == []


def test_the_installed_command_runs_the_suite_from_another_folder(installed: Path, tmp_path: Path) -> None:
    command = [str(installed / "epcheck"), "run", "--target", "cpu", "--op", "Slice", "--dtype", "int64", "--thin"]
    checked_run(command, tmp_path)
    (run,) = (tmp_path / "epcheck-runs").iterdir()
    assert json.loads((run / "run.json").read_text())["status"] == "complete"
    assert {"report.html", "junit.xml", "report.json", "outcomes.parquet"} <= {path.name for path in run.iterdir()}


def test_the_installed_suite_runs_under_pytest_from_another_folder(installed: Path, tmp_path: Path) -> None:
    options = ["--ep", "cpu", "--op", "Slice", "--dtype", "bool", "--thin", "-q", "-p", "no:cacheprovider"]
    printed = checked_run(
        [str(installed / "python"), "-m", "pytest", "--pyargs", "epcheck.conformance", *options], tmp_path
    )
    assert "passed" in printed
    assert "failed" not in printed


def test_the_installed_module_is_the_command(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise SystemExit('imported')")
    printed = checked_run([str(installed / "python"), "-m", "epcheck", "--version"], tmp_path)
    assert printed == checked_run([str(installed / "epcheck"), "--version"], tmp_path)


def test_the_installed_packages_shadow_nothing_of_the_user(installed: Path, tmp_path: Path) -> None:
    script = "import importlib.util as u; print([n for n in ('models', 'reports', 'generators') if u.find_spec(n)])"
    assert checked_run([str(installed / "python"), "-c", script], tmp_path).strip() == "[]"
