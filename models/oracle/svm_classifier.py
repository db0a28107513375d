"""SVMClassifier (ai.onnx.ml) with support vectors, which the page describes by its attributes alone.

Sources: LIBSVM (C.-C. Chang and C.-J. Lin, ACM TIST 2:27, 2011), whose models these attributes hold: one decision for
each pair of classes, votes, and probabilities by pairwise coupling (T.-F. Wu, C.-J. Lin and R. C. Weng, JMLR 5, 2004,
algorithm 2), which ends where the error is at most 0.005 of a class's share. The signs are those of LIBSVM: a decision
above 0 is a vote for the first class of the pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import onnx
from onnx import helper

from epcheck.generators.array import Array
from epcheck.models.graph.feed import Feed

ITERATIONS = 100
ENOUGH = 0.005
LEAST = 1e-7
"""Of LIBSVM: iterations of the coupling at most, the error at which it ends, and the least probability of a pair."""


def explain_distrust(node: onnx.NodeProto) -> str:
    """Why nobody knows its results; empty where they are known."""
    values = _attributes(node)
    if not values.get("vectors_per_class"):
        return "the ONNX page does not say what an SVMClassifier without support vectors computes"
    if values.get("post_transform", b"NONE") != b"NONE":
        return "the ONNX page does not say what its transform is applied to"
    if len(values["vectors_per_class"]) == 2 and not values.get("prob_a"):
        return "the ONNX page does not say how one score becomes those of two classes"
    return ""


def evaluate(node: onnx.NodeProto, inputs: Sequence[Feed]) -> tuple[Feed, ...]:
    """The label of each row, and its probabilities, or without them the decision of each pair of classes."""
    values = _attributes(node)
    x = np.asarray(inputs[0], np.float64)
    kernel = _kernel(values, x.reshape(1, -1) if x.ndim == 1 else x)
    counts = values["vectors_per_class"]
    ends = np.cumsum([0, *counts])
    vectors = [slice(start, end) for start, end in pairwise(ends)]
    coefficients = _wide(values["coefficients"]).reshape(len(counts) - 1, ends[-1])
    pairs = list(combinations(range(len(counts)), 2))
    decisions = np.empty((len(kernel), len(pairs)))
    votes = np.zeros((len(kernel), len(counts)), np.int64)
    for place, (i, j) in enumerate(pairs):
        first = kernel[:, vectors[i]] @ coefficients[j - 1, vectors[i]]
        second = kernel[:, vectors[j]] @ coefficients[i, vectors[j]]
        decisions[:, place] = first + second + _wide(values["rho"])[place]
        for label, voted in ((i, decisions[:, place] > 0), (j, decisions[:, place] <= 0)):
            votes[:, label] += voted
    texts = values.get("classlabels_strings")
    labels = np.array([text.decode() for text in texts] if texts else values["classlabels_ints"])
    scores = np.array(list(_probabilities(values, decisions, pairs))) if values.get("prob_a") else decisions
    return labels[votes.argmax(axis=1)], scores.reshape(len(kernel), -1)


def _attributes(node: onnx.NodeProto) -> Mapping[str, Any]:
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}


def _wide(values: Sequence[float]) -> Array:
    """Attributes are float32."""
    return np.asarray(values, np.float32).astype(np.float64)


def _kernel(values: Mapping[str, Any], x: Array) -> Array:
    """[rows, vectors]."""
    vectors = _wide(values["support_vectors"]).reshape(sum(values["vectors_per_class"]), -1)
    gamma, start, degree = _wide(values.get("kernel_params") or (0.0, 0.0, 3.0))
    kind = values.get("kernel_type", b"LINEAR").decode()
    if kind == "RBF":
        return np.asarray(np.exp(-gamma * ((x[:, None] - vectors) ** 2).sum(axis=-1)))
    product = x @ vectors.T
    match kind:
        case "POLY":
            return np.asarray((gamma * product + start) ** degree)
        case "SIGMOID":
            return np.asarray(np.tanh(gamma * product + start))
        case "LINEAR":
            return product
    raise ValueError(f"kernel_type '{kind}' is none of LINEAR, POLY, RBF, SIGMOID")


def _probabilities(values: Mapping[str, Any], decisions: Array, pairs: Sequence[tuple[int, int]]) -> Iterator[Array]:
    slopes, offsets = _wide(values["prob_a"]), _wide(values["prob_b"])
    classes = len(values["vectors_per_class"])
    for row in decisions:
        shares = np.zeros((classes, classes))
        for (i, j), decision, slope, offset in zip(pairs, row, slopes, offsets, strict=True):
            share = np.clip(1 / (1 + np.exp(decision * slope + offset)), LEAST, 1 - LEAST)
            shares[i, j], shares[j, i] = share, 1 - share
        yield _couple(shares)


def _couple(shares: Array) -> Array:
    """The probabilities of classes that agree most with those of each pair: r[i, j] is that of i against j."""
    classes = len(shares)
    q = -shares.T * shares
    np.fill_diagonal(q, (shares**2).sum(axis=0))
    p = np.full(classes, 1 / classes)
    for _ in range(ITERATIONS):
        product = q @ p
        total = p @ product
        if np.abs(product - total).max() < ENOUGH / classes:
            break
        for t in range(classes):
            step = (total - product[t]) / q[t, t]
            p[t] += step
            total = (total + step * (step * q[t, t] + 2 * product[t])) / (1 + step) ** 2
            product = (product + step * q[t]) / (1 + step)
            p /= 1 + step
    return p
