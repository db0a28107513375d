"""Files that users write: `epcheck.toml`, expectations and claim tables with accidents are one sentence, or right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from epcheck.conformance.targets import claim_file, expectation_file
from epcheck.conformance.targets.config import load_config
from epcheck.conformance.targets.specification import describe_target
from epcheck.generators.error import EpcheckError
from tests.fuzzing.damage import damaged, examples

CONFIG = b"""
[targets.mine]
provider = "CPUExecutionProvider"
options = { device_id = 0, name = "x" }
env = { MINE = "1" }
deadline_s = 20.5
memory_mib = 4096
jobs = 2
precisions = { fp16 = { precision = "FP16" } }
float32_precision = { format = "float16", source = "https://example.test" }
[targets.other]
base = "cpu"
"""
EXPECTATIONS = b"""
[[expect]]
case = ["Slice-13/*/axes*", "Slice-11/*"]
status = "mismatch"
reason = "it is a test"
link = "https://example.test"
when = { vendor = "0x10de", driver = ">=580,<600" }
bound = 3.5
"""
DEEP = b"a = " + b"[" * 100_000
LONG = b"a = " + b"9" * 5000
VALUES = (b'""', b"0", b"-1", b"1e400", b"inf", b"nan", b"true", b"[]", b"{}", b"[[1]]", b'"\\u0000"', b'"\\u202e"',
          b"9" * 5000, b"[" * 3000 + b"]" * 3000, b"1979-05-27", b"{ a = { b = 1 } }", b'"xxx"')  # fmt: skip


def read_config(path: Path) -> Any:
    config = load_config(path)
    return [describe_target(name, config) for name in config.get("targets", {})]


def read_claims(path: Path) -> Any:
    return claim_file.parse(claim_file.text_of(path), str(path))


@st.composite
def accidents(draw: st.DrawFn, text: bytes) -> bytes:
    """Bytes of it damaged, or the value of a line another."""
    if draw(st.booleans()):
        return draw(damaged(text))
    lines = text.splitlines()
    at = draw(st.sampled_from([number for number, line in enumerate(lines) if b" = " in line]))
    lines[at] = lines[at].partition(b" = ")[0] + b" = " + draw(st.sampled_from(VALUES))
    return b"\n".join(lines)


def sentence_of(read: Callable[[Path], Any], path: Path, data: bytes) -> str:
    """What is wrong with a file; empty for nothing. Nothing but our errors is raised."""
    path.write_bytes(data)
    try:
        read(path)
    except EpcheckError as error:
        return str(error)
    return ""


def test_what_the_accidents_begin_with_is_right(tmp_path: Path) -> None:
    assert sentence_of(read_config, tmp_path / "a.toml", CONFIG) == ""
    assert sentence_of(expectation_file.load, tmp_path / "b.toml", EXPECTATIONS) == ""


@examples(150)
@hypothesis.given(data=accidents(CONFIG))
def test_a_damaged_configuration_is_a_sentence_or_right(tmp_path: Path, data: bytes) -> None:
    assert len(sentence_of(read_config, tmp_path / "epcheck.toml", data)) < 7000


@examples(150)
@hypothesis.given(data=accidents(EXPECTATIONS))
def test_damaged_expectations_are_a_sentence_or_right(tmp_path: Path, data: bytes) -> None:
    assert len(sentence_of(expectation_file.load, tmp_path / "expected.toml", data)) < 7000


@pytest.mark.parametrize("read", [read_config, expectation_file.load, read_claims])
@pytest.mark.parametrize("data", [DEEP, LONG, b"\xff\xfe", b"\0", b"= =", b"a = 1\na = 2"])
def test_what_is_no_toml_is_one_sentence(tmp_path: Path, read: Callable[[Path], Any], data: bytes) -> None:
    found = sentence_of(read, tmp_path / "file.toml", data)
    assert str(tmp_path / "file.toml") in found
    assert len(found.splitlines()) == 1
