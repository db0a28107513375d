"""A callable's outputs by name, also those that nobody asked for."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from epcheck.conformance.workers.program.backends.function import FunctionBackend


def ignore(_step: str) -> None:
    """A step begins."""


@pytest.mark.parametrize(
    ("result", "names"),
    [
        ([1.0], ["y"]),
        ([1.0, 2.0], ["y", "output 2"]),
        (itertools.repeat(1.0), ["y", "output 2"]),
        ({"y": 1.0, "more": 2.0}, ["y", "more"]),
        ({"y": 1.0, 7: 2.0}, ["y", "7"]),
    ],
    ids=str,
)
def test_an_output_more_than_was_asked_for_is_told(result: Any, names: list[str]) -> None:
    backend = FunctionBackend("mine:function", lambda _model, _feeds: result)
    answer, outputs = backend.run({"outputs": ["y"]}, b"", {})
    assert (answer["stage"], list(outputs)) == ("done", names)


def test_a_whole_model_with_an_output_more_fails() -> None:
    backend = FunctionBackend("mine:function", lambda _model, _feeds: {"y": 1.0, "more": 2.0})
    request = {
        "kept": False,
        "path": None,
        "outputs": ["y"],
        "all_outputs": ["y"],
        "texts": {},
        "sequences": {},
        "absent": [],
    }
    answer, outputs = backend.model(request, b"", {}, ignore)
    assert (answer["stage"], outputs) == ("run", {})
    assert answer["message"] == "it returned an unknown output 'more' that the model does not have"
