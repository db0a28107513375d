"""The rules for prose report what they forbid, in sentences alone, and every page keeps them."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.site import prose

RULES = prose.read_rules()


def report(text: str) -> list[str]:
    return [f"{problem.line} {problem.rule}" for problem in prose.check_text(text, Path("page.md"), RULES)]


def test_the_rules_of_both_styles_are_read() -> None:
    names = {rule.name.partition(".")[0] for rule in RULES}
    assert names == {"Google", "epcheck"}
    assert len(RULES) >= 19


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The fault is mended.\n", ["1 epcheck.Phrases"]),
        ("A line.\n\nThe fault is\nmended.\n", ["3 epcheck.Phrases"]),
        ("The page\nwants a list.\n", ["1 epcheck.Verbs", "2 epcheck.Phrases"]),
        ("Use it, e.g. here, e.g., there.\n", ["1 Google.Latin"]),
        ("# A heading.\n\nA sentence.\n", ["1 Google.HeadingPunctuation"]),
        ("It will run.\n", ["1 Google.Will"]),
        ("A block:\n\n    it will run\n\nIt will run.\n", ["5 Google.Will"]),
        ("```sh\nit will run\n```\nIt `will` run, and will end.\n", ["4 Google.Will"]),
    ],
)
def test_a_sentence_that_breaks_a_rule_is_reported_with_its_line(text: str, expected: list[str]) -> None:
    assert sorted(set(report(text))) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Prints `the fault is mended`.\n",
        "```text\nthe fault is mended\n```\n",
        "A block:\n\n    the fault is mended\n\nand text.\n",
        "[a link](https://example.test/is mended)\n".replace(" mended", "%20mended"),
        "<!-- it is mended -->\n",
    ],
)
def test_code_and_addresses_are_no_prose(text: str) -> None:
    assert report(text) == []


def test_a_message_names_what_to_use() -> None:
    (problem,) = prose.check_text("It was mended.\n", prose.ROOT / "README.md", RULES)
    assert str(problem) == "README.md:1: epcheck.Phrases: Use 'fixed' instead of 'was mended'."


def test_a_check_that_is_not_supported_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "Rule.yml"
    path.write_text("extends: spelling\nmessage: no\n", encoding="utf-8")
    with pytest.raises(ValueError, match="'spelling' is not supported"):
        prose.read_rule(path)


def test_every_page_keeps_the_rules() -> None:
    assert len(prose.pages()) > 50
    assert [
        str(problem)
        for path in prose.pages()
        for problem in prose.check_text(path.read_text(encoding="utf-8"), path, RULES)
    ] == []
