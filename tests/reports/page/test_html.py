"""The page as a file: self-contained, complete without a script, and deaf to what names say."""

import base64
import gzip
import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from epcheck.conformance.records.accuracy import Accuracy
from epcheck.conformance.records.case_facts import Value
from epcheck.conformance.records.record import Record
from epcheck.reports import write_html
from epcheck.reports.page.columns import column
from tests.reports.stored_records import (
    a_crashed_topk,
    a_refused_qlinearconv,
    a_run,
    a_slice,
    a_wrong_slice,
    an_opinion,
    many,
    stored,
)

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\x00\u202e\udc80\"'&"


class Page(HTMLParser):
    """Elements, addresses, scripts and visible text of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.inside = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        self.inside = tag in ("script", "style")

    def handle_endtag(self, _tag: str) -> None:
        self.inside = False

    def handle_data(self, data: str) -> None:
        if not self.inside:
            self.text += data


def page(folder: Path) -> str:
    return write_html(folder).read_bytes().decode("utf-8")


def unpacked_bytes(html: str, name: str) -> bytes:
    found = re.search(rf'<script type="text/plain" id="{name}">([^<]*)</script>', html)
    assert found
    return gzip.decompress(base64.b64decode(found[1]))


def unpacked(html: str, name: str) -> Any:
    return json.loads(unpacked_bytes(html, name))


def archives(html: str) -> dict[str, bytes]:
    """Case id -> the repro in the page."""
    sizes, _, files = unpacked_bytes(html, "archives").partition(b"\n")
    found, at = {}, 0
    for case_id, size in json.loads(sizes).items():
        found[case_id] = files[at : at + size]
        at += size
    assert at == len(files)
    return found


def hostile() -> Record:
    return a_wrong_slice(
        case_id=HOSTILE, operator=HOSTILE, dtype=HOSTILE, sample=HOSTILE, reason=HOSTILE,
        candidate=an_opinion(HOSTILE, message=HOSTILE),
    )  # fmt: skip


def test_nothing_is_fetched(tmp_path: Path) -> None:
    html = page(stored(tmp_path / "run", [a_slice(), a_wrong_slice(), a_refused_qlinearconv()]))
    addresses = [value for name, value in Page(html).attributes if name in ("src", "href", "action", "srcset", "data")]
    assert addresses
    link = "https://example.test/issues/7"  # of an expectation, for a person to follow
    assert all(address.startswith("#") or address == link for address in addresses)
    namespace, a_comment = "http://www.w3.org/2000/svg", "https://github.com/leeoniya/uPlot"
    assert set(re.findall(r"https?://[^\s\"'<]*", html)) == {namespace, a_comment, link}
    assert "url(" not in html
    assert "@import" not in html


def test_the_policy_allows_this_style_and_these_scripts_only(tmp_path: Path) -> None:
    html = page(stored(tmp_path / "run", [a_slice()]))
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    directives = dict(directive.split(" ", 1) for directive in policy.split("; "))
    assert directives["default-src"] == "'none'"
    assert directives["require-trusted-types-for"] == "'script'"
    for tag, directive, number in (("style", "style-src", 1), ("script", "script-src", 3)):
        contents = re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        digests = [base64.b64encode(hashlib.sha256(content.encode()).digest()).decode() for content in contents]
        assert len(digests) == number
        assert directives[directive] == " ".join(f"'sha256-{digest}'" for digest in digests)
    assert "style" not in {name for name, _ in Page(html).attributes}
    assert not [name for name, _ in Page(html).attributes if name.startswith("on")]


def test_hostile_names_are_text(tmp_path: Path) -> None:
    run = a_run(1, run_id=HOSTILE, targets={HOSTILE: {HOSTILE: HOSTILE}}, command=(HOSTILE,), notes=(HOSTILE,))
    html = page(stored(tmp_path / "run", [hostile()], run))
    parsed = Page(html)
    assert "img" not in parsed.tags
    assert parsed.tags.count("script") == 6  # the index, one bundle, the archives, two libraries, and the page's own
    assert "<img" not in html
    assert "\x00" not in html
    assert "\u202e" not in html
    assert "</script><script>alert(1)</script><img src=x onerror=alert(1)>\\x00\\u202e\\udc80\"'&" in parsed.text


def test_the_script_never_makes_html_of_text() -> None:
    for script in (Path(__file__).parents[3] / "reports").rglob("*.js"):
        source = script.read_text("utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", source)
        assert "</script" not in source


def test_headline_matrix_findings_and_fingerprint_need_no_script(tmp_path: Path) -> None:
    html = page(stored(tmp_path / "run", [a_slice(), a_wrong_slice("float16"), a_wrong_slice("float64")]))
    text = Page(html).text
    assert "2 failures 1 cause 33.33 % pass" in " ".join(text.split())
    assert "llvmpipe (LLVM 19.1.7, 256 bits)" in text
    assert "✕ 0/1" in text
    assert "✓ 1" in text
    assert 'title="Slice float16: conformance failure; 0 of 1 pass"' in html
    assert "2 × conformance failure, 1 cause" in text
    assert "… of … elements differ" in text
    assert 'href="#operator=Slice&amp;dtype=float16"' in html
    assert 'href="#case=Slice-13%2Ffloat16%2Fnegative_step_past_both_ends%5Bruntime%5D"' in html


@pytest.mark.parametrize("status", ["interrupted", "failed: no adapter", "running"])
def test_an_incomplete_run_is_loud(tmp_path: Path, status: str) -> None:
    html = page(stored(tmp_path / "run", [a_slice()], a_run(10, status=status)))
    assert '<section class="hero incomplete" ' in html
    assert "Incomplete (1 of 10 cases): " in Page(html).text
    assert "not recorded" in Page(html).text


def test_a_run_that_never_began_says_nothing_of_the_provider(tmp_path: Path) -> None:
    html = page(stored(tmp_path / "run", [], a_run(500, status="failed: no adapter", targets={})))
    assert '<section class="hero incomplete" ' in html
    assert "Nothing ran (0 of 500 cases): the run failed: no adapter." in Page(html).text
    assert "cases pass" not in Page(html).text


def expanded(column: dict[str, Any], n: int) -> list[Any]:
    """The values of a column, as columns.py says."""
    match column:
        case {"=": value}:
            return [value] * n
        case {"v": values}:
            return list(values)
        case {"d": texts, "i": places}:
            return [texts[place] for place in places]
        case {"a": columns}:
            rows = [expanded(member, n) for member in columns]
            return [[row[i] for row in rows] for i in range(n)]
        case {"o": columns}:
            named = {key: expanded(member, n) for key, member in columns.items()}
            return [{key: values[i] for key, values in named.items()} for i in range(n)]
    which = expanded(column["?"], n)
    members = [iter(expanded(member, which.count(kind))) for kind, member in enumerate(column["g"])]
    return [next(members[kind]) for kind in which]


def shown(line: Mapping[str, Any]) -> str:
    """The reading in the list: a case that gave no result, and owed none, was not run."""
    return "not-run" if line["reading"] == "ok" and line["status"] != "pass" else str(line["reading"])


@pytest.mark.slow
def test_every_record_travels_whole_but_for_what_the_index_has(tmp_path: Path) -> None:
    folder = stored(tmp_path / "run", many(1200))
    html = page(folder)
    lines = [json.loads(line) for line in (folder / "journal.jsonl").read_text("utf-8").splitlines()]
    assert all(line.pop("crc32") for line in lines)
    index = unpacked(html, "index")
    rows = {name: expanded(column, index["count"]) for name, column in index["rows"]["o"].items()}
    records = expanded(unpacked(html, "bundle-0"), 1000) + expanded(unpacked(html, "bundle-1"), 200)
    examples = 0
    for number, (record, line) in enumerate(zip(records, lines, strict=True)):
        record["repro"] = record["repro"].replace("{id}", line["case_id"])
        if line["reading"] == "ok":
            examples += record["values"] == line["values"]
            assert record["values"][0]["preview"] in ("0, 1, 2, 3, …", line["values"][0]["preview"])
            line["values"] = record["values"]
        of_index = {name: rows[name][number] for name in ("dtype", "sample", "binding", "status", "blame", "reason")}
        whole = {"case_id": line["case_id"], "since_version": int(rows["version"][number]), **of_index, **record}
        assert whole == line
    assert examples == 1  # of the one cause that has a right case beside it
    assert rows["sample"] == [line["sample"] for line in lines]
    assert rows["reading"] == [shown(line) for line in lines]
    assert {"not-run", "ok", "failure", "expected"} <= set(rows["reading"])
    assert set(rows["id"]) == {""}  # each is made of operator, version, dtype, sample and binding


def test_numbers_of_a_right_case_are_rounded_and_those_of_a_wrong_one_are_whole(tmp_path: Path) -> None:
    numbers = "-3.8174307, 0.5, 1.2952027e-07, nan, 1234567, 3.0422208, 1.0"
    values = (Value("data", "float32", (7,), "input", numbers), Value("few", "bool", (1,), "input", "True"))
    accuracy = Accuracy(7, 0.123456789, 0.987654321, (7,))
    right = a_slice(values=values, candidate=an_opinion("dml", create_s=0.00123456, accuracy=accuracy))
    wrong = a_wrong_slice(operator="Gather", case_id="Gather-13/float16/wrong[runtime]", values=values)
    html = page(stored(tmp_path / "run", [right, wrong]))
    of_right, of_wrong = expanded(unpacked(html, "bundle-0"), 2)
    assert [value["preview"] for value in of_right["values"]] == ["≈ -3.817, 0.5, 1.295e-07, nan, …", "True"]
    assert [value["preview"] for value in of_wrong["values"]] == [numbers, "True"]
    assert of_right["candidate"]["create_s"] == 0.00123
    assert of_right["candidate"]["accuracy"]["max_ulp"] == 0.1235
    assert of_right["candidate"]["accuracy"]["sum_ulp"] == 0.9877
    assert len(of_wrong["candidate"]["differences"][0]["first"]) == 3


def test_the_case_that_a_cause_names_as_right_is_whole(tmp_path: Path) -> None:
    wrong = [a_wrong_slice(dtype) for dtype in ("float16", "float32")]
    html = page(stored(tmp_path / "run", [*wrong, a_slice("float16")]))
    records = expanded(unpacked(html, "bundle-0"), 3)
    assert records[2]["values"][0]["preview"] == "0, 1, 2, 3, 4, 5, 6, 7, …"


@pytest.mark.parametrize(
    "values",
    [
        [1, True, 1.0, "1", None],
        [0.0, -0.0, 0.0],
        [0, 0, 0],
        [[], [], []],
        [{}, [], "", 0],
        [{"a": [1, {"b": "x"}]}, {"a": [1, {"b": "y"}]}, {"a": []}],
        [{"__proto__": 1}, {"__proto__": 2}],
        ["left", "right", "left", "left"],
        [[1, 2], [3, 4], [5]],
    ],
)
def test_a_column_is_the_values_it_was_made_of(values: list[Any]) -> None:
    travelled = json.loads(json.dumps(column(values)))
    assert repr(expanded(travelled, len(values))) == repr(values)


def test_integers_that_a_browser_would_round_travel_as_text(tmp_path: Path) -> None:
    html = page(stored(tmp_path / "run", [a_slice(attributes={"starts": [-(2**63), 2**63 - 1, 7]})]))
    (record,) = expanded(unpacked(html, "bundle-0"), 1)
    assert record["attributes"]["starts"] == [{"$int": "-9223372036854775808"}, {"$int": "9223372036854775807"}, 7]


def test_a_repro_travels_of_each_finding_before_the_second_of_any(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("epcheck.reports.page.embedded_data.ARCHIVES", 3)
    wrong = [a_wrong_slice(sample=f"start_{n}") for n in range(5)]
    records = [*wrong, a_crashed_topk(), a_refused_qlinearconv(), a_slice()]
    asked: list[str] = []

    def archive(case_id: str) -> bytes | None:
        asked.append(case_id)
        return None if case_id == wrong[1].case_id else b"zip of " + case_id.encode()

    folder = stored(tmp_path / "run", records)
    held = archives(write_html(folder, archive=archive).read_text("utf-8"))
    first = [wrong[0].case_id, a_crashed_topk().case_id, wrong[2].case_id]
    assert held == {case_id: b"zip of " + case_id.encode() for case_id in first}
    assert asked == [wrong[0].case_id, a_crashed_topk().case_id, wrong[1].case_id, wrong[2].case_id]


def test_a_large_case_has_no_repro_in_the_page(tmp_path: Path) -> None:
    values = (Value("data", "float32", (64, 65), "input"), Value("output", "float32", (1,), "output"))
    folder = stored(tmp_path / "run", [a_wrong_slice(values=values)])
    assert archives(write_html(folder, archive=lambda _: b"zip").read_text("utf-8")) == {}


def test_repros_that_are_too_large_together_are_left_out(tmp_path: Path) -> None:
    records = [a_wrong_slice(sample=f"start_{n}") for n in range(4)]
    random = {record.case_id: os.urandom(400_000) for record in records}
    held = archives(write_html(stored(tmp_path / "run", records), archive=random.__getitem__).read_text("utf-8"))
    assert held == dict(list(random.items())[:2])  # of 1 MiB


@pytest.mark.slow
def test_five_thousand_cases_stay_small(tmp_path: Path) -> None:
    assert write_html(stored(tmp_path / "run", many(5000))).stat().st_size < 500_000


def claiming(tmp_path: Path, level: str) -> str:
    facts = {
        "DirectML.dll": "1.13.1.0", "feature_level": level, "tensor_data_types": f"FLOAT32, {HOSTILE}",
        "documented_feature_level": "DML_FEATURE_LEVEL_6_2", "documented_data_types": "FLOAT32, INT64",
    }  # fmt: skip
    run = a_run(targets={"dml": {"onnxruntime": "1.24.4"}, "directml": facts})
    return page(stored(tmp_path / "run", [a_slice()], run))


def test_the_claims_of_a_device_stand_beside_the_documented_ones(tmp_path: Path) -> None:
    text = " ".join(Page(claiming(tmp_path, "DML_FEATURE_LEVEL_6_1")).text.split())
    assert "What the device of directml claims" in text
    assert "What the device of dml claims" not in text
    assert "the device claims DML_FEATURE_LEVEL_6_1; documented is DML_FEATURE_LEVEL_6_2" in text
    assert "the device does not claim INT64" in text


def test_what_a_device_claims_is_never_markup(tmp_path: Path) -> None:
    assert "onerror" not in [name for name, _ in Page(claiming(tmp_path, HOSTILE)).attributes]


def test_claims_that_are_the_documented_ones_are_one_sentence(tmp_path: Path) -> None:
    level, types = "DML_FEATURE_LEVEL_6_2", "FLOAT32, FLOAT16, INT64"
    facts = {
        "DirectML.dll": "1.13.1.0", "feature_level": level, "tensor_data_types": types,
        "documented_feature_level": level, "documented_data_types": types,
    }  # fmt: skip
    text = " ".join(Page(page(stored(tmp_path / "run", [a_slice()], a_run(targets={"directml": facts})))).text.split())
    assert "claims what its documentation says: DML_FEATURE_LEVEL_6_2 and 3 data types of tensors" in text


def test_each_of_several_candidates_has_a_line_of_the_headline(tmp_path: Path) -> None:
    both = a_run(2, candidates=("dml", "cpu"))
    other = replace(a_slice(), candidate=replace(a_slice().candidate, target="cpu"))
    html = page(stored(tmp_path / "run", [a_slice(), other], both))
    assert "dml 0 failures 100 % pass cpu 0 failures 100 % pass" in " ".join(Page(html).text.split())


def test_a_chart_of_errors_ends_at_what_can_be_read_and_counts_the_rest(tmp_path: Path) -> None:
    far = Accuracy(2, 3e9, 3e9, (1, 0, 1))
    near = an_opinion("cpu", accuracy=Accuracy(2, 0.5, 1.0, (2,)))
    html = page(stored(tmp_path / "run", [a_slice(candidate=an_opinion("dml", accuracy=far), baseline=near)]))
    assert "1 of 2 are above 10,000 ULP and drawn at the upper edge." in Page(html).text
