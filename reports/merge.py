"""Several runs become one: the shards of a selection, or one selection on the targets of several machines.

Nothing is guessed. Runs that do not fit together are refused before anything is written; what is missing is named, and
keeps the merged run from being complete. Journals are copied line by line: of a run only the ids are in memory.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from epcheck.conformance.records.record import (
    Run,
    Share,
    allowing,
    differing_facts,
    joined_facts,
    tell_apart,
    varying_facts,
)
from epcheck.reports.page.embedded_data import Archive
from epcheck.reports.runs.run_folder import (
    DEFAULT_ROOT,
    RUN,
    Journal,
    StoreError,
    create,
    new_run_folder,
    read_lines,
    read_run,
)
from epcheck.reports.write import Reported, write_all

SELECTS = ("operators", "dtypes", "patterns", "limit")
"""What of a run's selection chooses its cases."""

OF_A_SHARD = ("shard", "balance")
"""What of a run's selection a merged run does not have."""

OF_A_MACHINE = ("config", "vulkan", "scheduler")
"""What of a run's selection a merged run keeps only where all say the same."""


@dataclass(frozen=True)
class _Part:
    """A run that is merged."""

    folder: Path
    run: Run
    share: Share

    @property
    def shard(self) -> str:
        return f"{self.share.index}/{self.share.count}"


def merge_runs(
    folders: Sequence[Path],
    out: Path | None = None,
    root: Path = DEFAULT_ROOT,
    command: tuple[str, ...] = ("epcheck", "merge"),
    may_differ: Collection[str] = (),
    archive: Archive | None = None,
) -> Reported:
    """Merge finished runs into a new run folder with all reports.

    folders: run folders, or folders that hold some at any depth. out: the new folder, which must not exist; None makes
    one under `root`. may_differ: facts of a candidate in which its machines may differ. archive: as of write_all. The
    merged run is complete when every target has every case of the whole selection; otherwise its status names the
    shards that are missing.
    Raises StoreError, and leaves nothing behind, when a run is unfinished or damaged, when two do not belong together,
    hold the same shard of one target, or tell different facts of one candidate.
    """
    parts = sorted(_parts(folders), key=lambda part: (part.share.index, part.run.started))
    for part in parts[1:]:
        _check_alike(parts[0], part)
    for name in _candidates(parts):
        _check_one_target(name, [part for part in parts if name in part.run.candidates], may_differ)
    if out is not None and out.exists():
        raise StoreError(f"{out}: exists already; name another folder for the merged run")
    folder = out or new_run_folder(root)
    try:
        merged = replace(_merged(parts), run_id=folder.name, command=command)
        with create(folder, replace(merged, status="running")) as journal:
            _copy(parts, journal)
            journal.close(merged)
        return write_all(folder, archive)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _parts(folders: Iterable[Path]) -> list[_Part]:
    found = dict.fromkeys(run.resolve() for folder in folders for run in _run_folders(folder))
    return [_part(_as_given(folder)) for folder in found]


def _run_folders(folder: Path) -> Iterator[Path]:
    """The folder itself, or the run folders inside. Raises StoreError when there is none."""
    if (folder / RUN).is_file():
        yield folder
        return
    inside = sorted(path.parent for path in folder.rglob(RUN))
    if not inside:
        raise StoreError(f"{folder}: is not a run folder and holds none; name the folders of the runs to merge")
    yield from inside


def _as_given(folder: Path) -> Path:
    """Relative to the working directory where it lies inside, as people name it."""
    return folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder


def _part(folder: Path) -> _Part:
    run = read_run(folder)
    if run.status != "complete":
        how = {"running": "is still running or was killed", "interrupted": "was interrupted"}
        raise StoreError(
            f"{folder}: is not finished, it {how.get(run.status, run.status)}; finish it with epcheck run --resume "
            f"{folder}, or leave it out"
        )
    if run.share is None:
        raise StoreError(f"{folder}: does not say what it is a part of, an older epcheck made it; run it again")
    return _Part(folder, run, run.share)


def _check_alike(one: _Part, other: _Part) -> None:
    """Refuse runs of different suites, selections or judges. Raises StoreError."""
    both = f"{one.folder} and {other.folder} do not belong together"
    for name in ("epcheck", "onnx"):
        versions = [part.run.versions.get(name, "unknown") for part in (one, other)]
        if versions[0] != versions[1]:
            raise StoreError(f"{both}: {name} {versions[0]} and {versions[1]}; run both with the same")
    if (one.share.cases, one.share.digest) != (other.share.cases, other.share.digest):
        raise StoreError(f"{both}: {_different_selections(one, other)}")
    if one.run.baseline != other.run.baseline:
        baselines = [part.run.baseline or "none" for part in (one, other)]
        raise StoreError(f"{both}: the baselines are {baselines[0]} and {baselines[1]}; name one with --baseline")
    if one.run.selection.get("reference") != other.run.selection.get("reference"):
        raise StoreError(f"{both}: only one of them asked onnx.reference about every case")


