"""The compressed data in the page: an index of all cases for its list, the records in chunks, and small repros."""

from __future__ import annotations

import base64
import gzip
import math
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, zip_longest
from typing import IO, Any

from markupsafe import Markup

from epcheck.conformance.records import strict_json
from epcheck.conformance.records.case_facts import CaseFacts
from epcheck.conformance.records.record import Record, accuracy_of
from epcheck.conformance.records.run import Run
from epcheck.conformance.records.terms import EXPECTED, FAILURE, FIXED, FLAKY, STATUSES
from epcheck.reports.page.columns import Column, column
from epcheck.reports.report_links import ReportLinks
from epcheck.reports.runs import fingerprint
from epcheck.reports.runs.summary import Summary, shown_reading
from epcheck.reports.since import Since

CHUNK = 1000
"""Records that are compressed, and unpacked in the page, together."""
COMPRESSION = 6
"""Level of gzip: 9 makes a page 1 % smaller and takes twice as long."""
PREVIEWED, DIGITS = 4, 4
"""Elements of each value, and significant digits of each number, that the page shows of a case with which nothing is
wrong."""
MISMATCHES = 3
"""Wrong elements of an opinion, the baseline's, that the page shows of such a case."""

ReproArchiver = Callable[[str], bytes | None]
"""A case id -> what reproduces the case, as a zip file; None where it cannot be made."""

ARCHIVES, ARCHIVES_BYTES, ELEMENTS = 300, 1 << 20, 4096
"""Limits of the repros in the page: how many, how many bytes of them all when they are compressed, and how many
elements the values of a case may have."""

_SHAPES = bytes.maketrans(b"[,:0123456789", b"[[[0000000000")
_LONG_INTEGER = b"[" + 16 * b"0"
"""What an integer of 16 digits or more becomes with _SHAPES, without its sign: the store writes no spaces between."""
_LARGEST_SAFE = 2**53


def pack_json(value: Any) -> Markup:
    """JSON, compressed, in letters, digits, `+`, `/` and `=`: nothing in it can be taken for HTML."""
    return _letters(strict_json.dumps(value).encode())


def _letters(data: bytes) -> Markup:
    return Markup(base64.b64encode(gzip.compress(data, compresslevel=COMPRESSION, mtime=0)).decode("ascii"))


IN_ID = ("operator", "version", "dtype", "sample", "binding")
"""The columns of which an id is made as usual."""

IN_INDEX = ("case_id", "since_version", "dtype", "sample", "binding", "status", "blame", "reason")
"""The fields of a record that the index has as well: the page takes them from there (`loadRecord` in page_data.js)."""


class CaseIndex:
    """What the list needs of every case, by column; the id only where it is not made of the others as usual."""

    def __init__(self) -> None:
        self._columns: dict[str, list[Any]] = {}
        self._same: dict[Any, Any] = {}  # each text once, however often it was read
        self._count = 0
        self._earlier: dict[str, list[list[str]]] = {}
        self.became: dict[str, Counter[str]] = {}
        """Cause -> what became of its cases since earlier runs."""

    def add(self, record: Record, finding: str, cause: str) -> None:
        case = record.case
        usual = f"{case.operator_key}-{case.since_version}/{case.dtype}/{case.sample}[{case.binding}]"
        row = {
            "operator": case.operator_key,
            "version": str(case.since_version),
            "dtype": case.dtype,
            "sample": case.sample,
            "binding": case.binding,
            "id": "" if case.case_id == usual else case.case_id,
            "target": record.candidate.target,
            "status": record.status,
            "blame": record.blame,
            "reading": shown_reading(record),
            "reason": record.reason,
            "finding": finding,
            "cause": cause,
            "below": record.direct.blame if record.direct else "",
            "ulp": _worst_ulp(record),
            "ms": _milliseconds(record),
            "claimed": record.claimed,
        }
        for name, value in row.items():
            self._columns.setdefault(name, []).append(self._same.setdefault(value, value))
        self._count += 1

    def compare(self, since: Sequence[Since], links: ReportLinks) -> None:
        """Add what became of the cases since earlier runs, and what these said of them: a digit for each run, the place
        of the status in STATUSES, or a full stop. Nothing where there is no earlier run."""
        if not since or not self._count:
            return
        by_target = {each.target: each for each in since}
        became, history = [], []
        for operator, version, dtype, sample, binding, own, target, cause in zip(
            *(self._columns[name] for name in (*IN_ID, "id", "target", "cause")), strict=True
        ):
            found = by_target.get(target)
            case_id = own or f"{operator}-{version}/{dtype}/{sample}[{binding}]"
            what = found.became.get(case_id, "") if found else ""
            past = found.history.get(case_id, ()) if found else ()
            became.append(what)
            history.append("".join(format(STATUSES.index(status), "x") if status else "." for status in past))
            if cause and what:
                self.became.setdefault(cause, Counter())[what] += 1
        self._columns |= {"since": became, "history": history}
        self._earlier = {
            each.target: [[e.run_id, e.started, e.changed, links.run(e.run_id)] for e in each.runs] for each in since
        }

    def pack(self, summary: Summary, run: Run) -> Markup:
        """The index, with the accuracy of operators for the view of each, and the releases of the candidates."""
        rows: Column = {"o": {name: column(values) for name, values in self._columns.items()}}
        return pack_json({"count": self._count, "rows": rows, "accuracy": _accuracy(summary), "bundle": CHUNK,
                       "causes": _causes(summary), "earlier": self._earlier, "statuses": STATUSES,
                       "releases": _releases(summary, run)})  # fmt: skip


