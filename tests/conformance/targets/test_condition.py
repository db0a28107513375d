"""Conditions: what each fact is compared with, what a mistake is told, and which expectations apply on a machine."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

import pytest

from epcheck.conformance.targets import condition, expectation
from epcheck.conformance.targets.condition import ANYWHERE, NAMES, Condition, ConditionError
from epcheck.conformance.targets.expectation import Expectation
from epcheck.conformance.targets.target import Target

LLVMPIPE = {
    "os": "Windows-10-10.0.19043-SP0",
    "processor": "AMD EPYC, fma, avx2, avx512f, avx512_vnni",
    "onnxruntime": "1.24.4",
    "DirectML.dll": "1.15.4.0",
    "adapter": "llvmpipe (LLVM 19.1.7, 256 bits)",
    "vendor_id": "0x10005",
    "driver_version": "Mesa 25.0.7-2+deb13u1 (LLVM 19.1.7)",
    "graphics_stack": "wine 10.0, vkd3d 1.14 DXIL, llvmpipe Mesa 25.0.7-2+deb13u1 (LLVM 19.1.7)",
}
"""What a run in the lab recorded."""

H200 = {"onnxruntime": "1.20.1", "adapter": "NVIDIA H200", "vendor_id": "0x10de", "driver_version": "580.159.03"}
INTEL = {"adapter": "Intel(R) Arc(TM) A770", "vendor_id": "0x8086", "driver_version": "31.0.101.4502"}
CPU = {"os": "Linux-6.1-x86_64-with-glibc2.36", "processor": "AMD EPYC, fma", "onnxruntime": "1.24.0.dev20260101001"}


def parsed(text: str) -> Condition:
    return condition.parse(tomllib.loads(f"when = {text}")["when"])


@pytest.mark.parametrize(
    ("text", "facts", "holds"),
    [
        ('{ vendor = "0x10de" }', H200, True),
        ('{ vendor = "0x10DE" }', H200, True),
        ('{ vendor = "0x10de" }', LLVMPIPE, False),
        ('{ vendor = ["0x8086", "0x10de"] }', H200, True),
        ('{ vendor = ["0x8086", "0x1002"] }', H200, False),
        ('{ adapter = "*llvmpipe*" }', LLVMPIPE, True),
        ('{ adapter = "llvmpipe" }', LLVMPIPE, True),
        ('{ adapter = "llvmpipe?" }', LLVMPIPE, False),
        ('{ adapter = "NVIDIA H200" }', H200, True),
        ('{ driver = ">=580,<600" }', H200, True),
        ('{ driver = ">=580,<600" }', LLVMPIPE, False),
        ('{ driver = ">=580.159.4" }', H200, False),
        ('{ driver = "580.159.03" }', H200, True),
        ('{ driver = "580.*" }', H200, True),
        ('{ driver = "580" }', H200, False),
        ('{ driver = "25.0.7" }', LLVMPIPE, True),
        ('{ driver = "<25.1" }', LLVMPIPE, True),
        ('{ driver = ">=31.0.101.4500,<31.0.101.5000" }', INTEL, True),
        ('{ driver = "<31.0.101.4502" }', INTEL, False),
        ('{ graphics_stack = "*vkd3d 1.14*" }', LLVMPIPE, True),
        ('{ graphics_stack = "*vkd3d 1.15*" }', LLVMPIPE, False),
        ('{ runtime = "1.20.*" }', H200, True),
        ('{ runtime = "1.20.*" }', LLVMPIPE, False),
        ('{ runtime = ">=1.23" }', CPU, True),
        ('{ directml = "1.15.4" }', LLVMPIPE, True),
        ('{ directml = "<1.15" }', LLVMPIPE, False),
        ('{ processor = "*avx512_vnni*" }', LLVMPIPE, True),
        ('{ processor = "*avx512_vnni*" }', CPU, False),
        ('{ processor = "!*vnni*" }', LLVMPIPE, False),
        ('{ processor = "!*vnni*" }', {"processor": "AMD EPYC, fma, avx2"}, True),
        ('{ processor = "!*vnni*" }', {"vendor_id": "0x10de"}, False),
        ('{ os = "Linux-*" }', CPU, True),
        ('{ adapter = "*llvmpipe*", driver = "<25.1" }', LLVMPIPE, True),
        ('{ adapter = "*llvmpipe*", driver = "<25.0" }', LLVMPIPE, False),
    ],
)
def test_every_fact_that_is_named_has_to_match(text: str, facts: Mapping[str, str], holds: bool) -> None:
    assert parsed(text).holds(facts) is holds


@pytest.mark.parametrize("name", NAMES)
def test_a_fact_that_is_not_reported_or_empty_matches_nothing(name: str) -> None:
    pattern = "0x0000" if name == "vendor" else ">=0" if NAMES[name].kind is condition.RANGE else "*"
    widest = parsed(f'{{ {name} = "{pattern}" }}')
    assert not widest.holds({})
    assert not widest.holds({NAMES[name].fact: ""})


@pytest.mark.parametrize("driver", ["unknown", "2023.Q3.1 (LLPC)", "git-1a2b3c4"])
def test_a_driver_without_a_version_is_in_no_range(driver: str) -> None:
    assert not parsed('{ driver = ">=0" }').holds({"driver_version": driver})


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("580.159.03", "580.159.3"),
        ("Mesa 25.0.7", "25.0.7"),
        ("Mesa 26.1.0-devel (git-1.2.3)", "26.1.0"),
        ("31.0.101.4502", "31.0.101.4502"),
        ("1.24.4+cu12", "1.24.4+cu12"),
    ],
)
def test_the_version_in_what_a_driver_says(text: str, version: str) -> None:
    assert str(condition.version_of(text)) == version


def test_of_several_machines_each_has_to_match() -> None:
    both = {"vendor_id": "0x10de | 0x8086"}
    assert not parsed('{ vendor = "0x10de" }').holds(both)
    assert parsed('{ vendor = ["0x10de", "0x8086"] }').holds(both)


def test_no_condition_holds_everywhere_and_says_nothing() -> None:
    assert (ANYWHERE.holds({}), bool(ANYWHERE), str(ANYWHERE)) == (True, False, "")


def test_a_condition_in_words() -> None:
    found = parsed('{ graphics_stack = "*vkd3d*", vendor = ["0x10de", "0x8086"], driver = ">=580,<600" }')
    assert str(found) == "graphics stack is *vkd3d* and vendor is 0x10de or 0x8086 and driver is >=580,<600"
    assert parsed(found.as_toml()) == found
    assert (
        str(parsed('{ processor = "!*vnni*", runtime = "!=1.24" }')) == "processor is not *vnni* and runtime is !=1.24"
    )


EXAMPLE = 'when = { vendor = "0x10de", driver = ">=580,<600" }'


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("gpu", f"'when' is not a table; write for example {EXAMPLE}"),
        (True, f"'when' is not a table; write for example {EXAMPLE}"),
        ({}, f"'when' is empty; write for example {EXAMPLE}, or leave it out"),
        ({"gpu": "x"}, f"'when' cannot name 'gpu'; it may name {', '.join(NAMES)}"),
        (
            {"driver": ">>580"},
            "'driver' of 'when' is '>>580', which is not a version, or a range of versions; write for example "
            'driver = ">=580,<600"',
        ),
        (
            {"runtime": "1.20 or later"},
            "'runtime' of 'when' is '1.20 or later', which is not a version, or a range of versions; write for example "
            'runtime = "1.20.*"',
        ),
        (
            {"directml": " "},
            "'directml' of 'when' is ' ', which is not a version, or a range of versions; write for example "
            'directml = ">=1.15"',
        ),
        (
            {"vendor": "NVIDIA"},
            "'vendor' of 'when' is 'NVIDIA', which is not a PCI id in hexadecimal; write for example "
            'vendor = "0x10de"',
        ),
        (
            {"vendor": 0x10DE},
            "'vendor' of 'when' is neither text nor a list of texts; write for example vendor = \"0x10de\"",
        ),
        (
            {"adapter": []},
            "'adapter' of 'when' is neither text nor a list of texts; write for example adapter = \"*llvmpipe*\"",
        ),
        (
            {"adapter": ["a", ""]},
            "'adapter' of 'when' is '', which is not a glob over the whole text, or a part of it; write for example "
            'adapter = "*llvmpipe*"',
        ),
    ],
)
def test_each_mistake_is_one_sentence_that_says_what_to_write(table: Any, message: str) -> None:
    with pytest.raises(ConditionError) as raised:
        condition.parse(table)
    assert str(raised.value) == message


@pytest.mark.parametrize("name", NAMES)
def test_every_example_is_valid(name: str) -> None:
    assert parsed(f'{{ {name} = "{NAMES[name].example}" }}') == Condition(((name, (NAMES[name].example,)),))


@pytest.mark.parametrize("facts", [LLVMPIPE, H200, INTEL, CPU])
def test_what_is_taken_from_a_run_holds_there(facts: Mapping[str, str]) -> None:
    names = [name for name, named in NAMES.items() if named.fact in facts]
    taken = condition.of_facts(names, facts)
    assert [name for name, _ in taken.patterns] == names
    assert taken.holds(facts)
    assert parsed(taken.as_toml()) == taken


def test_what_is_taken_from_a_run_leaves_versions_in_parentheses_open() -> None:
    taken = condition.of_facts(["adapter", "vendor", "driver", "runtime"], LLVMPIPE)
    assert taken.as_toml() == '{ adapter = "llvmpipe*", vendor = "0x10005", driver = "25.0.7", runtime = "1.24.4" }'
    other = {**LLVMPIPE, "adapter": "llvmpipe (LLVM 20.1.0, 256 bits)"}
    assert taken.holds(other)
    assert not taken.holds({**other, "driver_version": "Mesa 25.0.8"})


def test_of_a_run_on_several_machines_every_value_is_taken() -> None:
    joined = {"driver_version": "580.159.03 | 575.64"}
    taken = condition.of_facts(["driver"], joined)
    assert taken.patterns == (("driver", ("580.159.03", "575.64")),)
    assert taken.holds(joined)
    assert taken.holds({"driver_version": "575.64"})


def test_what_a_run_does_not_report_cannot_be_taken() -> None:
    with pytest.raises(ConditionError, match="the run reports no adapter of its target; leave out --when adapter"):
        condition.of_facts(["adapter"], CPU)
    with pytest.raises(ConditionError, match="the run reports 'unknown' as driver_version, which is not a version"):
        condition.of_facts(["driver"], {"driver_version": "unknown"})


HERE, THERE, EVERYWHERE = (
    Expectation("Slice-*", "mismatch", "known", when=when)
    for when in (parsed('{ vendor = "0x10de" }'), parsed('{ vendor = "0x8086" }'), ANYWHERE)
)


def test_a_target_keeps_the_expectations_that_apply_to_it() -> None:
    target = Target("mine", (), (), expectations=(HERE, THERE, EVERYWHERE))
    assert target.narrow(H200).expectations == (HERE, EVERYWHERE)
    assert target.narrow(CPU).match_globs("Slice-13/float32/a[runtime]") == (EVERYWHERE,)
    plain = Target("mine", (), (), expectations=(EVERYWHERE,))
    assert plain.narrow(H200) is plain


def test_what_does_not_apply_is_not_stale() -> None:
    assert expectation.stale(expectation.applicable((HERE, THERE), H200), []) == (HERE,)


def test_an_expectation_says_where_it_applies() -> None:
    assert (str(HERE), str(EVERYWHERE)) == ("Slice-*, where vendor is 0x10de", "Slice-*")
    assert (HERE.as_expected().when, EVERYWHERE.as_expected().when) == ("vendor is 0x10de", "")
