"""DirectML held to its own word: the probes, and descriptions on both sides of every demand."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from epcheck.conformance.directml.client import CallRefusedError, DirectMLClient, WorkerLostError
from epcheck.conformance.preparation.directml_program import NoProgram
from epcheck.generators.directml.feature_level import FeatureLevel, find_level, is_documented
from epcheck.generators.directml.neighbours import Neighbour, neighbours
from epcheck.generators.directml.operator_desc import OperatorDesc
from epcheck.generators.directml.probes import Probe

AGREE_TAKEN, AGREE_REFUSED = "both take it", "both refuse it"
PAGE_STRICTER, DEVICE_STRICTER = "only validate() refuses it", "only DirectML refuses it"
NOT_COMPILED, LOST = "DirectML takes it and cannot compile it", "DirectML ends the process or hangs"
JUDGEMENTS = (AGREE_TAKEN, AGREE_REFUSED, PAGE_STRICTER, DEVICE_STRICTER, NOT_COMPILED, LOST)


@dataclass(frozen=True)
class Probed:
    """A probe and what came of it: `wrong` says in words what is, and is empty where all is right. `left_out` says why
    it was not made."""

    id: str
    wrong: str
    left_out: str = ""


@dataclass(frozen=True)
class Border:
    """A description and what both say of it. reasons: the violations of the page, and DirectML's answer, in words."""

    operator: str
    what: str
    judgement: str
    reasons: str
    documented: bool

    def to_json(self) -> dict[str, str | bool]:
        """As `epcheck directml --json` writes it."""
        return {
            "operator": self.operator,
            "what": self.what,
            "judgement": self.judgement,
            "said": self.reasons,
            "documented": self.documented,
        }


def run_probe(directml: DirectMLClient, probe: Probe) -> Probed:
    """The probe's outputs against its exact results; it is left out where the device's feature level lacks its
    operator."""
    name = probe.description.NAME
    try:
        if directml.level() < find_level(name):
            return Probed(probe.id, "", f"{name} came with {find_level(name).name}")
        got = directml.dispatch(probe.description, *probe.feeds, flags=probe.flags, options=probe.options)
    except (CallRefusedError, WorkerLostError, NoProgram) as error:
        return Probed(probe.id, str(error))
    for number, (array, expected) in enumerate(zip(got, probe.expected, strict=True)):
        if probe.rest_undefined:
            array = array.reshape(-1)[: expected.size].reshape(expected.shape)
        if array.dtype != expected.dtype or not np.array_equal(array, expected):
            wrong = int((array != expected).sum())
            return Probed(probe.id, f"output {number}: {wrong} of {expected.size} elements are wrong")
    return Probed(probe.id, "")


def borders(directml: DirectMLClient, valid: OperatorDesc) -> Iterator[Border]:
    """What `validate()`, at the device's feature level, and DirectML say of a description and its neighbours; nothing
    where that level lacks the operator."""
    if directml.level() < find_level(valid.NAME):
        return
    for neighbour in neighbours(valid):
        judged = _border(directml, neighbour)
        if judged is not None:
            yield judged


def _border(directml: DirectMLClient, neighbour: Neighbour) -> Border | None:
    description = neighbour.description
    violations = _violations(description, directml.level())
    try:
        refusal = directml.accepts(description)
    except NoProgram:  # C cannot say it, so nobody has to refuse it
        return None
    except WorkerLostError as error:
        refusal, judgement = str(error), LOST
    else:
        judgement = _judgement(bool(violations), refusal)
    name = description.NAME.removeprefix("DML_").removesuffix("_OPERATOR_DESC")
    reasons = "; ".join(filter(None, [", ".join(violations), refusal]))
    return Border(name, neighbour.what, judgement, reasons, is_documented(description.NAME))


def _violations(description: OperatorDesc, level: FeatureLevel) -> list[str]:
    """The constraints that `validate()` names. One that it cannot even be asked about is broken, too."""
    try:
        return [violation.constraint for violation in description.validate(level)]
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        return [f"validate() ends with {error!r}"]


def _judgement(violates: bool, refusal: str) -> str:
    if re.search("CompileOperator", refusal):
        return PAGE_STRICTER if violates else NOT_COMPILED
    if violates:
        return AGREE_REFUSED if refusal else PAGE_STRICTER
    return DEVICE_STRICTER if refusal else AGREE_TAKEN


def tally(found: Iterable[Border]) -> Mapping[str, Counter[str]]:
    """Operator -> how many descriptions of each judgement."""
    counts: dict[str, Counter[str]] = {}
    for border in found:
        counts.setdefault(border.operator, Counter())[border.judgement] += 1
    return counts
