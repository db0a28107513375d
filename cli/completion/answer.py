"""Answers the shell: the scripts that `epcheck --install-completion` installs are typer's, and so is what they ask."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence

from epcheck.cli.completion import index as indexes
from epcheck.cli.completion.candidates import Candidate, candidates
from epcheck.cli.completion.index import Index

ASKED = "_EPCHECK_COMPLETE"
"""Environment variable: `complete_SHELL` where a shell asks for candidates."""


def main(make: Callable[[], Index]) -> None:
    """Print the answer. A person who pressed Tab gets no traceback between the words: what goes wrong is no answer.

    make: makes the index, where there is none.
    """
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    try:
        text, code = answer(os.environ, make)
    except Exception:
        sys.exit(1)
    print(text, end="\n" if text else "")
    sys.exit(code)


def answer(environment: Mapping[str, str], make: Callable[[], Index]) -> tuple[str, int]:
    """What is printed, and the exit code: fish reads from that whether there are candidates."""
    shell = environment[ASKED].removeprefix("complete_")
    words, incomplete = _bash_words(environment) if shell == "bash" else _words(environment, shell)
    words, incomplete, kept = _joined([word for word in words if word != "="], incomplete)
    found = candidates(current(make), words, incomplete)
    if shell == "bash":
        return "\n".join(each.value[kept:] for each in found), 0
    if shell == "zsh":
        shown = "\n".join(_zsh(each) for each in found)
        return (f"_arguments '*: :(({shown}))'" if found else "_files"), 0
    if shell == "fish":
        if environment.get("_TYPER_COMPLETE_FISH_ACTION") == "is-args":
            return "", 0 if found else 1
        return "\n".join(f"{each.value}\t{each.help}" if each.help else each.value for each in found), 0
    return "\n".join(f"{each.value}:::{each.help or ' '}" for each in found), 0


def current(make: Callable[[], Index]) -> Index:
    """The index of this installation, made now where there is none."""
    found = indexes.read()
    if found is None:
        found = make()
        indexes.write(found)
    return found


def _bash_words(environment: Mapping[str, str]) -> tuple[list[str], str]:
    words, at = _split(environment["COMP_WORDS"]), int(environment["COMP_CWORD"])
    return words[1:at], words[at] if at < len(words) else ""


def _words(environment: Mapping[str, str], shell: str) -> tuple[list[str], str]:
    line = environment.get("_TYPER_COMPLETE_ARGS", "")
    words = _split(line)[1:]
    if shell in ("powershell", "pwsh"):
        incomplete = environment.get("_TYPER_COMPLETE_WORD_TO_COMPLETE", "")
        return (words[:-1] if incomplete else words), incomplete
    if words and not line.endswith(" "):
        return words[:-1], words[-1]
    return words, ""


def _split(line: str) -> list[str]:
    """The words of a line, the last of which may lack its closing quote."""
    for closing in ("", '"', "'"):
        try:
            return shlex.split(line + closing)
        except ValueError:
            continue
    return line.split()


def _joined(words: Sequence[str], incomplete: str) -> tuple[list[str], str, int]:
    """bash breaks words at colons, which operators of other domains have: put them together again. The last is how many
    characters of each candidate bash has already."""
    joined = list(words)
    if set(incomplete) == {":"} and joined:
        before = joined.pop() + incomplete
        return joined, before, len(before) - len(incomplete)
    if len(joined) > 1 and set(joined[-1]) == {":"}:
        colons = joined.pop()
        before = joined.pop() + colons
        return joined, before + incomplete, len(before)
    return joined, incomplete, 0


def _zsh(each: Candidate) -> str:
    def escaped(text: str) -> str:
        for mark, instead in (('"', '\\"'), ("'", "'\\''"), ("$", "\\$"), ("`", "\\`"), (":", "\\\\:")):
            text = text.replace(mark, instead)
        return text

    return f'"{escaped(each.value)}":"{escaped(each.help)}"' if each.help else f'"{escaped(each.value)}"'