class RecordChunks:
    """The records themselves, compressed in chunks of CHUNK as they come, each a line of the spool."""

    def __init__(self, file: IO[bytes]) -> None:
        self._spool = file
        self._open: list[Any] = []

    def add(self, record: Record, line: bytes, whole: bool) -> None:
        """whole: with all that the record has; else as of a case with which nothing is wrong."""
        self._open.append(_embed_record(record, _exact(line), whole))
        if len(self._open) == CHUNK:
            self._close()

    def pack(self) -> Iterator[Markup]:
        if self._open:
            self._close()
        self._spool.seek(0)
        return (Markup(line.decode("ascii").rstrip()) for line in self._spool)

    def _close(self) -> None:
        self._spool.write(pack_json(column(self._open)).encode("ascii") + b"\n")
        self._open.clear()


class EmbeddedRepros:
    """The repros in the page: of small cases, failures first, one of each finding before the second of any."""

    def __init__(self, archive: ReproArchiver | None) -> None:
        self._archive = archive
        self._wanted: dict[str, dict[str, dict[str, None]]] = {
            FAILURE: {}, FLAKY: {}, FIXED: {}, EXPECTED: {},
        }  # fmt: skip

    def add(self, record: Record, finding: str) -> None:
        if self._archive and record.reading in self._wanted and _is_small(record.case):
            self._wanted[record.reading].setdefault(finding, {})[record.case_id] = None

    def pack(self) -> Markup:
        """A line of JSON, case id -> bytes of its zip file, and after it these files, one after the other."""
        made: dict[str, bytes] = {}
        counter, size = zlib.compressobj(COMPRESSION), 0
        for case_id in self._by_turns():
            if len(made) == ARCHIVES or self._archive is None:
                break
            if case_id in made or (data := self._archive(case_id)) is None:
                continue
            size += len(counter.compress(data)) + len(counter.flush(zlib.Z_SYNC_FLUSH))
            if size > ARCHIVES_BYTES:
                break
            made[case_id] = data
        sizes = {case_id: len(data) for case_id, data in made.items()}
        return _letters(b"\n".join([strict_json.dumps(sizes).encode(), b"".join(made.values())]))

    def _by_turns(self) -> Iterator[str]:
        for findings in self._wanted.values():
            yield from (case for case in chain.from_iterable(zip_longest(*findings.values())) if case is not None)


def _is_small(case: CaseFacts) -> bool:
    return sum(math.prod(value.shape) for value in case.values) <= ELEMENTS


def _worst_ulp(record: Record) -> float | None:
    found = accuracy_of(record.case, record.candidate)
    errors = [d.max_ulp for d in record.candidate.differences if d.max_ulp is not None]
    worst = max([*errors, *([found.max_ulp] if found else [])], default=None)
    return None if worst is None else _digits(worst)


