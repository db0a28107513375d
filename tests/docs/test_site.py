"""The documentation site: it builds strictly and fetches nothing, and every command of tutorial and guides is real."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import typer

from epcheck import api
from epcheck.cli import main
from tests.command_line import call
from tests.reports.browsing import Browser, browser, driver

__all__ = ["browser", "driver"]

ROOT = Path(__file__).parents[2]
TUTORIAL = ("first-run", "first-failure", "first-expectation", "first-nightly")
GUIDES = sorted((ROOT / "docs/guides").glob("*.md"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `nox -s docs` builds it."""
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """The site on a server of this machine."""
    handler = partial(QuietHandler, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_arguments: object) -> None:
        pass


@pytest.mark.slow
def test_the_site_has_every_page_and_fetches_nothing(site: Path) -> None:
    pages = {path.relative_to(site).with_suffix(".md").as_posix() for path in site.rglob("*.html")}
    written = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert written <= pages
    assert pages >= {"index.md", "contributing.md", "changelog.md", "benchmarks.md"}
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert re.findall(r'<(?:script|img|iframe)[^>]*\bsrc="?(?:https?:)?//[^" >]*', text) == []
        assert re.findall(r'<link[^>]*rel="?stylesheet"?[^>]*href="?(?:https?:)?//', text) == []
    for path in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(?:https?:)?//", path.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_the_reference_has_every_command_and_every_name(site: Path) -> None:
    commands = (site / "reference/command-line.html").read_text(encoding="utf-8")
    assert [name for name in main.MODULES if f"<code>epcheck {name}</code>" not in commands] == []
    assert "--max-flaky" in commands
    names = (site / "reference/python.html").read_text(encoding="utf-8")
    functions = [name for name in api.__all__ if callable(getattr(api, name))]
    assert [name for name in functions if f"<code>{name}</code>" not in names] == []


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("page", ["index", "tutorial/first-run", "reference/command-line", "findings/movement"])
def test_axe_finds_nothing(browser: Browser, address: str, page: str) -> None:
    browser.driver.get(f"{address}/{page}.html")
    assert browser.violations() == []


def commands(path: Path) -> list[tuple[str, int]]:
    """The command lines of a page's `sh` blocks, and the exit code that each has to end with."""
    found = []
    for block in re.findall(r"^```sh\n(.*?)^```", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            command, _, comment = line.partition("  # exit code ")
            found.append((command, int(comment or 0)))
    return found


@pytest.mark.slow
def test_the_tutorial_runs_as_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EPCHECK_STORE", raising=False)
    first = (ROOT / "docs/tutorial/first-run.md").read_text(encoding="utf-8")
    (config,) = re.findall(r"^```toml\n(.*?)^```", first, re.DOTALL | re.MULTILINE)
    Path("epcheck.toml").write_text(config, encoding="utf-8")
    seen = []
    for page in TUTORIAL:
        for command, code in commands(ROOT / f"docs/tutorial/{page}.md"):
            if command == "epcheck status":  # whose exit code is that of the machine
                continue
            program, *arguments = shlex.split(command)
            done = call(*arguments)
            assert (program, done.code) == ("epcheck", code), (command, done.out, done.err)
            seen.append(done.out)
    assert len(seen) == 9
    assert "equal values must come with the lower index first" in seen[0]
    assert "smallest: epcheck show" in seen[0]
    assert "no conformance failure" in seen[5]
    assert "First night" in seen[6]
    assert "No new failure in" in seen[7]


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.stem)
def test_the_commands_of_a_guide_exist_with_their_options(path: Path) -> None:
    root = typer.main.get_command(main.app)
    context = typer.Context(root, info_name="epcheck")
    lines = re.findall(r"`epcheck ([^`]*)`", path.read_text(encoding="utf-8"))
    assert len(lines) >= 4
    for line in lines:
        name, *words = shlex.split(line)
        command = root.get_command(context, name)  # type: ignore[attr-defined]
        assert command is not None, line
        if hasattr(command, "commands"):
            command = command.commands[words.pop(0)]
        known = {flag for option in command.params for flag in (*option.opts, *option.secondary_opts)}
        assert [word for word in words if word.startswith("-") and word not in known] == [], line
