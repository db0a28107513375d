"""A run with `--variants`: what its records, reports and run.json have of it, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from epcheck import api, reports
from epcheck.api import Axis, RunOptions
from epcheck.conformance.cluster.node import ClusterError
from epcheck.conformance.records.record import encode
from epcheck.conformance.targets.target import TargetError
from epcheck.reports import StoreError
from tests.conformance.small_cases import HERE


def options(root: Path, *axes: Axis, **more: object) -> RunOptions:
    chosen = {"baseline": "none", "operators": ("Relu",), "dtypes": ("float32",), "limit": 3, "reference": False}
    return RunOptions(("cpu",), root=root, variants=axes, **{**chosen, **more})  # type: ignore[arg-type]


def test_every_record_says_what_came_of_each_variant(tmp_path: Path) -> None:
    result = api.run(options(tmp_path, Axis.LEVEL, Axis.CONTEXT))
    assert result.run.selection["variants"] == ["level", "context"]
    records = list(reports.read_records(result.folder))
    assert {record.status for record in records} == {"pass"}
    for record in records:
        names = [(v.variant, v.state) for v in record.variants if v.variant == "context"]
        assert names == [("context", "skipped")]
        assert [v.variant for v in record.variants] == ["level=basic", "level=extended", "level=all", "context"]
        assert {v.state for v in record.variants} <= {"same", "close", "skipped"}


def test_a_run_without_variants_says_nothing_of_them(tmp_path: Path) -> None:
    result = api.run(options(tmp_path))
    assert "variants" not in result.run.selection
    lines = (result.folder / "journal.jsonl").read_text()
    assert lines
    assert '"variants"' not in lines


def test_a_difference_is_in_junit_json_and_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The binding is made to fail as where a device has no memory: every session of that variant is refused."""
    from epcheck.conformance.targets import variants

    monkeypatch.setitem(variants.SESSIONS, Axis.IO_BINDING, {"device": {"way": "bound", "level": "none"}})  # type: ignore[misc]
    result = api.run(options(tmp_path, Axis.IO_BINDING))
    assert result.summary.by_status == {"variant-dependent": 3}
    assert not result.conforms
    cases = ElementTree.parse(result.folder / "junit.xml").getroot().iter("failure")
    failures = [(case.get("type"), case.text or "") for case in cases]
    assert [kind for kind, _ in failures] == ["variant-dependent"] * 3
    assert all("io_binding=device: differs: refuses at create: " in text for _, text in failures)
    document = json.loads((result.folder / "report.json").read_text())
    assert {v["state"] for record in document["records"] for v in record["variants"]} == {"differs"}
    again = [json.loads(encode(record)) for record in reports.read_records(result.folder)]
    lines = [json.loads(line) for line in (result.folder / "journal.jsonl").read_text().splitlines()]
    assert all(line.pop("crc32") for line in lines)
    assert again == lines


def test_uses_run_of_the_sample_or_of_all(tmp_path: Path) -> None:
    seen = {}
    for uses in (api.UsedCases.SAMPLE, api.UsedCases.ALL):
        result = api.run(options(tmp_path / uses, uses=uses))
        assert result.run.selection["uses"] == uses
        used = [record for record in reports.read_records(result.folder) if record.variants]
        assert {record.status for record in used} == {"pass"}
        assert {v.state for record in used for v in record.variants} <= {"same", "close", "skipped"}
        seen[uses] = len(used)
    assert seen == {"sample": 1, "all": 3}
    with pytest.raises(ClusterError, match="--variants and --uses run on this machine"):
        api.run(options(tmp_path, uses=api.UsedCases.ALL, scheduler="tcp://localhost:1"))


def test_what_a_callable_keeps_between_calls_is_usage_dependent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(HERE)
    target = "python:remembering_backend:by_shape"
    asked = options(tmp_path, uses=api.UsedCases.ALL, patterns=("*typed_rank_3*", "*ordinary*"), limit=1)
    result = api.run(replace(asked, targets=(target,)))
    assert result.summary.by_status == {"usage-dependent": 1}
    (record,) = reports.read_records(result.folder)
    states = {v.variant: v.state for v in record.variants}
    assert {name for name, state in states.items() if state == "differs"} == {
        "reruns=feeds", "threads=2", "threads=4", "threads=shared", "threads=creation",
    }  # fmt: skip
    assert states["weights"] == states["options"] == "skipped"
    assert "used as applications use it: " in record.reason


def test_axes_without_a_variant_are_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="CPUExecutionProvider makes no EPContext models"):
        api.run(options(tmp_path, Axis.CONTEXT))
    with pytest.raises(ClusterError, match="--variants and --uses run on this machine"):
        api.run(options(tmp_path, Axis.LEVEL, scheduler="tcp://localhost:1"))
    with pytest.raises(TargetError, match=r"^--context-from cpu: CPUExecutionProvider makes no EPContext models$"):
        api.run(options(tmp_path, Axis.CONTEXT, context_from=("cpu",)))
    with pytest.raises(TargetError, match=r"^--context-from needs the axis of contexts; add --variants context$"):
        api.run(options(tmp_path, Axis.LEVEL, context_from=("cpu",)))
    with pytest.raises(TargetError, match="unknown target 'no-such'"):
        api.run(options(tmp_path, Axis.CONTEXT, context_from=("no-such",)))
    assert not list(tmp_path.iterdir())


def test_a_run_is_resumed_with_its_variants(tmp_path: Path) -> None:
    first = api.run(options(tmp_path, Axis.PACKING))
    journal = first.folder / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().splitlines(keepends=True)[0])
    again = api.run(RunOptions(resume=first.folder))
    assert again.run.selection["variants"] == ["packing"]
    assert [len(record.variants) for record in reports.read_records(again.folder)] == [2, 2, 2]


def test_runs_with_other_variants_are_not_merged(tmp_path: Path) -> None:
    from epcheck.api import Shard

    with_levels = api.run(options(tmp_path, Axis.PACKING, shard=Shard(1, 2))).folder
    without = api.run(options(tmp_path, shard=Shard(2, 2))).folder
    with pytest.raises(StoreError, match="the variants are packing and none; run both with the same --variants"):
        api.merge(api.MergeOptions((with_levels, without), out=tmp_path / "merged"))
