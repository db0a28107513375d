"""Which models are decoders with a cache, and what a call feeds them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from epcheck.models.feeds import feeds
from epcheck.models.feeds.decoder import (
    Batch,
    Cache,
    NotADecoderError,
    feed_call,
    find_decoder,
    find_open_sizes,
    find_positions,
    read_row,
)
from epcheck.models.graph import feedable
from epcheck.models.zoo import named
from tests.models.decoders import KEY_HEADS, SIZE, group_query_decoder, plain_decoder

TOKENS = np.array([[11, 12, 13, 14, 15], [21, 22, 23, 24, 25]])
BATCH = Batch(TOKENS, (2, 4))


def test_a_decoder_is_known_by_its_inputs_and_outputs() -> None:
    found = find_decoder(plain_decoder("float16"))
    assert found.caches[0] == Cache("past_key_values.0.key", "present.0.key", KEY_HEADS, SIZE, "float16")
    assert [cache.present for cache in found.caches] == [
        f"present.{layer}.{part}" for layer in (0, 1) for part in ("key", "value")
    ]
    assert dict(found.dtypes) == dict.fromkeys(("input_ids", "attention_mask", "position_ids"), "int64")
    assert (found.batch, found.window, found.has_group_query) == (None, 0, False)


def test_the_model_builder_s_decoder_states_its_window_and_keeps_its_caches() -> None:
    found = find_decoder(group_query_decoder(window=12))
    assert (found.window, found.has_group_query, found.has_positions) == (12, True, True)
    assert "position_ids" not in found.dtypes


@pytest.mark.parametrize("rotates", [True, False])
def test_sizes_that_the_model_builder_leaves_open_are_those_of_the_node(rotates: bool) -> None:
    model = group_query_decoder(rotates=rotates)
    for value in model.graph.input:
        if value.name.startswith("past"):
            value.type.tensor_type.shape.dim[3].dim_param = "kv_cache_dim"
    inferred = onnx.shape_inference.infer_shapes(model)
    decoder = find_decoder(inferred)
    assert {(cache.heads, cache.size) for cache in decoder.caches} == {(KEY_HEADS, SIZE)}
    assert find_open_sizes(inferred, decoder) == {"kv_cache_dim": (SIZE,)}
    assert find_open_sizes(group_query_decoder(), decoder) == {}


def rename_logits(model: onnx.ModelProto) -> None:
    model.graph.output[0].name = "scores"


def rename_past(model: onnx.ModelProto) -> None:
    for value in model.graph.input:
        value.name = value.name.replace("past_key_values", "cache")


def read_an_encoder(model: onnx.ModelProto) -> None:
    states = helper.make_tensor_value_info("encoder_hidden_states", TensorProto.FLOAT, ["batch", "length", 8])
    model.graph.input.append(states)


def fix_the_past(model: onnx.ModelProto) -> None:
    (value,) = (value for value in model.graph.input if value.name == "past_key_values.1.value")
    value.type.tensor_type.shape.dim[2].dim_value = 64


def fix_the_batch(model: onnx.ModelProto) -> None:
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 3


def quantise_a_cache(model: onnx.ModelProto) -> None:
    (value,) = (value for value in model.graph.input if value.name == "past_key_values.0.value")
    value.type.tensor_type.elem_type = TensorProto.INT8


def ask_for_text(model: onnx.ModelProto) -> None:
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.STRING


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (quantise_a_cache, "'past_key_values.0.value' is int8, which is none of int64, "),
        (ask_for_text, "'input_ids' is string, which is none of int64, "),
        (rename_logits, "it has no 'logits'"),
        (rename_past, "it has no 'past_key_values.0.key'"),
        (read_an_encoder, "it reads 'encoder_hidden_states'"),
        (fix_the_past, r"'past_key_values.1.value' has the shape float32\[\?, 2, 64, 16\], whose axis 2"),
        (fix_the_batch, "its batch is always 3"),
    ],
)
def test_what_is_no_such_decoder_is_named(change: Callable[[onnx.ModelProto], None], why: str) -> None:
    model = plain_decoder()
    change(model)
    with pytest.raises(NotADecoderError, match=f"^the model is no decoder with a cache: {why}"):
        find_decoder(model)


def test_caches_of_bfloat16_are_named() -> None:
    model = plain_decoder("float32")
    for value in (*model.graph.input, *model.graph.output):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.BFLOAT16
    with pytest.raises(NotADecoderError, match="its caches are bfloat16"):
        find_decoder(feedable.add_casts(model)[0])


def test_other_models_of_the_zoo_are_none() -> None:
    with pytest.raises(NotADecoderError, match=r"it has no 'past_key_values\.0\.key'"):
        find_decoder(named("bert").build())


def test_shorter_prompts_are_padded_in_front_and_numbered_from_their_first_token() -> None:
    decoder = find_decoder(plain_decoder())
    fed = feed_call(decoder, BATCH, 0, 4)
    assert {name: np.asarray(value).tolist() for name, value in fed.items()} == {
        "input_ids": [[0, 0, 11, 12], [21, 22, 23, 24]],
        "attention_mask": [[0, 0, 1, 1], [1, 1, 1, 1]],
        "position_ids": [[0, 0, 0, 1], [0, 1, 2, 3]],
    }
    step = feed_call(decoder, BATCH, 4, 1)
    assert np.asarray(step["input_ids"]).tolist() == [[13], [25]]
    assert np.asarray(step["position_ids"]).tolist() == [[2], [4]]
    assert np.asarray(step["attention_mask"]).tolist() == [[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]]


def test_for_group_query_attention_they_are_padded_behind() -> None:
    decoder = find_decoder(group_query_decoder())
    assert np.asarray(feed_call(decoder, BATCH, 0, 4)["input_ids"]).tolist() == [[11, 12, 0, 0], [21, 22, 23, 24]]
    assert find_positions(decoder, BATCH, 5).tolist() == [[0, 1, -1, -1, 2], [0, 1, 2, 3, 4]]


@pytest.mark.parametrize(("build", "where"), [(plain_decoder, [2, 3, 4]), (group_query_decoder, [0, 1, 2])])
def test_a_row_is_read_without_its_padding(build: Callable[[], onnx.ModelProto], where: list[int]) -> None:
    decoder = find_decoder(build())
    keys = np.arange(2 * 5)[:, None, None].repeat(SIZE, 2).reshape(1, 2, 5, SIZE).repeat(2, 0)
    outputs = {"logits": np.arange(2.0).reshape(2, 1, 1), **{cache.present: keys for cache in decoder.caches}}
    found = read_row(decoder, BATCH, outputs, 0, (4, 5))
    assert found["logits"].tolist() == [[0.0]]
    assert found["present.0.key"][0, :, 0].tolist() == where


def test_a_merged_decoder_is_told_whether_there_is_a_cache() -> None:
    model = plain_decoder()
    model.graph.input.append(helper.make_tensor_value_info("use_cache_branch", TensorProto.BOOL, [1]))
    decoder = find_decoder(model)
    asked = [np.asarray(feed_call(decoder, BATCH, start, 1)["use_cache_branch"]).tolist() for start in (0, 4)]
    assert asked == [[False], [True]]


def test_generated_masks_are_full_where_lengths_follow_from_them() -> None:
    made = feeds.generate(group_query_decoder(), 1, {"batch": 3})
    assert np.asarray(made["attention_mask"]).tolist() == [[1] * 12] * 3
    assert not np.asarray(feeds.generate(plain_decoder(), 1, {"batch": 3})["attention_mask"]).all()
