"""The numbers of the suite that README and docs state: `nox -s numbers` writes them anew, a test compares them.

Only what the suite has today is here. What a page measured on a day stays as it was measured.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import onnx

from epcheck import api
from epcheck.generators import registry, suite
from epcheck.generators.case_pattern import matches

ROOT = Path(__file__).parents[2]
SELECTIONS = ("graph_", "rank_9", "/typed_", "conjunction_", "/optional_", "undefined_")
"""Patterns of `epcheck run -k` beside which docs/coverage.md states how many cases they select."""


@dataclass(frozen=True)
class Statement:
    """A sentence that states numbers of the suite. pattern: has a group for each number. names: of these numbers."""

    page: str
    pattern: str
    names: tuple[str, ...]

    @property
    def path(self) -> Path:
        return ROOT / self.page


STATEMENTS = (
    Statement("README.md", r"has ([\d,]+) operators and ([\d,]+) cases", ("operators", "cases")),
    Statement(
        "docs/coverage.md",
        r"documents its kernels: ([\d,]+) operators, ([\d,]+) operator versions, ([\d,]+) triples",
        ("claimed operators", "claimed versions", "claimed triples"),
    ),
    Statement(
        "docs/coverage.md",
        r"has cases of ([\d,]+) of the ([\d,]+) operators in the domain of ONNX",
        ("operators of ONNX with cases", "operators of ONNX"),
    ),
    Statement("docs/coverage.md", r"For ([\d,]+) operators that are not element by element", ("parameter spaces",)),
    *(Statement("docs/coverage.md", rf"-k {text} +# ([\d,]+) cases", (f"-k {text}",)) for text in SELECTIONS),
)


def count_suite() -> dict[str, int]:
    """Every name of STATEMENTS -> its number."""
    cases: Counter[str] = Counter()
    operators = set()
    for case in suite.cases():
        cases["cases"] += 1
        operators.add(case.operator_key)
        cases.update(f"-k {text}" for text in SELECTIONS if matches(case.id, text))
    standard = {schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""}
    claims = api.coverage(api.CoverageOptions())
    return {
        **cases,
        "operators": len(operators),
        "parameter spaces": sum(operator.parameter_space is not None for operator in registry.all_operators().values()),
        "operators of ONNX": len(standard),
        "operators of ONNX with cases": len(standard & operators),
        "claimed operators": len({claim.operator for claim in claims}),
        "claimed versions": len({claim.key for claim in claims}),
        "claimed triples": len(claims),
    }


def stated(statement: Statement) -> dict[str, int]:
    """The numbers that a page states. Raises ValueError where the sentence is not on the page, or is there twice."""
    (sentence,) = re.finditer(statement.pattern, statement.path.read_text(encoding="utf-8"))
    numbers = (int(number.replace(",", "")) for number in sentence.groups())
    return dict(zip(statement.names, numbers, strict=True))


def corrected(text: str, statement: Statement, numbers: Mapping[str, int]) -> str:
    """The text of a page with the numbers of a statement."""
    (sentence,) = re.finditer(statement.pattern, text)
    for group, name in reversed(list(enumerate(statement.names, start=1))):
        text = f"{text[: sentence.start(group)]}{numbers[name]:,}{text[sentence.end(group) :]}"
    return text


def differences(numbers: Mapping[str, int]) -> Iterator[str]:
    """A line for each number that a page states otherwise."""
    for statement in STATEMENTS:
        for name, number in stated(statement).items():
            if number != numbers[name]:
                yield f"{statement.page}: {name}: {number:,}, must be {numbers[name]:,}"


def main() -> None:
    """Write the numbers, and print which differed."""
    numbers = count_suite()
    print("\n".join(differences(numbers)) or "no number differs")
    for statement in STATEMENTS:
        text = statement.path.read_text(encoding="utf-8")
        statement.path.write_text(corrected(text, statement, numbers), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
