"""Choosing the designed cases of operators: `designs.txt` in the folder of each family.

    nox -s designs -- --op Slice --most 60     # or all operators

Of some thousand random variations of an operator's samples that its oracle can judge, those are chosen in turn that
have most pairs and triples of aspects (`node_aspects`) that no case before has. Designs that are there stay.

The oracle alone does not know all that is invalid: of the designs that are new, those stay that the CPU provider does
not refuse. What it refuses wrongly is found by cases that somebody wrote.
"""

from __future__ import annotations

import argparse
import dataclasses
import heapq
import sys
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx

from epcheck.api import RunOptions, run
from epcheck.conformance.preparation.prepared_case import directml_opinion
from epcheck.conformance.records.terms import REFUSED, SKIPPED
from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase, Case
from epcheck.generators.claims import newest_claimed_version
from epcheck.generators.fuzzing import oracle
from epcheck.generators.fuzzing.drawing import is_large
from epcheck.generators.fuzzing.node_mutation import STYLES
from epcheck.generators.fuzzing.sample_mutation import FIXED, mutate_sample
from epcheck.generators.operator import Operator
from epcheck.generators.operator_index import family_folder
from epcheck.generators.registry import all_operators, operator_of
from epcheck.generators.schema import since_versions
from epcheck.generators.sources.designs import FILE, WORTH, Design, parse_line, read_designs, read_file
from epcheck.generators.suite import cases
from epcheck.generators.truth import Open, Outputs, Refusal
from epcheck.reports.runs.run_folder import read_records
from tests.generators.built_suite import DEVIATIONS, NO_INFERENCE
from tests.generators.node_aspects import describe_aspects

CANDIDATES, TRIES = 1500, 12
"""Variations of an operator among which is chosen, and how many are drawn for each at most."""

MOST_ELEMENTS = 1 << 12
"""Of an input or an output of a design."""

PAIR = 24
"""What a pair is worth in triples."""

WRAPPED = frozenset({
    "Gather", "GatherElements", "GatherND", "ScatterElements", "Scatter", "ScatterND", "OneHot", "Squeeze", "Unsqueeze",
    "GatherBlockQuantized",
})  # fmt: skip
"""Operators whose indices may count from the end."""

UNDESIGNED = "sequence"
"""The family whose samples are not varied: a number that is changed may be that of the turns of a loop."""

KNOWN = 500
"""Cases of an operator, spread over its list, whose pairs and triples need no design."""

BITS = 24


@lru_cache(maxsize=256)
def _combine(count: int, size: int) -> Array:
    return np.array(list(combinations(range(count), size)), np.int64).reshape(-1, size).T


