"""The HTML report: one file that needs nothing else, and believes nothing it was given.

What is always wanted (headline, fingerprint, matrix, findings) is written out and needs no script. The cases travel
compressed: an index for the list, and bundles of records that the page unpacks when one of them is opened. Text from a
model goes through jinja2's escaping or, in the page, through `textContent`; the page's policy allows no script but its
own, known by its hash, and no request at all.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import math
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.resources import files
from typing import IO, Any
from urllib.parse import quote, urlencode

from jinja2 import Environment
from jinja2.environment import TemplateStream
from markupsafe import Markup

from epcheck.conformance import strict_json
from epcheck.conformance.record import EXPECTED, FAILURE, FIXED, NOTED, OK, Record, Run
from epcheck.reports.report import Entry, spool
from epcheck.reports.summary import NOTHING_RAN, Cell, Summary, TargetSummary, dtype_order, headline
from epcheck.reports.text import visible

SCRIPTS = ("page_data.js", "page_list.js", "page_graph.js", "page_case.js", "page_main.js")
BUNDLE = 250
"""Records that are compressed, and unpacked in the page, together."""

SYMBOLS = {FAILURE: "✕", FIXED: "▲", EXPECTED: "≈", NOTED: "i", OK: "✓", NOTHING_RAN: "–"}
MEANINGS = {
    FAILURE: "conformance failure",
    FIXED: "an expectation that no longer fails",
    EXPECTED: "expected deviation",
    NOTED: "remark",
    OK: "nothing wrong",
    NOTHING_RAN: "no case ran on it",
}

_INDEXED = ("operator", "version", "dtype", "variant", "target", "status", "blame", "reading", "reason", "finding")
_SHAPES = bytes.maketrans(b"[,:0123456789", b"[[[0000000000")
_LONG_INTEGER = b"[" + 16 * b"0"
"""What an integer of 16 digits or more becomes with _SHAPES, without its sign: the store writes no spaces between."""

_HALF_PAIR = re.compile("[\ud800-\udfff]")
_LARGEST_SAFE = 2**53


class Page:
    """The page in the making. The bundles wait on disk: they are most of it, and stand near its end."""

    def __init__(self, run: Run, file: IO[bytes], held: ExitStack) -> None:
        self._run = run
        self._file = file
        self._index = _Index()
        self._bundles = _Bundles(spool(file, held))

    def add(self, entry: Entry) -> None:
        self._index.add(entry.record, entry.finding)
        self._bundles.add(entry.line)

    def finish(self, summary: Summary) -> None:
        page = _page(self._run, summary, self._index.packed(), self._bundles.packed())
        page.dump(self._file, "utf-8", "backslashreplace")


class _Index:
    """What the list needs of every case, by column; texts that repeat are kept once."""

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._columns: dict[str, list[int]] = {name: [] for name in _INDEXED}
        self._texts: dict[str, int] = {}

    def add(self, record: Record, finding: str) -> None:
        self._ids.append(record.case_id)
        row = (
            record.case.operator_key,
            str(record.case.since_version),
            record.case.dtype,
            record.case.variant,
            record.candidate.target,
            record.status,
            record.blame,
            record.reading,
            record.reason,
            finding,
        )
        for name, text in zip(_INDEXED, row, strict=True):
            self._columns[name].append(self._texts.setdefault(text, len(self._texts)))

    def packed(self) -> Markup:
        return _packed(strict_json.dumps({"ids": self._ids, "texts": list(self._texts), **self._columns}).encode())


class _Bundles:
    """The records themselves, compressed in bundles of BUNDLE as they come, each a line of the spool."""

    def __init__(self, file: IO[bytes]) -> None:
        self._spool = file
        self._open: list[bytes] = []

    def add(self, line: bytes) -> None:
        self._open.append(_exact(line))
        if len(self._open) == BUNDLE:
            self._close()

    def packed(self) -> Iterator[Markup]:
        if self._open:
            self._close()
        self._spool.seek(0)
        return (Markup(line.decode("ascii").rstrip()) for line in self._spool)

    def _close(self) -> None:
        self._spool.write(_packed(b"[" + b",".join(self._open) + b"]").encode("ascii") + b"\n")
        self._open.clear()


def _packed(data: bytes) -> Markup:
    """Compressed, in letters, digits, `+`, `/` and `=`: nothing in it can be taken for HTML."""
    return Markup(base64.b64encode(gzip.compress(data, compresslevel=6, mtime=0)).decode("ascii"))


def _exact(line: bytes) -> bytes:
    """The line with integers that a browser's numbers would round written as `{"$int": "..."}`."""
    if _LONG_INTEGER not in line.translate(_SHAPES, b"-"):
        return line
    return strict_json.dumps(_long_as_text(strict_json.loads(line))).encode()


