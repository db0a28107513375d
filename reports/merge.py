"""Several runs become one: the shards of a selection, or one selection on the targets of several machines.

Nothing is guessed. Runs that do not fit together are refused before anything is written; what is missing is named, and
keeps the merged run from being complete. Journals are copied line by line: of a run only the ids are in memory.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from epcheck.conformance.records.run import Run, Share
from epcheck.conformance.records.target_facts import join_facts, varying_facts
from epcheck.reports.family import Family, no_family
from epcheck.reports.page.embedded_data import ReproArchiver
from epcheck.reports.runs.compatibility import (
    Part,
    candidates_of,
    check_same_selection,
    check_same_target,
    read_parts,
)
from epcheck.reports.runs.run_folder import DEFAULT_ROOT, Journal, StoreError, create, new_run_folder, read_lines
from epcheck.reports.write import Reported, write_all

OF_A_SHARD = ("shard", "balance")
"""What of a run's selection a merged run does not have."""

OF_A_MACHINE = ("config", "vulkan", "scheduler")
"""What of a run's selection a merged run keeps only where all say the same."""


def merge_runs(
    folders: Sequence[Path],
    out: Path | None = None,
    root: Path = DEFAULT_ROOT,
    command: tuple[str, ...] = ("epcheck", "merge"),
    may_differ: Collection[str] = (),
    archive: ReproArchiver | None = None,
    family: Family = no_family,
) -> Reported:
    """Merge finished runs into a new run folder with all reports.

    folders: run folders, or folders that hold some at any depth. out: the new folder, which must not exist; None makes
    one under `root`. may_differ: facts of a candidate in which its machines may differ. archive, family: as of
    write_all. The merged run is complete when every target has every case of the whole selection; otherwise its status
    names the shards that are missing.
    Raises StoreError, and leaves nothing behind, when a run is unfinished or damaged, when two do not belong together,
    hold the same shard of one target, tell different facts of one candidate, or when the cases of all shards together
    are not those of the selection.
    """
    parts = sorted(read_parts(folders), key=lambda part: (part.share.index, part.run.started))
    for part in parts[1:]:
        check_same_selection(parts[0], part)
    for name in candidates_of(parts):
        check_same_target(name, [part for part in parts if name in part.run.candidates], may_differ)
    if out is not None and out.exists():
        raise StoreError(f"{out}: already exists; name another folder for the merged run")
    folder = out or new_run_folder(root)
    try:
        merged = replace(_merge_runs(parts), run_id=folder.name, command=command)
        with create(folder, replace(merged, status="running")) as journal:
            _copy(parts, journal)
            journal.close(merged)
        return write_all(folder, archive, family=family)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _merge_runs(parts: Sequence[Part]) -> Run:
    """What the merged run says of itself; its id and command line are its own."""
    first, candidates = parts[0], candidates_of(parts)
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
        versions=join_facts([part.run.versions for part in parts]),
        status=_status(candidates, parts),
        stale=stale,
        notes=_notes(parts),
        share=Share(first.share.cases, first.share.digest, stale=stale),
    )


def _status(candidates: Sequence[str], parts: Sequence[Part]) -> str:
    missing = [f"{shard} of {name}" for name in candidates for shard in _missing(name, parts)]
    if not missing:
        return "complete"
    shards, are = ("shard", "is") if len(missing) == 1 else ("shards", "are")
    return f"failed: {shards} {', '.join(missing)} {are} missing"


def _missing(name: str, parts: Sequence[Part]) -> list[str]:
    """The shards of a target that no run has."""
    shares = [part.share for part in parts if name in part.run.candidates]
    count, there = shares[0].count, {share.index for share in shares}
    return [f"{index}/{count}" for index in range(1, count + 1) if index not in there]


def _targets(parts: Sequence[Part]) -> dict[str, Mapping[str, str]]:
    names = dict.fromkeys(name for part in parts for name in part.run.targets)
    return {name: join_facts([p.run.targets[name] for p in parts if name in p.run.targets]) for name in names}


def _selection(parts: Sequence[Part]) -> dict[str, Any]:
    selections = [part.run.selection for part in parts]
    different = [n for n in OF_A_MACHINE if any(s.get(n) != selections[0].get(n) for s in selections)]
    merged = {name: value for name, value in selections[0].items() if name not in (*OF_A_SHARD, *different)}
    merged["expect"] = list(dict.fromkeys(path for selection in selections for path in selection.get("expect", ())))
    return merged


def _notes(parts: Sequence[Part]) -> tuple[str, ...]:
    """Where it comes from, what its machines said, and which target was not everywhere the same."""
    notes = [f"Merged from {len(parts)} runs: {', '.join(part.run.run_id for part in parts)}"]
    notes += dict.fromkeys(note for part in parts for note in part.run.notes)
    for name in dict.fromkeys(name for part in parts for name in part.run.targets):
        facts = [part.run.targets[name] for part in parts if name in part.run.targets]
        if different := varying_facts(facts):
            notes.append(f"The target {name} is not the same on all machines; it differs in {', '.join(different)}")
    return tuple(notes)


def _copy(parts: Sequence[Part], journal: Journal) -> None:
    """The lines of every part, in order. Raises StoreError when a part is damaged."""
    seen: set[tuple[str, str]] = set()
    for part in parts:
        before = len(seen)
        for line, record in read_lines(part.folder):
            who = record.candidate.target, record.case_id
            if who[0] not in part.run.candidates or who in seen:
                raise StoreError(
                    f"{part.folder}: is damaged: '{who[1]}' on '{who[0]}' is duplicated or does not belong"
                )
            seen.add(who)
            journal.append_line(line)
        if len(seen) - before != part.run.planned:
            raise StoreError(
                f"{part.folder}: is damaged: its journal has {len(seen) - before:,} of {part.run.planned:,} records; "
                f"complete it with epcheck run --resume {part.folder}"
            )
    for name in candidates_of(parts):
        ids = (case_id for target, case_id in seen if target == name)
        if not _missing(name, parts) and not parts[0].share.has(ids):
            raise StoreError(
                f"{', '.join(str(part.folder) for part in parts if name in part.run.candidates)}: damaged: a case of "
                f"'{name}' is not of the selection, and one of the selection is lost; run the shards again"
            )
