"""Nodes timed on one release after the other, each beside the oldest release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from epcheck.api.progress import Progress
from epcheck.api.suite.speed import EACH_S, LEAST_S, SpeedOptions, measure, select_nodes, time_targets
from epcheck.conformance.records.speed import EQUIVALENT, FASTER, RUN, SLOWER, UNDECIDED, SpeedComparison
from epcheck.conformance.records.terms import PASS
from epcheck.conformance.releases.error import ReleaseError, UnusableReleaseError
from epcheck.conformance.releases.search import NOT_TIMED, Trial
from epcheck.conformance.releases.series import Series, target_at
from epcheck.conformance.speed.sequential import SMALLEST_DIFFERENCE
from epcheck.conformance.targets.target import Target
from epcheck.conformance.workers.client import TargetDown


class SpeedTrier:
    """Compares the speed of releases with that of the oldest. facts: release -> what its worker reported."""

    def __init__(
        self, series: Series, oldest: str, config: Mapping[str, Any], options: SpeedOptions, progress: Progress
    ) -> None:
        """options: of each comparison."""
        self.facts: dict[str, Mapping[str, str]] = {}
        self._series, self._oldest, self._config = series, oldest, config
        self._options, self._progress = options, progress

    def run(self, release: str, node_ids: Sequence[str]) -> dict[str, Trial]:
        """What each node comes to in a release. Raises UnusableReleaseError, and ReleaseError where the oldest release
        cannot be used."""
        if release == self._oldest:
            return dict.fromkeys(node_ids, Trial(PASS, "the release that the others are compared with"))
        try:
            first = self._make_target(self._oldest)
        except UnusableReleaseError as error:
            raise ReleaseError(f"the oldest release cannot be timed; begin with a later one: {error}") from None
        second = self._make_target(release)
        limit = self._options.max_slowdown or SMALLEST_DIFFERENCE
        seconds = self._options.seconds or LEAST_S + EACH_S * len(node_ids)
        options = replace(self._options, max_slowdown=limit, seconds=seconds)
        nodes = [node for node in select_nodes(options) if node.id in node_ids]
        try:
            with time_targets((first, second), options.threads) as sides:
                report = measure(nodes, sides, options, self._progress)
        except TargetDown as error:
            raise UnusableReleaseError(str(error)) from error
        self.facts |= {self._oldest: report.facts["A"], release: report.facts["B"]}
        return {each.case: _judge(each, limit) for each in report.comparisons}

    def _make_target(self, release: str) -> Target:
        """Raises UnusableReleaseError."""
        with self._progress.installing() as step:
            return target_at(self._series, release, self._config, step, self._options.vulkan)


def _judge(found: SpeedComparison, limit: float) -> Trial:
    run = found.phase(RUN)
    if run is None:
        return Trial(NOT_TIMED, found.trouble or "; ".join(found.notes))
    if run.low > limit:
        return Trial(SLOWER, run.words)
    is_right = run.high <= limit or run.verdict in (EQUIVALENT, FASTER)
    return Trial(PASS if is_right else UNDECIDED, run.words)