class Coverage:
    """The pairs and triples of aspects that some node has; two that share a number in 2^24 count as one."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._has = np.zeros((2, 1 << BITS), bool)

    def _codes(self, aspects: frozenset[str]) -> tuple[Array, Array]:
        numbers = np.array(sorted(self._numbers.setdefault(a, len(self._numbers)) for a in sorted(aspects)), np.uint64)
        pair, triple = (numbers[_combine(len(numbers), size)] for size in (2, 3))
        mask = np.uint64((1 << BITS) - 1)
        pairs = (pair[0] * np.uint64(4096) + pair[1]) & mask
        mixed = ((triple[0] * np.uint64(1_000_003) + triple[1]) * np.uint64(998_244_353) + triple[2]) * np.uint64(
            0x9E3779B97F4A7C15
        )
        return pairs, mixed >> np.uint64(64 - BITS)

    def add(self, aspects: frozenset[str]) -> None:
        """Note what a node has."""
        for has, codes in zip(self._has, self._codes(aspects), strict=True):
            has[codes] = True

    def gain(self, aspects: frozenset[str]) -> int:
        """What a node would add."""
        pairs, triples = self._codes(aspects)
        return int(PAIR * (~self._has[0][pairs]).sum() + (~self._has[1][triples]).sum())


def draw_designs(operator: Operator[Any], count: int, seed: str) -> Iterator[tuple[Design, frozenset[str]]]:
    """So many designs, no two of one id, and the aspects of each; fewer where variations are hard to judge."""
    random = Random(f"{operator.key} {seed}")
    samples = tuple(sample for sample in operator.samples() if not sample.refused)
    newest = newest_claimed_version(operator.name, operator.domain)
    versions = tuple(since_versions(operator.name, operator.domain))
    seen: set[str] = set()
    for _ in range(count * TRIES if samples else 0):
        if len(seen) >= count:
            return
        version = newest if random.random() < 0.8 else random.choice(versions)
        design = _draw_design(operator, samples, version, random)
        if design is None or (case := design.make_case(operator)).id in seen:
            continue
        if aspects := judge_design(operator, design, case):
            seen.add(case.id)
            yield design, aspects


def _draw_design(operator: Operator[Any], samples: Sequence[Any], version: int, random: Random) -> Design | None:
    base = random.choice(samples)
    sample = mutate_sample(base, samples, random)
    if random.random() < 0.5:
        sample = mutate_sample(sample, samples, random)
    if is_large(sample):
        return None
    try:
        applied = [dtypes for dtypes in operator.dtypes(version) if operator.bindings(sample, version, dtypes)]
        dtypes = random.choice(applied)
        binding = random.choice(operator.bindings(sample, version, dtypes))
    except Exception:  # a sample that no declaration foresaw
        return None
    changes = _name_changes(base, sample, samples)
    if changes is None:
        return None
    values = random.choice(STYLES) if random.random() < 0.5 else ""
    values = "" if values == "wrapped" and operator.name not in WRAPPED else values
    return Design(operator.key, version, dtypes, binding, base.name, *changes, values)


def _name_changes(base: Any, sample: Any, samples: Sequence[Any]) -> tuple[dict[str, Any], dict[str, str]] | None:
    """(fields, donors) of a design; None where a value is neither that of a sample nor one that JSON has."""
    fields: dict[str, Any] = {}
    donors: dict[str, str] = {}
    for each in dataclasses.fields(base):
        value = getattr(sample, each.name)
        if each.name in (*WORTH, "name") or each.name in FIXED or _are_same(value, getattr(base, each.name)):
            continue
        if _is_json(value):
            fields[each.name] = value
            continue
        donor = next((s.name for s in samples if _are_same(value, getattr(s, each.name, None))), None)
        if donor is None:
            return None
        donors[each.name] = donor
    return fields, donors


def _are_same(value: Any, other: Any) -> bool:
    if value is other:
        return True
    try:
        return type(value) is type(other) and bool(value == other)
    except ValueError:  # of arrays
        return False


def _is_json(value: Any) -> bool:
    match value:
        case None | bool() | str():
            return type(value) in (type(None), bool, str)
        case int() | float():
            return type(value) in (int, float) and abs(value) < 1e30
        case tuple():
            return all(map(_is_json, value))
        case dict():
            return all(type(key) is str and _is_json(item) for key, item in value.items())
    return False


def judge_design(operator: Operator[Any], design: Design, case: Case) -> frozenset[str]:
    """The aspects of its node; none where the oracle cannot judge it, or no case can be built of it."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            node = parse_line(design.to_line()).make_node(operator, case.id)
            if any(o is not None and o.value.size > MOST_ELEMENTS for o in node.inputs):
                return frozenset()
            truth = oracle.judge(operator, node)
            if isinstance(truth, Open | Refusal):
                return frozenset()
            if isinstance(truth, Outputs) and any(output.value.size > MOST_ELEMENTS for output in truth.outputs):
                return frozenset()
            if is_doubtful(case.build()):
                return frozenset()
        except Exception:  # a sample that no declaration foresaw
            return frozenset()
        return describe_aspects(node, design.dtypes, design.binding, truth)