def _milliseconds(record: Record) -> float | None:
    parts = [s for s in (record.candidate.create_s, record.candidate.run_s) if s is not None]
    return _digits(1000 * sum(parts)) if parts else None


def _digits(value: float) -> float:
    """Three significant digits: for sorting and a glance; the record has them all."""
    return float(f"{value:.3g}")


def _causes(summary: Summary) -> dict[str, list[str]]:
    """Key -> [title, place, link] of every cause."""
    return {cause.key: [cause.title, cause.place, cause.link] for target in summary.targets for cause in target.causes}


def _accuracy(summary: Summary) -> list[list[Any]]:
    """[target, operator, dtype, [max, p99, mean] of the candidate, of the baseline] of every profile, or None."""
    return [
        [target.target, profile.operator, profile.dtype]
        + [errors and [errors.max, errors.p99, errors.mean] for errors in (profile.candidate, profile.baseline)]
        for target in summary.targets
        for profile in target.accuracy
    ]


def _releases(summary: Summary, run: Run) -> list[list[str]]:
    """[target, the provider and adapter that it is a release of, the release] of every candidate, oldest first."""
    found = []
    for target in summary.targets:
        cls = fingerprint.fingerprint_class(run, target.target)
        release = fingerprint.release_of(run.targets.get(target.target, {}))
        found.append([target.target, f"{cls.provider} on {cls.adapter}", release])
    return sorted(found, key=lambda named: fingerprint.release_order(named[2]))


def _embed_record(record: Record, fields: dict[str, Any], whole: bool) -> dict[str, Any]:
    """The record as JSON, without what the index has; `whole` or with shorter values."""
    for name in IN_INDEX:
        fields.pop(name, None)
    if "{id}" not in fields["repro"]:
        fields["repro"] = fields["repro"].replace(record.case_id, "{id}")
    for opinion in filter(None, (fields["candidate"], fields.get("baseline"))):
        _shorten_numbers(opinion, ("create_s", "run_s"), 3)
        if not whole:
            _shorten_numbers(opinion.get("accuracy"), ("sum_ulp", "max_ulp"), DIGITS)
            for difference in opinion.get("differences", ()):
                difference["first"] = difference.get("first", [])[:MISMATCHES]
    if not whole:
        _shorten_numbers(fields.get("rounded"), ("sum_ulp", "max_ulp"), DIGITS)
        for value in fields["values"]:
            if value.get("preview"):
                value["preview"] = _short_preview(value["preview"])
    return fields


def _shorten_numbers(fields: dict[str, Any] | None, names: Sequence[str], digits: int) -> None:
    for name in names:
        if fields and isinstance(fields.get(name), float):
            fields[name] = float(f"{fields[name]:.{digits}g}")


def _short_preview(preview: str) -> str:
    """The first PREVIEWED elements, with DIGITS digits: `≈ 3.572, -3.817, 1.49, 1.981, …`."""
    elements = preview.split(", ")
    kept = elements if len(elements) <= PREVIEWED + 1 else elements[:PREVIEWED]
    rounded = [_short_number(element) for element in kept]
    more = ["…"] if len(kept) < len(elements) else []
    return "≈ " * (rounded != kept) + ", ".join([*rounded, *more])


def _short_number(element: str) -> str:
    """An element with a fraction, of more than DIGITS digits, rounded; another as it is."""
    if "." not in element or len(element) <= DIGITS + 2:
        return element
    try:
        short = f"{float(element):.{DIGITS}g}"
    except ValueError:  # a complex number, a text
        return element
    return short if len(short) < len(element) else element


def _exact(line: bytes) -> Any:
    """The record of the line, with integers that a browser's numbers would round written as `{"$int": "..."}`."""
    record = strict_json.loads_plain(line)
    return _long_as_text(record) if _LONG_INTEGER in line.translate(_SHAPES, b"-") else record


def _long_as_text(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _long_as_text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_long_as_text(item) for item in value]
    return {"$int": str(value)} if isinstance(value, int) and abs(value) > _LARGEST_SAFE else value
