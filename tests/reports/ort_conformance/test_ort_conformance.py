"""A run in the vocabulary of ONNX Runtime's plan: every record has exactly one result, and the document its schema."""

import dataclasses
import json
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from epcheck import api
from epcheck.conformance.records.record import Expected, Record
from epcheck.conformance.records.terms import READINGS, STATUSES
from epcheck.reports import write_ort_conformance
from epcheck.reports.ort_conformance.report import schema
from epcheck.reports.ort_conformance.result import RESULTS, result_of
from tests.reports.stored_records import (
    a_crashed_topk,
    a_refused_qlinearconv,
    a_run,
    a_slice,
    a_wrong_slice,
    an_opinion,
    many,
    stored,
)

ROOT = Path(__file__).parents[3]

SKIPPED = dataclasses.replace(
    a_slice("int8", "unbuilt"), status="skipped", reading="failure", candidate=an_opinion("dml", status="skipped")
)
DECLINED = dataclasses.replace(
    a_slice("int16", "declined"), status="unplaced", claimed=False, candidate=an_opinion("dml", status="unplaced")
)
OUTDATED = dataclasses.replace(
    a_slice("int32", "fixed"), reading="fixed", expectation=Expected("Slice-*", "mismatch", "was wrong once")
)


@pytest.mark.parametrize(
    ("record", "result"),
    [
        (a_slice(), "PASS"),
        (dataclasses.replace(a_slice(), reading="noted", claimed=False), "PASS"),
        (OUTDATED, "PASS"),
        (DECLINED, "UNSUPPORTED"),
        (dataclasses.replace(DECLINED, status="refused", reading="noted"), "UNSUPPORTED"),
        (dataclasses.replace(DECLINED, reading="failure", claimed=True), "FAIL"),
        (a_wrong_slice(), "FAIL"),
        (a_crashed_topk(), "FAIL"),
        (a_refused_qlinearconv(), "EXCLUDED"),
        (SKIPPED, "NOT_RUN"),
    ],
)  # fmt: skip
def test_a_record_has_the_result_that_the_plan_gives_it(record: Record, result: str) -> None:
    assert result_of(record) == result


def test_every_status_and_reading_has_one_result_and_only_a_pass_passes() -> None:
    for status, reading in product(STATUSES, READINGS):
        result = result_of(dataclasses.replace(a_slice(), status=status, reading=reading))
        assert result in RESULTS
        assert result != "PASS" or status == "pass"


def written(folder: Path, records: list[Record], **changes: Any) -> dict[str, Any]:
    stored(folder / "run", records, a_run(len(records), **changes))
    document = json.loads(write_ort_conformance(folder / "run", folder / "out.json").read_text("ascii"))
    jsonschema.validate(document, schema(), cls=jsonschema.Draft202012Validator)
    return dict(document)


def test_every_record_is_in_the_report_once(tmp_path: Path) -> None:
    records = list(many(400))
    document = written(tmp_path, records)
    assert [result["case"] for result in document["results"]] == [record.case_id for record in records]
    counts = Counter(result["result"] for result in document["results"])
    (target,) = document["summary"]["targets"]
    assert target["results"] == {result: counts[result] for result in RESULTS}
    assert sum(target["results"].values()) == 400
    for name in ("by_domain", "by_operator", "by_opset", "by_dtype"):
        assert sum(sum(of_value.values()) for of_value in target[name].values()) == 400
    assert target["by_operator"]["QLinearConv"]["EXCLUDED"] == counts["EXCLUDED"]


def test_a_result_says_why_it_is_no_pass(tmp_path: Path) -> None:
    document = written(tmp_path, [a_slice(), a_refused_qlinearconv(), OUTDATED, a_wrong_slice()])
    right, excluded, outdated, wrong = document["results"]
    assert "diagnostics" not in right
    assert right["duration_s"] == pytest.approx(0.00708)
    assert right["operator"] == {"domain": "", "type": "Slice", "since_version": 13, "opset": 13}
    assert excluded["exclusion"]["reason"] == "per-channel weights: known"
    assert excluded["exclusion"]["up_to_date"] is True
    assert (outdated["result"], outdated["exclusion"]["up_to_date"]) == ("PASS", False)
    assert wrong["diagnostics"] == {"status": "mismatch", "blame": "candidate", "reason": a_wrong_slice().reason}


@pytest.mark.parametrize(
    ("records", "changes", "complete", "not_recorded"),
    [
        ([a_slice()], {}, True, 0),
        ([a_slice(), SKIPPED], {}, False, 0),
        ([a_slice()], {"planned": 3}, False, 2),
        ([a_slice()], {"status": "interrupted"}, False, 0),
    ],
)
def test_a_run_that_lacks_something_is_not_complete(
    tmp_path: Path, records: list[Record], changes: dict[str, Any], complete: bool, not_recorded: int
) -> None:
    folder = stored(tmp_path / "run", records, dataclasses.replace(a_run(len(records)), **changes))
    document = json.loads(write_ort_conformance(folder, tmp_path / "out.json").read_text("ascii"))
    jsonschema.validate(document, schema())
    assert (document["summary"]["complete"], document["summary"]["not_recorded"]) == (complete, not_recorded)


def test_the_provider_is_named_with_its_versions_and_its_profile(tmp_path: Path) -> None:
    folder = stored(tmp_path / "run", [a_slice()])
    api.report(api.ReportOptions(folder, html=tmp_path / "page.html", ort_conformance=tmp_path / "out.json"))
    (provider,) = json.loads((tmp_path / "out.json").read_text("ascii"))["providers"]
    assert provider["execution_provider"] == "DmlExecutionProvider"
    assert (provider["registration"], provider["onnxruntime_version"]) == ("built-in", "1.24.4")
    assert len(provider["profile_sha256"]) == 64
    assert provider["environment"]["adapter"] == "llvmpipe (LLVM 19.1.7, 256 bits)"


def test_a_plugin_is_registered_dynamically(tmp_path: Path) -> None:
    facts = {"execution_provider": "WebGpuExecutionProvider", "plugin": "onnxruntime-ep-webgpu 0.4.0"}
    document = written(tmp_path, [a_slice()], targets={"dml": facts})
    (provider,) = document["providers"]
    assert (provider["registration"], provider["provider_version"]) == ("dynamic", "onnxruntime-ep-webgpu 0.4.0")


@pytest.mark.parametrize("spoil", [{"result": "SKIP"}, {"result": "EXCLUDED"}, {"result": "FAIL"}, {"more": 1}])
def test_the_schema_refuses_what_is_no_result(tmp_path: Path, spoil: dict[str, Any]) -> None:
    document = written(tmp_path, [a_slice()])
    document["results"][0] |= spoil
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema())


@pytest.mark.parametrize(
    ("shipped", "published"),
    [
        ("reports/ort_conformance/conformance-report.schema.json", "docs/schemas/conformance-report.schema.json"),
        ("conformance/profile/provider-profile.schema.json", "docs/schemas/provider-profile.schema.json"),
    ],
)
def test_the_published_schema_is_the_one_that_is_shipped(shipped: str, published: str) -> None:
    text = (ROOT / shipped).read_text("utf-8")
    assert text == (ROOT / published).read_text("utf-8")
    jsonschema.Draft202012Validator.check_schema(json.loads(text))
    assert json.loads(text)["$id"].startswith("urn:epcheck:schema:")
