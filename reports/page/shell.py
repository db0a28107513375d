"""What all pages are built on: one file that fetches nothing, with the common look, charts, and a strict policy.

A page is a template in `assets/` that extends `shell/shell.html.j2` and fills its blocks: `title`, `subject` (beside
the brand), `sections` (links in the bar), `content` (in `section` elements, each with an `h2`), and where they are of
use `keys` and `help` (of the help dialog), `footer`, `data` (before the scripts).

    {% extends "shell/shell.html.j2" %}
    {% from "shell/chart.html.j2" import figure %}
    {% block title %}Trend{% endblock %}
    {% block content %}
    <section id="rates" tabindex="-1"><h2>Pass rate</h2>{{ figure(trend.chart) }}</section>
    {% endblock %}

    shell.write(file, "trend/trend.html.j2", trend=trend)

`figure` draws a `chart.Chart`. Scripts of the page's own are named (`scripts=("trend/trend.js",)`); they share one
scope with shell_*.js, which give them `el`, `text`, `count`, `chartFigure`. Style that only one page needs is named as
well.

Every text is escaped by jinja2, and invisible characters in it are written out; no style attribute and no handler in
HTML is possible under the policy, which knows the page's style and scripts by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import IO, Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from epcheck.reports.text import moment, visible

_SCRIPTS = ("shell/shell_nodes.js", "shell/shell_charts.js", "shell/shell_page.js")
_CHARTS = "vendor/uplot/uPlot.iife.min.js"
_STYLES = ("vendor/uplot/uPlot.min.css", "shell/shell.css")
_HALF_PAIR = re.compile("[\ud800-\udfff]")


def write(
    file: IO[bytes],
    template: str,
    *,
    scripts: Sequence[str] = (),
    styles: Sequence[str] = (),
    libraries: Sequence[str] = (),
    **values: Any,
) -> None:
    """Write the page that `template` makes of `values`, in UTF-8, piece by piece.

    scripts, styles, libraries: names of files beside this module; a library is a script that declares one global name.
    """
    style = "\n".join(map(resource, (*_STYLES, *styles)))
    sources = [*map(resource, (_CHARTS, *libraries)), _one_scope((*_SCRIPTS, *scripts))]
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {' '.join(map(_hash, sources))}; "
        f"base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )
    stream = (
        _environment()
        .get_template(template)
        .stream(policy=Markup(policy), style=Markup(style), scripts=[Markup(source) for source in sources], **values)
    )
    stream.dump(file, "utf-8", "backslashreplace")


def query(**state: object) -> str:
    """A link to a state of a page: filters or a case."""
    return "#" + urlencode({k: _HALF_PAIR.sub("\ufffd", str(v)) for k, v in state.items()}, quote_via=quote)


def resource(name: str) -> str:
    """The text of a file of `assets/`."""
    return (files("epcheck.reports.page") / "assets" / name).read_text("utf-8")


@cache
def _environment() -> Environment:
    """With its templates: each is compiled once in a process."""
    environment = Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
        undefined=StrictUndefined,
        loader=FunctionLoader(resource),
    )
    environment.filters |= {
        "number": "{:,}".format,
        "duration": _duration,
        "moment": moment,
        "ulp": _ulp,
        "figure": _figure,
    }
    environment.globals["query"] = query
    return environment


def _finalize(value: Any) -> Any:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _one_scope(names: Sequence[str]) -> str:
    return '"use strict";\n(() => {\n' + "\n".join(map(resource, names)) + "})();\n"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"


def _duration(seconds: float) -> str:
    if not math.isfinite(seconds):
        return "–"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{seconds:.1f} s"


def _ulp(value: float) -> str:
    """An error in ULP, to three digits."""
    return "∞" if math.isinf(value) else f"{value:.3g}" if value < 1e4 else f"{value:.1e}"


def _figure(value: float | None) -> str:
    """A number of a chart: integers whole, others to four digits."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:.4g}"
