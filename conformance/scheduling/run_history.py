"""What the cache keeps of earlier runs: opinions of baseline and reference, pack sizes, how many workers pay, how each
case last fared."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property

from epcheck.conformance.cache import cache
from epcheck.conformance.cache.cache import Cache
from epcheck.conformance.cache.row_groups import UNREADABLE, RowGroup, RowGroups, group_of, pack, unpack
from epcheck.conformance.judging.opinion_row import OpinionRow, from_row, to_row
from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.records import terms
from epcheck.conformance.records.target_facts import INCIDENTAL
from epcheck.conformance.scheduling.case_lifecycle import Settled
from epcheck.conformance.scheduling.parity import Difference, Parity
from epcheck.conformance.scheduling.plan import Facts, Plan
from epcheck.conformance.targets.target import Target

KNOWN = (("onnxruntime",), ("reference",))
"""The workers' own backends; the code of all others is unknown."""

STEADY = (terms.PASS, terms.MISMATCH, terms.UNPLACED, terms.REFUSED)
"""Statuses that the same target will give again."""


def fingerprint(target: Target, facts: Mapping[str, str]) -> bytes | None:
    """What a target's answers depend on, besides the case; None where that cannot be known: a callable's code is
    anybody's."""
    if target.arguments[:1] not in KNOWN:
        return None
    own = target.environment
    environment = {} if own is None else {k: v for k, v in own.items() if os.environ.get(k) != v}
    parts = (
        target.command,
        target.arguments,
        target.provider,
        target.options,
        target.config,
        target.device,
        str(target.float32_precision),
    )
    return json.dumps([*map(repr, parts), environment, dict(facts)], sort_keys=True).encode()


def opinions(cached: Cache, target: Target, facts: Mapping[str, str]) -> RowGroups | None:
    """The target's opinions in the cache, by the digest of the case; None where nobody knows what they depend on."""
    who = fingerprint(target, facts)
    return None if who is None else RowGroups(cached, "opinion", bytes, OpinionRow, who)


class RememberedOpinions:
    """The opinions of those oracles that are no candidates, read for some cases together, written some time later."""

    def __init__(self, plan: Plan, cache: Cache) -> None:
        self._cache = cache
        self._oracles = tuple(target for target in plan.oracles if target.name in plan.pure_oracles)
        self._rows: dict[str, RowGroups | None] = {}
        self._read: dict[str, dict[str, RowGroup]] = {}

    def read(self, cases: Iterable[PreparedCase], facts: Facts) -> None:
        """Read what is remembered of these cases, which are then asked for with `of`. facts: of every target; an
        opinion is remembered of a target with the very same ones."""
        for target in self._oracles:
            if target.name not in self._rows:
                self._rows[target.name] = opinions(self._cache, target, facts[target.name])
        if any(self._rows.values()):
            groups = {group_of(prepared.case) for prepared in cases}
            self._read = {name: rows.of(groups) for name, rows in self._rows.items() if rows}

    def of(self, prepared: PreparedCase) -> Mapping[str, Settled]:
        """Oracle name -> what it said of the case; a damaged row is not remembered."""
        found: dict[str, Settled] = {}
        if self._read:
            group = group_of(prepared.case)
            for name, groups in self._read.items():
                row = groups.get(group, {}).get(prepared.digest)
                with suppress(ValueError):
                    if row is not None:
                        found[name] = Settled(*from_row(name, row))
        return found

    def put(self, prepared: PreparedCase, target: Target, settled: Settled) -> None:
        """Remember what an oracle says of a case, where it will say so again."""
        if settled.opinion.status in STEADY and (rows := self._rows.get(target.name)):
            rows.put(group_of(prepared.case), prepared.digest, to_row(settled.opinion, settled.answer))

    def write(self) -> None:
        """Hand what is new to the cache."""
        for rows in self._rows.values():
            if rows:
                rows.write()


def pack_size(cached: Cache, target: Target) -> int:
    """How many cases shared a session best when the target last ran; 0 when that is not known."""
    key = cache.key("size", target.name, "")
    return int.from_bytes(cached.get([key]).get(key, b""), "little")


def keep_pack_size(cached: Cache, target: Target, size: int) -> None:
    """Keep what `pack_size` gives."""
    cached.put({cache.key("size", target.name, ""): size.to_bytes(8, "little")})


def worker_rates(cached: Cache, target: Target, described: Mapping[str, str]) -> dict[int, float]:
    """Number of workers -> sessions a second that they did, of such a target; empty where that is not known.

    described: the machine, as `worker_count.describe_machine` has it.
    """
    key = _worker_rates_key(target, described)
    try:
        return {int(workers): float(rate) for workers, rate in json.loads(cached.get([key])[key])}
    except (KeyError, TypeError, ValueError):
        return {}


def keep_worker_rates(cached: Cache, target: Target, described: Mapping[str, str], rates: Mapping[int, float]) -> None:
    """Keep what `worker_rates` gives."""
    cached.put({_worker_rates_key(target, described): json.dumps(list(rates.items())).encode()})


def _worker_rates_key(target: Target, described: Mapping[str, str]) -> bytes:
    return cache.key("workers", target.provider or "", json.dumps(dict(described), sort_keys=True))


def pack_parity(cached: Cache, target: Target, facts: Mapping[str, str]) -> Parity | None:
    """What was measured of packs on such a target; None where nothing was. facts: what its worker reports of itself."""
    key = cache.key("parity", target.provider or "", provider_and_device(target, facts))
    try:
        cases, differences = json.loads(cached.get([key])[key])
        return Parity(int(cases), [Difference(*map(str, found)) for found in differences])
    except (KeyError, TypeError, ValueError):
        return None


def keep_pack_parity(cached: Cache, target: Target, facts: Mapping[str, str], parity: Parity) -> None:
    """Keep what `pack_parity` gives."""
    key = cache.key("parity", target.provider or "", provider_and_device(target, facts))
    cached.put({key: json.dumps(parity).encode()})


def provider_and_device(target: Target, facts: Mapping[str, str]) -> str:
    """What decides how the target's provider computes, wherever it is installed."""
    own = {name: value for name, value in facts.items() if name not in INCIDENTAL}
    return json.dumps([target.provider, dict(target.options), dict(target.config), own], sort_keys=True)


class Statuses:
    """Candidate name -> case id -> the status it last had, of those that did not pass or are not claimed."""

    def __init__(self, kept: Cache, candidates: Sequence[Target]) -> None:
        """They are read when they are first asked for."""
        self._cache = kept
        self._candidates = candidates

    @cached_property
    def _known(self) -> dict[str, dict[str, str]]:
        return {target.name: _read_statuses(self._cache, target) for target in self._candidates}

    def of(self, target: Target, case_id: str) -> str:
        """The status that the case last had on a target of that name; empty where none is known."""
        return self._known.get(target.name, {}).get(case_id, "")

    def put(self, target: Target, case_id: str, status: str) -> None:
        """Take down a status; an empty one forgets that of the last run."""
        if status:
            self._known[target.name][case_id] = status
        else:
            self._known[target.name].pop(case_id, None)

    def write(self) -> None:
        """Hand all to the cache."""
        for name, known in self._known.items():
            self._cache.put({_statuses_key(name): pack(known)})


def _read_statuses(cached: Cache, target: Target) -> dict[str, str]:
    key = _statuses_key(target.name)
    try:
        return unpack(cached.get([key])[key], type=dict[str, str])
    except (KeyError, *UNREADABLE):
        return {}


def _statuses_key(target_name: str) -> bytes:
    return cache.key("statuses", target_name, "")
