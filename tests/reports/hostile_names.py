"""Names that strangers choose, and what a page or a terminal must not take from them."""

from __future__ import annotations

import re
from html.parser import HTMLParser

NAMES = {
    "markup": "<img src=x onerror=alert(1)>",
    "end of a script": "</script><script>alert(1)</script>",
    "end of CDATA": "]]>&amp;<!-- \"'",
    "markup of rich": "[red]x[/red][link=http://x]y[/]",
    "Markdown": "|`@everyone`[x](javascript:1)\n# x",
    "colour": "\x1b[31mred\x1b[2J",
    "OSC title": "\x1b]0;owned\x07",
    "OSC link": "\x1b]8;;http://x\x1b\\x\x1b]8;;\x1b\\",
    "C1": "\x9b31m\x9d0;owned\x9c",
    "right to left": "\u202egnp.exe\u2066x\u200f",
    "newlines": "a\nb\r\nc\u2028d\x85e",
    "controls": "\0\x08\x7f\x0b",
    "half a pair": "\ud800\udc80\ufffe",
    "path": "../../etc/passwd",
    "dots": "..",
    "device": "a:b\\c*?",
    "template": "{{ 7 * 7 }}{% raw %}",
    "long": "n" * 3000,
}

DANGEROUS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""What a terminal, a viewer of text or a parser of XML would obey or refuse."""


class Tags(HTMLParser):
    """Counts of the elements of a page, and the names of all attributes that run something."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: dict[str, int] = {}
        self.handlers: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[tag] = self.elements.get(tag, 0) + 1
        self.handlers += [key for key, _ in attrs if key.startswith("on")]
