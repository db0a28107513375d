"""Which ways of running a target has on each axis, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from epcheck.conformance.targets.config import load_config
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.target import CPU, DML, Target, TargetError
from epcheck.conformance.targets.variants import USES, Axis, VariantError, parse_axes, variant_of, variants_of

OTHER = Target("other", ("python",), ("onnxruntime",), provider="OtherExecutionProvider", options={"device": "CPU"})
PRECISE = replace(OTHER, precisions={"f32": {"precision": "FP32"}, "f16": {"precision": "FP16"}})


def test_axes_are_read_once_each_from_one_text_or_several() -> None:
    assert parse_axes("level, io_binding") == (Axis.LEVEL, Axis.IO_BINDING)
    assert parse_axes("binding") == (Axis.IO_BINDING,)  # as earlier versions call it
    assert parse_axes(["level", "level,packing"]) == (Axis.LEVEL, Axis.PACKING)


def test_a_variant_is_found_by_the_earlier_name_of_its_axis() -> None:
    assert variant_of(OTHER, "binding=device").variant == "io_binding=device"


def test_an_unknown_axis_is_refused_with_those_there_are() -> None:
    with pytest.raises(
        VariantError, match="unknown axis 'speed'; write some of level, io_binding, context, precision, pack"
    ):
        parse_axes("level,speed")


def test_every_axis_but_those_of_use_changes_one_thing() -> None:
    found = variants_of([PRECISE], [axis for axis in Axis if axis not in USES])["other"]
    assert found.skipped == {}
    assert {t.variant: (dict(t.request_defaults), dict(t.options), t.packed) for t in found.targets} == {
        "level=basic": ({"level": "basic"}, {"device": "CPU"}, False),
        "level=extended": ({"level": "extended"}, {"device": "CPU"}, False),
        "level=all": ({"level": "all"}, {"device": "CPU"}, False),
        "io_binding=device": ({"way": "bound"}, {"device": "CPU"}, False),
        "context=file": ({"way": "context", "context": "file"}, {"device": "CPU"}, False),
        "context=bytes": ({"way": "context", "context": "bytes"}, {"device": "CPU"}, False),
        "context=moved": ({"way": "context", "context": "moved"}, {"device": "CPU"}, False),
        "context=read_only": ({"way": "context", "context": "read_only"}, {"device": "CPU"}, False),
        "context=stale": ({"way": "context", "context": "stale"}, {"device": "CPU"}, False),
        "context=damaged": ({"way": "context", "context": "damaged"}, {"device": "CPU"}, False),
        "precision=f32": ({}, {"device": "CPU", "precision": "FP32"}, False),
        "precision=f16": ({}, {"device": "CPU", "precision": "FP16"}, False),
        "packing=alone": ({}, {"device": "CPU"}, False),
        "packing=packed": ({}, {"device": "CPU"}, True),
    }
    assert {(t.base, t.name == f"other {t.variant}", t.expectations) for t in found.targets} == {("other", True, ())}


def test_every_axis_of_use_says_how_the_worker_uses_sessions() -> None:
    found = {target.variant: target for target in variants_of([OTHER], USES)["other"].targets}
    assert {name: dict(target.request_defaults) for name, target in found.items()} == {
        **{
            name: {"way": "use", "use": name}
            for name in (
                "threads=2", "threads=4", "threads=shared", "threads=first", "threads=creation", "reruns=feeds",
                "reruns=shapes", "reruns=sizes", "reruns=types", "reruns=bound", "reruns=in_place",
                "lifecycle=repeated", "lifecycle=failed", "lifecycle=order", "lifecycle=registered", "lifecycle=exit",
                "weights=other", "weights=shared",
            )
        },
        "weights=file": {"way": "weights", "weights": "file"},
        "weights=memory": {"way": "weights", "weights": "memory"},
        "options=arena": {"arena": True},
        "options=parallel": {"parallel": True, "threads": 2},
        "options=threads": {"threads": 4},
        "options=prepacking": {},
        "options=deterministic": {"deterministic": True},
    }  # fmt: skip
    assert found["options=prepacking"].config["session.disable_prepacking"] == "1"
    assert "session.disable_prepacking" not in found["options=arena"].config


def test_a_callable_has_the_axes_of_which_a_call_can_stand_for_a_session() -> None:
    call = Target("python:m:f", ("python",), ("python:m:f",))
    found = variants_of([call], USES)["python:m:f"]
    assert {target.variant.partition("=")[0] for target in found.targets} == {"threads", "reruns", "lifecycle"}
    assert found.skipped.keys() == {"weights", "options"}


@pytest.mark.parametrize("provider", [CPU, DML])
def test_a_provider_that_compiles_nothing_has_no_context(provider: str) -> None:
    target = replace(OTHER, provider=provider)
    found = variants_of([target], (Axis.CONTEXT, Axis.IO_BINDING))["other"]
    assert found.skipped == {"context": f"{provider} makes no EPContext models"}
    assert [t.variant for t in found.targets] == ["io_binding=device"]


def test_axes_of_which_no_candidate_has_a_variant_are_refused() -> None:
    why = r"--variants precision: target 'other' declares no precisions in epcheck\.toml; name another axis"
    with pytest.raises(TargetError, match=why):
        variants_of([OTHER], (Axis.PRECISION,))
    found = variants_of([OTHER, replace(PRECISE, name="precise")], (Axis.PRECISION,))
    assert (len(found["other"].targets), len(found["precise"].targets)) == (0, 2)
    function = resolve("python:mymodule:backend")
    with pytest.raises(TargetError, match="'python:mymodule:backend' does not run sessions of ONNX Runtime"):
        variants_of([function], (Axis.LEVEL,))


def test_precisions_are_declared_in_a_table(tmp_path: Path) -> None:
    path = tmp_path / "epcheck.toml"
    path.write_text(
        '[targets.mine]\nbase = "cpu"\n[targets.mine.precisions]\nf32 = { precision = "FP32", level = 2 }\n'
    )
    assert resolve("mine", load_config(path)).precisions == {"f32": {"precision": "FP32", "level": "2"}}


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ('f32 = "FP32"', "precisions.f32 must be a table of provider options"),
        ("f32 = {}", "precisions.f32 must be a table of provider options"),
        ("f32 = { precision = true }", r"precisions.f32 holds a bool \('precision'\)"),
    ],
)
def test_precisions_that_are_no_options_are_refused(tmp_path: Path, written: str, why: str) -> None:
    path = tmp_path / "epcheck.toml"
    path.write_text(f'[targets.mine]\nbase = "cpu"\n[targets.mine.precisions]\n{written}\n')
    with pytest.raises(TargetError, match=why):
        load_config(path)


def test_what_other_targets_compile_is_loaded_by_each_candidate() -> None:
    npu, older = (Target(name, ("python",), ("onnxruntime",), provider="Npu") for name in ("npu", "npu@1"))
    found = variants_of([npu], (Axis.CONTEXT,), (older,))["npu"].targets[-1]
    assert (found.name, found.base, found.variant) == ("npu context=from:npu@1", "npu", "context=from:npu@1")
    assert found.request_defaults == {"way": "context", "context": "from"}
    assert found == variant_of(npu, "context=from:npu@1", older)
    with pytest.raises(TargetError, match=r"^--context-from needs the axis of contexts; add --variants context$"):
        variants_of([npu], (Axis.LEVEL,), (older,))
    cpu = replace(older, name="cpu", provider="CPUExecutionProvider")
    with pytest.raises(TargetError, match=r"^--context-from cpu: CPUExecutionProvider makes no EPContext models$"):
        variants_of([npu], (Axis.CONTEXT,), (cpu,))
    with pytest.raises(
        TargetError, match="unknown variant 'context=from:cpu': CPUExecutionProvider makes no EPContext"
    ):
        variant_of(npu, "context=from:cpu", cpu)
    with pytest.raises(TargetError, match="target 'npu' has no variant 'context=from:npu@1'"):
        variant_of(npu, "context=from:npu@1")
