"""DML_MULTIHEAD_ATTENTION_OPERATOR_DESC and its successor (ns-directml-dml_multihead_attention_operator_desc)."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.directml.constraint import Violation
from epcheck.generators.directml.operator_desc import OperatorDesc
from epcheck.generators.directml.tensor import TensorDesc


class MultiheadAttentionMaskType(Enum):
    """DML_MULTIHEAD_ATTENTION_MASK_TYPE (ne-directml-dml_multihead_attention_mask_type)."""

    NONE = 0
    KEY_SEQUENCE_LENGTH = 1
    KEY_SEQUENCE_END_START = 2
    KEY_QUERY_SEQUENCE_LENGTH_START_END = 3
    BOOLEAN = 4


def _take_last(sizes: tuple[int, ...], count: int) -> tuple[int, ...] | None:
    """So many last sizes; None where there are fewer, or those in front of them are not 1, as the pages want."""
    return sizes[-count:] if len(sizes) >= count and set(sizes[:-count]) <= {1} else None


@dataclass(frozen=True)
class MultiheadAttention(OperatorDesc):
    """Softmax(Query Key^T Scale + RelativePositionBias + mask) Value, of each head for itself."""

    NAME: ClassVar[str] = "DML_MULTIHEAD_ATTENTION_OPERATOR_DESC"

    query_tensor: TensorDesc | None
    key_tensor: TensorDesc | None
    value_tensor: TensorDesc | None
    stacked_query_key_tensor: TensorDesc | None
    stacked_key_value_tensor: TensorDesc | None
    stacked_query_key_value_tensor: TensorDesc | None
    bias_tensor: TensorDesc | None
    mask_tensor: TensorDesc | None
    relative_position_bias_tensor: TensorDesc | None
    past_key_tensor: TensorDesc | None
    past_value_tensor: TensorDesc | None
    output_tensor: TensorDesc
    output_present_key_tensor: TensorDesc | None
    output_present_value_tensor: TensorDesc | None
    scale: float
    mask_filter_value: float
    head_count: int
    mask_type: MultiheadAttentionMaskType

    def constraints(self) -> Iterator[Violation]:
        """Query, key and value are there once each, stacked or not, stacked along the fourth of five dimensions."""
        qk, kv, qkv = (
            self.stacked_query_key_tensor, self.stacked_key_value_tensor, self.stacked_query_key_value_tensor,
        )  # fmt: skip
        present = {
            "query": (self.query_tensor, qk, qkv),
            "key": (self.key_tensor, qk, kv, qkv),
            "value": (self.value_tensor, kv, qkv),
        }
        for name, tensors in present.items():
            if (count := sum(tensor is not None for tensor in tensors)) != 1:
                yield self.violation(f"one_{name}", f"{name} is given {count} times instead of once")
        for parts, tensor in ((2, qk), (2, kv), (3, qkv)):
            if tensor is not None and (tensor.dimension_count != 5 or tensor.sizes[3] != parts):
                yield self.violation("stacked_sizes", f"a tensor of {parts} has sizes {tensor.sizes}")
        if (self.past_key_tensor is None) != (self.past_value_tensor is None):
            yield self.violation("past_together", "PastKeyTensor and PastValueTensor come together")
        if (self.mask_tensor is None) != (self.mask_type is MultiheadAttentionMaskType.NONE):
            yield self.violation("mask_type", f"MaskType is {self.mask_type.name} with MaskTensor {self.mask_tensor}")
        if self.head_count < 1:
            yield self.violation("head_count_positive", f"HeadCount is {self.head_count}")
            return
        types = {tensor.data_type for name, tensor in self.tensors().items() if tensor and name != "MaskTensor"}
        if len(types) > 1:
            yield self.violation("same_data_type", "all tensors but MaskTensor have one data type")
        yield from self._size_violations()

    def _size_violations(self) -> Iterator[Violation]:
        """Query [B, S, H], Key [B, K, H], Value [B, K, V], Output [B, S, V], whose last sizes are whole heads; behind
        the past P the present [B, N, P + K, H / N]. Stacked are [B, S, N, parts, H / N], a bias H + H + V."""
        q, k, v = self._part(0), self._part(1), self._part(2)
        if q is None or k is None or v is None:
            return
        heads, output = self.head_count, _take_last(self.output_tensor.sizes, 3)
        if output != (*q[:2], v[2]) or k != (q[0], k[1], q[2]) or v[:2] != k[:2]:
            yield self.violation("sizes_fit", f"query {q}, key {k}, value {v}, output {output}")
        if q[2] % heads or v[2] % heads:
            yield self.violation("whole_heads", f"{heads} heads of {q[2]} and {v[2]} elements")
        bias, parts = self.bias_tensor, q[2] + k[2] + v[2]
        if bias is not None and bias.element_count != parts:
            yield self.violation("bias_sizes", f"BiasTensor has sizes {bias.sizes}, not of {parts} elements")
        past = 0 if self.past_key_tensor is None else self.past_key_tensor.sizes[-2]
        for name, length, width in (
            ("past_key_tensor", past, k[2]),
            ("past_value_tensor", past, v[2]),
            ("output_present_key_tensor", past + k[1], k[2]),
            ("output_present_value_tensor", past + k[1], v[2]),
        ):
            tensor: TensorDesc | None = getattr(self, name)
            expected = (q[0], heads, length, width // heads)
            if tensor is not None and _take_last(tensor.sizes, 4) != expected:
                yield self.violation(f"{name}_sizes", f"{name} has sizes {tensor.sizes} instead of {expected}")

    def _part(self, place: int) -> tuple[int, ...] | None:
        """The sizes [B, S, N H] of query, key or value, stacked or not; None where they are not to be had."""
        alone = (self.query_tensor, self.key_tensor, self.value_tensor)[place]
        if alone is not None:
            return _take_last(alone.sizes, 3)
        for stacked, places in (
            (self.stacked_query_key_tensor, (0, 1)),
            (self.stacked_key_value_tensor, (1, 2)),
            (self.stacked_query_key_value_tensor, (0, 1, 2)),
        ):
            if stacked is not None and place in places and stacked.dimension_count == 5:
                batch, sequence, heads, _, width = stacked.sizes
                return batch, sequence, heads * width
        return None

    def evaluate(self, *input_tensors: Array | None) -> tuple[Array, ...]:
        """In float64, then in the output's type. Masked keys get MaskFilterValue added. OutputTensor, then the present
        tensors that the description has: the past, and the new keys and values after it.

        input_tensors: an array for each tensor up to PastValueTensor; None for one that the description leaves out.
        """
        self.require_defined()
        query_key_value, stacked_tensors = input_tensors[:3], input_tensors[3:6]
        bias_tensor, mask_tensor, relative_position_bias_tensor, past_key_tensor, past_value_tensor = input_tensors[6:]
        parts = [None if a is None else self._heads(a) for a in query_key_value]
        for stacked, places in zip(stacked_tensors, ((0, 1), (1, 2), (0, 1, 2)), strict=True):
            if stacked is not None:
                for index, place in enumerate(places):
                    parts[place] = stacked[:, :, :, index].astype(np.float64).transpose(0, 2, 1, 3)
        query, key, value = (part for part in parts if part is not None)
        if bias_tensor is not None:
            ends = np.cumsum([part.shape[1] * part.shape[3] for part in (query, key, value)])[:-1]
            added = [self._heads(bias.reshape(1, 1, -1)) for bias in np.split(bias_tensor.reshape(-1), ends)]
            query, key, value = (part + bias for part, bias in zip((query, key, value), added, strict=True))
        if past_key_tensor is not None and past_value_tensor is not None:
            key = np.concatenate([past_key_tensor.astype(np.float64), key], 2)
            value = np.concatenate([past_value_tensor.astype(np.float64), value], 2)
        score = query @ key.transpose(0, 1, 3, 2) * self.scale
        if relative_position_bias_tensor is not None:
            score = score + relative_position_bias_tensor
        if mask_tensor is not None:
            score = score + np.where(self._find_masked(mask_tensor, key.shape[2]), self.mask_filter_value, 0.0)
        weight = np.exp(score - score.max(-1, keepdims=True))
        output = weight / weight.sum(-1, keepdims=True) @ value
        batch, heads, sequence, head = output.shape
        results = [output.transpose(0, 2, 1, 3).reshape(batch, sequence, heads * head)]
        results += [part for part, desc in ((key, self.output_present_key_tensor),
                                            (value, self.output_present_value_tensor)) if desc is not None]  # fmt: skip
        return tuple(result.astype(self.output_tensor.data_type.dtype) for result in results)

    def _heads(self, joined: Array) -> Array:
        """[B, S, N H] -> [B, N, S, H], float64."""
        batch, sequence, width = joined.shape
        split = joined.astype(np.float64).reshape(batch, sequence, self.head_count, width // self.head_count)
        return np.asarray(split.transpose(0, 2, 1, 3))

    def _find_masked(self, mask: Array, keys: int) -> Array:
        """bool, broadcast to [B, N, S, T]: the keys that the mask takes out. Raises ValueError for a type of mask whose
        layout the page does not define."""
        match self.mask_type:
            case MultiheadAttentionMaskType.BOOLEAN:
                return np.asarray(mask == 0)
            case MultiheadAttentionMaskType.KEY_SEQUENCE_LENGTH:
                return np.asarray(np.arange(keys) >= mask.reshape(-1, 1))[:, None, None]
            case other:
                raise ValueError(f"the page of {self.NAME} does not define the layout of {other.name}")


@dataclass(frozen=True)
class MultiheadAttention1(OperatorDesc):
    """As its predecessor, with fewer heads of key and value than of query, each for as many of these.

    Its page leaves open how PastSequenceLengthsTensor counts, so nothing is evaluated.
    """

    NAME: ClassVar[str] = "DML_MULTIHEAD_ATTENTION1_OPERATOR_DESC"

    query_tensor: TensorDesc | None
    key_tensor: TensorDesc | None
    value_tensor: TensorDesc | None
    stacked_query_key_tensor: TensorDesc | None
    stacked_key_value_tensor: TensorDesc | None
    stacked_query_key_value_tensor: TensorDesc | None
    bias_tensor: TensorDesc | None
    mask_tensor: TensorDesc | None
    relative_position_bias_tensor: TensorDesc | None
    past_key_tensor: TensorDesc | None
    past_value_tensor: TensorDesc | None
    past_sequence_lengths_tensor: TensorDesc | None
    output_tensor: TensorDesc
    output_present_key_tensor: TensorDesc | None
    output_present_value_tensor: TensorDesc | None
    scale: float
    mask_filter_value: float
    query_head_count: int
    key_value_head_count: int
    mask_type: MultiheadAttentionMaskType
