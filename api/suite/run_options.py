"""What a run is asked to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from epcheck.api.option import JUDGE, MACHINE, OUTPUT, SELECT, Option
from epcheck.api.option_types import Dtypes, MaxFlaky, Operators, Patterns, Root, Strict, StrictAccuracy, Thin, Vulkan
from epcheck.api.suite.option_types import Baseline, Candidates, CaseSource, ConfigFile, ContextFrom, Uses, Variants
from epcheck.conformance.scheduling.shard import Shard as Shard
from epcheck.conformance.targets.variants import Axis as Axis
from epcheck.conformance.targets.variants import UsedCases as UsedCases
from epcheck.generators import suite
from epcheck.generators.case import Case
from epcheck.generators.suite import Source as Source
from epcheck.reports import DEFAULT_ROOT


@dataclass(frozen=True)
class RunOptions:
    """What to run, on what, and where it is kept. Empty tuples select everything.

    targets: specifications of candidates; empty chooses the best of this machine. baseline: None chooses `cpu`, or
    `reference` when the candidate is `cpu` itself. source: whose cases; of several, all. thin, whole:
    without both, a run of the whole suite begins with the cases of a thin one, and says their verdict. explain: call
    DirectML directly for every failure of its provider. variants: run each case in the other ways of these axes too,
    and report what depends on it. context_from: targets whose EPContext models the candidates load, on the axis
    `context`. uses: of which cases sessions are used as applications do, on all axes of `USES`; of
    a sample also where `variants` names such an axis. expect: further files of expectations. claims: claim tables, each
    for the candidates that have the provider it names. strict, max_flaky, strict_accuracy: decide `RunResult.conforms`
    alone.
    resume: the folder of an interrupted run, or `latest` for the newest under `root`; its own selection is used, and of
    these options `scheduler`, `trace` and `may_differ`. jobs: workers of each target at most; None for as many as
    there are cores, and for DirectML as many as pay, which is measured. pack: let cases share sessions. cache: use what
    earlier runs kept. shard: run this part of the selection only. balance: the folder of an earlier run, by whose times
    shards are cut. store: compare with the runs of this store in place of those under `root`.
    scheduler: the address of a Dask scheduler, on whose machines the candidates are. trace: a file
    for where the time went. may_differ: facts in which the machines of one candidate may differ, on a cluster or when a
    run is resumed.
    """

    targets: Candidates = ()
    baseline: Baseline = None
    operators: Operators = ()
    dtypes: Dtypes = ()
    patterns: Patterns = ()
    limit: Annotated[int | None, Option("Stop after N cases.", metavar="N", minimum=1, panel=SELECT)] = None
    source: CaseSource = Source.SUITE
    thin: Thin = False
    whole: Annotated[
        bool, Option("Run all cases in suite order, without a thin pass first.", flags=("--whole",), panel=SELECT)
    ] = False
    explain: Annotated[
        bool,
        Option(
            "Call DirectML directly for every failure, to find whether the provider or DirectML is wrong.",
            flags=("--explain",),
            panel=JUDGE,
        ),
    ] = False
    variants: Variants = ()
    context_from: ContextFrom = ()
    uses: Uses = UsedCases.NONE
    expect: Annotated[
        tuple[Path, ...], Option("Additional TOML file of expectations.", metavar="FILE", panel=JUDGE)
    ] = ()
    claims: Annotated[
        tuple[Path, ...],
        Option("A claim table of a candidate's provider; `epcheck probe` makes one.", metavar="FILE", panel=JUDGE),
    ] = ()
    strict: Strict = False
    max_flaky: MaxFlaky = None
    strict_accuracy: StrictAccuracy = False
    reference: Annotated[bool, Option("Also run onnx.reference on every case.", panel=JUDGE)] = True
    root: Root = DEFAULT_ROOT
    resume: Annotated[
        Path | str | None,
        Option(
            "Resume an interrupted run, with its original selection.", metavar="RUN|latest", parse=str, panel=SELECT
        ),
    ] = None
    vulkan: Vulkan = None
    config: ConfigFile = None
    jobs: Annotated[
        int | None,
        Option(
            "Workers per target. Default: one per core; on a GPU, chosen automatically.",
            flags=("--jobs", "-j"),
            metavar="N",
            minimum=1,
            panel=MACHINE,
        ),
    ] = None
    pack: Annotated[bool, Option("Run several cases in one session; verdicts do not change.", panel=MACHINE)] = True
    cache: Annotated[bool, Option("Reuse models and baseline results from earlier runs.", panel=MACHINE)] = True
    shard: Annotated[
        Shard | None,
        Option("Run the Kth of N parts; `epcheck merge` joins them.", metavar="K/N", parse=Shard.parse, panel=SELECT),
    ] = None
    balance: Annotated[
        Path | None,
        Option("With --shard: balance shards by this run's times, not by count.", metavar="RUN", panel=SELECT),
    ] = None
    scheduler: Annotated[
        str | None, Option("Run on the machines of a Dask cluster.", metavar="tcp://HOST:PORT", panel=MACHINE)
    ] = None
    store: Annotated[
        Path | None,
        Option(
            "Compare with the runs of this store instead of those under --root.",
            metavar="FOLDER",
            file=False,
            panel=OUTPUT,
        ),
    ] = None
    trace: Annotated[
        Path | None,
        Option("Write a time trace for ui.perfetto.dev, and print totals.", metavar="FILE", panel=OUTPUT),
    ] = None
    may_differ: Annotated[
        tuple[str, ...],
        Option(
            "Allow this fact to differ between machines of one target; repeat for more.", metavar="FACT", panel=MACHINE
        ),
    ] = ()

    @property
    def whole_suite(self) -> bool:
        """Whether every case is selected, so that an expectation without a case is stale."""
        part = self.operators or self.dtypes or self.patterns or self.thin
        return not part and self.limit is None and Source.SUITE in suite.list_sources(self.source)

    def cases(self) -> Iterator[Case]:
        """The selected cases. Raises SelectionError."""
        return suite.cases(self.operators, self.dtypes, self.patterns, self.limit, self.source, self.thin)
