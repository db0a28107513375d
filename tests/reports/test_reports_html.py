"""The page as a file: self-contained, complete without a script, and deaf to what names say."""

import base64
import gzip
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from stored_records import a_refused_qlinearconv, a_run, a_slice, a_wrong_slice, an_opinion, many, stored

from epcheck.conformance.record import Record
from epcheck.reports import write_html

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\x00\u202e\udc80\"'&"


class Page(HTMLParser):
    """Elements, addresses, scripts and visible text of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


def page(folder: Path) -> str:
    return write_html(folder).read_bytes().decode("utf-8")


def unpacked(html: str, name: str) -> object:
    found = re.search(rf'<script type="text/plain" id="{name}">([^<]*)</script>', html)
    assert found
    return json.loads(gzip.decompress(base64.b64decode(found[1])))


def hostile() -> Record:
    return a_wrong_slice(
        case_id=HOSTILE, operator=HOSTILE, dtype=HOSTILE, sample=HOSTILE, reason=HOSTILE,
        candidate=an_opinion(HOSTILE, message=HOSTILE),
    )  # fmt: skip


def test_nothing_is_fetched(tmp_path: Path) -> None:
    html = page(stored(tmp_path / "run", [a_slice(), a_wrong_slice(), a_refused_qlinearconv()]))
    addresses = [value for name, value in Page(html).attributes if name in ("src", "href", "action", "srcset", "data")]
    assert addresses
    assert all(address.startswith("#") for address in addresses)
    assert set(re.findall(r"https?://[^\s\"'<]*", html)) == {"http://www.w3.org/2000/svg"}  # a namespace, no address
    assert "url(" not in html
    assert "@import" not in html


def test_the_policy_allows_this_style_and_this_script_only(tmp_path: Path) -> None:
    html = page(stored(tmp_path / "run", [a_slice()]))
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    directives = dict(directive.split(" ", 1) for directive in policy.split("; "))
    assert directives["default-src"] == "'none'"
    for tag, directive in (("style", "style-src"), ("script", "script-src")):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert directives[directive] == f"'sha256-{digest}'"
    assert "style" not in {name for name, _ in Page(html).attributes}
    assert not [name for name, _ in Page(html).attributes if name.startswith("on")]


def test_hostile_names_are_text(tmp_path: Path) -> None:
    run = a_run(1, run_id=HOSTILE, targets={HOSTILE: {HOSTILE: HOSTILE}}, command=(HOSTILE,), notes=(HOSTILE,))
    html = page(stored(tmp_path / "run", [hostile()], run))
    parsed = Page(html)
    assert "img" not in parsed.tags
    assert parsed.tags.count("script") == 4  # the index, one bundle, its size, and the page's own
    assert "<img" not in html
    assert "\x00" not in html
    assert "\u202e" not in html
    assert "</script><script>alert(1)</script><img src=x onerror=alert(1)>\\x00\\u202e\\udc80\"'&" in parsed.text


def test_the_script_never_makes_html_of_text() -> None:
    for script in (Path(__file__).parents[2] / "reports").glob("*.js"):
        source = script.read_text()
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", source)
        assert "</script" not in source


def test_headline_matrix_findings_and_fingerprint_need_no_script(tmp_path: Path) -> None:
    html = page(stored(tmp_path / "run", [a_slice(), a_wrong_slice("float16"), a_wrong_slice("float64")]))
    text = Page(html).text
    assert "dml: 2 conformance failures in 1 group, 1 of 3 cases pass." in text
    assert "llvmpipe (LLVM 19.1.7, 256 bits)" in text
    assert "✕0/1" in text
    assert "✓1/1" in text
    assert "2 × conformance failure, in 1 group" in text
    assert "output: 6 of 8 elements differ from the truth" in text
    assert 'href="#operator=Slice&amp;version=13&amp;dtype=float16&amp;target=dml"' in html
    assert 'href="#case=Slice-13%2Ffloat16%2Fnegative_step_past_both_ends%5Bruntime%5D&amp;target=dml"' in html


@pytest.mark.parametrize("status", ["interrupted", "failed: no adapter", "running"])
def test_an_incomplete_run_is_loud(tmp_path: Path, status: str) -> None:
    html = page(stored(tmp_path / "run", [a_slice()], a_run(10, status=status)))
    assert '<section class="hero incomplete">' in html
    assert "Incomplete: 1 of 10 planned cases are recorded" in Page(html).text
    assert "not recorded" in Page(html).text


def test_a_run_that_never_began_says_nothing_of_the_provider(tmp_path: Path) -> None:
    html = page(stored(tmp_path / "run", [], a_run(500, status="failed: no adapter", targets={})))
    assert '<section class="hero incomplete">' in html
    assert "This run says nothing: no case of 500 planned is recorded; it failed: no adapter." in Page(html).text
    assert "cases pass" not in Page(html).text


def test_every_record_travels_whole(tmp_path: Path) -> None:
    folder = stored(tmp_path / "run", many(300))
    html = page(folder)
    lines = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    first, second = unpacked(html, "bundle-0"), unpacked(html, "bundle-1")
    assert isinstance(first, list)
    assert isinstance(second, list)
    assert first + second == lines
    index = unpacked(html, "index")
    assert isinstance(index, dict)
    assert index["ids"] == [line["case_id"] for line in lines]


def test_integers_that_a_browser_would_round_travel_as_text(tmp_path: Path) -> None:
    html = page(stored(tmp_path / "run", [a_slice(attributes={"starts": [-(2**63), 2**63 - 1, 7]})]))
    record = unpacked(html, "bundle-0")
    assert isinstance(record, list)
    assert record[0]["attributes"]["starts"] == [{"$int": "-9223372036854775808"}, {"$int": "9223372036854775807"}, 7]


def test_five_thousand_cases_stay_small(tmp_path: Path) -> None:
    assert write_html(stored(tmp_path / "run", many(5000))).stat().st_size < 2_000_000
