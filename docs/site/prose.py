"""The rules for prose, in Vale's format (`.vale.ini`), applied to Markdown: `nox -s lint` runs this.

Vale (https://vale.sh) is a program of its own, which no package of the `test` extra contains: its packages download it.
This is the part of it that our rules need: the checks `existence` and `substitution`, in text or headings.
"""

from __future__ import annotations

import configparser
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
FOLDERS = ("docs", "examples", "action")
"""Folders of pages, besides the pages at the root."""

NOT_PROSE = re.compile(
    r"""
    ^(?P<fence>```+).*?^(?P=fence)        # a block of code
    | (?<=\n\n)(?:[ ]{4}[^\n]*\n)+        # the same, indented
    | <!--.*?-->
    | (?P<ticks>`+)(?:(?!\n\n).)+?(?P=ticks)   # code in a sentence
    | (?<=\])\([^)\s]*\)                  # the address of a link
    | https?://[^\s)>]+
    """,
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
SPACE = re.compile(r" (?![{+*?\]])")
"""A space between words, in place of which a line may end."""

HEADING = re.compile(r"^#+ .*$", re.MULTILINE)


@dataclass(frozen=True)
class Rule:
    """A rule of a style. expression: what it reports. advice: for each alternative of the expression, what to use."""

    name: str
    expression: re.Pattern[str]
    message: str
    advice: Sequence[str]
    headings_only: bool

    def sentence(self, match: re.Match[str]) -> str:
        """The message for a match: `%s` is the advice, if there is any, then what was matched."""
        matched = " ".join(match[0].split())
        if not self.advice:
            return self.message.replace("%s", matched)
        number = next(index for index in range(len(self.advice)) if match[f"rule{index}"] is not None)
        return self.message.replace("%s", self.advice[number], 1).replace("%s", matched, 1)


@dataclass(frozen=True)
class Problem:
    """Words that a rule reports."""

    path: Path
    line: int
    rule: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT).as_posix()}:{self.line}: {self.rule}: {self.sentence}"


def read_rules() -> list[Rule]:
    """The rules of the styles that `.vale.ini` names."""
    settings = configparser.ConfigParser()
    settings.read_string("[all]\n" + (ROOT / ".vale.ini").read_text(encoding="utf-8"))
    folder = ROOT / settings["all"]["StylesPath"]
    styles = [style.strip() for style in settings["*.md"]["BasedOnStyles"].split(",")]
    return [read_rule(path) for style in styles for path in sorted((folder / style).glob("*.yml"))]


def read_rule(path: Path) -> Rule:
    """A rule from its file. Raises ValueError for a check that is not supported."""
    fields = yaml.safe_load(path.read_text(encoding="utf-8"))
    if fields["extends"] not in ("existence", "substitution"):
        raise ValueError(f"{path}: '{fields['extends']}' is not supported")
    swap = fields.get("swap", {})
    tokens = list(swap) if swap else fields["tokens"]
    named = (f"(?P<rule{index}>{token})" if swap else f"(?:{token})" for index, token in enumerate(tokens))
    expression = SPACE.sub(r"\\s+", "|".join(named))
    if not fields.get("nonword"):
        expression = rf"\b(?:{expression})\b"
    flags = re.IGNORECASE if fields.get("ignorecase") else re.NOFLAG
    name = f"{path.parent.name}.{path.stem}"
    pattern = re.compile(expression, flags)
    return Rule(name, pattern, fields["message"], list(swap.values()), fields.get("scope") == "heading")


def blanked(text: str) -> str:
    """The text with everything that is not prose replaced by spaces, so that places stay."""
    return NOT_PROSE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def check_text(text: str, path: Path, rules: Sequence[Rule]) -> Iterator[Problem]:
    """The problems of a page."""
    prose = blanked(text)
    headings = [(match.start(), match.end()) for match in HEADING.finditer(prose)]
    for rule in rules:
        for start, end in headings if rule.headings_only else [(0, len(prose))]:
            for match in rule.expression.finditer(prose, start, end):
                line = prose.count("\n", 0, match.start()) + 1
                yield Problem(path, line, rule.name, rule.sentence(match))


def pages() -> list[Path]:
    """All pages: those at the root, and those of FOLDERS."""
    return [*sorted(ROOT.glob("*.md")), *(path for name in FOLDERS for path in sorted((ROOT / name).rglob("*.md")))]


def main() -> int:
    """Print all problems; the exit code is 1 where there are any."""
    rules = read_rules()
    problems = [problem for path in pages() for problem in check_text(path.read_text("utf-8"), path, rules)]
    for problem in sorted(problems, key=lambda problem: (problem.path, problem.line)):
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
