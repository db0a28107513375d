"""JUnit XML of a gate: a suite for each target, a case for each model."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from epcheck.models.gate.gate import CANNOT_TELL, FAILS, CheckedModel, Gate

NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold."""


def junit(gate: Gate) -> str:
    """The document. A broken limit is a `failure`; a model that nobody can judge, and a file or target that cannot be
    used, an `error`. Its message is the result in a sentence, its body what is wrong, where, what to do and the command
    that shows it again. Nodes that are wrong beside right outputs are in `system-out`."""
    root = ElementTree.Element("testsuites", name="epcheck validate")
    for target in gate.targets:
        checked = [each for each in gate.checked if each.target == target]
        counts = {"name": _text(target), "tests": str(len(checked)),
                  "failures": str(sum(each.result == FAILS for each in checked)),
                  "errors": str(sum(each.result == CANNOT_TELL for each in checked))}  # fmt: skip
        suite = ElementTree.SubElement(root, "testsuite", counts)
        for each in checked:
            seconds = sum(each.validation.seconds.values()) if each.validation else 0.0
            case = ElementTree.SubElement(
                suite, "testcase", classname=_text(target), name=_text(each.name), time=f"{seconds:.3f}"
            )
            if each.result in (FAILS, CANNOT_TELL):
                tag = "failure" if each.result == FAILS else "error"
                message, *_ = each.broken or (each.words,)
                element = ElementTree.SubElement(case, tag, type=each.status, message=_text(message))
                element.text = _text(_body(each))
            elif each.has_wrong_nodes:
                ElementTree.SubElement(case, "system-out").text = _text(f"{each.words}\n\n{_body(each)}")
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=False) + "\n"


def _body(checked: CheckedModel) -> str:
    """A paragraph for each fault, with a line for each of its parts and all its nodes; then how to validate again."""
    paragraphs = []
    for fault in checked.faults:
        lines = [f"{title}: {text}" for title, text in fault.parts]
        if len(fault.nodes) > 1:
            lines.insert(-1, f"nodes: {', '.join(fault.nodes)}")
        paragraphs.append("\n".join(lines))
    return "\n\n".join([*paragraphs, f"validate again: {checked.command}"])


def _text(value: str) -> str:
    return NOT_XML.sub("�", value)
