"""Which wrong readings (`wrong_reading`) the cases of an operator detect.

    nox -s readings -- --op Slice            # or all operators

Prints the readings that no case detects and of which no declaration says why, and declarations that are not true any
more. The exit code is 1 where there are some.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
import warnings
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

import numpy as np

from epcheck.conformance.comparison import compare
from epcheck.generators import suite
from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase, Case
from epcheck.generators.fuzzing.domains import domain
from epcheck.generators.node import Node
from epcheck.generators.operator import FOREIGN, Operator
from epcheck.generators.operator_index import family_folder
from epcheck.generators.registry import all_operators, operator_of
from epcheck.generators.truth import Outputs, Refusal, Selection, Truth
from tests.generators.wrong_reading import WRITTEN, change_array, list_misreadings
from tests.mutants.mutant import outputs_of
from tests.mutants.test_mutants import UNREAD

MOST_ELEMENTS = 1 << 14
"""Of an input or an output of a case that is looked at."""

EVERYWHERE: Mapping[str, str] = {
    "denormals are 0": "a provider may flush denormals, and errors that are allowed are larger",
    "the sign of zero is dropped": "no page defines the sign of this zero",
}
"""How a tensor is misread or miswritten -> why no case need detect it."""

FILE = "undetected.toml"
"""In the folder of an operator family: which readings no case of its operators detects, and why."""


@cache
def read_reasons(key: str) -> Mapping[str, str]:
    """Wrong reading of an operator, with * for anything -> why no case detects it, of the file of its family."""
    folder = family_folder(key)
    if folder is None or not (folder / FILE).is_file():
        return {}
    entries = tomllib.loads((folder / FILE).read_text(encoding="utf-8"))["undetected"]
    return {reading: entry["reason"] for entry in entries if key in entry["operators"] for reading in entry["readings"]}


def find_reason(key: str, name: str) -> str:
    """Why no case detects the reading; empty where one must."""
    how = name.rpartition(": ")[2]
    return EVERYWHERE.get(how) or next((why for end, why in read_reasons(key).items() if fnmatchcase(name, end)), "")


def list_answers(
    operator: Operator[Any], built: BuiltCase, is_asked: Callable[[str], bool]
) -> Iterator[tuple[str, bool]]:
    """(reading, whether the case detects it) for those that are asked for and make a difference to the node."""
    if not _is_readable(built):
        return
    node, right = built.node, outputs_of(built.truth)
    assert right is not None
    for reading in list_misreadings(node):
        if is_asked(reading.name):
            other = reading.misread(node)
            if other is not None and not _are_same_nodes(node, other):
                yield reading.name, _detects(operator, built, other)
    for number, (output, value) in enumerate(right.items()):
        for how, (kinds, _) in WRITTEN.items():
            name = f"output {number}: {how}"
            if value.dtype.kind in kinds and is_asked(name):
                changed = change_array(WRITTEN, how, value)
                if not _are_same(changed, value):
                    yield name, _is_wrong(built.truth, {**right, output: changed})


def _detects(operator: Operator[Any], built: BuiltCase, other: Node) -> bool:
    """Whether what the kernel gives, which takes the node for the other one, is not right. A node that has no meaning
    is refused, and one that is large has another shape."""
    try:
        if domain.elements(other) > MOST_ELEMENTS:
            return True
        outputs = outputs_of(operator.truth(other))
        return outputs is None or _is_wrong(built.truth, outputs)
    except Exception:  # whatever an oracle raises of a node that no schema allows
        return True


def _is_wrong(truth: Truth, outputs: Mapping[str, Array]) -> bool:
    assert isinstance(truth, Outputs | Selection)
    return not compare.are_right(truth, outputs)


def _is_readable(built: BuiltCase) -> bool:
    """Whether the truth of the operator says all of the case, and the case is small."""
    truth = built.truth
    if isinstance(truth, Refusal) or (isinstance(truth, Outputs) and truth.undefined) or built.node.surroundings:
        return False
    arrays = (*(o.value for o in built.node.inputs if o is not None), *(outputs_of(truth) or {}).values())
    return all(array.size <= MOST_ELEMENTS for array in arrays)


def _are_same(left: Array, right: Array) -> bool:
    """Whether both have the same bits, but for those of NaN: an oracle's sign of it depends on the processor."""
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    known = ~((left != left) & (right != right))
    return left[known].tobytes() == right[known].tobytes()


def _are_same_nodes(left: Node, right: Node) -> bool:
    if repr(dict(left.attributes)) != repr(dict(right.attributes)):
        return False
    return all(
        (a is None) == (b is None) and (a is None or b is None or _are_same(a.value, b.value))
        for a, b in zip(left.inputs, right.inputs, strict=True)
    )


def list_cases(key: str) -> list[Case]:
    """Of single nodes, whose truths are those of the operator."""
    return [case for case in suite.cases((key,)) if case.kind not in UNREAD and case.source != FOREIGN]


def find_undetected(key: str, build: Callable[[Case], BuiltCase] = Case.build) -> tuple[list[str], list[str]]:
    """(readings that none of the operator's cases detects and no declaration explains, explanations of readings that
    some case detects). build: what builds a case, or has built it."""
    operator = operator_of(key)
    detected: dict[str, bool] = {}

    def is_asked(name: str) -> bool:
        return not detected.get(name) and name.rpartition(": ")[2] not in EVERYWHERE

    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in list_cases(key):
            for name, detects in list_answers(operator, build(case), is_asked):
                detected[name] = detects
    undetected = [name for name, detects in detected.items() if not detects]
    stale = [pattern for pattern in read_reasons(key) if not any(fnmatchcase(name, pattern) for name in undetected)]
    return [name for name in undetected if not find_reason(key, name)], stale


def main(arguments: list[str]) -> int:
    """Print the readings that no case detects and that have no reason, and reasons without such a reading; 1 where
    there are some."""
    parser = argparse.ArgumentParser(description="which wrong readings no case of an operator detects")
    parser.add_argument("--op", action="append", help="an operator; all by default; repeat for more")
    options = parser.parse_args(arguments)
    wrong = 0
    for key in options.op or all_operators():
        undetected, stale = find_undetected(key)
        wrong += len(undetected) + len(stale)
        for name in undetected:
            print(f"{key}: no case detects: {name}", flush=True)
        for pattern in stale:
            print(f"{key}: a case detects, although {FILE} says that none does: {pattern}", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
