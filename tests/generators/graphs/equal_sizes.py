"""Choosing the size of all dimensions in the graphs of rewrite rules: `generators/graphs/rules/equal_sizes.txt`.

    nox -s equal_sizes

A graph has a copy with equal sizes where the oracle can judge it, where it had different sizes, and where the copy of a
broken precondition has another answer than that of the rule, if both take the same data. Lines that are there stay.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np

from epcheck.generators.error import EpcheckError
from epcheck.generators.graphs.graph_sample import FLOAT32
from epcheck.generators.graphs.rewrite_rule import (
    SIZES_FILE,
    RewriteRule,
    TextGraph,
    make_sizes_equal,
    read_equal_sizes,
)
from epcheck.generators.sources.graphs import judge_sample
from tests.generators.graphs.test_rewrite_rule import RULES, evaluate, list_data, same

SIZES = (4, 3, 2, 6)
"""Tried in this order."""


def find_size(rule: RewriteRule, name: str, kind: str, graph: TextGraph) -> int:
    """The first size at which the copy can be judged and tells a wrong rewrite; 0 for none."""
    if len({dim for tensor in graph.tensors if tensor.values is None for dim in tensor.shape if dim > 1}) < 2:
        return 0
    for size in SIZES:
        copy = make_sizes_equal(graph, size)
        try:
            sample = rule.make_sample(kind, name, copy)
            judge_sample(sample, FLOAT32[0], f"a graph of size {size}")
            applied = make_sizes_equal(rule.read(), size)
            is_alike = graph.nodes != rule.read().nodes and list_data(copy) == list_data(applied)
            if not is_alike or not same(evaluate(copy, rule.opset), evaluate(applied, rule.opset)):
                return size
        except (EpcheckError, ValueError, IndexError, KeyError, AssertionError, TypeError, ZeroDivisionError):
            continue  # sizes that do not fit
    return 0


def main() -> int:
    """Write the file anew."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    known = dict(read_equal_sizes())
    for rule in RULES:
        for name, kind, texts in rule.list_texts():
            if name not in known and (size := find_size(rule, name, kind, rule.read(texts))):
                known[name] = size
    lines = (f"{name} {size}" for name, size in known.items())
    SIZES_FILE.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
