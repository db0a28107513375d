"""What `epcheck fuzz` found, as cases: of a fault's folder, of its line, or of all that searches left in a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from epcheck.generators.serialization.node_json import DocumentError
from epcheck.generators.sources import found_faults
from epcheck.generators.sources.harvested import HarvestError
from epcheck.generators.truth import Open
from epcheck.models.harvest.nodes import NotHarvested

SUFFIX = ".jsonl"

PLACES = ("node.jsonl", "faults/*/node.jsonl", "examples.jsonl", "graphs.jsonl")
"""Where the folder of a fault and that of a search have lines."""


@dataclass(frozen=True)
class FuzzHarvest:
    """What such files give. name: by which a person knows them. total: their lines. lines: id -> line of each case.
    left_out: what the oracle cannot judge."""

    name: str
    total: int
    lines: Mapping[str, str]
    left_out: tuple[NotHarvested, ...]


def find_files(path: Path) -> tuple[Path, ...]:
    """The files with lines: the path itself, or those in it and in the folders in it, as a night makes one for each
    target; none where nothing was searched. Links are not followed."""
    if path.suffix == SUFFIX:
        return (path,)
    if not path.is_dir():
        return ()
    folders = (path, *sorted(each for each in path.iterdir() if each.is_dir() and not each.is_symlink()))
    every = (file for folder in folders for place in PLACES for file in sorted(folder.glob(place)))
    return tuple(dict.fromkeys(file for file in every if file.is_file() and not file.is_symlink()))


def read_files(name: str, files: Sequence[Path]) -> FuzzHarvest:
    """The cases of these files; a node that several have is one case. Raises HarvestError."""
    lines: dict[str, str] = {}
    left_out: dict[str, NotHarvested] = {}
    total = 0
    for file in files:
        try:
            for number, found in enumerate(found_faults.read(file), 1):
                total += 1
                if isinstance(found, Open):
                    place = f"{file.parent.name}/{file.name}, line {number}"
                    left_out[place] = NotHarvested(name, place, "", found.reason)
                else:
                    lines[found_faults.case_of(found).id] = found_faults.encode(found)
        except DocumentError as error:
            raise HarvestError(str(error)) from None
        except OSError as error:
            raise HarvestError(f"'{file}' cannot be read: {error.strerror or error}") from None
        if len(lines) > found_faults.MOST_LINES:
            raise HarvestError(
                f"'{name}' has more than {found_faults.MOST_LINES:,} nodes; name the folders of some faults"
            )
    return FuzzHarvest(name, total, lines, tuple(left_out.values()))
