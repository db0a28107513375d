"""What may stand at the end of a command line that is being written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from epcheck.cli.completion.index import Command, Flag, Index

OPERATOR, DTYPE, TARGET, CASE, RUN, SWITCH = "operator", "dtype", "target", "case", "run", "switch"
RUN_OR_LATEST = "run or latest"
KINDS = (OPERATOR, DTYPE, TARGET, CASE, RUN, RUN_OR_LATEST, SWITCH)
"""What the value of an option can be; SWITCH where it has none. Files are left to the shell."""

ROOT = "epcheck-runs"
"""Where run folders are, unless the command line says so."""

MOST_RUNS = 30


class Candidate(NamedTuple):
    """A value, and a sentence that shells show beside it."""

    value: str
    help: str = ""


def candidates(index: Index, words: Sequence[str], incomplete: str) -> list[Candidate]:
    """Those that begin as `incomplete` does; none where a file may stand, which the shell completes.

    words: what stands before it, without the program.
    """
    name, command, rest = _command(index, words)
    if command is None:
        return _commands(index, name, incomplete)
    kind, choices = _wanted(command, rest, incomplete)
    if choices:
        return _beginning(map(Candidate, choices), incomplete)
    if incomplete.startswith("-") and kind != SWITCH:
        return _beginning((Candidate(flag, each.help) for flag, each in command.flags.items()), incomplete)
    return _beginning(_values(index, kind, rest, incomplete), incomplete)


def _command(index: Index, words: Sequence[str]) -> tuple[str, Command | None, Sequence[str]]:
    """The command that the words name, or the words themselves where that is not complete; the words after it."""
    for length in (2, 1):
        name = " ".join(words[:length])
        has_more = any(other.startswith(f"{name} ") for other in index.commands)
        if len(words) >= length and name in index.commands and not has_more:
            return name, index.commands[name], words[length:]
    return " ".join(words), None, ()


def _commands(index: Index, before: str, incomplete: str) -> list[Candidate]:
    prefix = f"{before} " if before else ""
    names = ((name.removeprefix(prefix), each.help) for name, each in index.commands.items() if name.startswith(prefix))
    found = [Candidate(name, text) for name, text in names if " " not in name]
    return _beginning([*found, *(() if before else (Candidate("--version"), Candidate("--help")))], incomplete)


def _wanted(command: Command, words: Sequence[str], incomplete: str) -> tuple[str, tuple[str, ...]]:
    """The kind of what is being written, and its choices where these are few."""
    flag: Flag | None = command.flags.get(words[-1]) if words else None
    if flag is not None and flag.kind != SWITCH:
        return flag.kind, tuple(flag.choices)
    return ("", ()) if incomplete.startswith("-") else (command.argument, ())


def _values(index: Index, kind: str, words: Sequence[str], incomplete: str) -> Iterable[Candidate]:
    if kind == OPERATOR:
        return (Candidate(name) for name in sorted(index.operators))
    if kind == DTYPE:
        return map(Candidate, index.dtypes)
    if kind == TARGET:
        return _targets(index)
    if kind in (RUN, RUN_OR_LATEST):
        found = _runs(Path(words[words.index("--root") + 1]) if "--root" in words[:-1] else Path(ROOT))
        return found if kind == RUN else chain([Candidate("latest", "the newest run")], found)
    return _cases(index, incomplete) if kind == CASE else ()


def _targets(index: Index) -> Iterator[Candidate]:
    """Those that every machine knows, and those of the `epcheck.toml` here."""
    import tomllib

    yield from map(Candidate, index.targets)
    try:
        tables = tomllib.loads(Path("epcheck.toml").read_text(encoding="utf-8")).get("targets", {})
    except (OSError, ValueError):
        return
    yield from (Candidate(str(name), "epcheck.toml") for name in tables)


def _runs(root: Path) -> Iterator[Candidate]:
    """The newest first."""
    try:
        found = sorted((entry.path for entry in os.scandir(root) if entry.is_dir()), reverse=True)
    except OSError:
        return
    yield from map(Candidate, found[:MOST_RUNS])


def _cases(index: Index, incomplete: str) -> Iterator[Candidate]:
    """Operators with their versions; once that is written, the ids themselves, for which the operator is loaded."""
    head, slash, _ = incomplete.partition("/")
    if not slash:
        yield from (
            Candidate(f"{name}-{version}/") for name, versions in index.operators.items() for version in versions
        )
        return
    from epcheck.api.suite.listing import CasesOptions, cases  # takes half a second, and knows all

    operator, _, version = head.rpartition("-")
    if operator in index.operators and version.isdigit():
        chosen = cases(CasesOptions(operators=(operator,)))
        yield from (Candidate(case.id) for case in chosen if case.id.startswith(incomplete))


def _beginning(found: Iterable[Candidate], incomplete: str) -> list[Candidate]:
    """What has characters that do not show is not offered: a shell prints what it is given."""
    return [each for each in found if each.value.startswith(incomplete) and each.value.isprintable()]
