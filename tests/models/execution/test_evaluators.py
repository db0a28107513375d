"""Who says what is right about a model."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from small_models import layers

from epcheck.conformance.targets.target import CPU
from epcheck.models.execution.evaluators import LARGE_BYTES, choose
from epcheck.models.validation.formatting import reduce_command
from epcheck.models.validation.options import ValidateOptions
from epcheck.models.validation.validate import validate
from epcheck.models.validation.validation import WRONG


def test_the_reference_says_what_is_right_about_a_small_model_on_cpu() -> None:
    assert choose("cpu", None).for_size(LARGE_BYTES).unlike("all")[0] == choose("cpu", "reference").baseline


def test_cpu_without_optimisation_says_it_about_a_large_one() -> None:
    baseline, level = choose("cpu", None).for_size(LARGE_BYTES + 1).unlike("all")
    assert baseline is not None
    assert (baseline.name, baseline.provider, level) == ("cpu without optimisation", CPU, "disabled")


@pytest.mark.parametrize("named", ["reference", "none"])
def test_a_baseline_that_is_named_is_taken_whatever_the_size(named: str) -> None:
    evaluators = choose("cpu", named)
    assert evaluators.for_size(LARGE_BYTES + 1) == evaluators


@pytest.mark.slow
def test_the_command_that_reproduces_names_the_trial_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(__file__).parents[1])  # where a `python:` target is looked for
    path = tmp_path / "model.onnx"
    onnx.save(layers(1), path)
    wrong = "python:wrong_backends:doubles_relu"
    found = validate(
        path, ValidateOptions(wrong, "cpu", dims={"batch": (2,)}, seeds=(3,), level="basic", culprit=False)
    )
    assert found.status == WRONG
    assert reduce_command(found) == (
        f"epcheck reduce {path} --target {wrong} --baseline cpu --level basic --seed 3 --dim batch=2"
    )
