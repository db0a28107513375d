"""The text of a bug report: the fields of ONNX Runtime's form, and nothing that a stranger's name makes of it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from epcheck.reports.bug_report.issue import Answer, Issue, architecture, fence_text, markdown, platform, title

ISSUE = Issue(
    title="[DirectML] Slice-13 (float32): 1 of 1 elements is wrong",
    summary="DmlExecutionProvider is not right on a model of a single Slice-13 node: output: 1 of 1 is wrong.",
    expected="the true result, as Slice-13 is defined",
    message="output: 1 of 1 is wrong",
    facts=(("case", "Slice-13/float32/a_sample[runtime]"), ("opset", "13"), ("left out", "")),
    answers=(Answer("dml (1.24.4)", "mismatch", "1 of 1"), Answer("cpu (1.24.4)", "pass")),
    provider="DmlExecutionProvider",
    fingerprint={
        "driver": "25.0.7", "DirectML.dll": "1.15.4", "onnxruntime": "1.24.4", "OS": "Windows-10-10.0.26100",
        "machine": "AMD64",
    },
    archive="repro.zip",
    folder="repro",
    link="https://onnx.ai/onnx/operators/onnx__Slice.html",
)  # fmt: skip

TEXT = """\
# [DirectML] Slice-13 (float32): 1 of 1 elements is wrong

### Describe the issue

DmlExecutionProvider is not right on a model of a single Slice-13 node: output: 1 of 1 is wrong.

**Expected**: the true result, as Slice-13 is defined (<https://onnx.ai/onnx/operators/onnx__Slice.html>)

```text
output: 1 of 1 is wrong
```

- case: Slice-13/float32/a\\_sample\\[runtime\\]
- opset: 13

The same model and inputs elsewhere:

| target | result |  |
| --- | --- | --- |
| dml (1.24.4) | mismatch | 1 of 1 |
| cpu (1.24.4) | pass |  |

### To reproduce

Unpack the attached `repro.zip` (model, inputs, expected outputs, a script) and run

```text
pip install onnxruntime-directml==1.24.4 numpy
python run.py DmlExecutionProvider
```

The script needs onnxruntime and numpy only. Its exit code is 0 where the result is right and the provider ran
the node, 1 where it is wrong, 2 where it could not run; with `--git-bisect` it serves `git bisect run`.

Seen on:

- driver: 25.0.7
- DirectML.dll: 1.15.4
- onnxruntime: 1.24.4
- OS: Windows-10-10.0.26100
- machine: AMD64

### Urgency

_No response_

### Platform

Windows

### OS Version

Windows-10-10.0.26100

### ONNX Runtime Installation

Released Package

### ONNX Runtime Version or Commit ID

1.24.4

### ONNX Runtime API

Python

### Architecture

X64

### Execution Provider

DirectML

### Execution Provider Library Version

DirectML.dll 1.15.4, driver 25.0.7
"""

LABELS = (
    "Describe the issue", "To reproduce", "Urgency", "Platform", "OS Version", "ONNX Runtime Installation",
    "ONNX Runtime Version or Commit ID", "ONNX Runtime API", "Architecture", "Execution Provider",
    "Execution Provider Library Version",
)  # fmt: skip
"""Of the form, in its order."""


def headings(text: str) -> list[str]:
    return [line.removeprefix("### ") for line in text.splitlines() if line.startswith("#")][1:]


def without_blocks(text: str) -> str:
    """The text without its blocks of code, which end with the fence that they begin with."""
    kept, fence = [], ""
    for line in text.splitlines():
        if fence or re.match("`{3,}", line):
            ends = fence != "" and line == fence
            fence = "" if ends else fence or line.removesuffix("text")
            continue
        kept.append(line)
    assert not fence
    return "\n".join(kept)


def test_a_report_has_the_fields_of_the_form() -> None:
    assert markdown(ISSUE) == TEXT
    assert tuple(headings(TEXT)) == LABELS


@pytest.mark.parametrize(
    "name",
    ["### Urgency", "x\n### Urgency", "<script>alert(1)</script>", "@octocat", "`````", "a | b", "\x1b[31m\u202e"],
)
def test_a_hostile_name_stays_text(name: str) -> None:
    everywhere = replace(
        ISSUE, title=title("DmlExecutionProvider", name), summary=name, expected=name, message=f"```\n{name}\n```",
        facts=((name, name),), answers=(Answer(name, name, name),), notes=(name,),
        fingerprint={name: name, "onnxruntime": name, "OS": name},
    )  # fmt: skip
    text = markdown(everywhere)
    outside = without_blocks(text)
    assert tuple(headings(outside)) == LABELS
    assert "<script" not in outside
    assert "@octocat" not in outside
    assert not {"\x1b", "\u202e"} & set(text)
    table = [line for line in outside.splitlines() if line.startswith("| ")]
    assert all(line.replace("\\|", "").count("|") == 4 for line in table)


def test_a_block_of_code_has_a_longer_fence_than_its_text() -> None:
    assert next(fence_text("a\n````\nb")) == "`````text"
    assert next(fence_text("a")) == "```text"


def test_a_title_is_a_line_of_limited_length() -> None:
    assert title("DmlExecutionProvider", "a\nb") == "[DirectML] a b"
    assert len(title("my.Provider", "word " * 100)) <= 120


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"OS": "Windows-10-10.0.26100"}, "Windows"),
        ({"OS": "Linux-6.1-x86_64-with-glibc2.36"}, "Linux"),
        ({"OS": "macOS-15.1-arm64"}, "Mac"),
        ({"OS": "Windows 10.0.19043 (Wine 10.0)"}, "Other / Unknown"),
        ({"OS": "Windows-10", "Wine": "10.0"}, "Other / Unknown"),
        ({}, "Other / Unknown"),
    ],
)
def test_the_platform_is_one_that_the_form_offers(facts: dict[str, str], expected: str) -> None:
    assert platform(facts) == expected


@pytest.mark.parametrize(
    ("facts", "expected"),
    [({"machine": "AMD64"}, "X64"), ({"OS": "macOS-15.1-arm64"}, "ARM64"), ({"machine": "riscv64"}, "Other / Unknown")],
)
def test_the_architecture_is_one_that_the_form_offers(facts: dict[str, str], expected: str) -> None:
    assert architecture(facts) == expected


def test_wine_is_told() -> None:
    assert "under Wine" in markdown(replace(ISSUE, fingerprint={"OS": "Windows-10", "Wine": "10.0"}))
    assert "under Wine" not in TEXT


def test_a_repro_that_is_too_large_and_a_plugin_are_told() -> None:
    plugin = replace(ISSUE, archive="", fingerprint={"plugin": "onnxruntime-ep-webgpu 0.4.0", "onnxruntime": "1.32.0"},
                     provider="WebGpuExecutionProvider")  # fmt: skip
    text = markdown(plugin)
    assert "The folder `repro` (model, inputs, expected outputs, a script) is too large to attach." in text
    assert "pip install onnxruntime==1.32.0 numpy onnxruntime-ep-webgpu==0.4.0 epcheck\n" in text
    assert "epcheck replay repro --target ep:onnxruntime_ep_webgpu" in text
    assert "python run.py" not in text


def test_a_build_that_is_no_release_is_told() -> None:
    text = markdown(replace(ISSUE, fingerprint={**ISSUE.fingerprint, "onnxruntime": "1.25.0.dev20261101"}))
    assert "### ONNX Runtime Installation\n\nOther / Unknown\n" in text
    assert "pip install onnxruntime-directml numpy\n" in text