def _different_selections(one: _Part, other: _Part) -> str:
    said = [(name, *(_words(part.run.selection.get(name)) for part in (one, other))) for name in SELECTS]
    different = [f"{name} {ours} and {theirs}" for name, ours, theirs in said if ours != theirs]
    if different:
        return f"they select {', '.join(different)}"
    return f"the same selection has {one.share.cases:,} cases and {other.share.cases:,}, or others; their suites differ"


def _words(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) and value else str(value or "all")


def _candidates(parts: Iterable[_Part]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for part in parts for name in part.run.candidates))


def _check_one_target(name: str, parts: Sequence[_Part], may_differ: Collection[str]) -> None:
    """Refuse what would mix up two targets of one name, or count a case twice. Raises StoreError."""
    seen: dict[int, _Part] = {}
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
                f"out, or give each machine's target a name of its own in epcheck.toml"
            )
        seen[part.share.index] = part
        different = differing_facts(first.run.targets.get(name, {}), part.run.targets.get(name, {}), may_differ)
        if different:
            raise StoreError(
                f"target '{name}' is not the same in {first.folder} and {part.folder}: {tell_apart(different)}; give "
                f"each machine's target a name of its own in epcheck.toml, or say {allowing(different)}"
            )


def _what(part: _Part) -> str:
    return f"shard {part.shard} of" if part.share.count > 1 else "all of"


def _merged(parts: Sequence[_Part]) -> Run:
    """What the merged run says of itself; its id and command line are its own."""
    first, candidates = parts[0], _candidates(parts)
    stale = tuple(dict.fromkeys(entry for part in parts for entry in part.share.stale))
    return Run(
        run_id="",
        started=min(part.run.started for part in parts),
        finished=max(part.run.finished for part in parts),
        duration_s=sum(part.run.duration_s for part in parts),
        command=(),
        candidates=candidates,
        baseline=first.run.baseline,
        targets=_targets(parts),
        planned=first.share.cases * len(candidates),
        selection={**_selection(parts), "candidates": list(candidates)},
        versions=joined_facts([part.run.versions for part in parts]),
        status=_status(candidates, parts),
        stale=stale,
        notes=_notes(parts),
        share=Share(first.share.cases, first.share.digest, stale=stale),
    )


def _status(candidates: Sequence[str], parts: Sequence[_Part]) -> str:
    missing = [f"{shard} of {name}" for name in candidates for shard in _missing(name, parts)]
    if not missing:
        return "complete"
    shards, are = ("shard", "is") if len(missing) == 1 else ("shards", "are")
    return f"failed: {shards} {', '.join(missing)} {are} missing"


def _missing(name: str, parts: Sequence[_Part]) -> list[str]:
    """The shards of a target that no run has."""
    shares = [part.share for part in parts if name in part.run.candidates]
    count, there = shares[0].count, {share.index for share in shares}
    return [f"{index}/{count}" for index in range(1, count + 1) if index not in there]


def _targets(parts: Sequence[_Part]) -> dict[str, Mapping[str, str]]:
    names = dict.fromkeys(name for part in parts for name in part.run.targets)
    return {name: joined_facts([p.run.targets[name] for p in parts if name in p.run.targets]) for name in names}


def _selection(parts: Sequence[_Part]) -> dict[str, Any]:
    selections = [part.run.selection for part in parts]
    different = [n for n in OF_A_MACHINE if any(s.get(n) != selections[0].get(n) for s in selections)]
    merged = {name: value for name, value in selections[0].items() if name not in (*OF_A_SHARD, *different)}
    merged["expect"] = list(dict.fromkeys(path for selection in selections for path in selection.get("expect", ())))
    return merged


def _notes(parts: Sequence[_Part]) -> tuple[str, ...]:
    """Where it comes from, what its machines said, and which target was not everywhere the same."""
    notes = [f"Merged from {len(parts)} runs: {', '.join(part.run.run_id for part in parts)}"]
    notes += dict.fromkeys(note for part in parts for note in part.run.notes)
    for name in dict.fromkeys(name for part in parts for name in part.run.targets):
        told = [part.run.targets[name] for part in parts if name in part.run.targets]
        if different := varying_facts(told):
            notes.append(f"The target {name} is not the same on all machines; it differs in {', '.join(different)}")
    return tuple(notes)


def _copy(parts: Sequence[_Part], journal: Journal) -> None:
    """The lines of every part, in order. Raises StoreError when a part is damaged."""
    seen: set[tuple[str, str]] = set()
    for part in parts:
        before = len(seen)
        for line, record in read_lines(part.folder):
            who = record.candidate.target, record.case_id
            if who[0] not in part.run.candidates or who in seen:
                raise StoreError(f"{part.folder}: is damaged: '{who[1]}' on '{who[0]}' is twice or does not belong")
            seen.add(who)
            journal.append_line(line)
        if len(seen) - before != part.run.planned:
            raise StoreError(
                f"{part.folder}: is damaged: its journal holds {len(seen) - before:,} of {part.run.planned:,} records; "
                f"complete it with epcheck run --resume {part.folder}"
            )
