"""Names that are too long for a terminal."""

from __future__ import annotations

import pytest

from epcheck.models.validation.names import shorten_words

LONG = "a" * 100 + "b" * 100
CUT = "a" * 70 + "…" + "b" * 40
SPACES = "a b " * 50


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("the Conv `c` differs", "the Conv `c` differs"),
        ("x" * 120, "x" * 120),
        (f"{LONG} differs, as {LONG}", f"{CUT} differs, as {CUT}"),
        (f"node 3 `{LONG}` (Conv)", f"node 3 `{CUT}` (Conv)"),
        (f"`{SPACES}`", f"`{SPACES[:70]}…{SPACES[-40:]}`"),
        ("`first` " + "and so on " * 20 + "`last` `", "`first` " + "and so on " * 20 + "`last` `"),
        ("", ""),
    ],
    ids=["short", "as long as may be", "two words", "in backticks", "with spaces", "prose", "nothing"],
)
def test_words_are_cut_in_their_middle(text: str, shown: str) -> None:
    assert shorten_words(text) == shown


def test_another_length_can_be_asked_for() -> None:
    assert shorten_words(LONG, 200) == LONG
