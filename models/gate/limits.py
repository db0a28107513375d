"""What a model has to keep on a target, from the table [validate] of epcheck.toml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from epcheck.models.accuracy.thresholds import Override
from epcheck.models.validation.formatting import percent
from epcheck.models.validation.phases import DECIDING_NOTHING, NODES, SPEED
from epcheck.models.validation.validation import RIGHT, UNJUDGED, Validation

FAIL, PASS = "fail", "pass"


@dataclass(frozen=True)
class GateLimits:
    """rtol, atol, snr (dB), agreement: of the outputs, in place of ours. placed: least share of the nodes that run
    which are on the provider. latency: most of the candidate's median run over the baseline's. unjudged: `fail` or
    `pass` for a model that nobody can judge; empty where it is neither. strict_nodes: whether a node that is wrong
    alone fails a model whose outputs are right. budget: seconds for the whole command. None where there is no limit."""

    rtol: float | None = None
    atol: float | None = None
    snr: float | None = None
    agreement: float | None = None
    placed: float | None = None
    latency: float | None = None
    unjudged: str = ""
    strict_nodes: bool = False
    budget: float | None = None

    def override(self, chosen: Override) -> Override:
        """The thresholds of outputs: those that were chosen in the call, else these."""
        names = {"relative": self.rtol, "absolute": self.atol, "snr_db": self.snr, "agreement": self.agreement}
        values = {name: limit if getattr(chosen, name) is None else getattr(chosen, name)
                  for name, limit in names.items()}  # fmt: skip
        return Override(**values)


def of_table(table: Mapping[str, Any]) -> GateLimits:
    """The limits of a table that `config.load_config` checked."""
    return GateLimits(**table)


def find_broken_limits(found: Validation, limits: GateLimits) -> tuple[str, ...]:
    """A sentence for each limit that a validation breaks."""
    sentences = []
    passes = found.status == RIGHT or (found.status == UNJUDGED and limits.unjudged != FAIL)
    if not passes:
        sentences.append(found.headline)
    elif limits.strict_nodes and found.wrong_nodes:
        sentences.append(found.nodes_beyond_bounds)
    share = found.placed_share
    if limits.placed is not None and share is not None and share < limits.placed:
        where = found.provider or found.target
        sentences.append(f"{percent(share)} of its nodes are on {where}; the limit is {percent(limits.placed)}")
    if limits.latency is not None:
        ratio = found.speeds.ratio if found.speeds else None
        if ratio is None and SPEED in found.left_out:
            pass  # a step that is missing
        elif ratio is None:
            sentences.append("no baseline latency to compare with")
        elif ratio is not None and ratio > limits.latency:
            times = f"{ratio:.3g} times as long as on '{found.baseline}'"
            sentences.append(f"a run on '{found.target}' takes {times}; the limit is {limits.latency:.3g} times")
    return tuple(sentences)


def find_missing_steps(found: Validation, limits: GateLimits) -> tuple[str, ...]:
    """The steps that were left out, without which nobody can tell whether a model keeps the limits."""
    asked = {NODES: limits.strict_nodes, SPEED: limits.latency is not None}
    return tuple(step for step in found.left_out if asked.get(step, step not in DECIDING_NOTHING))
