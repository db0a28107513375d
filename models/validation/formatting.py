"""How the terminal and the page write the figures of a validation."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from epcheck.conformance.records import repro_command
from epcheck.models.execution.model_outcome import CREATE, RUN
from epcheck.models.validation.validation import RIGHT, Step, Validation

NOT_LOOKED_FOR = "Not searched: this needs a baseline, and no --no-culprit."


def byte_size(count: float | None) -> str:
    """`12.3 MiB`; a dash for None."""
    if count is None:
        return "–"
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} GiB"


def number(value: float | None) -> str:
    """Three significant digits; a dash for None."""
    if value is None:
        return "–"
    return "∞" if math.isinf(value) and value > 0 else f"{value:.3g}"


def percent(share: float | None) -> str:
    """`99.3 %`; a dash for None."""
    return "–" if share is None else f"{share:.1%}".replace("%", " %")


def operations(count: float | None) -> str:
    """`1.2 G`, a number of operations; a dash for None."""
    if count is None:
        return "–"
    for unit in ("", " k", " M", " G"):
        if abs(count) < 1000:
            return f"{count:.3g}{unit}"
        count /= 1000
    return f"{count:.3g} T"


def failures(steps: Iterable[Step]) -> list[tuple[str, Step]]:
    """(trials, step) of the steps that failed. Of steps that failed alike the first stands for all; trials names it and
    counts the others."""
    alike: dict[tuple[str, str, str], list[Step]] = {}
    for step in steps:
        if step.during:
            message = re.sub(r"[0-9A-F]*\d[0-9A-F]*", "", step.message)  # addresses, threads and counters differ
            alike.setdefault((step.target, step.during, message), []).append(step)
    return [(f"{group[0].trial}{_more(len(group) - 1)}", group[0]) for group in alike.values()]


def failure(step: Step) -> str:
    """How a step failed: `crash in session creation`, `error in the run`."""
    return f"{'error' if step.stage in (CREATE, RUN) else step.stage} in {step.during}"


def unsuitable(validation: Validation, step: Step) -> str:
    """Why a step that failed says nothing about the candidate; empty where it does."""
    alike = [other for other in validation.unsuitable if other.trial == step.trial]
    if not alike:
        return ""
    instead = "; another trial took its place" if alike[0].has_other else ""
    return f"candidate and baseline fail the same way: the generated feeds do not suit the model{instead}"


def _more(count: int) -> str:
    return f" and {count} more trial{'s' if count > 1 else ''}" if count else ""


def reduce_command(validation: Validation) -> str:
    """The command that reduces the model to the part that still fails, quoted for the shell of this platform."""
    return quote_command("reduce", validation, validation.reduce_args)


def quote_command(command: str, validation: Validation, arguments: Sequence[str]) -> str:
    """A command about the model of a validation, quoted for the shell of this platform."""
    return repro_command.quote_command("epcheck", command, str(validation.path), *arguments)


def find_tone(validation: Validation) -> str:
    """The class of the headline on a page: `warning` for a model that is right with a wrong node, or not finished."""
    is_doubtful = validation.status == RIGHT and (validation.wrong_nodes or validation.left_out)
    return "warning" if is_doubtful else validation.status
