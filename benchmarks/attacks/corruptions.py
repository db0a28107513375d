"""Damaged files: a clear sentence, or the right answer; never another number.

    python benchmarks/attacks/corruptions.py                        # 2,000 accidents
    python benchmarks/attacks/corruptions.py --count 100 --kinds journal,cache
    python benchmarks/attacks/corruptions.py --count 1000 --kinds columns,rows  # files of a store as others write them

An accident is a flipped bit, another digit, a cut, a hole, zeros, a repeated part, or one of whole lines. It happens to
the journal or `run.json` of a run, to a file of a store, to the cache, to a folder of `epcheck harvest` or of
`epcheck repro`. Whoever reads the file afterwards must say one sentence, or what the undamaged file says.

A file of a store is also written anew as a stranger may (`columns`, `rows`): other types, names and order of columns,
row groups, encodings, metadata, rows and ends. `diff`, `trend`, `site`, `store list` and `store check` then each say a
sentence, or, where the content means the same, what they said before.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import shutil
import signal
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT)]

import hypothesis  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from epcheck.conformance.cache.cache import Cache  # noqa: E402
from epcheck.conformance.preparation import prepared_case  # noqa: E402
from epcheck.conformance.test_data import model_file  # noqa: E402
from epcheck.generators import suite  # noqa: E402
from epcheck.generators.error import EpcheckError  # noqa: E402
from epcheck.generators.sources import harvested as harvested_cases  # noqa: E402
from epcheck.reports import StoreError, read_records, read_run, write_json, write_outcomes  # noqa: E402
from epcheck.reports.store.query import query_store  # noqa: E402
from epcheck.reports.store.store import open_store  # noqa: E402
from tests.command_line import call  # noqa: E402
from tests.fuzzing.damage import damaged, damaged_lines  # noqa: E402
from tests.fuzzing.parquet_mutations import OF_COLUMNS, OF_CONTENT, Mutation, mutated  # noqa: E402
from tests.reports.stored_nights import a_night, keep  # noqa: E402
from tests.reports.stored_records import a_run, many, stored  # noqa: E402

RECORDS = tuple(many(24))
RUN = a_run(len(RECORDS))
ENTRIES = {f"key {number}".encode(): f"value {number}".encode() * 20 for number in range(300)}
CASE = "Slice-13/float32/axes_omitted_steps[initializer]"
SIZE = re.compile(r"[\d.,]+ (bytes|[kM]B)\b")
"""Of a file that is written otherwise."""

SECONDS = 30
"""Within which a command ends."""

SQL = "SELECT * EXCLUDE (record) FROM outcomes ORDER BY run_id, target, case_id"


@dataclass(frozen=True)
class Kind:
    """path: the file to which accidents happen. answer: what is read of it; a part of `whole` at least. fault: what is
    wrong with an answer; empty for nothing. has_lines: whether accidents happen to its lines, too.
    mutations: what happens in place of accidents."""

    path: Path
    answer: Callable[[], Any]
    fault: Callable[[Any, Any], str]
    has_lines: bool = False
    mutations: Sequence[Mutation] = ()


def same(truth: Any, answer: Any) -> str:
    return "" if answer == truth else f"{answer!r:.200} in place of {truth!r:.200}"


def part(truth: Any, answer: Any) -> str:
    """Each of it is in the truth, and none of it twice."""
    wrong = [each for each in answer if each not in truth]
    twice = len(answer) - len({repr(each) for each in answer})
    return f"{len(wrong)} others, {twice} twice: {wrong[:1]!r:.300}" if wrong or twice else ""


def journal(folder: Path) -> Kind:
    run = stored(folder / "journal", RECORDS, RUN)
    return Kind(run / "journal.jsonl", lambda: list(read_records(run)), part, has_lines=True)


def reported(folder: Path) -> Kind:
    """The JSON report that is made of a damaged journal."""
    run = stored(folder / "reported", RECORDS, RUN)

    def answer() -> Any:
        document = json.loads(write_json(run).read_text(encoding="utf-8"))
        return document.pop("records"), document

    def fault(truth: Any, found: Any) -> str:
        return part(truth[0], found[0]) or (same(truth[1], found[1]) if found[1]["complete"] else "")

    return Kind(run / "journal.jsonl", answer, fault, has_lines=True)


def description(folder: Path) -> Kind:
    run = stored(folder / "description", RECORDS, RUN)
    return Kind(run / "run.json", lambda: read_run(run), same)


def store(folder: Path) -> Kind:
    place = folder / "nights" / "store"
    place.parent.mkdir()
    for day in (1, 2):
        keep(place, a_night(day), RECORDS)

    def answer() -> Any:
        table, opened = query_store(open_store(place), SQL)
        if opened.problems:
            raise a_sentence(opened.problems[0].sentence)
        return table.to_pylist(), [found.run for found in opened.runs]

    return Kind(max(place.glob("*.parquet")), answer, same)


def _read_by_commands(folder: Path) -> tuple[Path, Callable[[], Any]]:
    """A file of a store, and what the commands that read it say, each within SECONDS."""
    folder.mkdir()
    paths = [keep(folder / "store", a_night(day), RECORDS).relative_to(folder) for day in (1, 2)]
    commands = (
        ("diff", *map(str, paths), "--json", "diff.json"), ("trend", "--store", "store", "--html", "trend.html"),
        ("site", "store", "--out", "site"), ("store", "list", "--store", "store"),
        ("store", "check", "--store", "store"),
    )  # fmt: skip

    def answer() -> Any:
        answers = []
        with contextlib.chdir(folder):
            for command in commands:
                with limited_to(SECONDS):
                    done = call(*command)
                if done.code not in (0, 1, 2) or not done.out + done.err:
                    raise AssertionError(f"{command}: exit code {done.code}, and no sentence")
                is_sentence = command[0] == "diff" and done.err
                answers.append(str(a_sentence(done.err)) if is_sentence else SIZE.sub("", done.out) + done.err)
        return answers

    return folder / paths[1], answer


def columns(folder: Path) -> Kind:
    """A file of a store with other columns: all commands say what they said, or what is wrong with the file."""
    path, answer = _read_by_commands(folder / "columns")

    def fault(truth: Any, found: Any) -> str:
        is_refused = found[0].startswith(f"epcheck: store/{path.name}: ") and all(path.name in words for words in found)
        return "" if is_refused else same(truth, found)

    return Kind(path, answer, fault, mutations=OF_COLUMNS)


def rows(folder: Path) -> Kind:
    """A file of a store with other content as well, of which nobody knows what is right."""
    path, answer = _read_by_commands(folder / "rows")
    return Kind(path, answer, lambda _truth, _found: "", mutations=OF_CONTENT)


def outcomes(folder: Path) -> Kind:
    """A Parquet file that is taken into a store."""
    run = stored(folder / "outcomes", RECORDS, RUN)
    path = write_outcomes(run)
    place = folder / "taken"

    def answer() -> Any:
        shutil.rmtree(place, ignore_errors=True)
        done = call("store", "add", str(path), "--store", str(place))
        if done.code:
            raise a_sentence(done.err)
        return query_store(open_store(place), SQL)[0].to_pylist()

    return Kind(path, answer, same)


def cache(folder: Path) -> Kind:
    path = folder / "cache.sqlite"
    with closing(Cache(path)) as file:
        file.put(ENTRIES)

    def answer() -> Any:
        for name in ("cache.sqlite-wal", "cache.sqlite-shm"):
            (folder / name).unlink(missing_ok=True)
        with closing(Cache(path)) as file:
            return sorted(file.get(list(ENTRIES)).items())

    return Kind(path, answer, part)


def harvest(folder: Path) -> Kind:
    """Cases of a model's nodes; each is known by the digest of its content."""
    place = folder / "harvested"
    done = call("harvest", str(a_model(folder)), "--out", str(place))
    assert done.code == 0, done.err

    def answer() -> Any:
        found = [(case.id, case.build()) for case in harvested_cases.cases(place)]
        return [(name, built.model, {key: repr(value) for key, value in built.feeds.items()}) for name, built in found]

    return Kind(place / harvested_cases.CASES, answer, part, has_lines=True)


