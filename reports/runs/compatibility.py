"""Which runs may become one: what is checked before several runs are merged.

Nothing is guessed: runs of other suites, selections, baselines or machines are refused with a sentence.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epcheck.conformance.records.run import Run, Share
from epcheck.conformance.records.target_facts import allowing, differing_facts, tell_apart
from epcheck.reports.runs.run_folder import RUN, StoreError, read_run

SELECTS = ("operators", "dtypes", "patterns", "limit")
"""The keys of a run's selection that choose its cases."""


@dataclass(frozen=True)
class Part:
    """A run that is merged into another."""

    folder: Path
    run: Run
    share: Share

    @property
    def shard(self) -> str:
        return f"{self.share.index}/{self.share.count}"


def read_parts(folders: Iterable[Path]) -> list[Part]:
    """The finished runs in these folders, each once. Raises StoreError when one is unfinished or damaged."""
    found = dict.fromkeys(run.resolve() for folder in folders for run in _run_folders(folder))
    return [_part(_relative(folder)) for folder in found]


def _run_folders(folder: Path) -> Iterator[Path]:
    """The folder itself, or the run folders inside. Raises StoreError when there is none."""
    if (folder / RUN).is_file():
        yield folder
        return
    inside = sorted(path.parent for path in folder.rglob(RUN))
    if not inside:
        raise StoreError(f"{folder}: is not a run folder and contains none; name the run folders to merge")
    yield from inside


def _relative(folder: Path) -> Path:
    """The folder relative to the working directory, where it is inside."""
    return folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder


def _part(folder: Path) -> Part:
    run = read_run(folder)
    if run.status != "complete":
        how = {"running": "is still running or was killed", "interrupted": "was interrupted"}
        raise StoreError(
            f"{folder}: is not finished, it {how.get(run.status, run.status)}; finish it with epcheck run --resume "
            f"{folder}, or leave it out"
        )
    if run.share is None:
        raise StoreError(f"{folder}: was written by an older epcheck and does not name its whole; run it again")
    return Part(folder, run, run.share)


def check_same_selection(first: Part, second: Part) -> None:
    """Check that two runs have the same suite, selection, baseline and oracles. Raises StoreError."""
    both = f"{first.folder} and {second.folder} do not belong together"
    for name in ("epcheck", "onnx"):
        versions = [part.run.versions.get(name, "unknown") for part in (first, second)]
        if versions[0] != versions[1]:
            raise StoreError(f"{both}: {name} {versions[0]} and {versions[1]}; run both with the same")
    if (first.share.cases, first.share.digest) != (second.share.cases, second.share.digest):
        raise StoreError(f"{both}: {_different_selections(first, second)}")
    if first.run.baseline != second.run.baseline:
        baselines = [part.run.baseline or "none" for part in (first, second)]
        raise StoreError(f"{both}: the baselines are {baselines[0]} and {baselines[1]}; name one with --baseline")
    variants = [_listed(part.run.selection.get("variants") or ["none"]) for part in (first, second)]
    if variants[0] != variants[1]:
        raise StoreError(f"{both}: the variants are {variants[0]} and {variants[1]}; run both with the same --variants")
    compilers = [_listed(part.run.selection.get("context_from") or ["none"]) for part in (first, second)]
    if compilers[0] != compilers[1]:
        raise StoreError(f"{both}: contexts are from {compilers[0]} and {compilers[1]}; run both with the same")
    uses = [str(part.run.selection.get("uses", "none")) for part in (first, second)]
    if uses[0] != uses[1]:
        raise StoreError(f"{both}: --uses is {uses[0]} and {uses[1]}; run both with the same")
    if first.run.selection.get("reference") != second.run.selection.get("reference"):
        raise StoreError(f"{both}: only one of them asked onnx.reference about every case")


def _different_selections(first: Part, second: Part) -> str:
    selections = [(name, *(_listed(part.run.selection.get(name)) for part in (first, second))) for name in SELECTS]
    different = [f"{name} {ours} and {theirs}" for name, ours, theirs in selections if ours != theirs]
    if different:
        return f"they select {', '.join(different)}"
    return (
        f"the same selection has {first.share.cases:,} cases and {second.share.cases:,}, or others; their suites differ"
    )


def _listed(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) and value else str(value or "all")


def candidates_of(parts: Iterable[Part]) -> tuple[str, ...]:
    """The candidates of all runs, each once."""
    return tuple(dict.fromkeys(name for part in parts for name in part.run.candidates))


def check_same_target(name: str, parts: Sequence[Part], may_differ: Collection[str]) -> None:
    """Check that runs of one target are of one machine and share no case. Raises StoreError."""
    seen: dict[int, Part] = {}
    for part in parts:
        first = parts[0]
        if (part.share.count, part.share.cut) != (first.share.count, first.share.cut):
            raise StoreError(
                f"{first.folder} and {part.folder} cut the cases of target '{name}' differently, into shards "
                f"{first.shard} and {part.shard}; run all with the same number of shards and the same --balance"
            )
        if part.share.index in seen:
            raise StoreError(
                f"{seen[part.share.index].folder} and {part.folder} both hold {_what(part)} target '{name}'; leave one "
                f"out, or give each machine's target its own name in epcheck.toml"
            )
        seen[part.share.index] = part
        different = differing_facts(first.run.targets.get(name, {}), part.run.targets.get(name, {}), may_differ)
        if different:
            raise StoreError(
                f"target '{name}' is not the same in {first.folder} and {part.folder}: {tell_apart(different)}; give "
                f"each machine's target its own name in epcheck.toml, or pass {allowing(different)}"
            )


def _what(part: Part) -> str:
    return f"shard {part.shard} of" if part.share.count > 1 else "all of"
