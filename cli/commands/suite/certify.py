"""`epcheck certify`: one signed page about a provider, and the check of one."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from epcheck.api.suite.certify import NO_LEVEL, PAGE, CertifyOptions, Checked, certify
from epcheck.cli.options import command
from epcheck.cli.output import Quiet, choose_progress
from epcheck.cli.terminal import exit_codes
from epcheck.cli.terminal.terminal import Terminal
from epcheck.conformance.records.contract import REMARK

app = typer.Typer(add_completion=False)


@dataclass(frozen=True)
class ShownCertificate(CertifyOptions):
    """A certificate, and how it is shown."""

    quiet: Quiet = False


@command(app, ShownCertificate)
def write_or_check(options: ShownCertificate) -> int:
    """Certify a provider: values, claims, uses, contract, accuracy, and a level; or check a certificate.

    Exit code: 0 it has a level, 1 it has none or says what its records do not show, 2 it could not run, or the folder
    is damaged.
    """
    checked = certify(options, progress=choose_progress(options.quiet))
    show(Terminal(), checked, options.quiet)
    return exit_codes.GOOD if checked.holds else exit_codes.FAILURES


def show(terminal: Terminal, checked: Checked, quiet: bool) -> None:
    """The level, what keeps it from a higher one, doubts, and the signature. quiet: the level and doubts alone."""
    certificate = checked.certificate
    style = "green" if checked.holds else "red"
    terminal.print((certificate.headline, style))
    for doubt in checked.doubts:
        terminal.print(("doubt", "red"), f" {doubt}")
    if quiet:
        return
    for sentence in certificate.why if certificate.level == NO_LEVEL else ():
        terminal.print(f"  {sentence}")
    for rule in certificate.rules(REMARK):
        terminal.print((f"remark {rule.name}", "yellow"), f" {rule.text}: {rule.found}")
    for note in checked.notes:
        terminal.print(("note", "yellow"), f" {note}")
    terminal.print(f"Page: {checked.folder / PAGE}")
    terminal.print(f"SHA-256 of the manifest: {checked.signature}")
