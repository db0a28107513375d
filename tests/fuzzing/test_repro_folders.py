"""A stranger's folder in the layout of `epcheck repro`: replaying it is a result or one sentence."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from epcheck import api
from tests.command_line import Done, call
from tests.fuzzing.damage import damaged, examples, with_hostile_values

CASES = (
    "Relu-14/float32/ordinary[runtime]",
    "TopK-11/float32/nan_largest[initializer]",
    "Conv-11/float32/refused_channels_differ[runtime]",
)
"""With outputs, with a selection, and one that must be refused."""


@pytest.fixture(scope="module", params=CASES)
def original(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return api.repro(api.ReproOptions(request.param, out=tmp_path_factory.mktemp("original")))


def replayed(folder: Path) -> Done:
    """How `epcheck replay` ends on the folder, which it may not do in any other way."""
    done = call("replay", str(folder), "-t", "cpu")
    assert done.code in (0, 1, 2)
    assert "please report it" not in done.out + done.err
    assert done.code < 2 or len(done.err.splitlines()) == 1
    assert all(c.isprintable() or c in "\n\t" for c in done.out + done.err)
    return done


@pytest.mark.slow
def test_the_folder_that_the_others_are_made_of_is_right(original: Path) -> None:
    assert replayed(original).code == 0


@st.composite
def accidents(draw: st.DrawFn, folder: Path) -> tuple[str, bytes | None]:
    """The name of a file within the folder, and what has become of it; None where it is gone."""
    found = (path for path in folder.rglob("*") if path.suffix in (".onnx", ".pb", ".json") and path.stat().st_size)
    files = sorted(str(path.relative_to(folder)) for path in found)
    name = draw(st.sampled_from(files))
    data = (folder / name).read_bytes()
    if draw(st.integers(0, 9)) == 0:
        return name, None
    if name.endswith(".json") and draw(st.booleans()):
        document: Any = draw(with_hostile_values(json.loads(data)))
        return name, json.dumps(document).encode("utf-8", "surrogatepass")
    return name, draw(damaged(data))


@pytest.mark.slow
@examples(4)
@hypothesis.given(data=st.data())
def test_a_damaged_folder_ends_no_command(tmp_path: Path, original: Path, data: st.DataObject) -> None:
    folder = tmp_path / "damaged"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(original, folder)
    name, content = data.draw(accidents(original))
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content)
    replayed(folder)
