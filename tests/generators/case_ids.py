"""The ids of all cases, as they were released: `case_ids.txt`, a count and a digest for each operator version.

An id is a promise: expectations, reports and stored runs name it. To change the ids deliberately, run this file and
commit what it writes; a sample that is gone or renamed belongs into the release notes. `epcheck list --op OPERATOR`
of both revisions says which ids differ.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from epcheck.generators import suite
from epcheck.generators.case import Case

RELEASED = Path(__file__).with_name("case_ids.txt")


def summed_up(cases: Iterable[Case]) -> dict[str, str]:
    """`Slice-13` -> how many cases, and a digest of their ids whatever their order."""
    ids: dict[str, list[str]] = {}
    for case in cases:
        ids.setdefault(f"{case.operator_key}-{case.since_version}", []).append(case.id)
    return {
        name: f"{len(own)} {sha256(chr(10).join(sorted(own)).encode()).hexdigest()[:16]}" for name, own in ids.items()
    }


def released() -> dict[str, str]:
    """What `case_ids.txt` has."""
    lines = RELEASED.read_text(encoding="utf-8").splitlines()
    return {name: rest for name, _, rest in (line.partition(" ") for line in lines)}


if __name__ == "__main__":
    lines = [f"{name} {rest}\n" for name, rest in sorted(summed_up(suite.cases()).items())]
    RELEASED.write_text("".join(lines), encoding="utf-8", newline="\n")
