"""The ids of all cases, as they were released: `case_ids.txt`, grouped by the places where a sample has cases.

An id is a promise: expectations, reports and stored runs name it. To change the list deliberately, run this file and
commit what it writes; a sample that is gone or renamed belongs into the release notes.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from epcheck.generators import suite
from epcheck.generators.case import Case

RELEASED = Path(__file__).with_name("case_ids.txt")


def grouped(cases: Iterable[Case]) -> str:
    """One paragraph for each set of places: `Slice-13/float32[initializer,runtime] ...`, then its samples, indented."""
    places: dict[tuple[str, str], dict[str, list[str]]] = {}
    for case in cases:
        at = f"{case.operator}-{case.since_version}/{case.dtype}"
        places.setdefault((case.operator, case.sample), {}).setdefault(at, []).append(case.variant)
    paragraphs: dict[str, list[str]] = {}
    for (_, sample), variants in places.items():
        line = " ".join(f"{at}[{','.join(found)}]" for at, found in variants.items())
        paragraphs.setdefault(line, []).append(sample)
    return "\n".join(
        "\n".join([line, *(f"  {s}" for s in sorted(samples)), ""]) for line, samples in paragraphs.items()
    )


def released() -> set[str]:
    """The ids in `case_ids.txt`."""
    ids = set()
    places: list[tuple[str, str]] = []
    for line in RELEASED.read_text(encoding="utf-8").splitlines():
        if line.startswith("  "):
            ids |= {f"{at}/{line.strip()}[{variant}]" for at, variant in places}
        elif line:
            pairs = (place.removesuffix("]").split("[") for place in line.split())
            places = [(at, variant) for at, variants in pairs for variant in variants.split(",")]
    return ids


if __name__ == "__main__":
    RELEASED.write_text(grouped(suite.cases()), encoding="utf-8")
