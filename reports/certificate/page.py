"""The page of a certificate."""

from __future__ import annotations

from typing import IO

from epcheck.conformance.records.contract import STATES
from epcheck.reports.certificate.certificate import (
    EXAMPLES,
    NO_LEVEL,
    PART,
    PROVEN,
    UNPROVEN,
    UNTAKEN,
    USES,
    WRONG,
    Certificate,
)
from epcheck.reports.page import shell

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
        axes={axis: [use for use in certificate.uses if use.axis == axis] for axis in USES},
        facts=[(name, facts[name]) for name in FACTS if facts.get(name)],
        most=EXAMPLES,
    )
