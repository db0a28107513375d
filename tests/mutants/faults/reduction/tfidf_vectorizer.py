"""Faults in TfIdfVectorizer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from epcheck.generators.node import Node
from tests.mutants.mutant import attribute, inputs, misread, outputs

OPERATOR = "TfIdfVectorizer"


def as_one_row(node: Node) -> Node:
    """N-grams go on in the next row; all rows have what the whole input has."""
    (x,) = node.inputs
    assert x is not None
    return replace(node, inputs=(replace(x, value=x.value.reshape(1, -1)),)) if x.value.ndim == 2 else node


def other(name: str, change: object) -> object:
    def changed(node: Node) -> Node:
        return replace(node, attributes={**node.attributes, name: change(node.attributes[name])})  # type: ignore[operator]

    return changed


MUTANTS = [
    attribute(OPERATOR, "mode", "TF"),
    attribute(OPERATOR, "mode", "TFIDF"),
    attribute(OPERATOR, "mode", "IDF"),
    attribute(OPERATOR, "weights", None),
    attribute(OPERATOR, "max_skip_count", 0),
    attribute(OPERATOR, "min_gram_length", 1),
    attribute(OPERATOR, "max_gram_length", 2),
    attribute(OPERATOR, "max_gram_length", 1),
    misread(OPERATOR, "one skip more is counted", other("max_skip_count", lambda n: n + 1)),
    misread(OPERATOR, "one skip less is counted", other("max_skip_count", lambda n: max(0, n - 1))),
    misread(OPERATOR, "places are in rising order", other("ngram_indexes", lambda n: tuple(sorted(n)))),
    misread(OPERATOR, "places have no gaps",
            other("ngram_indexes", lambda n: tuple(np.argsort(np.argsort(n)).tolist()))),
    misread(OPERATOR, "n-grams cross rows", as_one_row),
    inputs(OPERATOR, "the last element is not read", lambda _, v: v[..., :-1]),
    inputs(OPERATOR, "only 1024 elements of a row are read", lambda _, v: v[..., :1024]),
    inputs(OPERATOR, "negative values are positive", lambda _, v: np.abs(v)),
    outputs(OPERATOR, "only 1024 rows are written",
            lambda v: np.where(np.arange(len(v))[:, None] < 1024, v, 0) if v.ndim == 2 else v),
    outputs(OPERATOR, "a single row has a batch", lambda v: v[None] if v.ndim == 1 else v),
]  # fmt: skip
