"""Records as a run leaves them, for the tests of the store and of the reports."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from epcheck.conformance.records.case_facts import CaseFacts, DirectML, Value
from epcheck.conformance.records.opinion import Difference, Mismatch, Opinion
from epcheck.conformance.records.record import Expected, Record
from epcheck.conformance.records.run import Run
from epcheck.reports import create

DTYPES = ("float32", "float16", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FACTS = {field.name for field in dataclasses.fields(CaseFacts)}
PROVIDERS = {"dml": "DmlExecutionProvider", "cpu": "CPUExecutionProvider"}


def a_run(planned: int = 1, **changes: Any) -> Run:
    run = Run(
        run_id="20250102-030405-beef",
        started="2025-01-02T03:04:05Z",
        finished="2025-01-02T03:09:18Z",
        duration_s=313.4,
        command=("epcheck", "run", "--target", "dml", "--baseline", "cpu"),
        candidates=("dml",),
        baseline="cpu",
        targets={
            "dml": {
                "execution_provider": "DmlExecutionProvider",
                "onnxruntime": "1.24.4",
                "DirectML.dll": "1.15.4",
                "adapter": "llvmpipe (LLVM 19.1.7, 256 bits)",
                "vendor": "Mesa",
                "driver": "25.0.7",
                "os": "Windows 10.0.19043 (Wine 10.0)",
                "options": "device_id=0",
            },
            "cpu": {"execution_provider": "CPUExecutionProvider", "onnxruntime": "1.24.4", "os": "Linux 6.1 x86_64"},
        },
        planned=planned,
        selection={"operators": ["Slice", "TopK", "QLinearConv"], "dtypes": "all"},
        versions={"epcheck": "0.1.0", "onnx": "1.23.2", "numpy": "2.4.6"},
        status="complete",
    )
    return dataclasses.replace(run, **changes)


def an_opinion(target: str, operator: str = "Slice", status: str = "pass", **changes: Any) -> Opinion:
    opinion = _make_opinion(target, operator, status)
    return dataclasses.replace(opinion, **changes) if changes else opinion


@cache
def _make_opinion(target: str, operator: str, status: str) -> Opinion:
    """Shared, as that of all cases of a session that pass."""
    return Opinion(
        target=target,
        status=status,
        assignment=((PROVIDERS.get(target, target), operator),),
        create_s=0.0061,
        run_s=0.00098,
    )


def a_slice(
    dtype: str = "float32",
    sample: str = "inner_backward_by_2",
    version: int = 13,
    binding: str = "runtime",
    **changes: Any,
) -> Record:
    """A Slice case that passes."""
    where = "initializer" if binding == "initializer" else "input"
    case = CaseFacts(
        case_id=f"Slice-{version}/{dtype}/{sample}[{binding}]",
        operator="Slice",
        domain="",
        since_version=version,
        opset=max(version, 13),
        dtype=dtype,
        sample=sample,
        binding=binding,
        types={"T": dtype, "Tind": "int64"},
        attributes={},
        values=_values_of_slice(dtype, where),
        directml=_description_of_slice(dtype),
        expects="output equals the truth bit for bit",
        repro=f"epcheck repro 'Slice-{version}/{dtype}/{sample}[{binding}]' --target dml",
    )
    record = Record(
        case=case,
        candidate=an_opinion("dml"),
        baseline=an_opinion("cpu"),
        oracles={"onnx.reference": "agrees", "DML_SLICE1_OPERATOR_DESC": "agrees"},
        status="pass",
        blame="",
        reading="ok",
        reason="every element equals the truth",
        claimed=True,
    )
    return changed(record, **changes)


@cache
def _values_of_slice(dtype: str, where: str) -> tuple[Value, ...]:
    return (
        Value("data", dtype, (1, 1, 4, 4), "input", "0, 1, 2, 3, 4, 5, 6, 7, …"),
        Value("starts", "int64", (1,), where, "5"),
        Value("ends", "int64", (1,), where, "0"),
        Value("axes", "int64", (1,), where, "3"),
        Value("steps", "int64", (1,), where, "-2"),
        Value("output", dtype, (1, 1, 4, 2), "output", "3, 1, 7, 5, …"),
    )


@cache
def _description_of_slice(dtype: str) -> DirectML:
    return DirectML(
        "DML_SLICE1_OPERATOR_DESC",
        {
            "InputTensor": {"DataType": dtype.upper(), "Sizes": [1, 1, 4, 4], "Strides": None},
            "OutputTensor": {"DataType": dtype.upper(), "Sizes": [1, 1, 4, 2], "Strides": None},
            "DimensionCount": 4,
            "InputWindowOffsets": [0, 0, 0, 1],
            "InputWindowSizes": [1, 1, 4, 3],
            "InputWindowStrides": [1, 1, 1, -2],
        },
    )


def changed(record: Record, **changes: Any) -> Record:
    """The record with other values for fields of its own or of its case."""
    if not changes:
        return record
    facts = {name: changes.pop(name) for name in tuple(changes) if name in FACTS}
    return dataclasses.replace(record, case=dataclasses.replace(record.case, **facts), **changes)


def a_wrong_slice(dtype: str = "float16", sample: str = "negative_step_past_both_ends", **changes: Any) -> Record:
    """A Slice case that the candidate gets wrong, with coordinates and heat map."""
    difference = Difference(
        output="output",
        dtype=dtype,
        shape=(1, 1, 4, 2),
        reason="6 of 8 elements differ",
        wrong=6,
        total=8,
        max_ulp=2048.0,
        max_abs=4.0,
        first=(
            Mismatch((0, 0, 0, 0), "3", "1", 1024.0),
            Mismatch((0, 0, 0, 1), "1", "3", 1536.0),
            Mismatch((0, 0, 1, 0), "7", "5", 512.0),
        ),
        heat=((9, 9), (9, 0), (0, 9), (9, 9)),
    )
    return changed(
        a_slice(dtype, sample),
        **{
            "candidate": an_opinion("dml", status="mismatch", differences=(difference,), attempts=2),
            "status": "mismatch",
            "blame": "candidate",
            "reading": "failure",
            "reason": "output: 6 of 8 elements differ from the truth; the baseline and two oracles agree with it",
            **changes,
        },
    )


def a_crashed_topk(dtype: str = "int64", **changes: Any) -> Record:
    """A TopK case that takes the worker down."""
    log = "0024:err:vkd3d-proton: device lost\nwine: Unhandled page fault on read access to 0000000000000010"
    return changed(
        a_slice(dtype),
        **{
            "case_id": f"TopK-11/{dtype}/k_is_the_whole_axis[runtime]",
            "operator": "TopK",
            "since_version": 11,
            "sample": "k_is_the_whole_axis",
            "repro": f"epcheck repro 'TopK-11/{dtype}/k_is_the_whole_axis[runtime]' --target dml",
            "attributes": {"axis": -1, "largest": 1, "sorted": 0},
            "values": (
                Value("X", dtype, (2, 3, 4), "input", "0.5, -1, 3, …"),
                Value("K", "int64", (1,), "input", "4"),
                Value("Values", dtype, (2, 3, 4), "output", "3, 0.5, …"),
                Value("Indices", "int64", (2, 3, 4), "output", "2, 0, …"),
            ),
            "directml": DirectML(
                "DML_TOP_K1_OPERATOR_DESC",
                {"InputTensor": {"DataType": dtype.upper(), "Sizes": [6, 4], "Strides": None}, "Axis": 1, "K": 4},
                ("InputTensor.DataType INT64 is not supported below DML_FEATURE_LEVEL_4_1",),
            ),
            "candidate": an_opinion(
                "dml",
                "TopK",
                "crash",
                stage="run",
                message="the worker died with exit code 5",
                log_tail=log,
                attempts=2,
            ),
            "baseline": an_opinion("cpu", "TopK"),
            "status": "crash",
            "blame": "candidate",
            "reading": "failure",
            "reason": "the worker died while it ran the case, twice, alone in a fresh session",
            **changes,
        },
    )


def a_refused_qlinearconv(dtype: str = "uint8-int8-uint8", **changes: Any) -> Record:
    """A QLinearConv case whose refusal is expected."""
    return changed(
        a_slice(),
        **{
            "case_id": f"QLinearConv-10/{dtype}/per_channel[initializer]",
            "operator": "QLinearConv",
            "since_version": 10,
            "dtype": dtype,
            "sample": "per_channel",
            "repro": f"epcheck repro 'QLinearConv-10/{dtype}/per_channel[initializer]' --target dml",
            "binding": "initializer",
            "types": dict(zip(("T1", "T2", "T3"), dtype.split("-"), strict=True)),
            "attributes": {"auto_pad": "NOTSET", "group": 1, "kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
            "values": (
                Value("x", "uint8", (1, 3, 8, 8), "input", "128, 3, …"),
                Value("x_scale", "float32", (), "initializer", "0.02"),
                Value("x_zero_point", "uint8", (), "initializer", "128"),
                Value("w", "int8", (4, 3, 3, 3), "initializer", "-1, 4, …"),
                Value("w_scale", "float32", (4,), "initializer", "0.1, 0.2, …"),
                Value("w_zero_point", "int8", (4,), "initializer", "0, 0, …"),
                Value("y_scale", "float32", (), "initializer", "0.05"),
                Value("y_zero_point", "uint8", (), "initializer", "127"),
                Value("y", "uint8", (1, 4, 8, 8), "output", "127, 140, …"),
            ),
            "directml": DirectML("DML_QUANTIZED_LINEAR_CONVOLUTION_OPERATOR_DESC", {"GroupCount": 1}),
            "candidate": an_opinion(
                "dml", "QLinearConv", "refused", stage="create", message="E_INVALIDARG: The parameter is incorrect."
            ),
            "baseline": an_opinion("cpu", "QLinearConv"),
            "status": "refused",
            "blame": "candidate",
            "reading": "expected",
            "reason": "refused when the session was made: E_INVALIDARG",
            "expectation": Expected(
                "QLinearConv-10/*/per_channel*",
                "refused",
                "per-channel weights: known",
                "https://example.test/issues/7",
                "vendor is 0x10de",
            ),
            **changes,
        },
    )


def many(count: int) -> Iterator[Record]:
    """`count` records with distinct ids: every 50th a mismatch, every 333rd a crash, every 40th expected."""
    for number in range(count):
        dtype, sample = DTYPES[number % len(DTYPES)], f"start_{number // len(DTYPES)}_step_1"
        record = a_slice(dtype, sample, version=(1, 10, 11, 13)[number % 4])
        if number % 333 == 7:
            record = a_crashed_topk(dtype, case_id=f"TopK-11/{dtype}/{sample}[runtime]", sample=sample)
        elif number % 50 == 9:
            record = a_wrong_slice(dtype, sample)
        elif number % 40 == 1:
            record = a_refused_qlinearconv(
                case_id=f"QLinearConv-10/uint8-int8-uint8/{sample}[initializer]", sample=sample
            )
        elif number % 40 == 2:
            record = dataclasses.replace(
                record,
                status="unplaced",
                claimed=False,
                candidate=an_opinion("dml", status="unplaced", message="no kernel"),
                reason="the provider did not take the node, and does not claim it",
            )
        yield record


def stored(folder: Path, records: Iterable[Record], run: Run | None = None) -> Path:
    """A finished run with these records."""
    records = tuple(records)
    run = run or a_run(len(records))
    with create(folder, run) as journal:
        for record in records:
            journal.append(record)
        journal.close(run)
    return folder
