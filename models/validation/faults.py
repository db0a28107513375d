"""What is wrong with a model on a target, in the four parts that terminal, page, JUnit, SARIF and annotations have:
what, where, what to do, and the command that shows it again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from epcheck.models.execution.runner import LEVELS
from epcheck.models.inspection.inspect import COMPLAINTS
from epcheck.models.validation.formatting import quote_command
from epcheck.models.validation.generation import GREEDY, ONE_PASS, REMEDIES, WINDOW, DecodingMode
from epcheck.models.validation.validation import RIGHT, UNJUDGED, Validation
from epcheck.models.wrong_nodes.culprit import Culprit, Kind

COARSE = ("float16", "bfloat16")

PRODUCTS = (
    "MatMulInteger", "ConvInteger", "QLinearMatMul", "QLinearConv", "QGemm", "QAttention", "MatMulIntegerToFloat",
    "DynamicQuantizeMatMul", "DynamicQuantizeLSTM",
)  # fmt: skip
"""Operators that multiply integers of 8 bits."""

FUSED_PRODUCTS = ("Conv", "Gemm", "MatMul")
"""Operators that become one of them when they are fused with the DequantizeLinear before them."""

LOCALE = re.compile(r"Failed to construct locale with name:([\w.-]+?):")
"""Of ONNX Runtime's StringNormalizer."""


@dataclass(frozen=True)
class Fault:
    """what: a sentence. where: the nodes in a part of a sentence, and nodes: their names, all of them; empty where no
    node is known. remedy: what to do. command: it shows the fault again."""

    what: str
    where: str
    nodes: tuple[str, ...]
    remedy: str
    command: str

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        """(title, text) of each part that there is."""
        titled = (("what", self.what), ("where", self.where), ("do", self.remedy), ("reproduce", self.command))
        return tuple((title, text) for title, text in titled if text)


def list_faults(found: Validation) -> tuple[Fault, ...]:
    """What is wrong, the first in the graph first; empty for a model that is right."""
    return tuple(_list_faults(found))


def _list_faults(found: Validation) -> Iterator[Fault]:
    again = quote_command("validate", found, found.validate_args)
    command = quote_command("reduce", found, found.reduce_args) if found.reduce_args else again
    for departure in found.departures:
        remedy = "correct this node or its constants in the model; the target computes what the model says"
        yield Fault(departure.words, departure.node, (), remedy, again)
    if found.is_settled:
        yield from _of_decoding(found, again)
        for culprit in found.wrong_nodes:
            yield _of_culprit(
                found, culprit, quote_command("validate", found, (*found.validate_args, "--strict-nodes"))
            )
        if found.status == UNJUDGED and found.obstacle:
            why, what_to_do = found.obstacle
            yield Fault(why, "", (), what_to_do, again)
        elif found.status != RIGHT and not found.departures and not found.is_wrong_in_decoding_alone:
            yield Fault(_why(found), "", (), "export the model again, or correct what is expected of it",
                        again)  # fmt: skip
        return
    for culprit in found.culprits:
        yield _of_culprit(found, culprit, command)
    if not found.culprits:
        yield Fault(_why(found), "", (), _suggest(found) or "search for the node at fault: without --no-culprit, with "
                    "a --baseline, and with a --budget that suffices", command)  # fmt: skip
    yield from _of_decoding(found, again)


def _of_decoding(found: Validation, command: str) -> Iterator[Fault]:
    """The modes in which a decoder departs from the whole sequence."""
    for mode, words in found.generation.faults if found.generation else ():
        is_of_model = mode.fault is not None and mode.fault.is_of_model
        yield Fault(words, "", (), REMEDIES[mode.name] if is_of_model else _advise_on_target(found, mode), command)


def _of_culprit(found: Validation, culprit: Culprit, command: str) -> Fault:
    effect = f"; {culprit.effect.words}" if culprit.effect else ""
    where = culprit.named if culprit.nodes else ""
    names = tuple(node.name or (node.outputs[0] if node.outputs else str(node.index)) for node in culprit.innermost)
    return Fault(f"{culprit.words}{effect}", where, names, _remedy(found, culprit), command)


def _advise_on_target(found: Validation, mode: DecodingMode) -> str:
    """What to do about a mode in which the target departs."""
    assert found.generation is not None
    right = [each.name for each in found.generation.modes if each.result == "right" and each.name != GREEDY]
    target = found.provider or found.target
    instead = f"decode {' or '.join(right)} until it is corrected"
    if mode.name == ONE_PASS or not right:
        instead = REMEDIES[ONE_PASS]
    elif mode.name == WINDOW:
        instead = "keep sequences within the window until it is corrected"
    return f"{instead}; report it to who makes {target} (epcheck report-bug)"


