"""The page of a validation: one HTML file without scripts or network. Every name from the model is escaped."""

from __future__ import annotations

import base64
import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup, escape

from epcheck.models.placement.placement import NodePlacement, Placement
from epcheck.models.validation import names
from epcheck.models.validation.faults import list_faults
from epcheck.models.validation.formatting import (
    NOT_LOOKED_FOR,
    byte_size,
    failure,
    failures,
    find_tone,
    number,
    operations,
    percent,
    reduce_command,
    unsuitable,
)
from epcheck.models.validation.speed import milliseconds
from epcheck.models.validation.validation import Validation
from epcheck.models.wrong_nodes.culprit import Culprit

MAX_FAULTS = 3
"""Faults on the first screen."""

MAX_NODES = 5000
"""Rows that the table of all nodes has at most."""

MAX_SEGMENTS = 24
"""Segments of the drawing that are shown at once; the others are behind a summary."""

MAX_VERDICTS = 24
"""Rows of the table of comparisons that are shown at once; the others are behind a summary."""

WIDTH, HEIGHT, LEFT, FOOT = 960, 200, 60, 24
"""Of the plot and of its axes, in CSS pixels."""


@dataclass(frozen=True)
class Group:
    """Nodes that are not on the provider, all for the same reason. operators: how many nodes each has, the most
    frequent first. what_to_do: what places them, or why nothing does. names: in the order of the graph."""

    operators: Mapping[str, int]
    provider: str
    reason: str
    what_to_do: str
    names: tuple[str, ...]

    @property
    def what(self) -> str:
        """`Slice × 18, Concat × 12`."""
        return ", ".join(f"{operator} × {count}" for operator, count in self.operators.items())


@dataclass(frozen=True)
class Dot:
    """A point of the plot. label: its tooltip. is_above: the tolerance."""

    x: float
    y: float
    label: str
    is_above: bool


@dataclass(frozen=True)
class Plot:
    """The error along the graph. line: y of the tolerance, None without one. ticks: (y, label). nodes: last index."""

    dots: tuple[Dot, ...]
    line: float | None
    ticks: tuple[tuple[float, str], ...]
    nodes: int


@cache
def template() -> Template:
    """The page's, compiled."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(bytes=byte_size, number=number, percent=percent, operations=operations, failure=failure,
                               ms=milliseconds, titled=add_titles)  # fmt: skip
    return environment.from_string(files(__package__).joinpath("page.html.j2").read_text(encoding="utf-8"))


def render(validation: Validation) -> str:
    """The page as text."""
    style = files(__package__).joinpath("page.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    groups = group_by_reason(validation.placement) if validation.placement else ()
    text = template().render(
        v=validation,
        tone=find_tone(validation),
        faults=list_faults(validation),
        max_faults=MAX_FAULTS,
        style=Markup(style),  # ours, and known by its hash
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
        groups=groups,
        reason_at={node: at for at, group in enumerate(groups, 1) for node in group.names},
        unsuitable=partial(unsuitable, validation),
        plot=plot(validation.culprit) if validation.culprit else None,
        providers=_providers(validation.placement),
        max_nodes=MAX_NODES,
        max_verdicts=MAX_VERDICTS,
        max_segments=MAX_SEGMENTS,
        verdicts=sorted(validation.verdicts, key=lambda verdict: (verdict.right, verdict.undecided)),
        not_looked_for=NOT_LOOKED_FOR,
        reduce_command=reduce_command(validation),
        failures=failures(validation.steps),
        width=WIDTH, height=HEIGHT, left=LEFT, foot=FOOT,
    )  # fmt: skip
    return text.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair in a name


def add_titles(text: str) -> Markup:
    """The text with long names cut, each of which has the whole as its title."""
    shown = (Markup('<span title="{}">{}</span>').format(whole, cut) if whole else escape(cut)
             for cut, whole in names.parts(text))  # fmt: skip
    return Markup("").join(shown)


def group_by_reason(placement: Placement) -> tuple[Group, ...]:
    """The nodes that are not on the provider, by reason, the largest group first."""
    groups: dict[tuple[str, str, str], list[NodePlacement]] = {}
    for node in placement.elsewhere:
        groups.setdefault((node.provider, node.reason, node.what_to_do), []).append(node)
    return tuple(
        Group(
            dict(Counter(node.operator for node in nodes).most_common()),
            *key,
            tuple(f"{node.scope}{node.name}" for node in nodes),
        )
        for key, nodes in sorted(groups.items(), key=lambda item: -len(item[1]))
    )


def plot(culprit: Culprit) -> Plot | None:
    """The errors of its points on a logarithmic scale; None for fewer than two points, or none that is finite."""
    finite = [point for point in culprit.points if math.isfinite(point.error)]
    sizes = [math.log10(point.error) for point in finite if point.error > 0]
    if len(culprit.points) < 2 or not sizes:
        return None
    if culprit.tolerance > 0:
        sizes.append(math.log10(culprit.tolerance))
    low, high = math.floor(min(sizes)) - 1, math.ceil(max(sizes)) + 1
    last = max(point.node for point in culprit.points) or 1

    def y(error: float) -> float:
        level = high if math.isinf(error) else math.log10(error) if error > 0 else low
        return round(8 + (HEIGHT - FOOT - 8) * (high - max(level, low)) / (high - low), 1)

    dots = tuple(
        Dot(round(LEFT + (WIDTH - LEFT - 10) * point.node / last, 1), y(point.error),
            f"node {point.node}, {point.value}: {point.error:.3g}", point.error > culprit.tolerance)
        for point in culprit.points
    )  # fmt: skip
    step = max(1, (high - low) // 5)
    ticks = tuple((y(10.0**power), f"1e{power}") for power in range(low, high + 1, step))
    return Plot(dots, y(culprit.tolerance) if culprit.tolerance > 0 else None, ticks, last)


def _providers(placement: Placement | None) -> Sequence[tuple[str, int]]:
    if placement is None:
        return ()
    counts = Counter(node.provider or "folded or fused before" for node in placement.nodes)
    return counts.most_common()
