"""The tasks of a contributor, and of CI: `nox --list` shows them, `nox -s lint types` runs some.

Each runs in the environment that nox itself is installed in (`pip install -e '.[test]'`): nothing is installed twice.
Arguments after `--` go to the tool: `nox -s fast -- tests/generators -k TopK`.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nox

nox.options.default_venv_backend = "none"
nox.options.sessions = ["lint", "types", "fast"]

os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

QUIET_PYRIGHT = {"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}


@nox.session
def lint(session: nox.Session) -> None:
    """Rules and format, by ruff; the prose of README and docs, by the rules of .vale.ini."""
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("python", "docs/site/prose.py")


@nox.session
def types(session: nox.Session) -> None:
    """Types of the packages, by mypy; whether an editor resolves every import, by pyright."""
    with ThreadPoolExecutor() as both:  # each keeps one core at work
        judges = [both.submit(session.run, name, env=QUIET_PYRIGHT) for name in ("mypy", "pyright")]
    for judge in judges:
        judge.result()


@nox.session
def fast(session: nox.Session) -> None:
    """The tests that need neither the lab, nor a browser, nor much time."""
    session.run("python", "-m", "pytest", "-m", "not lab and not browser and not slow", *session.posargs)


@nox.session
def windows(session: nox.Session) -> None:
    """Fast tests by Windows Python: on Windows all of them, elsewhere those that take no minutes, in the lab."""
    if sys.platform == "win32":
        fast(session)
    else:
        session.run("python", "tests/windows_session.py", *session.posargs)


@nox.session
def parity(session: nox.Session) -> None:
    """All cases, and 551 records and 20 validations on DirectML, by a parent on Windows and by one on Linux: equal."""
    session.run("python", "-m", "tests.parity", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """All tests but `installs`, and which take longest."""
    session.run("python", "-m", "pytest", "--durations=25", *session.posargs)


@nox.session
def installs(session: nox.Session) -> None:
    """The tests that install epcheck from an index, in new environments and in Windows Python."""
    session.run("python", "-m", "pytest", *(session.posargs or ["tests/installs"]))


@nox.session
def seconds(session: nox.Session) -> None:
    """Writes tests/seconds.json anew, on a quiet machine: by it pytest says how long the tests take."""
    session.run("python", "-m", "pytest", "--write-seconds", *session.posargs)


@nox.session
def lab(session: nox.Session) -> None:
    """Installs the DirectML lab: Wine and a software Vulkan driver, in the user's cache. Does nothing where it is."""
    session.run("epcheck", "lab", "install", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Builds the documentation site in `build/site`; a link that leads nowhere fails."""
    quiet = {"NO_MKDOCS_2_WARNING": "1"}
    session.run("mkdocs", "build", "--quiet", "--site-dir", "build/site", *session.posargs, env=quiet)


@nox.session
def coverage(session: nox.Session) -> None:
    """Which of the provider's claims have cases."""
    session.run("epcheck", "coverage", *session.posargs)


@nox.session
def conformance(session: nox.Session) -> None:
    """The real DirectML provider, a few cases of each operator version and dtype, and no deviation but the expected."""
    session.run("epcheck", "run", "--target", "dml", "--thin", "--strict", *session.posargs)


@nox.session
def case_ids(session: nox.Session) -> None:
    """Writes tests/generators/case_ids.txt and mustpass.toml anew, after ids changed deliberately."""
    session.run("python", "tests/generators/case_ids.py")


@nox.session
def designs(session: nox.Session) -> None:
    """Chooses the designed cases of operators that have none; `-- --op NAME --most 60` chooses more for one."""
    session.run("python", "-m", "tests.generators.designing", *session.posargs)


@nox.session
def readings(session: nox.Session) -> None:
    """Names the wrong readings that no case of an operator tells; `-- --op NAME` looks at one operator."""
    session.run("python", "-m", "tests.generators.readings", *session.posargs)


@nox.session
def equal_sizes(session: nox.Session) -> None:
    """Choose the sizes of the copies of rewrite rules' graphs that have one size alone."""
    session.run("python", "-m", "tests.generators.graphs.equal_sizes", *session.posargs)


@nox.session
def numbers(session: nox.Session) -> None:
    """Writes the numbers of the suite in README and docs anew."""
    session.run("python", "docs/site/suite_numbers.py")


@nox.session
def pictures(session: nox.Session) -> None:
    """Takes the picture and the terminal capture of README anew, from one run on DirectML 1.17.3 in the lab."""
    session.run("python", "docs/site/pictures.py")


@nox.session
def fuzz(session: nox.Session) -> None:
    """The tests of damaged and hostile input with other examples, 60 times as many; FACTOR=100 for 300 times."""
    environment = {"EPCHECK_FUZZ": os.environ.get("FACTOR", "20")}
    session.run("python", "-m", "pytest", "tests/fuzzing", *session.posargs, env=environment)


@nox.session
def attacks(session: nox.Session) -> None:
    """Attacks epcheck and counts what breaks: kills, hostile models, damaged files, full disks. Takes hours; Linux.

    `nox -s attacks -- kills --count 50` does one of them, with its options.
    """
    name, *options = session.posargs or ("",)
    for program in [name] if name else ["corruptions", "disks", "kills", "models", "peer", "starts"]:
        session.run("python", f"benchmarks/attacks/{program}.py", *options)


@nox.session
def benchmarks(session: nox.Session) -> None:
    """Measures what benchmarks/README.md promises."""
    session.run("python", "benchmarks/table.py", *session.posargs)
