"""What is remembered from run to run: the opinions of baseline and reference, and how each case last fared."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Mapping
from typing import Any

from epcheck.conformance.cache import cache
from epcheck.conformance.cache.cache import Cache
from epcheck.conformance.cache.row_groups import UNREADABLE, Rows, plain_pickle
from epcheck.conformance.records import record, strict_json
from epcheck.conformance.records.record import Accuracy, Difference, Opinion
from epcheck.conformance.targets.target import Target

KNOWN = (("onnxruntime",), ("reference",))
"""The workers' own backends; the code of all others is unknown."""

STEADY = (record.PASS, record.MISMATCH, record.UNPLACED, record.REFUSED)
"""Statuses that the same target will give again."""


def fingerprint(target: Target, facts: Mapping[str, str]) -> bytes | None:
    """What a target's answers depend on, besides the case; None where that cannot be known: a callable's code is
    anybody's."""
    if target.arguments[:1] not in KNOWN:
        return None
    own = target.environment
    environment = {} if own is None else {k: v for k, v in own.items() if os.environ.get(k) != v}
    said = (target.command, target.arguments, target.provider, target.options, target.config, target.device)
    return json.dumps([*map(repr, said), environment, dict(facts)], sort_keys=True).encode()


def opinions(cached: Cache, target: Target, facts: Mapping[str, str]) -> Rows | None:
    """The target's opinions in the cache, by the digest of the case; None where nobody knows what they depend on."""
    who = fingerprint(target, facts)
    return None if who is None else Rows(cached, "opinion", who)


def pack_size(cached: Cache, target: Target) -> int:
    """How many cases shared a session best when the target last ran; 0 when that is not known."""
    key = cache.key("size", target.name, "")
    return int.from_bytes(cached.get([key]).get(key, b""), "little")


def keep_pack_size(cached: Cache, target: Target, size: int) -> None:
    """Keep what `pack_size` gives."""
    cached.put({cache.key("size", target.name, ""): size.to_bytes(8, "little")})


def statuses(cached: Cache, target: Target) -> dict[str, str]:
    """Case id -> the status it last had on a target of that name, of those that did not pass or are not claimed."""
    key = cache.key("statuses", target.name, "")
    try:
        return dict(plain_pickle(cached.get([key])[key]))
    except UNREADABLE:
        return {}


def keep_statuses(cached: Cache, target: Target, last: Mapping[str, str]) -> None:
    """Keep what `statuses` gives."""
    cached.put({cache.key("statuses", target.name, ""): pickle.dumps(dict(last), pickle.HIGHEST_PROTOCOL)})


def to_row(opinion: Opinion, answer: str) -> tuple[Any, ...]:
    """An opinion, and the bits of the outputs it is of, as the cache has them: in nothing but builtin types."""
    o = opinion
    differences = strict_json.dumps(record.to_json(o.differences)) if o.differences else ""
    a = o.accuracy
    accuracy = None if a is None else (a.elements, a.max_ulp, a.sum_ulp, a.counts)
    return (
        o.status, o.stage, o.message, differences, o.assignment, o.create_s, o.run_s, o.attempts, o.log_tail, o.shared,
        accuracy, answer,
    )  # fmt: skip


def from_row(target: str, row: Any) -> tuple[Opinion, str]:
    """What `to_row` was given. Raises ValueError when the row is none."""
    try:
        (
            status, stage, message, text, assignment, create_s, run_s, attempts, log_tail, shared, accuracy, answer,
        ) = row  # fmt: skip
        differences = [record.from_json(Difference, one) for one in strict_json.loads(text)] if text else []
    except UNREADABLE as error:
        raise ValueError(f"not an opinion: {error!r}") from error
    opinion = Opinion(
        target, status, stage, message, tuple(differences), assignment, create_s, run_s, attempts, log_tail, shared,
        remembered=True, accuracy=None if accuracy is None else Accuracy(*accuracy),
    )  # fmt: skip
    return opinion, str(answer)
