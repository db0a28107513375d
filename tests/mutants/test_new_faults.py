"""Faults that a rule draws: what a broad one can be, and the figures of both kinds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from epcheck.generators import registry
from epcheck.generators.node import Node, Operand
from tests.mutants import broad, narrow, new_faults
from tests.mutants.mutant import Mutant, attribute

X = np.array([[-1.5, 2.0, np.nan], [4.0, 5.0, -np.inf]], np.float32)


@pytest.mark.parametrize(("how", "expected"), [
    ("with 0 for its first element", [[0, 2, np.nan], [4, 5, -np.inf]]),
    ("with 0 after the whole vectors of 4", [[-1.5, 2, np.nan], [4, 0, 0]]),
    ("one element further", [[-np.inf, -1.5, 2], [np.nan, 4, 5]]),
    ("with its last axis reversed", [[np.nan, 2, -1.5], [-np.inf, 5, 4]]),
    ("with its last two axes exchanged", [[-1.5, 4, 2], [5, np.nan, -np.inf]]),
    ("with its first row for all", [[-1.5, 2, np.nan], [-1.5, 2, np.nan]]),
    ("with 0 for what is negative", [[0, 2, np.nan], [4, 5, 0]]),
    ("with the largest number for infinity", [[-1.5, 2, np.nan], [4, 5, np.finfo(np.float32).min]]),
    ("without fractions", [[-1, 2, np.nan], [4, 5, -np.inf]]),
])  # fmt: skip
def test_how_a_tensor_is_read_wrongly(how: str, expected: list[list[float]]) -> None:
    before = X.copy()
    np.testing.assert_array_equal(broad.CHANGES[how][1](X), np.array(expected, np.float32))
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("how", broad.CHANGES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8", "bool"])
@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (2, 1, 5)])
def test_what_is_read_wrongly_keeps_its_shape_and_dtype(how: str, dtype: str, shape: tuple[int, ...]) -> None:
    kinds, change = broad.CHANGES[how]
    if np.dtype(dtype).kind in kinds:
        changed = change(np.ones(shape, dtype))
        assert (changed.shape, changed.dtype.name) == (shape, dtype)


def test_the_mistakes_that_can_be_made_with_a_node() -> None:
    data, axes = Operand("data", X), Operand("axes", np.array([1], np.int64), parameter=True)
    node = Node("ReduceSum", "", 13, (data, axes), ("reduced",), {"keepdims": 1})
    other = Node("ReduceSum", "", 13, (data,), ("reduced",), {"keepdims": 0})
    of_attributes, unseen, exchanged, read, written = broad.mistakes("ReduceSum", node, other)
    assert [m.fault for m in of_attributes] == ["keepdims is ignored", "keepdims is always 0", "keepdims is one more"]
    assert [m.fault for m in unseen] == ["input 1 is not seen"]
    assert [m.fault for m in exchanged] == ["inputs 0 and 1 are exchanged"]
    assert {"data is read without its sign", "axes is read by way of int8"} <= {m.fault for m in read}
    assert "output 0 is written with 0 for its last element" in {m.fault for m in written}


def test_a_seed_gives_the_same_broad_faults_each_of_which_is_wrong_somewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    only = {"Mish": registry.operator_of("Mish")}
    monkeypatch.setattr(registry, "all_operators", lambda: only)
    found = broad.faults(4, 5)
    assert [m.fault for m in found] == [m.fault for m in broad.faults(4, 5)]
    assert all(any(broad.tells(case.build, mutant) for case in only["Mish"].cases()) for mutant in found)


@pytest.mark.parametrize(("ids", "found"), [("", 3), ("Clip-13/float32/nothing[runtime]\n", 0)])
def test_what_is_not_found_is_named(
    ids: str, found: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three of four are found by the suite, and none by a case that it does not have."""
    met, unmet = narrow.NarrowFault("Mish", ("rank", 0, 8)), narrow.NarrowFault("Mish", ("size", 0, 4098))
    caught = attribute("Softmax", "axis", 0)
    written = [caught, _of_the_output()]
    monkeypatch.setattr(narrow, "faults", lambda *_: [met, unmet])
    monkeypatch.setattr(broad, "faults", lambda *_: written)
    (tmp_path / "ids.txt").write_text(ids, encoding="utf-8")
    among = ["--among", str(tmp_path / "ids.txt")] if ids else []
    assert new_faults.main(["--faults", "4", "--seed", "5", *among]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "not found: Mish: ('size', 0, 4098)" in lines
    assert lines[-1].startswith(f"seed 5: {found} of 4 found ({found / 4:.1%}): {found // 3} of 2 narrow ones and ")
    assert lines[-1].endswith("of 2 operators in 2 families")
    assert len(lines) == 4 - found + 1


def _of_the_output() -> Mutant:
    """One fault of what Mish writes."""
    node = Node("Mish", "", 18, (Operand("X", X),), ("Y",), {})
    *_, written = broad.mistakes("Mish", node, node)
    return next(m for m in written if m.fault == "output 0 is written without its sign")
