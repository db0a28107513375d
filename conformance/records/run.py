"""The description of a run: who ran what, where, when."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from epcheck.conformance.records import typed_json
from epcheck.conformance.records.error import RecordError

SCHEMA = 1
"""The version of the records. A reader refuses a newer one."""


_OF_A_SET = "set:"
"""What a digest of ids begins with that does not depend on their order; those of an earlier epcheck did."""


def digest_of(ids: Iterable[str]) -> str:
    """What tells ids from any others, in whatever order they come."""
    text = "\n".join(sorted(ids)).encode("utf-8", "surrogatepass")
    return f"{_OF_A_SET}{hashlib.sha256(text).hexdigest()[:32]}"


@dataclass(frozen=True)
class Share:
    """What a run's cases are of the whole selection: all of it, or shard `index` of `count`.

    cases, digest: how many cases the whole has, and `digest_of` their ids. cut: what tells in which shard
    each of them is; empty where there are none. stale: expectations that match no case of the whole.
    """

    cases: int
    digest: str
    index: int = 1
    count: int = 1
    cut: str = ""
    stale: tuple[str, ...] = ()

    def has(self, ids: Iterable[str]) -> bool:
        """Whether these are the ids of the whole, as far as the digest tells."""
        return not self.digest.startswith(_OF_A_SET) or digest_of(ids) == self.digest


@dataclass(frozen=True)
class Run:
    """One run: who ran what, where, when. Times are UTC, ISO 8601; durations are seconds.

    targets: target name -> facts (the fingerprint). planned: records that a complete run has.
    status: `running`, `complete`, `interrupted` or `failed: why`. stale: expectations that matched no case; of a shard
    only its share knows. notes: sentences for the reader of the report. worse: candidates that a night found worse than
    before, so that no later night is held against them.
    """

    run_id: str
    started: str
    command: tuple[str, ...]
    candidates: tuple[str, ...]
    baseline: str | None
    targets: Mapping[str, Mapping[str, str]]
    planned: int
    selection: Mapping[str, Any]
    versions: Mapping[str, str]
    status: str = "running"
    finished: str = ""
    duration_s: float = 0.0
    stale: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    share: Share | None = None
    worse: tuple[str, ...] = ()
    schema: int = field(default=SCHEMA)


def utc_now() -> str:
    """The time in UTC, ISO 8601, to the microsecond: a store orders runs by it, and two may begin in one second."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def run_from_json(data: Any) -> Run:
    """The run that `typed_json.to_json` wrote. Raises RecordError when a part is missing or of another type, and when a
    later version of epcheck wrote it."""
    if isinstance(data, dict) and type(schema := data.get("schema")) is int and schema > SCHEMA:
        raise RecordError(f"schema {schema} is newer than this epcheck reads ({SCHEMA}); upgrade epcheck")
    return typed_json.read(Run, data)