def _long_as_text(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _long_as_text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_long_as_text(item) for item in value]
    return {"$int": str(value)} if isinstance(value, int) and abs(value) > _LARGEST_SAFE else value


@dataclass(frozen=True)
class _Matrix:
    """Operator versions x dtypes of one candidate: of all operators that vary one dtype, or of one that varies more."""

    dtypes: tuple[str, ...]
    rows: tuple[tuple[str, int, dict[str, Cell]], ...]


def _matrices(target: TargetSummary) -> list[_Matrix]:
    together: dict[tuple[int, str], list[Cell]] = {}
    for cell in target.matrix:
        several = cell.dtype.count("-")
        together.setdefault((several, _operator(cell.domain, cell.operator) if several else ""), []).append(cell)
    return [_matrix(together[kind]) for kind in sorted(together)]


def _matrix(cells: Iterable[Cell]) -> _Matrix:
    rows: dict[tuple[str, int], dict[str, Cell]] = {}
    for cell in cells:
        rows.setdefault((_operator(cell.domain, cell.operator), cell.since_version), {})[cell.dtype] = cell
    dtypes = {dtype for row in rows.values() for dtype in row}
    return _Matrix(
        tuple(sorted(dtypes, key=dtype_order)),
        tuple((operator, version, row) for (operator, version), row in rows.items()),
    )


def _page(run: Run, summary: Summary, index: Markup, bundles: Iterable[Markup]) -> TemplateStream:
    style, script = _resource("page.css"), _script()
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; img-src data:; "
        f"base-uri 'none'; form-action 'none'"
    )
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=_finalize)
    environment.filters |= {"number": "{:,}".format, "duration": _duration, "moment": _moment, "ulp": _ulp}
    return environment.from_string(_resource("page.html.j2")).stream(
        run=run,
        summary=summary,
        headline=headline(run, summary),
        state=_state(run, summary),
        matrices=_matrices,
        query=_query,
        facts=_facts(run),
        symbols=SYMBOLS,
        meanings=MEANINGS,
        style=Markup(style),
        script=Markup(script),
        policy=Markup(policy),
        index=index,
        bundles=bundles,
        bundle_size=BUNDLE,
    )


def _finalize(value: Any) -> Any:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _state(run: Run, summary: Summary) -> str:
    """The headline's colour: `failure`, `incomplete` or `ok`."""
    if summary.missing or run.status != "complete" or not summary.recorded:
        return "incomplete"
    return "failure" if summary.by_reading.get(FAILURE) else "ok"


def _facts(run: Run) -> list[tuple[str, list[str]]]:
    """The fingerprint by row: a fact, and what each target says of it, in the order of `run.targets`."""
    names = dict.fromkeys(name for facts in run.targets.values() for name, value in facts.items() if value)
    return [(name, [str(facts.get(name, "")) for facts in run.targets.values()]) for name in names]


def _query(**state: object) -> str:
    """A link to a state of the page: filters or a case."""
    return "#" + urlencode({k: _HALF_PAIR.sub("\ufffd", str(v)) for k, v in state.items()}, quote_via=quote)


def _duration(seconds: float) -> str:
    if not math.isfinite(seconds):
        return "–"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{seconds:.1f} s"


def _ulp(value: float) -> str:
    """An error in ULP, to three digits."""
    return "∞" if math.isinf(value) else f"{value:.3g}" if value < 1e4 else f"{value:.1e}"


def _moment(iso: str) -> str:
    """`2025-01-02T03:04:05Z` as people read it; what is no such time stays as it is."""
    found = re.match(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?(?:Z|\+00:00)$", iso)
    return f"{found[1]} {found[2]} UTC" if found else iso


def _operator(domain: str, operator: str) -> str:
    return f"{domain}::{operator}" if domain else operator


def _script() -> str:
    return '"use strict";\n(() => {\n' + "\n".join(map(_resource, SCRIPTS)) + "})();\n"


def _resource(name: str) -> str:
    return (files("epcheck.reports") / name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"
