"""Decoders decode as applications do: right ones are silent, a fault is named by the mode in which it shows."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

from epcheck.api import ValidateOptions, validate
from epcheck.cli.main import app
from epcheck.conformance.targets.target import Target
from epcheck.models.execution.model_outcome import DONE, ModelOutcome
from epcheck.models.feeds.decoder import Batch, find_decoder
from epcheck.models.validation import truth
from epcheck.models.validation.decoding import Generating, Whole
from epcheck.models.validation.generation import (
    CHUNKS,
    GREEDY,
    ONE_PASS,
    SHARED,
    STEPS,
    UNEQUAL,
    WINDOW,
    DecodingMode,
    Generation,
)
from epcheck.models.validation.validation import RIGHT, UNJUDGED, WRONG, Validation
from tests.models import decoders
from tests.models.decoders import (
    append_in_front,
    group_query_decoder,
    ignore_padding,
    plain_decoder,
    skip_a_position,
    widen_window,
)

HERE = Path(__file__).parents[1]
MODES = (ONE_PASS, STEPS, CHUNKS, UNEQUAL, SHARED, GREEDY)
BEHIND_THE_PROMPT = (STEPS, CHUNKS, UNEQUAL, GREEDY)


def wrong(name: str) -> Target:
    return Target(name, (sys.executable,), (f"python:decoders:{name}", "--path", str(HERE)))


def decode(path: Path, model: onnx.ModelProto, target: str | Target = "cpu", **more: Any) -> Validation:
    onnx.save(model, path / "model.onnx")
    options = {"generate": 8, "advice": False, "culprit": False, **more}
    return validate(ValidateOptions((path / "model.onnx",), (target,), **options)).validation


def modes_of(found: Validation) -> dict[str, DecodingMode]:
    assert found.generation is not None
    return {mode.name: mode for mode in found.generation.modes}


def results(found: Validation) -> dict[str, str]:
    return {name: mode.result for name, mode in modes_of(found).items()}


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("window", [0, 12])
def test_a_right_decoder_of_plain_operators_is_silent(tmp_path: Path, dtype: str, window: int) -> None:
    found = decode(tmp_path, plain_decoder(dtype, window))
    assert (found.status, found.headline) == (RIGHT, "model.onnx runs on CPUExecutionProvider and is right")
    assert results(found) == {**dict.fromkeys(MODES, "right"), SHARED: "left out"}
    assert modes_of(found)[SHARED].words.startswith("no GroupQueryAttention writes its caches")
    assert {name: mode.calls for name, mode in modes_of(found).items()} == {
        ONE_PASS: 1, STEPS: 9, CHUNKS: 4, UNEQUAL: 9, SHARED: 0, GREEDY: 9
    }  # fmt: skip
    assert found.generation is not None
    assert found.generation.truth.startswith("an oracle in float64 computed the truth of the trial")


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(("rotates", "window"), [(True, -1), (False, -1), (True, 12)])
def test_a_right_decoder_of_the_model_builder_is_silent(tmp_path: Path, dtype: str, rotates: bool, window: int) -> None:
    found = decode(tmp_path, group_query_decoder(dtype, window, rotates))
    assert (found.status, found.headline) == (RIGHT, "model.onnx runs on CPUExecutionProvider and is right")
    assert results(found) == dict.fromkeys((*MODES, WINDOW) if window > 0 else MODES, "right")
    assert modes_of(found)[GREEDY].note == "all 9 tokens are those of the truth"


def test_sizes_that_the_model_builder_leaves_open_are_fed_as_they_have_to_be(tmp_path: Path) -> None:
    model = group_query_decoder()
    for value in (*model.graph.input, *model.graph.output):
        if value.name.startswith(("past", "present")):
            value.type.tensor_type.shape.dim[3].dim_param = "kv_cache_dim"
    found = decode(tmp_path, onnx.shape_inference.infer_shapes(model))
    assert (found.status, found.uncompared) == (RIGHT, ())
    assert {"seed 0, kv_cache_dim=16", "seed 1, kv_cache_dim=16"} <= {verdict.trial for verdict in found.verdicts}
    assert results(found) == dict.fromkeys(MODES, "right")


def test_the_prompt_is_longer_where_the_steps_then_pass_the_window(tmp_path: Path) -> None:
    found = decode(tmp_path, group_query_decoder(window=24))
    assert found.generation is not None
    assert (found.generation.prompt, results(found)[WINDOW]) == (20, "right")


def test_a_window_that_cannot_be_passed_is_left_out_with_its_size(tmp_path: Path) -> None:
    found = decode(tmp_path, group_query_decoder(window=4096), generate=2)
    assert found.status == RIGHT
    assert modes_of(found)[WINDOW].skipped == "the window of 4096 tokens is longer than the sequence of 10"


@pytest.mark.parametrize("change", [append_in_front, skip_a_position])
def test_what_is_wrong_behind_a_cache_is_right_in_one_pass(
    tmp_path: Path, change: Callable[[onnx.ModelProto], None]
) -> None:
    model = plain_decoder()
    change(model)
    found = decode(tmp_path, model)
    assert found.status == WRONG
    assert results(found) == {ONE_PASS: "right", **dict.fromkeys(BEHIND_THE_PROMPT, "WRONG"), SHARED: "left out"}
    fault = modes_of(found)[STEPS].fault
    assert fault is not None
    assert (fault.call, fault.place, fault.cache, fault.position, fault.row) == (1, 8, 8, 8, 0)
    assert (fault.output, fault.against, fault.is_of_model) == ("logits", "oracle", True)
    chunk = modes_of(found)[CHUNKS].fault
    assert chunk is not None
    assert (chunk.where, chunk.position) == (f"{CHUNKS} from chunk 2 with a cache of 3", 3)
    assert found.headline.startswith(
        "model.onnx runs on CPUExecutionProvider, but decodes wrongly: right in one pass; wrong token by token from "
        "step 1 with a cache of 8: 'logits' at position 8, against the oracle: relative error "
    )
    assert found.headline.endswith(
        "; the baseline departs there too; so with the prompt in chunks, in a batch of unequal lengths, in greedy "
        "decoding"
    )


def test_a_mask_that_ignores_padding_is_named_by_the_batch(tmp_path: Path) -> None:
    model = plain_decoder()
    ignore_padding(model)
    found = decode(tmp_path, model)
    assert results(found) == {**dict.fromkeys(MODES, "right"), UNEQUAL: "WRONG", SHARED: "left out"}
    fault = modes_of(found)[UNEQUAL].fault
    assert fault is not None
    assert (fault.call, fault.row, fault.position, fault.is_of_model) == (0, 0, 0, True)
    assert fault.words.startswith(f"{UNEQUAL} in the prompt: 'logits' of row 0 at position 0, against the oracle: ")


@pytest.mark.parametrize(
    ("target", "mode", "call"),
    [("appends_in_front", STEPS, 1), ("skips_a_position", STEPS, 1), ("ignores_padding", UNEQUAL, 0)],
)
def test_a_wrong_target_is_at_fault_where_the_baseline_is_right(
    tmp_path: Path, target: str, mode: str, call: int
) -> None:
    found = decode(tmp_path, plain_decoder(), wrong(target))
    fault = modes_of(found)[mode].fault
    assert fault is not None
    assert (fault.call, fault.output, fault.is_of_model) == (call, "logits", False)
    assert results(found)[ONE_PASS] == "right"
    assert modes_of(found)[SHARED].skipped == "the target has no buffers that can be bound"


def test_a_window_that_is_off_by_one_is_named_by_the_window(tmp_path: Path) -> None:
    found = decode(tmp_path, group_query_decoder(window=12), wrong("widens_window"))
    assert results(found) == {**dict.fromkeys(MODES, "right"), SHARED: "left out", WINDOW: "WRONG"}
    fault = modes_of(found)[WINDOW].fault
    assert fault is not None
    assert (fault.mode, fault.position, fault.output) == (ONE_PASS, 12, "logits")
    assert found.is_wrong_in_decoding_alone


def test_a_window_that_the_model_states_wrongly_is_right_as_it_says(tmp_path: Path) -> None:
    model = group_query_decoder(window=12)
    widen_window(model)
    assert decode(tmp_path, model).status == RIGHT


def test_the_first_token_that_departs_is_named_with_its_margin(tmp_path: Path) -> None:
    found = decode(tmp_path, plain_decoder(), wrong("favours_a_token"))
    fault = modes_of(found)[GREEDY].fault
    assert fault is not None
    assert fault.call == 3
    assert fault.why.startswith("token 4 is ")
    assert "in the truth, where its logit is larger by " in fault.why


def test_a_tie_within_the_bound_is_no_fault(tmp_path: Path) -> None:
    model = plain_decoder()
    decoders.pair_tokens(model)
    found = decode(tmp_path, model, wrong("prefers_the_later"))
    greedy = modes_of(found)[GREEDY]
    assert (found.status, greedy.result) == (RIGHT, "right")
    assert greedy.note.endswith("where its logit is larger by 0: a tie within the bound")


@pytest.mark.parametrize("change", [None, append_in_front])
def test_a_model_that_takes_too_long_for_an_oracle_is_held_against_the_baseline_in_one_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[onnx.ModelProto], None] | None
) -> None:
    monkeypatch.setattr(truth, "ORACLE_S", 0.0)
    model = plain_decoder()
    if change is not None:
        change(model)
    found = decode(tmp_path, model, own_process=False)
    assert found.generation is not None
    assert found.generation.truth == (
        "no oracle for this model: time limit reached at node '/Add' (Add); the baseline's answer in one pass takes "
        "its place"
    )
    fault = modes_of(found)[STEPS].fault
    assert (found.status, fault and (fault.call, fault.against, fault.is_of_model)) == (
        (WRONG, (1, "baseline", True)) if change else (RIGHT, None)
    )


def test_without_an_oracle_the_baseline_s_answer_is_the_truth() -> None:
    tokens = np.arange(24).reshape(2, 12)
    decoder = find_decoder(plain_decoder())
    whole = _answer(decoder.caches, 2, 12, 12)

    def run(fed: Any, _shared: Any) -> ModelOutcome:
        rows, width = np.asarray(fed["input_ids"]).shape
        return ModelOutcome(DONE, outputs=_answer(decoder.caches, rows, width, fed["attention_mask"].shape[1]))

    found = generate(decoder, run, Whole(None, whole, "no oracle for this model", {}, lambda _once: iter(())), tokens)
    assert {mode.name: mode.result for mode in found.modes}[STEPS] == "right"
    found = generate(decoder, run, Whole(None, None, "no oracle for this model", {}, lambda _once: iter(())), tokens)
    assert {mode.skipped for mode in found.modes} == {
        "there is nothing to compare with: no oracle for this model",
        "no GroupQueryAttention writes its caches: what it gives is longer than what it reads",
    }
    assert (found.is_compared, found.obstacle) == (
        False, "nothing was decoded: there is nothing to compare with: no oracle for this model"
    )  # fmt: skip


def _answer(caches: Any, rows: int, width: int, total: int) -> dict[str, Any]:
    """Zeros of the shapes that a decoder gives."""
    keys = {cache.present: np.zeros((rows, cache.heads, total, cache.size), np.float32) for cache in caches}
    return {"logits": np.zeros((rows, width, 5), np.float32), **keys}


def generate(decoder: Any, run: Any, whole: Whole, tokens: Any, is_spent: bool = False) -> Generation:
    def compute(_batch: Batch) -> Whole:
        return whole

    return Generating(decoder, run, None, compute, lambda: is_spent, True).decode(tokens, 8)


def test_a_spent_budget_ends_decoding() -> None:
    decoder = find_decoder(plain_decoder())
    whole = Whole(None, _answer(decoder.caches, 2, 12, 12), "", {}, lambda _once: iter(()))
    found = generate(decoder, None, whole, np.arange(24).reshape(2, 12), is_spent=True)
    assert {mode.skipped for mode in found.modes if mode.name != SHARED} == {"the budget is spent"}


def test_an_error_in_one_mode_alone_is_a_fault_and_in_both_targets_none(tmp_path: Path) -> None:
    found = decode(tmp_path, plain_decoder(), generate=57)  # the tables have 64 positions
    assert found.status == UNJUDGED
    assert {mode.result for mode in modes_of(found).values()} == {"left out"}
    assert "nothing was decoded: " in found.headline


def test_a_cache_that_does_not_grow_is_named_by_its_shape(tmp_path: Path) -> None:
    model = plain_decoder()
    decoders.drop_the_past(model)
    found = decode(tmp_path, model)
    fault = modes_of(found)[STEPS].fault
    assert fault is not None
    assert (found.status, fault.call, fault.is_of_model) == (WRONG, 1, True)
    assert fault.words == (
        "token by token from step 1: 'present.1.value': its shape is [1, 2, 1, 16], where [1, 2, 9, 16] is expected"
    )


def test_a_cache_that_cannot_be_read_is_a_fault_of_the_model(tmp_path: Path) -> None:
    model = plain_decoder()
    decoders.refuse_a_past(model)
    found = decode(tmp_path, model)
    fault = modes_of(found)[STEPS].fault
    assert fault is not None
    assert (found.status, fault.call, fault.output, fault.is_of_model) == (WRONG, 1, "", True)
    assert fault.words.startswith("token by token from step 1: the run ends with: ")
    assert results(found)[CHUNKS] == "left out"


def test_the_user_s_tokens_are_the_prompt(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "feeds.npz",
        input_ids=np.array([[7, 8, 9, 10, 11]], np.int64),
        attention_mask=np.ones((1, 5), np.int64),
        position_ids=np.arange(5, dtype=np.int64)[None],
        **{f"past_key_values.{at}.{part}": np.zeros((1, 2, 0, 16), np.float32)
           for at in (0, 1) for part in ("key", "value")},
    )  # fmt: skip
    found = decode(tmp_path, plain_decoder(), feeds=tmp_path / "feeds.npz")
    assert found.generation is not None
    assert (found.status, found.generation.prompt, found.generation.steps) == (RIGHT, 5, 8)


def test_the_documents_have_what_where_what_to_do_and_the_command(tmp_path: Path) -> None:
    model = plain_decoder()
    ignore_padding(model)
    onnx.save(model, tmp_path / "model.onnx")
    files = {name: tmp_path / f"out.{name}" for name in ("json", "junit", "sarif", "html", "markdown", "annotations")}
    flags = [word for name, path in files.items() for word in (f"--{name}", str(path))]
    command = ["validate", str(tmp_path / "model.onnx"), "--target", "cpu", "--generate", "4", "--no-advice", *flags]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 1
    assert "   WRONG in a batch of unequal lengths in the prompt: 'logits' of row 0" in done.output
    assert "   → correct how attention_mask and position_ids leave padding out" in done.output
    document = json.loads(files["json"].read_text())
    (fault,) = document["faults"]
    assert fault["what"].startswith(
        "right in one pass, token by token, with the prompt in chunks, in greedy decoding; wrong"
    )
    assert fault["command"].endswith("--target cpu --baseline cpu --generate 4")
    assert [mode["name"] for mode in document["generation"]["modes"] if mode["fault"]] == [UNEQUAL]
    failure = ElementTree.parse(files["junit"]).find(".//failure")
    assert failure is not None
    assert fault["remedy"] in (failure.text or "")
    (result,) = [
        each for each in json.loads(files["sarif"].read_text())["runs"][0]["results"] if each["level"] == "error"
    ]
    assert result["ruleId"] == "wrong"
    assert fault["remedy"] in result["message"]["text"]
    page = files["html"].read_text()
    assert "<h3>Decoded with its cache</h3>" in page
    assert "no node was searched for. Section 3 has the modes" in page
    assert "decodes wrongly" in files["markdown"].read_text()
    assert "decodes wrongly" in files["annotations"].read_text()


def test_a_model_that_is_no_decoder_ends_with_2_and_one_sentence(tmp_path: Path) -> None:
    model = plain_decoder()
    model.graph.output[0].name = "scores"
    for node in model.graph.node:
        node.output[:] = ["scores" if name == "logits" else name for name in node.output]
    onnx.save(model, tmp_path / "model.onnx")
    done = CliRunner().invoke(app, ["validate", str(tmp_path / "model.onnx"), "--target", "cpu", "--generate", "4"])
    assert done.exit_code == 2
    words = " ".join(done.output.split())
    assert "the model is no decoder with a cache: it has no 'logits'; --generate takes a model with input_ids" in words


def test_nothing_is_decoded_unless_it_is_asked_for(tmp_path: Path) -> None:
    assert decode(tmp_path, plain_decoder(), generate=None).generation is None
