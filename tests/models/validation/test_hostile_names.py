"""Names that a stranger gave to nodes and values, on the pages about a model and in the terminal."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from tests.command_line import Done, call
from tests.reports.hostile_names import DANGEROUS, NAMES, Tags

CHOSEN = [name.encode("utf-8", "replace").decode() for name in NAMES.values()]
"""protobuf takes no half of a surrogate pair."""


def saved(path: Path, names: list[str], dtype: int = TensorProto.FLOAT) -> Path:
    """A chain of nodes and values of these names; the last value is the output."""
    values = ["x", *(f"{number} {name}" for number, name in enumerate(names))]
    kinds = ("Relu", "Neg", "Abs")
    nodes = [
        helper.make_node(kinds[number % 3], [values[number]], [values[number + 1]], name=name)
        for number, name in enumerate(names)
    ]
    ends = [helper.make_tensor_value_info(name, dtype, [3]) for name in (values[0], values[-1])]
    graph = helper.make_graph(nodes, names[0], ends[:1], ends[1:])
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    model.producer_name = names[1]
    onnx.save(model, path)
    return path


@pytest.mark.parametrize(
    ("command", "dtype"),
    [(("validate", "-t", "cpu"), 1), (("doctor", "-t", "reference"), 10)],
    ids=["validate", "doctor"],
)
def test_pages_and_terminal_have_what_they_have_with_harmless_names(
    tmp_path: Path, command: tuple[str, ...], dtype: int
) -> None:
    pages: list[str] = []
    shown: list[Done] = []
    as_long = [f"harmless{number}".ljust(len(name), "s") for number, name in enumerate(CHOSEN)]
    for number, names in enumerate((CHOSEN, as_long)):
        path, html = saved(tmp_path / f"{number}.onnx", names, dtype), tmp_path / f"{number}.html"
        shown.append(call(*command, str(path), "--seed", "0", "--html", str(html), "--no-own-process"))
        pages.append(html.read_text(encoding="utf-8"))
    hostile, harmless = map(Tags, pages)
    assert (hostile.elements, hostile.handlers) == (harmless.elements, [])
    assert not any(map(DANGEROUS.search, (*pages, shown[0].out, shown[0].err)))
    assert shown[0].code == shown[1].code
    assert "&lt;img src=x onerror=alert(1)&gt;" in pages[0]
