"""What the headline, the terminal and the page say of a validation, for results that are put together by hand."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from epcheck.cli.commands.models import validate as command
from epcheck.cli.terminal.terminal import Terminal
from epcheck.conformance.targets.target import CPU, DML
from epcheck.conformance.workers.program.backends.values import flatten_values
from epcheck.models.accuracy.metrics import Metrics, measure
from epcheck.models.accuracy.thresholds import Threshold
from epcheck.models.accuracy.verdict import BASELINE, ORACLE, Verdict
from epcheck.models.inspection.inspect import Inspection
from epcheck.models.placement.change import Advice
from epcheck.models.placement.placement import NodePlacement, Placement
from epcheck.models.placement.segments import FROM_EP, TO_EP, Copy, Segment
from epcheck.models.validation import page
from epcheck.models.validation.document import document
from epcheck.models.validation.speed import Speed, Speeds
from epcheck.models.validation.validate import in_agreement
from epcheck.models.validation.validation import FAILS, RIGHT, UNJUDGED, WRONG, Step, Validation
from epcheck.models.wrong_nodes.culprit import Culprit, GraphNode, Kind

RUN = Step("seed 0", "dml", "done", "", "", 0.1, 0.1, (), (), ("y",))
GOOD = Verdict("y", "seed 0", ORACLE, "float32", (1,), None, None, Threshold(1e-5), True, "equal to the last bit")


def at(name: str, provider: str, reason: str = "", operator: str = "Relu") -> NodePlacement:
    return NodePlacement(0, name, operator, "", "", "", provider, provider, "", reason, "do this", 1.0)


def validation(*nodes: NodePlacement, **changes: object) -> Validation:
    inspection = Inspection(
        Path("m.onnx"), 8, (("ai.onnx", 17),), "", len(nodes), {}, 0, 10, (), {}, {}, {}, (), ()
    )  # fmt: skip
    placed = Placement(DML, nodes or (at("a", DML),), 1, (), 1.0, (), None, True)
    found = Validation(
        Path("m.onnx"), "dml", "cpu", DML, "all", {}, inspection, placed, (RUN,), (GOOD,), "an oracle computed it", None
    )
    return replace(found, **changes)  # type: ignore[arg-type]


def test_a_model_of_which_no_node_is_on_the_provider_is_not_judged() -> None:
    found = validation(at("a", CPU), at("b", CPU))
    assert found.status == UNJUDGED
    assert f"none of its nodes is on {DML}" in found.headline
    assert validation(at("a", CPU), at("b", DML)).headline == (
        f"m.onnx runs and is right; 1 of its 2 nodes is not on {DML}"
    )


def test_the_share_of_placed_nodes_is_that_of_nodes_that_are_known_to_run() -> None:
    assert validation(at("a", DML), at("b", CPU), at("c", "")).placed_share == 0.5
    assert validation(at("a", ""), at("b", "")).placed_share is None


def test_the_node_at_fault_is_in_the_headline_and_on_the_page() -> None:
    culprit = Culprit(Kind.NODE, (GraphNode(7, "conv", "Conv", "", ("y",)),), "it is wrong")
    found = validation(verdicts=(replace(GOOD, right=False),), culprit=culprit)
    assert found.status == WRONG
    assert found.headline == f"m.onnx runs on {DML}, but its outputs are wrong: node 7 `conv` (Conv)"
    text = page.render(found)
    assert "outputs are wrong: node 7 `conv` (Conv)</h1>" in text
    for anchor in ("load", "where", "right", "node", "reproduce", "facts"):
        assert text.count(f'href="#{anchor}"') == text.count(f'id="{anchor}"') == 1


def test_a_reason_is_on_the_page_once() -> None:
    nodes = [at(f"n{index}", CPU, "no kernel for it", f"Op{index % 2}") for index in range(40)]
    found = validation(at("a", DML), *nodes)
    assert found.placement is not None
    (group,) = page.group_by_reason(found.placement)
    assert (group.what, len(group.names)) == ("Op0 × 20, Op1 × 20", 40)
    text = page.render(found)
    assert text[: text.index("<details><summary>All 41 nodes")].count("no kernel for it") == 1


def test_a_search_that_names_no_node_says_why_the_status_is_wrong() -> None:
    found = validation(verdicts=(replace(GOOD, right=False, why="relative error 0.2"),))
    nothing = Culprit(Kind.RIGHT, (), "outputs and nodes agree with the baseline")
    words = in_agreement(nothing, found).words
    assert words.startswith("no node is named: nodes are compared with the baseline, with which the candidate agrees")
    assert words.endswith("The oracle finds the outputs wrong: 'y' (seed 0): relative error 0.2")
    against = replace(found, verdicts=(replace(GOOD, right=False, against=BASELINE, why="relative error 0.2"),))
    assert in_agreement(nothing, against).words.startswith("no single node is wrong, but the outputs are: 'y'")
    named = Culprit(Kind.NODE, (), "node 3 is wrong")
    assert in_agreement(named, found) == named


LONG = "long" * 2000
CUT = f"{LONG[:70]}…{LONG[-40:]}"


def long_names() -> Validation:
    """A wrong node, an output and a node on the CPU with names of 8,000 characters."""
    node = GraphNode(7, LONG, "Conv", "", (LONG,))
    culprit = Culprit(Kind.NODE, (node,), f"{node} is wrong")
    verdict = replace(GOOD, output=LONG, right=False, why=f"{LONG} differs")
    return validation(at("a", DML), at(LONG, CPU, f"no kernel for {LONG}"), verdicts=(verdict,), culprit=culprit)


def test_long_names_are_cut_in_terminal_and_headline_and_whole_in_json() -> None:
    found = long_names()
    assert found.headline == f"m.onnx runs on {DML}, but its outputs are wrong: node 7 `{CUT}` (Conv)"
    assert document(found)["headline"].endswith(f"but its outputs are wrong: node 7 `{LONG}` (Conv)")
    file = io.StringIO()
    terminal = Terminal(file, width=10_000)
    command.show(terminal, found)
    text = file.getvalue()
    assert max(map(len, text.splitlines())) < 500
    assert f"node 7 `{CUT}` (Conv) is wrong" in text
    assert f"no kernel for {CUT} ({LONG[:69]}…{LONG[-39:]})" in text


def test_long_names_are_titles_on_the_page() -> None:
    html = page.render(long_names())
    assert f'node 7 `<span title="{LONG}">{CUT}</span>` (Conv)</h1>' in html
    without_titles = re.sub(' title="[^"]*"', "", html)
    assert max(map(len, re.findall("(?:long)+", without_titles))) <= 72


def test_a_message_of_9000_characters_is_cut_in_the_terminal() -> None:
    failed = replace(RUN, stage="run", during="the run", message="x " * 4500, outputs=())
    found = validation(steps=(failed,), verdicts=())
    assert found.status == FAILS
    file = io.StringIO()
    terminal = Terminal(file, width=120)
    command.show(terminal, found)
    text = file.getvalue()
    assert text.count("x") < 700
    assert re.search(r"\(90\d\d characters; full text: the page, or --json FILE\)", text.replace("\n", ""))
    assert "x " * 4500 in page.render(found)


@pytest.mark.parametrize("trials", [1, 3])
def test_what_was_not_compared_is_said(trials: int) -> None:
    more = tuple(replace(RUN, trial=f"seed {index + 1}") for index in range(trials))
    found = validation(steps=(RUN, *more))
    assert found.status == RIGHT
    assert f"; {trials} of {trials + 1} trials were not compared: seed 1" in found.headline


def off_by(relative: float) -> Metrics:
    value = np.ones(4)
    return measure((value * (1 + relative)).astype(np.float64), value)


def test_a_baseline_that_is_farther_from_the_truth_is_in_the_headline() -> None:
    near, far = off_by(1e-6), off_by(0.05)
    outputs = [replace(GOOD, output=name, metrics=near, baseline=far) for name in ("y", "z", "y", "u", "v")]
    why = "relative error 0.05; but the candidate agrees with the truth"
    beside = replace(GOOD, against=BASELINE, metrics=far, why=why)
    found = validation(verdicts=(beside, *outputs))
    assert found.headline == (
        f"m.onnx runs on {DML} and is right; the baseline 'cpu' is more than 4 times the allowed distance "
        "from the truth: y, z, u and 1 more"
    )
    file = io.StringIO()
    terminal = Terminal(file, width=10_000)
    command.show(terminal, found)
    assert f"y, seed 0, against baseline: right, but: {why}" in file.getvalue()
    for own, other in ((2e-5, 0.05), (1e-6, 3e-5)):  # beyond its own threshold; the baseline within 4 times of that
        alike = validation(verdicts=(replace(GOOD, metrics=off_by(own), baseline=off_by(other)),))
        assert alike.headline == f"m.onnx runs on {DML} and is right"


def test_the_keys_of_a_map_are_int64_on_every_system() -> None:
    made = flatten_values({"m": {np.int32(1).item(): 0.5, 2: 0.25}})
    assert made["m.keys"].dtype == np.int64
    assert made["m.values"].tolist() == [0.5, 0.25]


def test_advice_and_copies_are_on_the_page_and_in_the_terminal() -> None:
    advice = Advice("cast <b>x</b> to float32", "it is placed there", False, 0.0, 2)
    off = replace(at("c", CPU, "no kernel"), advice=advice)
    there, back = Copy("<i>x</i>", TO_EP, 2048), Copy("y", FROM_EP, None)
    turns = (
        Segment(CPU, ("c",), {"Relu": 1}, (), 1.0),
        Segment(DML, ("a", "<u>b</u>"), {"Relu": 2}, (there,), 2.0),
        Segment(CPU, (), {}, (back,), 0.0),
    )
    found = validation(at("a", DML), at("<u>b</u>", DML), off)
    assert found.placement is not None
    speed = Speed("dml", 0.1, 0.1, (0.01,), (), 0, copies_s=0.002, copies_share=0.25)
    found = replace(found, placement=replace(found.placement, segments=turns, copies=(there, back)),
                    speeds=Speeds("seed 0", speed))  # fmt: skip
    text = page.render(found)
    assert "→ Cast &lt;b&gt;x&lt;/b&gt; to float32. Tried on the provider: it is placed there</p>" in text
    assert '<li class="copies there">→ 1 tensor, 2 KiB: <span class="name">&lt;i&gt;x&lt;/i&gt;</span></li>' in text
    assert "<summary>2 nodes: Relu × 2</summary>" in text
    assert '<li class="copies back">← 1 tensor, of unknown size: <span class="name">y</span></li>' in text
    assert '<li class="back">outputs of the model</li>' in text
    assert "those within the graph take 2 ms, 25.0 % of the time of all nodes" in text
    assert "<u>b" not in text
    file = io.StringIO()
    terminal = Terminal(file, width=300)
    command.show(terminal, found)
    shown = file.getvalue()
    assert "→ Cast <b>x</b> to float32. Tried on the provider: it is placed there" in shown
    assert (
        "2 copies of at least 2 KiB in each run; those within the graph take 2 ms, 25.0 % of the time of all nodes"
        in shown
    )


def test_many_segments_are_folded() -> None:
    turns = tuple(Segment((DML, CPU)[at % 2], (f"n{at}",), {"Relu": 1}, (), 1.0) for at in range(60))
    found = validation()
    assert found.placement is not None
    text = page.render(replace(found, placement=replace(found.placement, segments=turns)))
    before, _, after = text.partition("<summary>36 more</summary>")
    assert (before.count('<li class="'), after.count('<li class="')) == (24, 36)


def test_a_suggestion_that_was_not_tried_says_so() -> None:
    assert at("c", CPU).what_to_do == "do this (not tried)"


def test_nodes_that_are_wrong_together_are_named_together() -> None:
    nodes = tuple(GraphNode(index, "", "Add", "", (f"v{index}",)) for index in (3, 4))
    culprit = Culprit(Kind.UNEXPLAINED, nodes, "words", levels={"all": "wrong"})
    found = validation(verdicts=(replace(GOOD, right=False),), culprit=culprit)
    assert found.status == WRONG
    assert found.headline.endswith("its outputs are wrong: " + ", ".join(map(str, culprit.places)) + " together")


def test_outputs_of_random_numbers_are_named_and_the_trial_counts_as_compared() -> None:
    step = replace(RUN, outputs=("y", "z"))
    found = validation(steps=(step,), random=("z",))
    assert found.uncompared == ()
    assert found.headline.endswith("is right; not compared, since random numbers differ from run to run: z")


def test_a_wrong_node_beside_right_outputs_is_a_verdict_of_its_own() -> None:
    nodes = [GraphNode(index, f"conv{index}", "Conv", "", ("y",)) for index in range(5)]
    wrong = tuple(Culprit(Kind.NODE, (node,), f"{node} is 40 times off") for node in nodes)
    judged = "all 9 nodes were judged alone, on the oracle's values: 5 beyond the bound"
    found = validation(wrong_nodes=wrong[:1], nodes_judged=judged)
    assert found.status == RIGHT
    assert found.headline == (f"m.onnx runs on {DML} and is right, but node 0 `conv0` (Conv) is wrong beyond the bound")
    assert replace(found, wrong_nodes=wrong).headline.endswith(
        "node 1 `conv1` (Conv), node 2 `conv2` (Conv) and 2 more are wrong beyond the bound"
    )
    text = page.render(found)
    assert "node 0 `conv0` (Conv) is 40 times off" in text
    assert "All 9 nodes were judged alone" in text
    file = io.StringIO()
    command.show(Terminal(file, width=300), found)
    assert f"   {judged}\n4. Which nodes are wrong?\n   node 0 `conv0` (Conv) is 40 times off" in file.getvalue()
    assert document(found)["wrong_nodes"][0]["nodes"][0]["name"] == "conv0"


def test_one_node_is_not_together() -> None:
    culprit = Culprit(Kind.UNEXPLAINED, (GraphNode(3, "", "Add", "", ("v",)),), "words", levels={"all": "wrong"})
    found = validation(verdicts=(replace(GOOD, right=False),), culprit=culprit)
    assert found.headline.endswith("its outputs are wrong: node 3 that makes `v` (Add)")


def test_the_baseline_fails_as_well_only_where_it_fails_in_the_same_trials() -> None:
    batch = replace(RUN, trial="seed 1, batch=2", stage="run", during="the run", outputs=(), has_other=True)
    single = replace(batch, trial="seed 1", has_other=False)
    both = replace(batch, target="cpu")
    found = validation(steps=(RUN, batch, single, both), feeds_generated=True)
    assert found.status == FAILS
    assert found.headline == f"m.onnx loads on {DML}, but does not run"
    alike = replace(found, steps=(*found.steps, replace(single, target="cpu")), feeds_generated=False)
    assert alike.headline.endswith("does not run; the baseline fails as well: the feeds do not suit it")
