"""README and the pages of docs as tests read them: the command lines in them, and a folder with what these name."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx

from epcheck import api
from epcheck.generators.fuzzing.drawing import Source
from epcheck.generators.registry import operator_of
from epcheck.generators.serialization import node_json
from tests.models import small_models

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    path
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md"))
    if path.name != "CHANGELOG.md"  # it names what is gone, too
)
FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
INDENTED = re.compile(r"(?<=\n\n)(?:(?: {4}|\t).*\n)+")
INLINE = re.compile(r"`epcheck ([^`]+)`")
SHELL = ("", "sh", "console", "bash")

WRONG_RELU = """
import numpy as np
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

class Relu(OpRun):
    def _run(self, x):
        return (2 * np.maximum(x, 0),)

def run(model, feeds):
    return ReferenceEvaluator(model, new_ops=[Relu]).run(None, feeds)
"""
"""A target on which something is wrong, for what looks for it."""


def in_blocks(text: str) -> Iterator[str]:
    """The command lines of a page that stand in blocks, without `epcheck`."""
    blocks = [block for language, block in FENCED.findall(text) if language in SHELL]
    for block in (*blocks, *INDENTED.findall(FENCED.sub("", text))):
        for line in block.replace("\\\n", " ").splitlines():
            command, *_ = re.split(r"\s#\s", line.strip())
            for part in re.split(r" && | \| ", command):
                if part.startswith("epcheck "):
                    yield part.removeprefix("epcheck ").strip()


def in_sentences(text: str) -> Iterator[str]:
    """The command lines of a page that stand in its sentences, without `epcheck`."""
    prose = INDENTED.sub("", FENCED.sub("", text))
    return (found.replace("\n", " ") for found in INLINE.findall(prose))


def make_world(folder: Path) -> None:
    """Fill a folder with what the pages name: runs, a store, shards, a model with feeds, expectations."""
    options = api.RunOptions(("cpu",), "none", ("Slice",), reference=False, limit=4, root=folder / "epcheck-runs")
    for name in "ab":
        shutil.copytree(api.run(options).folder, folder / "epcheck-runs" / name)
    list(api.add_to_store(api.AddToStoreOptions((folder / "epcheck-runs" / "b",), folder / "epcheck-store")))
    for index in (1, 2):
        api.run(api.RunOptions(("cpu",), limit=4, shard=api.Shard(index, 2), root=folder / "shards"))
    (folder / "models").mkdir()
    for path in (folder / "model.onnx", folder / "models" / "model.onnx"):
        onnx.save(small_models.layers(1), path)
    fault = folder / "epcheck-fuzz" / "faults" / "Slice-1a2b3c4d"
    fault.mkdir(parents=True)
    (drawn,) = Source([operator_of("Slice")], 1).draw(1)
    (fault / "node.jsonl").write_text(node_json.encode(drawn.serialized), encoding="utf-8")
    np.savez(folder / "feeds.npz", **small_models.feeds())  # type: ignore[arg-type]
    entry = '[[expect]]\ncase = "Slice-*"\nstatus = "crash"\nreason = "ticket 1234"\n'
    (folder / "known.toml").write_text(entry, encoding="utf-8")
    (folder / "wrong_relu.py").write_text(WRONG_RELU, encoding="utf-8")
