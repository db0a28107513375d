"""DirectML's operators called directly, compared with their pages and with the claims of their device."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from epcheck.api.option import Option
from epcheck.conformance.directml import probing
from epcheck.conformance.directml.client import DirectMLClient
from epcheck.conformance.directml.probing import JUDGEMENTS, LOST, NOT_COMPILED, Border, Probed, tally
from epcheck.conformance.records import strict_json
from epcheck.conformance.targets.specification import DIRECTML, resolve
from epcheck.conformance.targets.target import TargetError
from epcheck.generators.directml.call import operators
from epcheck.generators.directml.probes import probes
from epcheck.generators.suite import lowerings
from epcheck.reports.page import device_claims
from epcheck.reports.page.device_claims import Claims

__all__ = [
    "JUDGEMENTS",
    "LOST",
    "NOT_COMPILED",
    "Border",
    "DirectMLOptions",
    "DirectMLResult",
    "Probed",
    "directml",
    "tally",
]


@dataclass(frozen=True)
class DirectMLOptions:
    """Which DirectML is called, and what it is asked. operators: those whose borders are looked for; empty for all."""

    target: Annotated[str, Option("directml, or directml@RELEASE.", flags=("--target", "-t"))] = DIRECTML
    borders: Annotated[bool, Option("Also probe what every operator takes and refuses.", flags=("--borders",))] = False
    operators: Annotated[
        tuple[str, ...], Option("With --borders: a DirectML operator, for example SLICE1.", flags=("--op",))
    ] = ()
    json: Annotated[Path | None, Option("Write the full result as JSON.", metavar="FILE")] = None


@dataclass(frozen=True)
class DirectMLResult:
    """facts: what the worker says of itself. claims: of the device; None where it makes none. probes: calls with known
    results. borders: what each operator takes, and what it refuses."""

    facts: Mapping[str, str]
    claims: Claims | None
    probes: tuple[Probed, ...]
    borders: tuple[Border, ...]

    @property
    def conforms(self) -> bool:
        """Whether every probe is right and no call ended the process."""
        return not any(probe.wrong for probe in self.probes) and not any(b.judgement == LOST for b in self.borders)


def directml(options: DirectMLOptions | None = None) -> DirectMLResult:
    """Call what ONNX cannot say, and compare the device's claims with the documented ones.

    Raises TargetError for an operator or a target that is none of DirectML's, and TargetDown.
    """
    options = options or DirectMLOptions()
    known = [name.removeprefix("DML_").removesuffix("_OPERATOR_DESC") for name in operators()]
    if unknown := [name for name in options.operators if name not in known]:
        raise TargetError(f"unknown DirectML operator '{unknown[0]}'; write for example SLICE1")
    target = resolve(options.target)
    if not target.calls_directml:
        raise TargetError(f"target '{options.target}' does not call DirectML directly; 'directml' does")
    with DirectMLClient(target) as client:
        probed = tuple(probing.run_probe(client, probe) for probe in probes())
        claims = device_claims.claims(client.facts)
        borders = _borders(client, options.operators) if options.borders or options.operators else ()
        found = DirectMLResult(dict(client.facts), claims, probed, borders)
    if options.json:
        text = strict_json.dumps(dataclasses.asdict(found))
        options.json.write_text(text + "\n", encoding="utf-8", newline="\n")
    return found


def _borders(client: DirectMLClient, wanted: Collection[str]) -> tuple[Border, ...]:
    names = {f"DML_{name}_OPERATOR_DESC" for name in wanted}
    valid = (lowering.description for lowering in lowerings())
    chosen = (description for description in valid if not names or description.NAME in names)
    return tuple(border for description in chosen for border in probing.borders(client, description))
