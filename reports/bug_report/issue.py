"""A bug report as ONNX Runtime's issue form has it.

The headings are the labels of `.github/ISSUE_TEMPLATE/08-general.yml` of microsoft/onnxruntime, the form for what is no
question of build, web, mobile or speed; the answers to its dropdowns are words that these offer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from epcheck.reports.markdown import escape_markdown, row
from epcheck.reports.runs.fingerprint import PLUGIN
from epcheck.reports.text import visible

PROVIDERS = {
    "CPUExecutionProvider": "Default CPU", "CoreMLExecutionProvider": "CoreML", "CUDAExecutionProvider": "CUDA",
    "DmlExecutionProvider": "DirectML", "DnnlExecutionProvider": "oneDNN", "OpenVINOExecutionProvider": "OpenVINO",
    "TensorrtExecutionProvider": "TensorRT", "NnapiExecutionProvider": "NNAPI", "ACLExecutionProvider": "ACL",
    "MIGraphXExecutionProvider": "MIGraphX", "SNPEExecutionProvider": "SNPE", "VitisAIExecutionProvider": "Vitis AI",
}  # fmt: skip
"""Execution provider -> its entry in the form's dropdown."""

OTHER = "Other / Unknown"
ARCHITECTURES = {"x86_64": "X64", "amd64": "X64", "x86": "X86", "i686": "X86", "arm64": "ARM64", "aarch64": "ARM64"}
PLATFORMS = {"windows": "Windows", "linux": "Linux", "macos": "Mac", "darwin": "Mac"}

UNDER_WINE = (
    "Seen on the provider under Wine with a Vulkan driver (versions below): epcheck lab python run.py "
    "DmlExecutionProvider. Run run.py on Windows to see whether native DirectML does the same."
)

RUN_PY = (
    "The script needs onnxruntime and numpy only. Its exit code is 0 where the result is right and the provider ran",
    "the node, 1 where it is wrong, 2 where it could not run; with `--git-bisect` it serves `git bisect run`.",
)

MESSAGE = 4000
"""Characters of a runtime's message that are shown."""

TITLE = 120


@dataclass(frozen=True)
class Answer:
    """What a target makes of the same model and inputs. who: the target, with its release where that is known. status:
    in a word. words: more of it; may be empty."""

    who: str
    status: str
    words: str = ""


@dataclass(frozen=True)
class Issue:
    """A bug report.

    title: in a line. summary: what is wrong, in sentences. expected: what is right and who says so. message: the
    runtime's own words; empty where there are none. facts: (what, value) of the case. answers: of the targets.
    provider: the execution provider. fingerprint: part -> value of what it was seen on, as the targets' workers report
    it. archive: the name of the zip file with the repro; empty where it is too large to attach. folder: its folder.
    notes: further sentences. link: to the definition of the operator; empty where there is none.
    """

    title: str
    summary: str
    expected: str
    message: str
    facts: tuple[tuple[str, str], ...]
    answers: tuple[Answer, ...]
    provider: str
    fingerprint: Mapping[str, str]
    archive: str
    folder: str
    notes: tuple[str, ...] = ()
    link: str = ""


def markdown(issue: Issue) -> str:
    """The report. Its first line is the title; each heading is a field of the form."""
    return "\n".join((f"# {_line(issue.title)}", "", *_fields(issue)))


def title(provider: str, what: str) -> str:
    """`[DirectML] Slice-13: mismatch ...`, of at most TITLE characters."""
    whole = f"[{PROVIDERS.get(provider, provider)}] {' '.join(visible(what).split())}"
    return whole if len(whole) <= TITLE else f"{whole[: TITLE - 1].rstrip()}…"


def _fields(issue: Issue) -> Iterator[str]:
    printed = issue.fingerprint
    yield from _field("Describe the issue", _description(issue))
    yield from _field("To reproduce", _reproduction(issue))
    yield from _field("Urgency", ["_No response_"])
    yield from _field("Platform", [platform(printed)])
    yield from _field("OS Version", [escape_markdown(printed.get("OS", "") or OTHER)])
    yield from _field("ONNX Runtime Installation", ["Released Package" if _is_released(printed) else OTHER])
    yield from _field("ONNX Runtime Version or Commit ID", [escape_markdown(printed.get("onnxruntime", "") or OTHER)])
    yield from _field("ONNX Runtime API", ["Python"])
    yield from _field("Architecture", [architecture(printed)])
    yield from _field("Execution Provider", [PROVIDERS.get(issue.provider, OTHER)])
    yield from _field("Execution Provider Library Version", [escape_markdown(_library(issue)) or "_No response_"])


