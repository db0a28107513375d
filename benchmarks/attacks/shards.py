"""An attack by several processes at once: each does a part of it, and what they count is summed up."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any


def add_options(parser: argparse.ArgumentParser) -> None:
    """`--jobs`, `--shard`, `--seed` and `--folder`, which every attack in parts has."""
    parser.add_argument("--jobs", type=int, default=1, help="processes that attack at once, each a part")
    parser.add_argument("--shard", default="1/1", help="K/N: only the Kth of N parts")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where files go; a temporary folder otherwise")


def part(options: argparse.Namespace) -> slice:
    """What of a list belongs to the shard."""
    number, count = map(int, options.shard.split("/"))
    return slice(number - 1, None, count)


def in_shards(program: str, options: argparse.Namespace) -> int | None:
    """With `--jobs`, run the program in so many processes and print the sum of their counts; the exit code.

    None where this process is to do the work itself. program: the path of the attack.
    """
    if options.jobs < 2:
        return None
    counted: list[dict[str, Any]] = []
    with ThreadPoolExecutor(options.jobs) as threads:
        codes = list(threads.map(lambda number: _shard(program, options, number, counted), range(1, options.jobs + 1)))
    print(json.dumps({**total(counted), "shards": f"{len(counted)} of {options.jobs}"}))
    return max(int(len(counted) < options.jobs), *codes)


def total(counted: list[dict[str, Any]]) -> dict[str, Any]:
    """The counts of all shards: whole numbers are added, of others the largest is taken."""
    found: dict[str, Any] = {}
    for key in dict.fromkeys(key for each in counted for key in each):
        values = [each[key] for each in counted if key in each]
        if isinstance(values[0], dict):
            found[key] = total(values)
        else:
            found[key] = sum(values) if all(isinstance(value, int) for value in values) else max(values)
    return found


def _shard(program: str, options: argparse.Namespace, number: int, counted: list[dict[str, Any]]) -> int:
    """Run one of the shards, and print what it prints, but for its counts, which are its last line; its exit code."""
    # What is given twice counts as it is given last.
    own = ["--jobs", "1", "--shard", f"{number}/{options.jobs}"]
    own += ["--folder", str(options.folder.absolute() / str(number))] if options.folder else []
    command = [sys.executable, program, *sys.argv[1:], *own]
    with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("{"):
                counted.append(json.loads(line))
            else:
                print(line, end="", flush=True)
    return process.returncode
