"""Mutants of the hashes."""

from __future__ import annotations

import numpy as np

from tests.mutants.mutant import attribute, inputs, outputs

MURMUR = "com.microsoft::MurmurHash3"
NGRAMS = ("com.microsoft::NGramHashMapping", "com.microsoft::VarlenNGramHashMapping")
STARTS = "cumulative_sequence_length"

MUTANTS = [
    attribute(MURMUR, "seed", None),
    inputs(MURMUR, "the bytes are reversed", lambda _, v: v.byteswap()),
    outputs(MURMUR, "the highest bit is lost", lambda v: v & 0x7FFFFFFF),
    *(
        mutant
        for name in NGRAMS
        for mutant in (
            attribute(name, "reset_on_eos", None),
            attribute(name, "reset_on_eos", 1),
            attribute(name, "pad_id", 0),
            inputs(name, "offsets are left out", lambda n, v: np.zeros_like(v) if n == "head_offsets" else v),
            inputs(name, "the past is that of the first request",
                   lambda n, v: np.broadcast_to(v[:1], v.shape).copy() if n == "past_ids" and v.size else v),
            inputs(name, "all tokens are of one segment", lambda n, v: np.zeros_like(v) if n == "segment_ids" else v),
            inputs(name, "the first multiplier is that of all",
                   lambda n, v: np.full_like(v, v[0]) if n == "multipliers" else v),
            inputs(name, "the first vocabulary is that of all",
                   lambda n, v: np.full_like(v, v[0]) if n == "vocab_sizes" else v),
        )
    ),
    inputs(NGRAMS[1], "none is captured", lambda n, v: np.zeros_like(v) if n == "capture_count" else v),
    inputs(NGRAMS[1], "segments of the past are left out",
           lambda n, v: v + 1 if n == "past_segment_ids" else v),
]  # fmt: skip