def _field(label: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"### {label}"
    yield ""
    yield from lines
    yield ""


def _description(issue: Issue) -> Iterator[str]:
    yield escape_markdown(issue.summary)
    yield ""
    yield f"**Expected**: {escape_markdown(issue.expected)}{f' (<{issue.link}>)' if issue.link else ''}"
    yield ""
    if issue.message:
        yield from fence_text(issue.message)
        yield ""
    yield from (f"- {escape_markdown(what)}: {escape_markdown(value)}" for what, value in issue.facts if value)
    yield from _table(issue.answers)
    for note in (*issue.notes, *((UNDER_WINE,) if _is_under_wine(issue.fingerprint) else ())):
        yield ""
        yield escape_markdown(note)


def _table(answers: Sequence[Answer]) -> Iterator[str]:
    if not answers:
        return
    yield from ("", "The same model and inputs elsewhere:", "", row(("target", "result", "")), row(("---",) * 3))
    yield from (row(map(escape_markdown, (each.who, each.status, each.words))) for each in answers)


def _reproduction(issue: Issue) -> Iterator[str]:
    if issue.archive:
        yield f"Unpack the attached `{_code(issue.archive)}` (model, inputs, expected outputs, a script) and run"
    else:
        yield f"The folder `{_code(issue.folder)}` (model, inputs, expected outputs, a script) is too large to attach."
        yield "In it, run"
    yield ""
    yield from fence_text(_commands(issue))
    yield ""
    if PLUGIN in issue.fingerprint:
        yield "(a plugin has to be registered, which run.py does not do). The exit code is 0 where the result is right."
    elif not is_provider(issue.provider):
        yield "in the folder that has the module. The exit code is 0 where the result is right."
    else:
        yield from RUN_PY
    yield ""
    yield "Seen on:"
    yield ""
    yield from (
        f"- {escape_markdown(part)}: {escape_markdown(value)}" for part, value in issue.fingerprint.items() if value
    )


def fence_text(text: str) -> Iterator[str]:
    """Text of a stranger as a block of code, whatever backticks it has."""
    plain = visible(text.replace("\r", ""))[:MESSAGE].rstrip()
    longest = max(map(len, re.findall(r"`{3,}", plain)), default=2)
    fence = "`" * (longest + 1)
    yield from (f"{fence}text", plain, fence)


def platform(fingerprint: Mapping[str, str]) -> str:
    """The entry of the form's dropdown; a program of Windows under Wine has none of its own."""
    if _is_under_wine(fingerprint):
        return OTHER
    words = fingerprint.get("OS", "").lower()
    return next((name for word, name in PLATFORMS.items() if word in words), OTHER)


def architecture(fingerprint: Mapping[str, str]) -> str:
    """The entry of the form's dropdown."""
    text = f"{fingerprint.get('machine', '')} {fingerprint.get('OS', '')} {fingerprint.get('CPU', '')}".lower()
    return next((name for word, name in ARCHITECTURES.items() if re.search(rf"\b{word}\b", text)), OTHER)


def _is_under_wine(fingerprint: Mapping[str, str]) -> bool:
    return "Wine" in fingerprint or "wine" in fingerprint.get("OS", "").lower()


def _is_released(fingerprint: Mapping[str, str]) -> bool:
    """Whether the version is that of a release: `1.24.4`, not `1.25.0.dev20261101` or a commit."""
    return re.fullmatch(r"\d+\.\d+\.\d+(\.post\d+)?", fingerprint.get("onnxruntime", "")) is not None


def _library(issue: Issue) -> str:
    names = ("DirectML.dll", PLUGIN, "CUDA", "driver")
    return ", ".join(f"{name} {issue.fingerprint[name]}" for name in names if issue.fingerprint.get(name))


def _commands(issue: Issue) -> str:
    """What a reader runs. A plugin has to be registered with ONNX Runtime first, which run.py does not do."""
    package, _, version = issue.fingerprint.get(PLUGIN, "").partition(" ")
    if package and version:
        return (f"pip install {_package(issue)} {package}=={version} epcheck\n"
                f"epcheck replay {issue.folder or 'repro'} --target ep:{package.replace('-', '_')}")  # fmt: skip
    if not is_provider(issue.provider):
        return f"pip install epcheck\nepcheck replay {issue.folder or 'repro'} --target {issue.provider}"
    return f"pip install {_package(issue)}\npython run.py {issue.provider}"


def is_provider(name: str) -> bool:
    """Whether it is an execution provider, which run.py can be told; a callable has none, and its target's name."""
    return name.endswith("ExecutionProvider")


def _package(issue: Issue) -> str:
    name = "onnxruntime-directml" if issue.provider == "DmlExecutionProvider" else "onnxruntime"
    version = issue.fingerprint.get("onnxruntime", "")
    return f"{name}=={version} numpy" if _is_released(issue.fingerprint) else f"{name} numpy"


def _line(text: str) -> str:
    return escape_markdown(text).replace("\\[", "[").replace("\\]", "]").replace("\\_", "_")


def _code(text: str) -> str:
    return " ".join(visible(text).replace("`", "'").split())
