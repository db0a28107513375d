"""The ids of all cases, as they were released: `case_ids.txt`, a count and a digest for each operator version.

An id is a promise: expectations, reports and stored runs name it. `python tests/generators/case_ids.py` (or `nox -s
case_ids`) writes the file anew and prints which operator versions differ; commit what it writes. A sample that is gone
or renamed belongs into the release notes. `epcheck list --op OPERATOR` of both revisions says which ids differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

from epcheck.conformance.profile import mustpass
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


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    """A line for each operator version whose ids differ: `Slice-13: 1200 cases before, 1201 now`."""
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            counts = [entries.get(name, "0").split()[0] for entries in (before, after)]
            yield f"{name}: {counts[0]} cases before, {counts[1]} now"


def main() -> None:
    """Write the file, and print what differs from it."""
    cases = tuple(suite.cases())
    before, after = released(), summed_up(cases)
    text = "".join(f"{name} {rest}\n" for name, rest in sorted(after.items()))
    RELEASED.write_text(text, encoding="utf-8", newline="\n")
    print("\n".join(changes(before, after)) or "no id differs")
    release, onnx = version("epcheck"), version("onnx")
    earlier = [each for each in mustpass.load_mustpass() if each.suite != release]
    lists = (*earlier, *mustpass.make_mustpass(cases, release, onnx))
    (Path(mustpass.__file__).parent / mustpass.FILE).write_text(
        mustpass.format_mustpass(lists), encoding="utf-8", newline="\n"
    )


if __name__ == "__main__":
    main()
