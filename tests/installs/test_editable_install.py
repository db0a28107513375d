"""`pip install -e .`: Python, mypy and pyright find every module, also one that is written later."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.programs import checked_run

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGE_DIR: dict[str, str] = {
    name: folder for name, folder in PROJECT["tool"]["setuptools"]["package-dir"].items() if "." in name
}


def pip_install(python: Path, *arguments: str) -> list[str]:
    """The command by which this environment's pip installs into that of `python`, which has none."""
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    return [*pip, "install", "-q", *arguments]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that has setuptools and nothing else."""
    home = tmp_path_factory.mktemp("editable") / "venv"
    checked_run([sys.executable, "-m", "venv", "--without-pip", str(home)], home.parent)
    python = home / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    checked_run(pip_install(python, "setuptools>=77"), home.parent)
    return python


def copied(checkout: Path) -> Path:
    """A copy of what an installation reads."""
    checkout.mkdir()
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, checkout)
    for folder in PACKAGE_DIR.values():
        shutil.copytree(ROOT / folder, checkout / folder, ignore=shutil.ignore_patterns("__pycache__"))
    return checkout


def installed(python: Path, checkout: Path) -> str:
    """Installs the checkout; returns what the environment's `.pth` file says."""
    checked_run(pip_install(python, "--no-build-isolation", "--no-deps", "-e", str(checkout)), checkout)
    (path_file,) = python.parents[1].rglob("__editable__.epcheck-*.pth")
    return path_file.read_text(encoding="utf-8").strip()


@pytest.fixture(scope="module", params=["epcheck", "fork"])
def checkout(request: pytest.FixtureRequest, python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installed checkout in a folder of that name, to which modules are added afterwards."""
    checkout = copied(tmp_path_factory.mktemp("checkout") / request.param)
    assert installed(python, checkout) == str(checkout / ".editable")
    (checkout / "generators" / "later.py").write_text(
        "# pyright: basic\nfrom epcheck.generators import latest\n\n\nclass Later:\n"
        "    def taken(self) -> int:\n        return latest.take(self)\n"
    )
    (checkout / "generators" / "latest.py").write_text(
        "from epcheck.generators import later\n\n\ndef take(it: 'later.Later') -> int:\n    return 3\n"
    )
    return checkout


def links(checkout: Path) -> dict[str, Path]:
    """`epcheck.generators` -> where its link leads."""
    entries = (checkout / ".editable" / "epcheck").iterdir()
    return {f"epcheck.{entry.name}": entry.resolve() for entry in entries if entry.name != "__main__.py"}


def pyright(python: Path, checkout: Path, *arguments: str) -> list[tuple[str, str, int]]:
    """Name of the file, rule and line, counted from 0, of each diagnostic."""
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", str(python), *arguments]
    done = subprocess.run(command, cwd=checkout, capture_output=True, encoding="utf-8", check=False)
    found = json.loads(done.stdout)["generalDiagnostics"]
    return [(Path(d["file"]).name, d["rule"], d["range"]["start"]["line"]) for d in found]


def test_modules_that_are_new_are_found_without_another_install(checkout: Path, python: Path) -> None:
    assert links(checkout) == {name: checkout / folder for name, folder in PACKAGE_DIR.items()}

    code = "from epcheck.generators import latest; print(latest.take(None), latest.__file__)"
    count, file = checked_run([str(python), "-c", code], python.parent).split()
    assert (count, Path(file).resolve()) == ("3", checkout / "generators" / "latest.py")

    main = "import runpy; print(runpy.run_module('epcheck', run_name='looked at')['__doc__'])"
    assert checked_run([str(python), "-c", main], python.parent).startswith("`python -m epcheck`")

    (checkout / "probe.py").write_text("import epcheck.generators.latest\nimport epcheck.generators.absent\n")
    assert pyright(python, checkout, "probe.py") == [("probe.py", "reportMissingImports", 1)]

    (checkout / "generators" / "wrong.py").write_text(
        "from epcheck.generators import absent\nfrom epcheck.generators.latest import take\n\ntake(1)\n"
    )
    cache = python.parents[2] / "mypy"  # of both checkouts: they share what is not theirs
    mypy = [sys.executable, "-m", "mypy", "--python-executable", str(python), "--cache-dir", str(cache)]
    done = subprocess.run(
        [*mypy, "-m", "epcheck.generators.wrong"], cwd=checkout, capture_output=True, encoding="utf-8", check=False
    )
    assert [line.rpartition("  ")[2] for line in done.stdout.splitlines() if ": error: " in line] == [
        "[attr-defined]",
        "[arg-type]",
    ], done.stdout + done.stderr


def test_pyright_knows_a_file_by_one_path_in_a_folder_named_epcheck(checkout: Path, python: Path) -> None:
    """By two paths, a class would be two classes."""
    wrong = pyright(python, checkout, "generators/later.py", "generators/latest.py")
    assert wrong == ([] if checkout.name == "epcheck" else [("later.py", "reportArgumentType", 6)])


def test_another_install_removes_the_link_of_a_package_that_is_gone_and_leaves_the_rest(
    python: Path, tmp_path: Path
) -> None:
    checkout = copied(tmp_path / "epcheck")
    installed(python, checkout)
    before = links(checkout)
    project = checkout / "pyproject.toml"
    lines = project.read_text(encoding="utf-8").splitlines(keepends=True)
    project.write_text("".join(line for line in lines if '"epcheck.reports' not in line), encoding="utf-8")
    assert installed(python, checkout) == str(checkout / ".editable")
    assert links(checkout) == {name: folder for name, folder in before.items() if name != "epcheck.reports"}
    assert (checkout / "reports" / "__init__.py").is_file()


def test_where_links_cannot_be_made_the_packages_are_importable_all_the_same(python: Path, tmp_path: Path) -> None:
    checkout = copied(tmp_path / "epcheck")
    own = checkout / ".editable" / "epcheck" / "generators" / "own.txt"
    own.parent.mkdir(parents=True)
    own.write_text("not a link, and not to be lost")
    assert installed(python, checkout).startswith("import ")
    printed = checked_run([str(python), "-c", "import epcheck.generators as g; print(g.__file__)"], python.parent)
    assert Path(printed.strip()) == checkout / "generators" / "__init__.py"
    assert own.is_file()
