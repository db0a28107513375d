"""What a folder of `epcheck repro` says is right besides its outputs: a refusal, a selection, what is undefined."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from epcheck import api
from epcheck.conformance.records import terms
from epcheck.conformance.test_data.model_file import ModelFileError
from epcheck.generators.array import Array
from tests.conformance.small_cases import HERE

NAN_FIRST = "TopK-11/float32/nan_largest[initializer]"
"""The standard leaves the place of NaN open, so several pairs are accepted."""


def written(case_id: str, tmp_path: Path) -> Path:
    return api.repro(api.ReproOptions(case_id, out=tmp_path))


def replayed(folder: Path, target: str = "cpu", exact: bool = False) -> str:
    options = api.ReplayOptions(folder, targets=(target,), baseline="none", exact=exact, own_process=False)
    (record,) = api.replay(options)
    return record.status


def tensor(folder: Path, name: str) -> Array:
    value: Array = numpy_helper.to_array(onnx.load_tensor(folder / "test_data_set_0" / name))
    return value


def put(folder: Path, name: str, value: Array) -> None:
    (folder / "test_data_set_0" / name).write_bytes(numpy_helper.from_array(value).SerializeToString())


def state(folder: Path, **fields: object) -> None:
    stated = json.loads((folder / "case.json").read_text())
    (folder / "case.json").write_text(json.dumps({**stated, **fields}))


def test_what_must_be_refused_is_right_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = written("Conv-11/float32/refused_channels_differ[runtime]", tmp_path)
    assert replayed(folder) == terms.PASS
    monkeypatch.chdir(HERE)
    assert replayed(folder, "python:faulty_backends:aborts_always") == terms.CRASH
    accepted = written("Relu-14/float32/ordinary[runtime]", tmp_path)
    state(accepted, refused="nobody may take it")
    assert replayed(accepted) == terms.MISMATCH


def test_what_may_be_refused_is_right_where_it_is(tmp_path: Path) -> None:
    folder = written("Div-14/int32/undefined_divisor_0[runtime]", tmp_path)
    assert replayed(folder) == terms.PASS
    state(folder, undefined="")
    for file in (folder / "test_data_set_0").glob("undefined_*.pb"):
        file.unlink()
    assert replayed(folder) == terms.REFUSED


def test_each_pair_that_is_accepted_is_right_and_no_other(tmp_path: Path) -> None:
    folder = written(NAN_FIRST, tmp_path)
    files = sorted(path.name for path in (folder / "test_data_set_0").glob("accepted_*.pb"))
    assert len(files) > 2
    assert len(files) % 2 == 0
    assert replayed(folder) == terms.PASS
    for part in range(2):  # what was preferred is now the second
        first, second = (tensor(folder, f"accepted_{number}_{part}.pb") for number in range(2))
        put(folder, f"accepted_0_{part}.pb", second)
        put(folder, f"accepted_1_{part}.pb", first)
        put(folder, f"output_{part}.pb", second)
    assert replayed(folder) == terms.PASS
    for name in files:
        if name.endswith("_0.pb"):
            put(folder, name, np.zeros_like(tensor(folder, name)))
    assert replayed(folder) == terms.MISMATCH


def test_an_exact_replay_accepts_the_outputs_alone(tmp_path: Path) -> None:
    folder = written(NAN_FIRST, tmp_path)
    assert replayed(folder, exact=True) == terms.PASS
    put(folder, "output_0.pb", np.zeros_like(tensor(folder, "output_0.pb")))
    assert (replayed(folder), replayed(folder, exact=True)) == (terms.PASS, terms.MISMATCH)


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("selected_from.pb", np.float32(1), "selected_from.pb and accepted_*.pb do not fit together"),
        ("accepted_0_0.pb", np.zeros((7, 7), np.float32), "selected_from.pb and accepted_*.pb do not fit together"),
        ("accepted_0_1.pb", np.zeros(3, np.float32), "selected_from.pb and accepted_*.pb do not fit together"),
        ("selected_from.pb", np.zeros((9, 9, 4), np.float32), "must have the shape of selected_from.pb but for axis"),
    ],
)
def test_a_selection_that_does_not_fit_is_one_sentence(tmp_path: Path, name: str, value: Array, why: str) -> None:
    folder = written(NAN_FIRST, tmp_path)
    put(folder, name, value)
    with pytest.raises(ModelFileError) as found:
        replayed(folder)
    assert why in str(found.value)


def test_a_folder_of_before_is_to_be_written_again(tmp_path: Path) -> None:
    folder = written(NAN_FIRST, tmp_path)
    (folder / "test_data_set_0/selected_from.pb").unlink()
    with pytest.raises(ModelFileError, match=r"has no selected_from\.pb; write the folder again"):
        replayed(folder)


def test_what_must_be_refused_may_have_outputs_of_no_stated_type(tmp_path: Path) -> None:
    folder = written("Conv-11/float32/refused_channels_differ[runtime]", tmp_path)
    model = onnx.load(folder / "model.onnx")
    model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.UNDEFINED
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    assert replayed(folder) == terms.PASS


@pytest.mark.parametrize("selection", [[], 3, {"axis": 0}, {"axis": "0", "ordered": True}, {"axis": 0, "ordered": 1}])
def test_a_case_json_without_a_selection_that_can_be_read_is_refused(tmp_path: Path, selection: object) -> None:
    folder = written(NAN_FIRST, tmp_path)
    state(folder, selection=selection)
    with pytest.raises(ModelFileError, match=r"is no case\.json as `epcheck repro` writes it"):
        replayed(folder)
