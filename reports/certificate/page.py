"""The page of a certificate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import IO

from epcheck.conformance.records import terms
from epcheck.conformance.records.contract import STATES
from epcheck.reports.certificate.certificate import (
    EXAMPLES,
    NO_LEVEL,
    PART,
    PROVEN,
    UNPROVEN,
    UNTAKEN,
    WRONG,
    Certificate,
)
from epcheck.reports.page import shell
from epcheck.reports.runtime_message import readable
from epcheck.reports.text import format_share

TEMPLATE, STYLE = "certificate/certificate.html.j2", "certificate/certificate.css"

SHOWN_CLAIMS = (WRONG, UNTAKEN, UNPROVEN, PROVEN)
"""States of registered operators, in the order in which they are shown."""

FACTS = ("onnxruntime", "plugin", "DirectML.dll", "adapter", "device", "driver_version", "graphics_stack", "processor",
         "os", "jail")  # fmt: skip
"""What the worker reports of the machine that the page shows."""


def write_page(file: IO[bytes], certificate: Certificate) -> None:
    """Write the certificate as one page that fetches nothing."""
    order = {state: place for place, state in enumerate(STATES)}
    facts = certificate.contract.facts
    shell.write(
        file,
        TEMPLATE,
        styles=(STYLE,),
        certificate=certificate,
        has_level=certificate.level != NO_LEVEL,
        is_part=certificate.list == PART,
        rules=sorted(certificate.contract.rules, key=lambda rule: order[rule.state]),
        claims={state: [c for c in certificate.claims if c.state == state] for state in SHOWN_CLAIMS},
        axes={axis: [use for use in certificate.uses if use.axis == axis] for axis in terms.USES},
        glance=list(_list_at_a_glance(certificate)),
        facts=[(name, facts[name]) for name in FACTS if facts.get(name)],
        plugin=facts.get("plugin", ""),
        most=EXAMPLES,
        readable=readable,
    )


def _list_at_a_glance(certificate: Certificate) -> Iterator[tuple[str, str]]:
    """What the page is about -> what comes of it, in words."""
    values = certificate.values
    rate = "nothing gave a result" if values.rate is None else f"{format_share(values.rate)} of the results are right"
    failing = f"{values.failing:,} fail, {values.flaky:,} flaky, {values.excluded:,} excluded"
    yield "Values", f"{rate}: {values.right:,} of {values.taken:,} ({failing}); {values.cases:,} cases"
    if certificate.claims:
        counted = Counter(claim.state for claim in certificate.claims)
        yield (
            "Claims",
            f"{len(certificate.claims):,} registered operators: "
            + ", ".join(f"{counted[state]:,} {state}" for state in (PROVEN, WRONG, UNTAKEN, UNPROVEN)),
        )
    else:
        yield "Claims", "no registered kernel is known"
    differing = [use.variant for use in certificate.uses if use.differs]
    uses = f"{len(certificate.uses):,} ways: {', '.join(differing) or 'none'} differ"
    yield "Uses", uses if certificate.uses else "sessions were not used as applications use them"
    states = Counter(rule.state for rule in certificate.contract.rules)
    yield "Contract", ", ".join(f"{states[state]:,} {state}" for state in STATES if states[state])
    yield (
        "Accuracy",
        f"{len(certificate.suspicions):,} suspicions in {len(certificate.accuracy):,} operators and dtypes",
    )
