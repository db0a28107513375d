"""The exclusions of a provider profile as a file of expectations, which `epcheck run --expect` takes."""

from __future__ import annotations

import json
from collections.abc import Iterable

from epcheck.conformance.targets.expectation import Expectation


def expectations_toml(expectations: Iterable[Expectation]) -> str:
    """One `[[expect]]` for each; `expectation_file.parse` gives the same expectations back."""
    return "\n".join(map(_entry, expectations))


def _entry(expectation: Expectation) -> str:
    lines = ["[[expect]]"]
    lines += [f"{name} = {_text(getattr(expectation, name))}" for name in ("case", "status", "reason")]
    lines += [f"link = {_text(expectation.link)}"] if expectation.link else []
    lines += [f"bound = {float(expectation.bound)!r}"] if expectation.bound is not None else []
    lines += [f"when = {expectation.when.as_toml()}"] if expectation.when else []
    lines += [f"where = {_text(expectation.where_text)}"] if expectation.where else []
    for name, values in (("variant", expectation.variants), ("gives", expectation.gives)):
        lines += [f"{name} = [{', '.join(map(_text, values))}]"] if values else []
    return "\n".join([*lines, ""])


def _text(value: str) -> str:
    """A string of TOML, whose escapes are those of JSON but for DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
