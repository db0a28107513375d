"""`epcheck report-bug`: what is wrong, for ONNX Runtime's issue form."""

from __future__ import annotations

import typer

from epcheck.api.bug_reports.report_bug import ReportBugOptions, report_bug
from epcheck.cli.options import command
from epcheck.cli.terminal.progress import TerminalProgress
from epcheck.cli.terminal.terminal import Terminal

app = typer.Typer(add_completion=False)


@command(app, ReportBugOptions)
def write_reports(options: ReportBugOptions) -> None:
    """Write a bug report for ONNX Runtime's issue form, with a repro to attach, for each fault group of a run, or for a
    model that fails. Nothing is sent."""
    terminal = Terminal()
    for report in report_bug(options, progress=TerminalProgress(terminal)):
        terminal.print(report.issue.title, style="bold")
        for answer in report.issue.answers:
            terminal.print(f"   {answer.who}: {answer.status}")
        attached = report.archive or "the repro is too large to attach"
        terminal.print(f"   {report.text}, {attached}")
    terminal.print("File each at https://github.com/microsoft/onnxruntime/issues/new/choose, form 'General'.")
