"""Every command line in README and docs is run, page by page, on the CPU provider and with few cases.

What installs something, needs the lab or another machine, or asks the network is not run, and neither is what takes
long and has tests of its own; that epcheck takes it as it is written is told by `test_commands`.
"""

from __future__ import annotations

import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

from benchmarks.fault_injection.planted_precision import planted
from benchmarks.fault_injection.planted_quantizers import Parts
from epcheck import api
from tests.command_line import call
from tests.documents import PAGES, ROOT, in_blocks, make_world
from tests.models import small_models

NOT_RUN = (
    r"^env (create|remove|pack)|^lab |^bisect |^claims refresh",  # installs, or asks the network
    r"--resume|^coverage( --all.*| --algorithms)?$|--source onnx|^zoo write all|^demo",  # long
    r"^fuzz.* --graphs|--fuzz-graph",  # long
    r"--scheduler|--vulkan|ep:|/opt/venv|dml:\d",  # another machine
    r"^certify --check|^report certificate",  # a certificate, which takes minutes; tests/api/test_certify.py checks one
    r"--borders|--explain|--when|replay repro --target openvino",  # DirectML, a GPU, or another environment
    r"context=|--context-from",  # providers that compile
    r"^speed .*@",  # installs a release
)
"""Lines in which one of these is found are not run."""

FEW = {
    "run": ("--limit", "4"), "nightly": ("--limit", "4", "--fuzz-minutes", "0"), "probe": ("--op", "Relu"),
    "fuzz": ("--minutes", "0.02", "--op", "Relu"),
}  # fmt: skip
"""Command -> what makes it short."""

WRONG = "python:wrong_relu:run"
CASE = "Relu-6/float32/ordinary[runtime]"
ENDS = {"coverage --run": 1}
"""Beginning of a line -> its exit code, where that is not 0: most claims have no case in a run of four."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the pages name, among it a run that has failures, and one of two targets."""
    folder = tmp_path_factory.mktemp("world")
    make_world(folder)
    x = small_models.feeds()["x"][:1]
    np.savez(folder / "inputs.npz", x=x)
    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    outputs = dict(zip((output.name for output in session.get_outputs()), session.run(None, {"x": x}), strict=True))
    np.savez(folder / "torch.npz", **outputs)
    data = folder / "test_data_set_0"
    data.mkdir()
    (data / "input_0.pb").write_bytes(numpy_helper.from_array(x, "x").SerializeToString())
    for index, (name, value) in enumerate(outputs.items()):
        (data / f"output_{index}.pb").write_bytes(numpy_helper.from_array(value, name).SerializeToString())
    half = planted("exponent", 2, 1)
    onnx.save(half.model, folder / "half.onnx")
    quantised = Parts()
    onnx.save(quantised.model(), folder / "model_int8.onnx")
    np.savez(folder / "int8.npz", x=quantised.feeds["x"])
    options = api.RunOptions(("cpu",), "none", reference=False, root=folder / "epcheck-runs", limit=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        wrong = api.run(replace(options, targets=(WRONG,), patterns=(CASE,), limit=None))
        shutil.copytree(wrong.folder, folder / "epcheck-runs" / "wrong")
        both = api.run(replace(options, targets=("cpu", "reference"), operators=("Relu",)))
        shutil.copytree(both.folder, folder / "epcheck-runs" / "both")
    return folder


def shortened(line: str) -> list[str]:
    """The words of a line as a machine with the CPU provider alone runs it, with the names that the world has."""
    wrong = line.startswith(("reduce", "report-bug", "expect", 'show "Relu'))
    runs = iter(("wrong",) if wrong else ("both",) if "--target-a" in line else "ab")
    candidate = WRONG if wrong else "cpu"
    for pattern, text in (
        (r"python:mymodule:my_backend", WRONG),
        (r"(dml|cpu)@[\w.-]+", "reference"),
        (r"(-target|-t|-target-a|-target-b) (dml|directml|webgpu|openvino|qnn|cuda)\b", rf"\1 {candidate}"),
        (r"\bminutes [\d.]+", "minutes 0.01"),
        (r"--seconds [\d.]+", "--seconds 1"),
        (r"claims-openvino", "claims-cpu"),
        (r'-k "CASE"', f"-k '{CASE}' --op Relu"),  # the whole suite need not be listed
        (r'"CASE"', f'"{CASE}"'),
        (r"^(report-bug \S+) \S+/\S+", rf"\1 {CASE}"),
        (r"-k TopK", "-k Relu"),
        (r"^(fuzz .*)--op Resize --op Conv", r"\1"),  # Relu has no known fault
        (r"^(run .*)--root shards", r"\1--root other-shards"),  # of another number than the world has
        (r"^((?:doctor|fix) model_int8.onnx .*)feeds.npz", r"\1int8.npz"),
        (r"^doctor model.onnx(?!.*float16)", "doctor half.onnx"),
    ):
        line = re.sub(pattern, text, line)
    line = re.sub(
        r"(epcheck-runs)/\d+-[\w.-]+|\bRUN(_[AB]|\.\.\.)?(?= |$)", lambda _: f"epcheck-runs/{next(runs)}", line
    )
    line = re.sub(r"epcheck-store/\d+-[\w.-]+", lambda _: f"epcheck-runs/{next(runs)}/outcomes.parquet", line)
    words = shlex.split(line)
    return [*words, *FEW.get(words[0], ())]


def lines(path: Path) -> list[str]:
    in_page = in_blocks(path.read_text(encoding="utf-8"))
    return [line for line in in_page if not any(re.search(part, line) for part in NOT_RUN)]


def lines_to_run(path: Path) -> list[str]:
    """Of the overview those that no other page has."""
    if path != OVERVIEW:
        return lines(path)
    elsewhere = [shortened(line) for page in RUN if page != OVERVIEW for line in lines(page)]
    return [line for line in lines(path) if shortened(line) not in elsewhere]


OVERVIEW = ROOT / "docs" / "tasks.md"
RUN = [path for path in PAGES if lines(path) and "tutorial" not in path.parts]
"""The tutorial has a test of its own."""


@pytest.mark.slow
@pytest.mark.parametrize("path", RUN, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_commands_of_a_page_run(path: Path, world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(world, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EPCHECK_STORE", raising=False)
    ended = {}
    for line in lines_to_run(path):
        done = call(*shortened(line))
        if done.code != next((code for start, code in ENDS.items() if line.startswith(start)), 0):
            ended[line] = done
    assert ended == {}


def test_most_lines_are_run() -> None:
    every = [line for path in PAGES for line in in_blocks(path.read_text(encoding="utf-8"))]
    assert sum(len(lines(path)) for path in RUN) > 0.6 * len(every)