def _remedy(found: Validation, culprit: Culprit) -> str:
    """What to do about the nodes at fault: what was tried and helps, before what always does."""
    target = found.provider or found.target
    report = f"report it to who makes {target} (epcheck report-bug)"
    if culprit.advice is not None and culprit.advice.change:
        return culprit.advice.words
    if suggestion := _suggest(found, culprit):
        return suggestion
    if culprit.kind in (Kind.REFUSED, Kind.UNEXPLAINED) and (complaint := _find_complaint(found, culprit)):
        return f"correct the node in the model, or what wrote it: it breaks the standard ({complaint})"
    if name := LOCALE.search(culprit.words):
        return f"install the locale {name[1]} on the machine that runs the model: ONNX Runtime asks the system for it"
    right = [level for level in LEVELS if culprit.levels.get(level) == "right"]
    at_level = f"create the session with graph optimisation '{right[-1]}', at which they are right" if right else ""
    if _lacks_vnni(found) and _multiplies_8_bits(culprit):
        # onnxruntime.ai/docs/performance/model-optimizations/quantization.html: when and why to try U8U8
        less = ("quantise the weights to 7 bits (reduce_range) or to uint8: on this processor, without VNNI, sums of "
                "uint8 × int8 saturate in 16 bits")  # fmt: skip
        return f"{less}; or {at_level}" if at_level else less
    if right:
        return f"{at_level}; {report}"
    if culprit.kind == Kind.RANDOM:
        return "make the random numbers an input of the model"
    if culprit.kind in (Kind.ACCUMULATED, Kind.RIGHT):
        coarse = any(verdict.dtype in COARSE for verdict in found.verdicts)
        doctor = "; epcheck doctor finds the nodes that need float32" if coarse else ""
        return f"no node is at fault: allow more with --rtol where the application permits it{doctor}"
    if not culprit.is_named:
        return f"run epcheck reduce for a smaller model; {report}"
    elsewhere = f"run {'it' if len(culprit.nodes) == 1 else 'them'} on another provider"
    right_there = f" ('{found.baseline}' is right)" if found.baseline and culprit.kind == Kind.NODE else ""
    return f"{elsewhere}{right_there}, or replace the operator in the model; {report}"


def _lacks_vnni(found: Validation) -> bool:
    """Whether the CPU provider ran on a processor of x86-64 that is known to have no instructions for exact sums of
    products of 8 bits: Linux names those that it has."""
    processor = found.facts.get(found.target, {}).get("processor", "")
    return found.provider == "CPUExecutionProvider" and "avx2" in processor and "vnni" not in processor


def _multiplies_8_bits(culprit: Culprit) -> bool:
    operators = {node.op_type for node in culprit.nodes}
    is_fused = "DequantizeLinear" in operators and not operators.isdisjoint(FUSED_PRODUCTS)
    return is_fused or not operators.isdisjoint(PRODUCTS)


def _suggest(found: Validation, culprit: Culprit | None = None) -> str:
    """What the inspection of the file suggests about nodes, or about a model of which no node is known to be wrong."""
    if culprit is None:
        return next((each.suggestion for each in found.inspection.findings
                     if each.severity == "error" and each.suggestion), "")  # fmt: skip
    names = [f"'{name}'" for node in culprit.nodes for name in (node.name, *node.outputs) if name]
    return next((each.suggestion for each in found.inspection.findings
                 if each.suggestion and any(name in each.text for name in names)), "")  # fmt: skip


def _find_complaint(found: Validation, culprit: Culprit) -> str:
    """What ONNX's own checker or shape inference says of nodes that a target refuses; empty where they accept them."""
    names = [f"'{name}'" for node in culprit.nodes for name in (node.name, *node.outputs) if name]
    return next((each.text for each in found.inspection.findings
                 if each.text.startswith(COMPLAINTS) and any(name in each.text for name in names)), "")  # fmt: skip


def _why(found: Validation) -> str:
    """Why a model is wrong of which no node is known to be."""
    failed = next((f"{step.target}, {step.trial}: {step.during} ends with: {step.message}"
                   for step in found.candidate_steps if step.during and step not in found.unsuitable), "")  # fmt: skip
    wrong = (f"'{verdict.output}' ({verdict.trial}, against {verdict.against}): {verdict.why}"
             for verdict in found.verdicts if verdict.wrong)  # fmt: skip
    return failed or next(wrong, "") or "a second run in the same session changes an output"
