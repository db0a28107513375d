"""The complaints of ONNX's checker and shape inference about a model, as sentences. Both are native code that reads an
untrusted file, so they run in a worker."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import numpy as np
import onnx
from onnx import checker, shape_inference

from epcheck.generators.array import Array

CHECKER, INFERENCE = "checker", "inference"

_NODE = re.compile(r"\s*==> Context: Bad node spec for node\. Name: (?P<name>.*?) OpType: (?P<operator>\S+)", re.DOTALL)
_INFERRED = re.compile(
    r"\(op_type:(?P<operator>[^,)]*)(?:, node name: (?P<name>.*?))?\):\s*(?P<text>.*?)(?=\(op_type:|$)", re.DOTALL
)
_PREFIX = re.compile(r"\[(?:Shape|Type)InferenceError\]\s*|Inference error\(s\):\s*")

_WORDS: tuple[tuple[str, str], ...] = (
    (r"No Op registered for (\S+) with domain_version of (\d+)", r"opset \2 has no operator \1"),
    (r"Unrecognized attribute: (\S+) for operator (\S+)", r"\2 has no attribute '\1'"),
    (r"Required attribute '(\S+)' is missing\.?", r"its attribute '\1' is missing"),
    (r"Nodes in a graph must be topologically sorted, however input '(.*?)' of node:\s*name: (.*?) OpType: (\S+)\s*"
     r"is not output of any previous nodes\.?", r"node '\2' (\3) reads '\1', which no node before it makes"),
    (r"Graph must be in single static assignment \(SSA\) form, however '(.*?)' has been used as \w+ names? multiple "
     r"times\.?", r"the value '\1' is made more than once"),
    (r"Your model ir_version (\d+) is higher than the checker's \((\d+)\)\.?",
     r"IR version \1 is newer than this onnx package knows (\2)"),
    (r"Node ?\(.*?\) with schema\(.*?\) has (input|output) size (\d+) not in range \[min=(\d+), max=(\d+)\]\.?",
     r"it has \2 \1s, where \3 to \4 are allowed"),
    (r"No opset import for domain '?([^']*?)'?(?: optype \S+)?$", r"the model imports no opset of the domain '\1'"),
    (r"Field '(\w+)' of '(\w+)' is required but missing\.?", r"a '\2' has no '\1', which onnx's checker demands"),
    (r"^Incompatible dimensions$", "the shapes of its inputs do not fit each other"),
)  # fmt: skip
"""Pattern of a message of onnx -> the sentence; other parts of a message stay as they are."""


def check(content: bytes, _feeds: Mapping[str, Array]) -> dict[str, Array]:
    """A backend (target `python:`): the messages of the checker and of strict inference, as JSON in UTF-8."""
    model = onnx.load_model_from_string(content)
    text = json.dumps(list(messages(model)))
    return {"messages": np.frombuffer(text.encode(), np.uint8)}


def messages(model: onnx.ModelProto) -> list[tuple[str, str]]:
    """(CHECKER or INFERENCE, sentence) of each complaint; either stops at its first one."""
    found = []
    try:
        checker.check_model(model)
    except checker.ValidationError as error:
        found.append((CHECKER, readable(str(error))))
    try:
        shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except shape_inference.InferenceError as error:
        found.append((INFERENCE, readable(str(error))))
    return found


def readable(message: str) -> str:
    """A message of onnx as a sentence that begins with the node."""
    if inferred := _INFERRED.search(message):
        return _about(inferred["name"] or "", inferred["operator"], inferred["text"])
    if at := _NODE.search(message):
        return _about(at["name"], at["operator"], message[: at.start()])
    return _in_words(message)


def _about(name: str, operator: str, text: str) -> str:
    called = f"'{name}' " if name else ""
    return f"node {called}({operator}): {_in_words(text)}"


def _in_words(text: str) -> str:
    text = " ".join(_PREFIX.sub("", text).split())
    for pattern, words in _WORDS:
        text = re.sub(pattern, words, text)
    return text
