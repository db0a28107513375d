"""The page of a diagnosis: one HTML file without scripts or network. Every name from the model is escaped."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from epcheck.models.precision.diagnosis import Diagnosis
from epcheck.models.validation import page
from epcheck.models.validation.formatting import number, percent

MAX_NODES = 5000
"""Rows that the table of all nodes has at most."""


def render(diagnosis: Diagnosis) -> str:
    """The page as text."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(number=number, percent=percent, titled=page.add_titles)
    style = files(page.__package__).joinpath("page.css").read_text(encoding="utf-8")
    template = environment.from_string(files(__package__).joinpath("doctor.html.j2").read_text(encoding="utf-8"))
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    text = template.render(
        d=diagnosis,
        style=Markup(style),
        policy=policy,
        max_nodes=MAX_NODES,
        kept=[n for n in diagnosis.nodes if n.keeps],
    )  # the style is ours, and known by its hash
    return text.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair in a name