def is_doubtful(built: BuiltCase) -> bool:
    """Whether DirectML's description, a second oracle, gives another result. Raises what onnx's checker raises."""
    if not built.case.domain:
        full_check = built.case.operator not in NO_INFERENCE
        onnx.checker.check_model(onnx.load_from_string(built.model), full_check=full_check)
    known = {operator for _, operator in DEVIATIONS}
    opinions = directml_opinion(built)[0].values()
    return built.case.operator_key not in known and any(opinion.startswith("disagrees") for opinion in opinions)


def choose_designs(operator: Operator[Any], most: int, seed: str) -> tuple[Design, ...]:
    """The designs of the operator, those that are there first: so many at most."""
    kept = read_designs(operator)
    if len(kept) >= most:
        return kept
    coverage = Coverage()
    every = tuple(cases((operator.key,)))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in every[:: max(1, len(every) // KNOWN)]:
            built = case.build()
            if not isinstance(built.truth, Refusal):
                coverage.add(describe_aspects(built.node, case.dtype.split("-"), case.binding, built.truth))
    known = frozenset(map(_id_of, kept))
    drawn = [drawn for drawn in draw_designs(operator, CANDIDATES, seed) if _id_of(drawn[0]) not in known]
    queue = [(-coverage.gain(aspects), index) for index, (_, aspects) in enumerate(drawn)]
    heapq.heapify(queue)
    chosen: list[Design] = []
    while queue and len(kept) + len(chosen) < most:
        _, index = heapq.heappop(queue)
        gain = coverage.gain(drawn[index][1])
        if queue and -gain > queue[0][0]:
            heapq.heappush(queue, (-gain, index))
        elif gain:
            chosen.append(drawn[index][0])
            coverage.add(drawn[index][1])
        else:
            break
    print(f"{operator.key}: {len(kept)} + {len(chosen)} of {len(drawn)}", flush=True)
    return (*kept, *chosen)


def main(arguments: list[str]) -> int:
    """Write the files of the families of these operators anew."""
    parser = argparse.ArgumentParser(description="choose the designed cases of operators")
    parser.add_argument("--op", action="append", help="an operator; all by default; repeat for more")
    parser.add_argument("--most", type=int, default=44, help="designs of an operator, at most; 44 by default")
    parser.add_argument("--seed", default="1", help="another seed draws other variations")
    options = parser.parse_args(arguments)
    families: dict[Path, list[Operator[Any]]] = {}
    for key, operator in all_operators().items():
        folder = family_folder(key)
        assert folder is not None
        families.setdefault(folder / FILE, []).append(operator)
    for path, operators in families.items():
        if path.parent.name == UNDESIGNED:
            continue
        if options.op and not {operator.key for operator in operators} & {*options.op}:
            continue
        before = {_id_of(design) for operator in operators for design in read_designs(operator)}
        chosen = {operator.key: _choose(operator, options) for operator in operators}
        _write(path, chosen)
        ids = {_id_of(design) for designs in chosen.values() for design in designs}
        refused = find_refused(ids - before)
        _write(path, {key: [d for d in designs if _id_of(d) not in refused] for key, designs in chosen.items()})
    return 0


def _id_of(design: Design) -> str:
    return design.make_case(operator_of(design.operator)).id


def find_refused(ids: Collection[str]) -> frozenset[str]:
    """Out of the ids of designs that are written, those that the CPU provider refuses or that cannot be built."""
    if not ids:
        return frozenset()
    with TemporaryDirectory() as folder:
        options = RunOptions(targets=("cpu",), patterns=tuple(ids), baseline="none", reference=False, root=Path(folder))
        records = read_records(run(options).folder)
        return frozenset(record.case_id for record in records if record.status in (REFUSED, SKIPPED))


def _choose(operator: Operator[Any], options: argparse.Namespace) -> tuple[Design, ...]:
    is_asked = not options.op or operator.key in options.op
    return choose_designs(operator, options.most, options.seed) if is_asked else read_designs(operator)


def _write(path: Path, by_key: Mapping[str, Sequence[Design]]) -> None:
    lines = [design.to_line() for key in sorted(by_key) for design in by_key[key]]
    if lines or path.exists():
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
        read_file.cache_clear()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
