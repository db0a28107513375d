"""Who says what is right about a model."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from epcheck.api import ValidateOptions, validate
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.target import CPU
from epcheck.models.execution.evaluators import choose
from epcheck.models.validation.formatting import reduce_command
from epcheck.models.validation.validation import WRONG
from tests.models.small_models import layers


def test_cpu_is_compared_with_itself_without_optimisation() -> None:
    evaluators = choose("cpu", None)
    baseline, level = evaluators.unlike("all")
    assert baseline is not None
    assert (baseline.name, baseline.provider, level) == ("cpu without optimisation", CPU, "disabled")
    assert evaluators.compares_with_itself


def test_a_candidate_that_is_not_optimised_is_compared_with_one_that_is() -> None:
    baseline, level = choose("cpu", None).unlike("disabled")
    assert baseline is not None
    assert (baseline.name, level) == ("cpu with all optimisations", "all")


def test_another_target_is_compared_with_cpu_as_it_is() -> None:
    evaluators = choose(resolve("reference"), None)
    baseline, level = evaluators.unlike("basic")
    assert baseline is not None
    assert (baseline.name, level, evaluators.compares_with_itself) == ("cpu", "basic", False)
    assert choose("cpu", "none").baseline is None


@pytest.mark.slow
def test_the_command_that_reproduces_names_the_trial_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(__file__).parents[1])  # where a `python:` target is looked for
    path = tmp_path / "model.onnx"
    onnx.save(layers(1), path)
    wrong = "python:wrong_backends:doubles_relu"
    found = validate(
        ValidateOptions((path,), (wrong,), "cpu", dims={"batch": (2,)}, seeds=(3,), level="basic", culprit=False)
    ).validation
    assert found.status == WRONG
    assert reduce_command(found) == (
        f"epcheck reduce {path} --target {wrong} --baseline cpu --level basic --seed 3 --dim batch=2"
    )
