"""What is wrong, where, what to do and how to see it again stand in each place that shows a result."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import onnx
import pytest

from epcheck import api
from epcheck.api.models import ci_files
from epcheck.cli.commands.models.validate import COLOURS, show, show_table
from epcheck.cli.terminal.terminal import Terminal
from epcheck.conformance.targets.target import Target
from epcheck.models.gate import page as gate_page
from epcheck.models.gate.gate import CheckedModel, Gate, document
from epcheck.models.gate.junit import junit
from epcheck.models.gate.limits import GateLimits, find_broken_limits
from epcheck.models.gate.sarif import sarif
from epcheck.models.inspection.inspect import Finding
from epcheck.models.placement.change import Advice
from epcheck.models.validation import page
from epcheck.models.validation.faults import list_faults
from epcheck.models.validation.formatting import find_tone
from epcheck.models.validation.validation import RIGHT, WRONG, Validation
from epcheck.models.wrong_nodes.culprit import Culprit, GraphNode, Kind
from epcheck.reports.ci.annotation import LONGEST
from tests.models.small_models import layers

HERE = Path(__file__).parents[1]
DOUBLES = Target("doubles", (sys.executable,), ("python:wrong_backends:doubles_relu", "--path", str(HERE)))
WHERE = "3 nodes alike: Relu (`n2`, `n6`, `n10`)"
REMEDY = (
    "run them on another provider ('cpu' is right), or replace the operator in the model; report it to who makes "
    "doubles (epcheck report-bug)"
)


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> Validation:
    path = tmp_path_factory.mktemp("surfaces") / "model.onnx"
    onnx.save(layers(3), path)
    return api.validate(api.ValidateOptions((path,), (DOUBLES,), "cpu", seeds=(0,))).validation


def gate_of(found: Validation, limits: GateLimits | None = None) -> Gate:
    held = limits or GateLimits()
    broken = find_broken_limits(found, held)
    return Gate((CheckedModel("model.onnx", found.path, found.target, found, "", broken),), held)


def render_places(found: Validation) -> dict[str, str]:
    """Place -> its text."""
    gate, single, table = gate_of(found), io.StringIO(), io.StringIO()
    show(Terminal(single, width=400), found)
    show_table(Terminal(table, width=400), gate)
    first_screen = page.render(found).partition("<nav")[0]
    case = ElementTree.fromstring(junit(gate))[0][0][0]
    results = json.loads(sarif(gate, found.path.parent))["runs"][0]["results"]
    result = next(each for each in results if each["ruleId"] in ("wrong", "wrong-node", "fails"))
    unescaped = {"terminal": single.getvalue(), "table": table.getvalue(), "junit": str(case.text),
                 "sarif": json.dumps(result), "annotation": ci_files.annotate(gate)[0].text,
                 "page": first_screen, "gate page": gate_page.render(gate),
                 "json": json.dumps(document(gate)["results"][0]["faults"])}  # fmt: skip
    return {place: text.replace("&#39;", "'") for place, text in unescaped.items()}


def test_the_four_parts_stand_in_every_place(wrong: Validation) -> None:
    assert wrong.status == WRONG
    (fault,) = list_faults(wrong)
    assert (fault.where, fault.nodes, fault.remedy) == (WHERE, ("n2", "n6", "n10"), REMEDY)
    assert fault.command.endswith("model.onnx --target doubles --baseline cpu --seed 0")
    assert fault.command.startswith("epcheck reduce ")
    shown = render_places(wrong)
    assert {place for place, text in shown.items() if WHERE not in text} == set()
    assert {place for place, text in shown.items() if REMEDY not in text} == set()
    assert {place for place, text in shown.items() if "epcheck reduce " not in text} == set()
    assert {place for place, text in shown.items() if "its outputs are wrong" not in text} == {"json", "junit"}
    assert "nodes: n2, n6, n10\nreproduce: epcheck reduce" in shown["junit"]
    assert len(shown["annotation"]) <= LONGEST
    assert shown["annotation"].endswith(f"\nreproduce: {fault.command}".replace(f"{Path.cwd()}/", ""))
    assert wrong.culprit is not None
    long = replace(wrong, culprit=replace(wrong.culprit, words="long " * 500))
    (annotation,) = ci_files.annotate(gate_of(long))
    assert len(annotation.text) <= LONGEST
    titles = ["model.onnx runs on doubles, but its outputs are wrong", "what", "do", "reproduce"]
    assert [line.partition(":")[0] for line in annotation.text.splitlines()] == titles
    message = ElementTree.fromstring(junit(gate_of(wrong)))[0][0][0].get("message")
    assert message == f"model.onnx runs on doubles, but its outputs are wrong: {WHERE}"
    summary = ci_files.step_summary(gate_of(wrong), wrong.path.parent)
    assert "→" not in summary
    assert "run them on another provider" in summary
    assert "`epcheck reduce model.onnx --target doubles --baseline cpu --seed 0`" in summary


def test_a_wrong_node_beside_right_outputs_is_amber_and_has_the_four_parts(wrong: Validation) -> None:
    right = replace(wrong, verdicts=tuple(replace(each, right=True) for each in wrong.verdicts), culprit=None)
    assert (right.status, find_tone(right), COLOURS[find_tone(right)]) == (RIGHT, "warning", "yellow")
    assert '<h1 class="answer warning">' in page.render(right)
    assert '<p class="answer warning">model.onnx runs' in gate_page.render(gate_of(right))
    assert '<span class="warning">right, wrong node</span>' in gate_page.render(gate_of(right))
    shown = render_places(right)
    for place, text in shown.items():
        assert WHERE in text, place
        assert REMEDY in text, place
        assert "--strict-nodes" in text, place
    clean = replace(right, wrong_nodes=())
    assert '<h1 class="answer right">' in page.render(clean)
    assert list_faults(clean) == ()
    assert find_tone(replace(clean, left_out=("judging the nodes",))) == "warning"


def fault_of(found: Validation, **changes: object) -> str:
    culprit = Culprit(Kind.NODE, (GraphNode(3, "r", "Reshape", "", ("y",)),), "it is wrong")
    (fault,) = list_faults(replace(found, culprit=replace(culprit, **changes)))  # type: ignore[arg-type]
    return fault.remedy


def test_the_remedy_is_what_helps_this_fault(wrong: Validation) -> None:
    tried = Advice("set allowzero to 0", "the node is on the provider", error=0.0)
    assert fault_of(wrong, kind=Kind.REFUSED, advice=tried) == (
        "Set allowzero to 0. Tried on the provider: the node is on the provider"
    )
    nothing = Advice("", "no change helps")
    assert fault_of(wrong, kind=Kind.REFUSED, advice=nothing).startswith("run it on another provider, or replace")
    finding = Finding("warning", "1 Reshape with allowzero=1 ('r' first)", "set allowzero to 0")
    inspected = replace(wrong, inspection=replace(wrong.inspection, findings=(finding,)))
    assert fault_of(inspected) == "set allowzero to 0"
    complaint = "onnx's shape inference: node 'r' (Reshape): shape has inconsistent type tensor(float)"
    checked = replace(wrong, inspection=replace(wrong.inspection, findings=(Finding("warning", complaint),)))
    assert fault_of(checked, kind=Kind.REFUSED) == (
        f"correct the node in the model, or what wrote it: it breaks the standard ({complaint})"
    )
    assert fault_of(checked).startswith("run it on another provider")
    locale = (
        "string_normalizer.cc:235: Failed to construct locale with name:en_US.UTF-8:locale::facet::_S_create_c_locale"
    )
    assert fault_of(wrong, kind=Kind.REFUSED, words=locale).startswith("install the locale en_US.UTF-8 on the machine")
    levels = {"disabled": "right", "basic": "right", "extended": "wrong", "all": "wrong"}
    assert fault_of(wrong, kind=Kind.FUSION, levels=levels).startswith(
        "create the session with graph optimisation 'basic', at which they are right; report it"
    )
    assert fault_of(wrong, kind=Kind.ACCUMULATED).startswith("no node is at fault: allow more with --rtol")


@pytest.mark.parametrize(
    ("processor", "operators", "is_advised"),
    [
        ("AMD EPYC, fma, avx2", ("DequantizeLinear", "Gemm"), True), ("AMD EPYC, fma, avx2", ("QLinearConv",), True),
        ("AMD EPYC, fma, avx2", ("DequantizeLinear", "Relu"), False), ("AMD EPYC, fma, avx2", ("Gemm",), False),
        ("Intel Xeon, fma, avx2, avx512f, avx512_vnni", ("QLinearConv",), False), ("", ("QLinearConv",), False),
    ],
)  # fmt: skip
def test_without_vnni_weights_of_7_bits_are_advised(
    wrong: Validation, processor: str, operators: tuple[str, ...], is_advised: bool
) -> None:
    found = replace(wrong, provider="CPUExecutionProvider", facts={wrong.target: {"processor": processor}})
    nodes = tuple(GraphNode(place, "", name, "", (f"y{place}",)) for place, name in enumerate(operators))
    levels = {"disabled": "right", "basic": "right", "extended": "wrong", "all": "wrong"}
    remedy = fault_of(found, kind=Kind.FUSION, nodes=nodes, levels=levels)
    assert remedy.startswith("quantise the weights to 7 bits (reduce_range) or to uint8: on this") is is_advised
    assert "create the session with graph optimisation 'basic', at which they are right" in remedy


def test_a_limit_that_is_broken_says_what_places_nodes(wrong: Validation) -> None:
    right = replace(wrong, verdicts=(), culprit=None, wrong_nodes=(), baseline=None)
    checked = CheckedModel("m", right.path, "doubles", right, "", ("50.0 % of its nodes are on X; the limit is 90 %",))
    assert checked.faults[-1].remedy == "correct the model, or the limit in epcheck.toml"
    unusable = CheckedModel("m", right.path, "doubles", None, "'m' is no model")
    (fault,) = unusable.faults
    assert fault.command == f'epcheck validate "{right.path}" --target "doubles"'
    assert "reproduce: epcheck validate" in str(
        ElementTree.fromstring(junit(Gate((unusable,), GateLimits())))[0][0][0].text
    )
