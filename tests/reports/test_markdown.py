"""Text from strangers in Markdown."""

import pytest

from epcheck.reports.markdown import escape_markdown, row


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("Slice-13/float32/rank_1[runtime]", r"Slice-13/float32/rank\_1\[runtime\]"),
        ("a|b `c` *d* ~e~ $f$ #1 !", r"a\|b \`c\` \*d\* \~e\~ \$f\$ \#1 \!"),
        (r"C:\[x]", r"C:\\\[x\]"),
        ("<img onerror=alert(1)> & @everyone", "&lt;img onerror=alert(1)&gt; &amp; &commat;everyone"),
        ("- 2026-11-21 - 1 + 1", r"\- 2026-11-21 - 1 + 1"),
        (" two\nlines\tand \u202e ", r"two lines and \\u202e"),
    ],
)
def test_what_would_be_markup_is_written_out_and_nothing_else(text: str, written: str) -> None:
    assert escape_markdown(text) == written


def test_a_row_of_a_table_has_as_many_cells_as_it_is_given() -> None:
    assert row(map(escape_markdown, ("a", "b|c"))) == r"| a | b\|c |"
