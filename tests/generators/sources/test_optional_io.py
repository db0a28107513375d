"""Optional inputs and outputs: which combinations are cases, and what is true of them."""

from __future__ import annotations

from itertools import product

import numpy as np
import onnx
import pytest

from epcheck.generators import registry, schema, suite
from epcheck.generators.case import BuiltCase, Case
from epcheck.generators.sources import optional_io
from epcheck.generators.truth import Outputs
from tests.generators.built_suite import cases_by_operator


def every() -> dict[str, tuple[Case, ...]]:
    return cases_by_operator(optional_io)


def built(case_id: str) -> BuiltCase:
    return suite.case_by_id(case_id).build()


def outputs(made: BuiltCase) -> Outputs:
    assert isinstance(made.truth, Outputs)
    return made.truth


def asked_of(case: Case) -> tuple[bool, ...]:
    """Whether each optional output of the operator is asked for."""
    definition = schema.schema(case.operator, case.since_version, case.domain)
    optional = [
        number
        for number, formal in enumerate(definition.outputs)
        if formal.option == onnx.defs.OpSchema.FormalParameterOption.Optional
    ]
    names = case.build().node.outputs
    return tuple(number < len(names) and bool(names[number]) for number in optional)


def test_every_case_is_a_valid_model_with_exactly_the_outputs_that_are_asked_for() -> None:
    found = [case for own in every().values() for case in own]
    assert len({case.id for case in found}) == len(found) >= 340
    for case in found:
        made = case.build()
        if case.operator_key in ("NonMaxSuppression", "LSTM", "Attention"):
            onnx.checker.check_model(onnx.load_from_string(made.model))
        assert tuple(output.name for output in outputs(made).outputs) == made.node.results, case.id
        assert case.kind == "optional"


@pytest.mark.parametrize(
    ("operator", "version", "count"),
    [("BatchNormalization", 7, 4), ("BatchNormalization", 9, 4), ("BatchNormalization", 14, 2), ("Dropout", 7, 1)],
)
def test_the_old_versions_have_every_combination_of_outputs(operator: str, version: int, count: int) -> None:
    own = [case for case in every()[operator] if case.since_version == version and "outputs" in case.sample]
    assert {asked_of(case) for case in own} == set(product((False, True), repeat=count))


def test_all_five_outputs_of_batchnormalization_7_train() -> None:
    made = built("BatchNormalization-7/float32/optional_outputs_mean_var_saved_mean_saved_var[initializer]")
    onnx.checker.check_model(onnx.load_from_string(made.model))
    assert made.node.outputs == ("Y", "mean_out", "var_out", "saved_mean", "saved_var")  # inputs have the other names
    x, old = made.node.array("X").astype(np.float64), made.node.array("mean").astype(np.float64)
    found = {output.name: output for output in outputs(made).outputs}
    mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
    np.testing.assert_allclose(found["saved_mean"].value, mean, rtol=1e-6)
    np.testing.assert_allclose(found["saved_var"].value, variance, rtol=1e-6)
    np.testing.assert_allclose(found["mean_out"].value, 0.9 * old + 0.1 * mean, rtol=1e-6)
    normalized = (x - mean[:, None, None]) / np.sqrt(variance + 1e-5)[:, None, None]
    scale, bias = (made.node.array(name)[:, None, None] for name in ("scale", "B"))
    np.testing.assert_allclose(found["Y"].value, normalized * scale + bias, rtol=1e-5, atol=1e-5)
    assert outputs(made).undefined == ""


def test_a_part_of_the_five_may_be_refused_and_has_no_truth() -> None:
    truth = outputs(built("BatchNormalization-9/float32/optional_outputs_var_saved_mean[initializer]"))
    assert truth.undefined.startswith("BatchNormalization-9 has Y alone, or all five outputs")
    assert [output.value.shape for output in truth.outputs] == [(2, 3, 4, 5), (3,), (3,)]
    assert all(output.undefined is not None and output.undefined.where.all() for output in truth.outputs)
    alone = outputs(built("BatchNormalization-9/float32/optional_outputs_none[initializer]"))
    assert (alone.undefined, alone.outputs[0].undefined) == ("", None)


def test_a_node_outside_of_training_does_not_say_that_it_trains() -> None:
    both = "outputs_running_mean_running_var[initializer]"
    inference = built(f"BatchNormalization-14/float32/optional_inference_{both}")
    training = built(f"BatchNormalization-14/float32/optional_training_{both}")
    assert ("training_mode" in inference.node.attributes, training.node.attributes["training_mode"]) == (False, 1)
    assert (outputs(training).undefined, outputs(inference).undefined != "") == ("", True)
    part = built("BatchNormalization-14/float32/optional_training_outputs_running_var[initializer]")
    assert outputs(part).undefined == "BatchNormalization-14 has all three outputs where training_mode is 1"


def test_the_mask_of_an_old_dropout_is_undefined_and_its_output_is_not() -> None:
    made = built("Dropout-10/float32/optional_outputs_mask[initializer]")
    output, mask = outputs(made).outputs
    np.testing.assert_array_equal(output.value, made.node.array("data"))
    assert (output.undefined, mask.undefined is not None, outputs(made).undefined) == (None, True, "")


def test_mean_and_deviation_of_the_skip_operators() -> None:
    case_id = "com.microsoft::SkipLayerNormalization-1/float32/optional_outputs_mean_inv_std_var[initializer]"
    made = built(case_id)
    total = sum(made.node.array(name).astype(np.float64) for name in ("input", "skip", "bias"))
    found = {output.name: output.value for output in outputs(made).outputs}
    np.testing.assert_allclose(found["mean"], np.mean(total, -1, keepdims=True), rtol=1e-6)
    expected = 1 / np.sqrt(np.var(total, -1, keepdims=True) + 1e-12)
    np.testing.assert_allclose(found["inv_std_var"], expected, rtol=1e-6)


def test_inputs_are_left_out_together_with_what_depends_on_them() -> None:
    made = built("com.microsoft::Attention-1/float32/optional_inputs_bias_attention_bias[initializer]")
    there = [operand.name for operand in made.node.inputs if operand is not None]
    assert there == ["input", "weights", "bias", "attention_bias"]
    assert made.node.array("attention_bias").shape[-1] == made.node.array("input").shape[1]  # no past is counted
    (parts,) = registry.all_operators()["LSTM"].optional_io
    assert len({name for name, _ in optional_io.combinations(parts)}) == 32
