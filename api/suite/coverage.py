"""What a provider claims, and what the suite, or a run of it, says of each claim."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from epcheck import reports
from epcheck.api.option import Option
from epcheck.api.suite.claims import claims_table
from epcheck.conformance.judging import coverage as claimed
from epcheck.conformance.judging.coverage import (
    COVERED,
    FAILING,
    MISSING,
    PASSING,
    UNPLACED,
    UNREACHABLE,
    Triple,
)
from epcheck.conformance.records import strict_json
from epcheck.generators.claims import PROVIDERS

__all__ = ["FAILING", "MISSING", "STATES", "UNREACHABLE", "CoverageOptions", "Triple", "coverage"]

STATES = (COVERED, PASSING, FAILING, UNPLACED, UNREACHABLE, MISSING)
"""Every `Triple.state`, in the order in which they are shown."""


@dataclass(frozen=True)
class CoverageOptions:
    """Whose claims, and what is asked about them. run: None asks the suite. json: a file that every claim goes to."""

    run: Annotated[
        Path | None,
        Option("A run's folder: what it says of each claim, not only whether there is a case.", flags=("--run",)),
    ] = None
    provider: Annotated[str, Option("Whose claims.")] = PROVIDERS[0]
    json: Annotated[Path | None, Option("Write every claim as JSON.", metavar="FILE")] = None


def coverage(options: CoverageOptions | None = None) -> tuple[Triple, ...]:
    """Every claim of a provider, an operator version with a dtype, and what is known of it.

    Raises ClaimsError when the provider has no table, and StoreError when the run cannot be read.
    """
    options = options or CoverageOptions()
    claims = claims_table(options.provider)
    if options.run is None:
        triples = tuple(claimed.of_suite(claims))
    else:
        triples = tuple(claimed.of_run(claims, claimed.tally(reports.read_records(options.run))))
    if options.json:
        document = [_as_json(triple) for triple in triples]
        options.json.write_text(strict_json.dumps(document) + "\n", encoding="utf-8", newline="\n")
    return triples


def _as_json(triple: Triple) -> dict[str, object]:
    domain, operator, since_version = triple.key
    return {
        "domain": domain, "operator": operator, "since_version": since_version, "dtype": triple.dtype,
        "state": triple.state, "why": triple.why, "statuses": dict(triple.statuses),
    }  # fmt: skip
