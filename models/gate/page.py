"""The page of a gate: one HTML file without scripts or network. Every name from a model is escaped."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from epcheck.models.gate.gate import Gate
from epcheck.models.validation import page
from epcheck.models.validation.formatting import byte_size, failures, find_tone, number, percent
from epcheck.models.validation.speed import milliseconds


@cache
def _template() -> Template:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(
        number=number, percent=percent, bytes=byte_size, ms=milliseconds, failures=failures,
        tone=find_tone, grouped=page.group_by_reason, titled=page.add_titles,
    )  # fmt: skip
    return environment.from_string(files(__package__).joinpath("gate.html.j2").read_text(encoding="utf-8"))


def render(gate: Gate) -> str:
    """The page as text."""
    style = files(page.__package__).joinpath("page.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    text = _template().render(gate=gate, style=Markup(style), policy=policy)  # ours, and known by its hash
    return text.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair in a name
