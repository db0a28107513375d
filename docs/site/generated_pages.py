"""Pages of the documentation site that are made from what lies elsewhere: README, the command line, the Python API.

mkdocs calls the functions `on_...` as a hook (see `mkdocs.yml`); nothing here is part of the packages.
"""

from __future__ import annotations

import inspect
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from epcheck import api
from epcheck.cli import main

ROOT = Path(__file__).parents[2]

COPIED = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/README.md": "benchmarks.md",
}
"""Pages that lie outside of docs/ -> where the site has them."""

_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s]+)\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Complete the navigation by all pages of findings."""
    pages = sorted(path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs/findings").rglob("*.md"))
    config.nav[-1]["Findings"] = ["findings.md", *pages]
    known = set(re.findall(r"[\w/-]+\.md", str(config.nav)))
    others = sorted(path.name for path in (ROOT / "docs").glob("*.md") if path.name not in known)
    config.nav[2]["How to"] += others  # a new page at the root of docs/ stands somewhere until it is placed
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made."""
    made = {target: (ROOT / source).read_text(encoding="utf-8") for source, target in COPIED.items()}
    made |= {
        "reference/command-line.md": command_line(),
        "reference/python.md": python(),
        "reference/schemas.md": schemas(),
    }
    for target, text in made.items():
        files.append(File.generated(config, target, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Let links that lead out of docs/ lead to the copies, or be text: the site has no source code."""
    target = page.file.src_uri
    source = next((origin for origin, copy in COPIED.items() if copy == target), f"docs/{target}")

    def moved(found: re.Match[str]) -> str:
        image, words, address = found.groups()
        path, _, anchor = address.partition("#")
        if not path or ":" in path or path.startswith("/"):
            return found[0]
        whole = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        place = COPIED.get(whole) or (whole.removeprefix("docs/") if whole.startswith("docs/") else "")
        if not place or not (whole in COPIED or files.get_file_from_path(place)):
            return f"`{whole}`" if "`" in words or whole == words else words
        relative = posixpath.relpath(place, posixpath.dirname(target) or ".")
        return f"{image}[{words}]({relative}{f'#{anchor}' if anchor else ''})"

    in_code = False
    lines = []
    for line in markdown.split("\n"):
        in_code ^= line.startswith("```")
        lines.append(line if in_code or line.startswith("    ") else _LINK.sub(moved, line))
    return "\n".join(lines)


def on_post_page(output: str, page: Any, config: MkDocsConfig) -> str:  # noqa: ARG001
    """Leave out the script that the theme fetches from elsewhere to search a site that is read from disk."""
    return _without_remote_scripts(output)


def on_post_template(output: str, template_name: str, config: MkDocsConfig) -> str:  # noqa: ARG001
    """The same for the page of addresses that do not exist."""
    return _without_remote_scripts(output)


def _without_remote_scripts(html: str) -> str:
    return re.sub(r'<script src="?https://[^">]*"?></script>', "", html)


def command_line() -> str:
    """Every command with its options, from the code that parses them."""
    root = typer.main.get_command(main.app)
    context = typer.Context(root, info_name="epcheck")
    parts = ["# Command line", f"`epcheck COMMAND --help` says the same. {_plain(root.help or '')}"]
    for title, names in main.GROUPS.items():
        parts.append(f"## {title}")
        for name in names:
            parts += _commands(root.get_command(context, name), f"epcheck {name}")
    return "\n\n".join(parts) + "\n"


def _commands(command: Any, name: str) -> Iterator[str]:
    yield f"### `{name}`"
    yield _plain(command.help or "")
    options = [option for option in command.params if option.name not in ("help", "version")]
    for panel in dict.fromkeys(map(_panel, options)):
        own = (option for option in options if _panel(option) == panel)
        rows = [f"| `{_written(option)}` | {_cell(getattr(option, 'help', '') or '')} |" for option in own]
        yield "\n".join([f"| {panel} | |", "|---|---|", *rows])
    for below, each in getattr(command, "commands", {}).items():
        yield from _commands(each, f"{name} {below}")


def _panel(option: Any) -> str:
    """The panel of help in which an option stands; `option` where the command has none."""
    return getattr(option, "rich_help_panel", None) or "option"


def _written(option: Any) -> str:
    if option.param_type_name == "argument":
        return (option.metavar or option.name.upper()).replace("|", "\\|")
    return ", ".join((*option.opts, *option.secondary_opts))


def _plain(text: str) -> str:
    return inspect.cleandoc(text).replace("<", "&lt;")


def _cell(text: str) -> str:
    return " ".join(_plain(text).replace("|", "\\|").split())


def python() -> str:
    """Every name of `epcheck.api` with its signature and docstring."""
    parts = ["# Python", "```text\n" + inspect.getdoc(api).replace("```", "") + "\n```"]
    for name in sorted(api.__all__, key=str.lower):
        value = getattr(api, name)
        if not callable(value):
            continue
        parts += [f"## `{name}`", f"```python\n{_signature(name, value)}\n```", _plain(inspect.getdoc(value) or "")]
    return "\n\n".join(parts) + "\n"


def _signature(name: str, value: Any) -> str:
    try:
        signature = str(inspect.signature(value)).replace("epcheck.", "")
    except ValueError:
        return name
    return f"{name}{signature}" if len(signature) < 80 else f"{name}{signature}".replace(", ", ",\n    ")


def schemas() -> str:
    """The schemas of JSON documents, in full."""
    parts = ["# Schemas", "The columns of Parquet files are [on the page of the store](../reports/store.md)."]
    for path in sorted((ROOT / "docs/schemas").glob("*.json")):
        parts += [f"## `{path.name}`", f"```json\n{path.read_text(encoding='utf-8').strip()}\n```"]
    return "\n\n".join(parts) + "\n"
