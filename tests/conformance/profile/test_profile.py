"""A provider profile: to JSON and back without a loss, as its schema says, and one sentence for what is none."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner

from epcheck import api
from epcheck.cli.main import app
from epcheck.conformance.profile import profile
from epcheck.conformance.profile.profile import ProfileError, ProviderProfile
from epcheck.conformance.targets import expectation_file
from epcheck.conformance.targets.condition import Condition
from epcheck.conformance.targets.expectation import Expectation
from epcheck.generators.claims import Claims, Conditional, Kernel, claims_of

SMALL = ProviderProfile(
    "WebGpuExecutionProvider",
    "webgpu",
    Claims(
        "WebGpuExecutionProvider",
        {("", "Slice", 13): {"T": frozenset({"float32", "int32"})}, ("com.microsoft", "Gelu", 1): {}},
        {("", "Slice", 13): Kernel("QuerySlice", "declines 5-D", frozenset({1, 2}), False)},
        {("", "Slice", 13): {"T": frozenset({"int32"})}},
        {"adapter": ["*SwiftShader*"]},
        (
            Conditional(("", "Slice", 13), {"plugin": ">=0.4"}, {"T": frozenset({"int32"})}),
            Conditional(("com.microsoft", "Gelu", 1), {"plugin": [">=0.3", "0.1.*"]}),
        ),
    ),
    (
        Expectation("Slice-13/*", "mismatch", "known \x7f", bound=2.0),
        Expectation("Gelu-*", "crash", "driver", "https://example.test", when=Condition((("vendor", ("0x10de",)),))),
    ),
)


@pytest.mark.parametrize("target", ["dml", "cpu", "dml@1.20.1"])
def test_claims_and_expectations_of_a_target_survive_the_round_trip(tmp_path: Path, target: str) -> None:
    path = tmp_path / "profile.json"
    made = api.provider_profile(api.ProfileOptions(target, path))
    read = api.read_profile(api.ReadProfileOptions(path, tmp_path / "known.toml"))
    assert read == made
    assert (read.claims and vars(read.claims)) == ((table := claims_of(read.provider)) and vars(table))
    assert read.expectations == expectation_file.load_shipped(target.partition("@")[0])
    assert expectation_file.load(tmp_path / "known.toml") == read.expectations
    assert profile.dumps(read) == path.read_text("ascii")
    assert profile.digest(read) == profile.digest(made)
    jsonschema.validate(json.loads(path.read_text("ascii")), profile.schema(), cls=jsonschema.Draft202012Validator)


def test_every_field_survives_the_round_trip(tmp_path: Path) -> None:
    document = profile.to_json(SMALL)
    jsonschema.validate(document, profile.schema())
    read = profile.loads(json.dumps(document), "x")
    assert read == SMALL
    assert read.claims is not None
    assert SMALL.claims is not None
    assert vars(read.claims) == vars(SMALL.claims)
    (tmp_path / "p.json").write_text(profile.dumps(SMALL))
    api.read_profile(api.ReadProfileOptions(tmp_path / "p.json", tmp_path / "known.toml"))
    assert expectation_file.load(tmp_path / "known.toml") == SMALL.expectations


def test_the_profile_says_which_cases_are_claimed_as_the_table_does() -> None:
    read = profile.loads(profile.dumps(SMALL), "x").claims
    assert read is not None
    assert read.why_not("", "Slice", 13, {"T": "float32"}) is None
    assert read.why_not("", "Slice", 13, {"T": "float64"}) == "Slice-13 is not claimed for T = float64"
    assert read.is_partial("", "Slice", 13, {"T": "int32"})
    assert read.why_not("", "Slice", 11, {}) == "no kernel for Slice-11 (it has 13)"


def spoiled(**changes: Any) -> dict[str, Any]:
    return {**profile.to_json(SMALL), **changes}


WRONG = [
    ("[", "is not valid JSON"),
    ("[]", "it is not an object"),
    (spoiled(schema_version=2), "newer than this epcheck reads (1); upgrade epcheck"),
    (spoiled(schema_version="1"), "schema_version is '1'"),
    ({"schema_version": 1}, "it has no 'execution_provider'"),
    (spoiled(target=3), "3 is not text"),
    (spoiled(support=[{"domain": ""}]), "it has no 'operator'"),
    (spoiled(exclusions=[{"case": "*", "status": "odd", "reason": "x"}]), "exclusion 1 has the unknown status 'odd'"),
    (spoiled(exclusions=[{"case": "*", "status": "crash", "reason": " "}]), "exclusion 1 has no reason"),
    (
        spoiled(exclusions=[{"case": "*", "status": "crash", "reason": "x", "when": {"colour": "red"}}]),
        "exclusion 1: 'when' cannot name 'colour'",
    ),
]


@pytest.mark.parametrize(("document", "sentence"), WRONG)
def test_what_is_no_profile_is_one_sentence(tmp_path: Path, document: object, sentence: str) -> None:
    path = tmp_path / "profile.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    with pytest.raises(ProfileError) as raised:
        api.read_profile(api.ReadProfileOptions(path))
    assert sentence in str(raised.value)
    assert str(path) in str(raised.value)
    result = CliRunner().invoke(app, ["profile", "read", str(path)])
    assert result.exit_code == 2
    assert len(result.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    "spoil",
    [{"support": [{"operator": "Slice"}]}, {"exclusions": [{"case": "*"}]}, {"schema_version": 2}, {"more": 1}],
)
def test_the_schema_refuses_what_is_no_profile(spoil: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(spoiled(**spoil), profile.schema())


def test_the_command_writes_reads_and_prints_the_schema(tmp_path: Path) -> None:
    path = tmp_path / "dml.json"
    result = CliRunner().invoke(app, ["profile", "write", "dml", "--out", str(path)])
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("DmlExecutionProvider, target dml: ")
    printed = CliRunner().invoke(app, ["profile", "write", "dml"])
    assert printed.stdout == path.read_text("ascii")
    assert CliRunner().invoke(app, ["profile", "read", str(path)]).stdout in result.stdout.replace(f": {path}", "")
    assert json.loads(CliRunner().invoke(app, ["profile", "schema"]).stdout) == profile.schema()


def test_a_target_that_is_no_execution_provider_has_no_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("def run(model, feeds):\n    return []\n")
    with pytest.raises(ProfileError, match="has no profile"):
        api.provider_profile(api.ProfileOptions("reference"))
