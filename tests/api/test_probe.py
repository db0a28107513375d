"""Asking a provider what it takes."""

from __future__ import annotations

import json
from pathlib import Path

import onnxruntime
import pytest

from epcheck import api
from epcheck.api.machine.probe import _limit_to_release
from epcheck.conformance.targets import claim_file
from epcheck.conformance.targets.specification import resolve
from tests.command_line import call, refused


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> api.ProbedClaims:
    """The CPU provider, asked about two operators."""
    out = tmp_path_factory.mktemp("claims") / "cpu.json"
    return api.probe(api.ProbeOptions("cpu", out, operators=("Tan", "BitShift"), each=1000))


def test_a_probe_writes_what_the_provider_takes(made: api.ProbedClaims) -> None:
    document = json.loads(made.path.read_text(encoding="utf-8"))
    rows = {(row["name"], row["since_version"]): row["type_constraints"] for row in document["operators"]}
    assert rows["Tan", 7]["T"] == ["float", "float16"]  # float16 between casts to float32
    assert rows["BitShift", 11]["T"] == ["uint16", "uint32", "uint64", "uint8"]
    assert document["provider"] == "CPUExecutionProvider"
    assert document["probed"]["facts"]["onnxruntime"] == onnxruntime.__version__
    assert document["when"]["runtime"] == ".".join(onnxruntime.__version__.split(".")[:2]) + ".*"
    assert (made.asked, made.taken) == (document["probed"]["cases"], document["probed"]["placed"])
    assert 0 < made.taken < made.asked


def test_the_table_can_be_used_at_once(made: api.ProbedClaims) -> None:
    (target,) = claim_file.with_tables([resolve("cpu")], [made.path])
    assert target.claims is not None
    assert target.claims.why_not("", "Tan", 7, {"T": "float32"}) is None
    assert target.claims.why_not("", "Tan", 7, {"T": "float64"}) == "Tan-7 is not claimed for T = float64"


def test_alone_the_same_is_taken(made: api.ProbedClaims, tmp_path: Path) -> None:
    alone = tmp_path / "alone.json"
    api.probe(api.ProbeOptions("cpu", alone, operators=("Tan", "BitShift"), each=1000, packed=False))
    first, second = (json.loads(path.read_text(encoding="utf-8")) for path in (made.path, alone))
    assert first["operators"] == second["operators"]


def test_the_command_says_what_it_found(tmp_path: Path) -> None:
    out = tmp_path / "cpu.json"
    done = call("probe", "--target", "cpu", "--op", "Tan", "--out", str(out))
    assert done.code == 0
    assert f"{out}: takes " in done.out


def test_what_cannot_be_asked(tmp_path: Path) -> None:
    message = refused("probe", "--target", "reference", "--out", str(tmp_path / "x.json"))
    assert message == "target 'reference' has no execution provider; name one that has"
    message = refused("probe", "--target", "cpu", "--out", str(tmp_path / "none" / "x.json"))
    assert message == f"{tmp_path / 'none'}: no such folder; create it first"


@pytest.mark.parametrize(
    ("facts", "holds"),
    [
        ({"onnxruntime": "1.32.0"}, {"runtime": "1.32.*"}),
        ({"onnxruntime": "1.32.0", "plugin": "onnxruntime-ep-webgpu 0.4.0"}, {"plugin": "0.4.*"}),
        ({"onnxruntime": "1.32.0", "plugin": "libprovider.so"}, {"runtime": "1.32.*"}),
        ({"onnxruntime": "of somebody"}, {"runtime": "of somebody"}),
    ],
)
def test_a_table_holds_for_the_releases_that_its_kernels_come_with(facts: dict[str, str], holds: object) -> None:
    assert _limit_to_release(facts) == holds