def repro(folder: Path) -> Kind:
    """The model of a repro folder: protobuf has no checksum, so any model may be read, and nothing else raised."""
    (case,) = [case for case in suite.cases(["Slice"]) if case.id == CASE]
    path = folder / "model.onnx"
    path.write_bytes(prepared_case.of(case.build()).model)

    def answer() -> Any:
        model_file.load(path)

    return Kind(path, answer, lambda _truth, _found: "")


KINDS = {"journal": journal, "report": reported, "run.json": description, "store": store, "outcomes": outcomes,
         "cache": cache, "harvest": harvest, "repro": repro, "columns": columns, "rows": rows}  # fmt: skip


class SentenceError(EpcheckError, ValueError):
    """What a command said."""


def a_sentence(text: str) -> Exception:
    """The error that a command ended with; another one if that is no sentence."""
    lines = text.strip().splitlines()
    return SentenceError(lines[0]) if len(lines) == 1 else AssertionError(f"{len(lines)} lines: {text[:300]}")


@contextlib.contextmanager
def limited_to(seconds: int) -> Iterator[None]:
    """Raise TimeoutError where it takes longer."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"it takes longer than {seconds} s")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def a_model(folder: Path) -> Path:
    import onnx.parser

    path = folder / "a.onnx"
    text = ('<ir_version: 8, opset_import: ["" : 17]> g (float[4, 4] x) => (float[4, 4] z) '
            "{ a = Add (x, x)  b = MatMul (a, x)  z = Softmax <axis = 1> (b) }")  # fmt: skip
    onnx.save(onnx.parser.parse_model(text), path)
    return path


def accidents(content: bytes, count: int, seed: int, has_lines: bool) -> Iterator[bytes]:
    """Contents after one accident each."""
    found: list[bytes] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(max_examples=count, database=None, deadline=None, phases=[hypothesis.Phase.generate],
                         suppress_health_check=list(hypothesis.HealthCheck))  # fmt: skip
    @hypothesis.given(data=st.data())
    def draw(data: st.DataObject) -> None:
        found.append(data.draw(damaged(content) | damaged_lines(content) if has_lines else damaged(content)))

    draw()
    yield from found[:count]


def attack(name: str, kind: Kind, count: int, seed: int) -> tuple[Counter[str], list[str]]:
    """What came of the accidents of a kind: how often which, and the faults."""
    content, truth = kind.path.read_bytes(), kind.answer()
    changes = accidents(content, count, seed, kind.has_lines)
    if kind.mutations:
        changes = (mutated(content, Random(f"{seed} {at}"), kind.mutations)[1] for at in range(count))
    counts: Counter[str] = Counter()
    faults: list[str] = []
    for number, changed in enumerate(changes):
        kind.path.write_bytes(changed)
        try:
            fault = kind.fault(truth, kind.answer())
            counts["wrong" if fault else "right"] += 1
        except (EpcheckError, StoreError) as error:
            fault = "" if len(str(error).splitlines()) == 1 else f"{str(error)[:300]!r} is more than a sentence"
            counts["wrong" if fault else "a sentence"] += 1
        except Exception as error:
            fault = f"traceback: {error!r:.300}"
            counts["wrong"] += 1
        if fault:
            faults.append(f"{name} {number}: {fault}")
            print(faults[-1], flush=True)
            kind.path.with_name(f"found-{number}-{kind.path.name}").write_bytes(changed)
    kind.path.write_bytes(content)
    return counts, faults


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    names = options.kinds.split(",")
    found: dict[str, dict[str, int]] = {}
    faults: list[str] = []
    with tempfile.TemporaryDirectory(prefix="epcheck-corruptions-") as folder, contextlib.chdir(folder):
        for name in names:
            counts, wrong = attack(name, KINDS[name](Path(folder)), -(-options.count // len(names)), options.seed)
            found[name] = dict(counts)
            faults += wrong
    print(json.dumps({"accidents": sum(map(sum, map(dict.values, found.values()))), "faults": len(faults), **found}))
    return int(bool(faults))


if __name__ == "__main__":
    raise SystemExit(main())
