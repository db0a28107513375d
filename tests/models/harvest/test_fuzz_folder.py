"""`epcheck harvest` of what `epcheck fuzz` found: it becomes cases by one command, and nothing is lost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from epcheck import api
from epcheck.generators import suite
from epcheck.generators.fuzzing.drawing import Source
from epcheck.generators.registry import operator_of
from epcheck.generators.serialization import node_json
from tests.command_line import call, refused
from tests.conformance.small_cases import HERE

REFUSES = "python:fuzzing_backends:refuses_negative_axes"


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a search that found one fault."""
    out = tmp_path_factory.mktemp("fuzz") / "epcheck-fuzz"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(HERE)
        done = call("fuzz", "-t", REFUSES, "--baseline", "none", "--op", "Concat", "--nodes", "100", "--seed", "1",
                    "-j", "1", "--out", str(out))  # fmt: skip
    assert done.code == 1
    (folder,) = (out / "faults").iterdir()
    assert f'keep as a case: epcheck harvest "{folder}"' in done.out
    assert f"`epcheck harvest {folder.name}`" in (folder / "bug.md").read_text(encoding="utf-8")
    return out


def test_a_fault_is_a_case_whichever_of_its_paths_is_named(searched: Path, tmp_path: Path) -> None:
    (fault,) = (searched / "faults").iterdir()
    night = tmp_path / "night" / "target"
    shutil.copytree(searched, night)
    found = {}
    for path in (fault, fault / "node.jsonl", searched, searched / "faults", searched / "examples.jsonl", night.parent):
        out = tmp_path / f"out{len(found)}"
        harvest = api.harvest(api.HarvestOptions((path,), out))
        (each,) = harvest.models
        assert (each.model, each.cases, each.new, each.left_out, harvest.cases) == (str(path), 1, 1, (), 1)
        found[path] = [case.id for case in suite.cases(source=out)]
    reported = json.loads((searched / "fuzz.json").read_text(encoding="utf-8"))["faults"][0]["case"]
    assert set(map(tuple, found.values())) == {(reported,)}


def test_it_fails_where_it_failed_and_passes_elsewhere(
    searched: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "kept"
    assert call("harvest", str(searched), "--out", str(out)).code == 0
    monkeypatch.chdir(HERE)
    options = ("--baseline", "none", "--no-reference", "--source", str(out), "--root", str(tmp_path), "-j", "1")
    assert call("run", "-t", REFUSES, *options).code == 1
    assert call("run", "-t", "python:fuzzing_backends:right", *options).code == 0


def test_faults_are_added_and_each_is_one_case(searched: Path, tmp_path: Path) -> None:
    out = tmp_path / "kept"
    lines = [node_json.encode(drawn.serialized) for drawn in Source([operator_of("Slice")], 1).draw(5)]
    (tmp_path / "more.jsonl").write_text("\n".join([*lines, *lines]), encoding="utf-8")
    first = api.harvest(api.HarvestOptions((tmp_path / "more.jsonl",), out))
    assert (first.models[0].total, first.models[0].cases, first.models[0].new) == (10, 5, 5)
    done = call("harvest", str(searched), str(tmp_path / "more.jsonl"), "--out", str(out))
    assert (f"{searched}: 2 nodes, 1 cases, 1 of them new") in done.out
    assert f"{tmp_path / 'more.jsonl'}: 10 nodes, 5 cases, 0 of them new" in done.out
    assert f"{out}: 6 cases" in done.out
    assert len(list(suite.cases(source=out))) == 6


def test_what_the_oracle_cannot_judge_is_left_out(searched: Path, tmp_path: Path) -> None:
    line = (searched / "examples.jsonl").read_text(encoding="utf-8").replace('"Concat"', '"Kontakt"')
    (tmp_path / "other.jsonl").write_text(line, encoding="utf-8")
    found = api.harvest(api.HarvestOptions((tmp_path / "other.jsonl",), tmp_path / "kept"))
    assert found.models[0].reasons == (("the suite has no Kontakt", 1),)
    left_out = json.loads((tmp_path / "kept" / "left_out.jsonl").read_text(encoding="utf-8"))
    assert left_out["why"] == "the suite has no Kontakt"


def test_bad_input_is_one_sentence_and_nothing_is_lost(searched: Path, tmp_path: Path) -> None:
    out = tmp_path / "kept"
    api.harvest(api.HarvestOptions((searched,), out))
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    (tmp_path / "bad.jsonl").write_text("\nnothing\n", encoding="utf-8")
    sentence = refused("harvest", str(tmp_path / "bad.jsonl"), "--out", str(out))
    assert sentence.startswith(f"{tmp_path / 'bad.jsonl'}, line 2: not a node: ")
    assert "cannot be read" in refused("harvest", str(tmp_path / "missing.jsonl"), "--out", str(out))
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    (out / "faults.jsonl").write_text("damaged", encoding="utf-8")
    assert "faults.jsonl, line 1" in refused("harvest", str(searched), "--out", str(out))
    assert (out / "faults.jsonl").read_text(encoding="utf-8") == "damaged"


def test_links_are_not_followed(searched: Path, tmp_path: Path) -> None:
    fault = tmp_path / "fault"
    fault.mkdir()
    (fault / "node.jsonl").symlink_to(searched / "examples.jsonl")
    assert "has no .onnx file" in refused("harvest", str(fault), "--out", str(tmp_path / "kept"))
