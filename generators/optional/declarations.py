"""The operators whose optional inputs and outputs are tried in every combination.

Operators whose own samples have every combination are not here, nor are inputs of which no kernel but those for CUDA
defines the meaning (`past_sequence_length`, `cache_indirection`), or which the families of the operators do not
generate (`head_sink`, `g_idx`).
"""

from __future__ import annotations

from epcheck.generators.optional.optional_parts import OptionalParts, Together

MICROSOFT = "com.microsoft::"


def _each(*names: str) -> tuple[Together, ...]:
    return tuple((name,) for name in names)


def _of_normalization(version: int, asked: frozenset[str]) -> str:
    """BatchNormalization-7 and 9 know two cases: all five outputs in training, Y alone outside of it."""
    if version >= 14 or len(asked) in (0, 4):
        return ""
    return f"BatchNormalization-{version} has Y alone, or all five outputs; a part of them is not defined"


def _in_training(version: int, asked: frozenset[str]) -> str:
    """BatchNormalization-14 and 15: the page has Y, running_mean and running_var in training."""
    return "" if len(asked) == 2 else f"BatchNormalization-{version} has all three outputs where training_mode is 1"


def _outside_training(_version: int, asked: frozenset[str]) -> str:
    return "BatchNormalization has no output but Y where training_mode is 0" if asked else ""


def _of_attention(version: int, asked: frozenset[str]) -> str:
    """Attention-25: its inference of shapes wants both states or none."""
    if version < 25 or len(asked & {"present_key", "present_value"}) != 1:
        return ""
    return f"Attention-{version} has present_key and present_value together"


ATTENTION = (
    OptionalParts(
        f"{MICROSOFT}Attention",
        "past_mask_raw_2d",
        {"attention_bias": (True, True)},
        inputs=_each("bias", "mask_index", "past", "attention_bias"),
        never=(("past", "attention_bias"),),  # attention_base.h
        left_out={
            "bias": {"bias": False},
            "mask_index": {"mask": ""},
            "past": {"past": None},
            "attention_bias": {"attention_bias": None},
        },
    ),
    OptionalParts(
        f"{MICROSOFT}QAttention",
        "past_mask_raw_2d",
        inputs=_each("mask_index", "input_zero_point", "weight_zero_point", "past"),
        left_out={"mask_index": {"mask": ""}, "past": {"past": None}},
    ),
    OptionalParts(
        f"{MICROSOFT}MultiHeadAttention",
        "past_mask_raw_2d",
        {"attention_bias": (True, True)},
        inputs=(("bias",), ("key_padding_mask",), ("attention_bias",), ("past_key", "past_value")),
        left_out={
            "bias": {"bias": False},
            "key_padding_mask": {"mask": ""},
            "past_key": {"past": None},
            "past_value": {"past": None},
            "attention_bias": {"attention_bias": None},
        },
    ),
    OptionalParts(
        f"{MICROSOFT}EmbedLayerNormalization",
        "positions_of_each",
        inputs=(("segment_ids", "segment_embedding"), ("mask",), ("position_ids",)),
        left_out={
            "segment_ids": {"segments": False},
            "mask": {"mask": False, "outputs": 3},
            "position_ids": {"positions": 0},
        },
    ),
    OptionalParts(
        f"{MICROSOFT}GroupQueryAttention",
        "token_rotary",
        inputs=(("key", "value"), ("cos_cache", "sin_cache")),
        left_out={"key": {"packed": True}, "cos_cache": {"rotary": 0, "attributes": ()}},
    ),
    OptionalParts(
        "Attention",
        "mask_bool_past",
        inputs=(("attn_mask",), ("past_key", "past_value")),
        left_out={"attn_mask": {"mask": ""}, "past_key": {"past": None}},
        outputs=("present_key", "present_value", "qk_matmul_output"),
        why_undefined=_of_attention,
    ),
    OptionalParts(
        "Attention",
        "mask_bool_2d",
        {"lengths": (2, 5)},
        name="lengths",
        inputs=_each("attn_mask", "nonpad_kv_seqlen"),
        left_out={"attn_mask": {"mask": ""}, "nonpad_kv_seqlen": {"lengths": ()}},
    ),
)

NORMALIZATION = (
    OptionalParts(
        "BatchNormalization",
        "defaults",
        outputs=("mean", "var", "saved_mean", "saved_var"),
        why_undefined=_of_normalization,
    ),
    OptionalParts(
        "BatchNormalization",
        "defaults",
        {"training_mode": 1},
        name="training",
        outputs=("running_mean", "running_var"),
        why_undefined=_in_training,
    ),
    OptionalParts(
        "BatchNormalization",
        "defaults",
        {"training_mode": 1},
        name="inference",
        taken_out="training_mode",
        outputs=("running_mean", "running_var"),
        why_undefined=_outside_training,
    ),
    OptionalParts("LayerNormalization", "defaults", outputs=("Mean", "InvStdDev"), versions=(1,)),
    OptionalParts("SimplifiedLayerNormalization", "defaults", outputs=("inv_std_var",)),
    OptionalParts(
        f"{MICROSOFT}SkipLayerNormalization", "everything", outputs=("mean", "inv_std_var", "input_skip_bias_sum")
    ),
    OptionalParts(
        f"{MICROSOFT}SkipSimplifiedLayerNormalization",
        "everything",
        outputs=("mean", "inv_std_var", "input_skip_bias_sum"),
        undefined={"mean": "the page does not say what the mean of an operator is that takes none away"},
    ),
)

QUANTIZED = (
    OptionalParts(f"{MICROSOFT}MatMulIntegerToFloat", "bias", inputs=_each("a_zero_point", "b_zero_point", "bias")),
    OptionalParts(f"{MICROSOFT}DynamicQuantizeMatMul", "bias", inputs=_each("b_zero_point", "bias")),
    OptionalParts(f"{MICROSOFT}MatMulNBits", "bits_4_zero_points_packed_bias", inputs=_each("zero_points", "bias")),
    OptionalParts(f"{MICROSOFT}QLinearAdd", "defaults", inputs=_each("A_zero_point", "B_zero_point", "C_zero_point")),
)

MASK = "Dropout outside training: the page does not say what the mask is"

OTHERS = (
    OptionalParts("Dropout", "ratio_0_75", outputs=("mask",), versions=(7, 10), undefined={"mask": MASK}),
    OptionalParts("Unique", "defaults", outputs=("indices", "inverse_indices", "counts"), versions=(28,)),
    OptionalParts(
        "NonMaxSuppression",
        "score_threshold",
        inputs=_each("max_output_boxes_per_class", "iou_threshold", "score_threshold"),
    ),
    OptionalParts("Pad", "axes_all", inputs=_each("constant_value", "axes"), versions=(23, 24, 25)),
    OptionalParts("Squeeze", "one_axis", inputs=_each("axes"), versions=(23, 24, 25)),
    OptionalParts(f"{MICROSOFT}ConvTransposeWithDynamicPads", "bias", inputs=_each("Pads", "B")),
    OptionalParts(
        "LSTM",
        "forward_all_inputs",
        inputs=_each("B", "sequence_lens", "initial_h", "initial_c", "P"),
    ),
)

PARTS = (*ATTENTION, *NORMALIZATION, *QUANTIZED, *OTHERS)
"""All of them, in a stable order."""
