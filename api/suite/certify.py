"""One signed page about a provider: values, claims, uses, contract, accuracy, a level; and the check of such a page."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

from epcheck.api.option import JUDGE, MACHINE, OUTPUT, SELECT, Option, OptionError
from epcheck.api.option_types import Operators, Root
from epcheck.api.progress import SILENT, Progress
from epcheck.api.suite.option_types import ConfigFile, Uses
from epcheck.api.suite.run import run
from epcheck.api.suite.run_options import RunOptions
from epcheck.conformance.judging import kernel_coverage
from epcheck.conformance.judging.contract import observe_contract
from epcheck.conformance.judging.kernel_registry import read_kernel_registry
from epcheck.conformance.profile.mustpass import digest_suite, load_mustpass
from epcheck.conformance.records.contract import Contract, Kernel
from epcheck.conformance.targets.config import load_config
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.target import Target, TargetError
from epcheck.conformance.targets.variants import UsedCases
from epcheck.reports import DEFAULT_ROOT
from epcheck.reports.certificate.certificate import NO_LEVEL as NO_LEVEL
from epcheck.reports.certificate.certificate import PART as PART
from epcheck.reports.certificate.certificate import Certificate as Certificate
from epcheck.reports.certificate.folder import PAGE as PAGE
from epcheck.reports.certificate.folder import CertificateError as CertificateError
from epcheck.reports.certificate.folder import Checked as Checked
from epcheck.reports.certificate.folder import check_certificate, check_run, refuse_other_folder, write_certificate


@dataclass(frozen=True)
class CertifyOptions:
    """What is certified, or which certificate is checked.

    target: whose provider; empty with `check`. whole: every case of the suite; without it those of the list `thin`.
    out: None for `certificate-TARGET`. check: the folder of a certificate, of whomever, which is checked instead.
    operators: a part of the list, which gives no level. uses: of which cases sessions are used as applications do.
    expect: further files of expectations, the author's exclusions. run: the folder of a run of this target that is
    over, which is certified in place of a new one; `whole`, `operators`, `uses`, `expect` and `jobs` are not used then.
    """

    target: Annotated[
        str, Option("Target whose provider is certified.", argument=True, metavar="TARGET", default="none")
    ] = ""
    whole: Annotated[
        bool, Option("Every case of the suite.", flags=("--whole/--thin",), default="thin", panel=SELECT)
    ] = False
    operators: Operators = ()
    uses: Uses = UsedCases.SAMPLE
    expect: Annotated[
        tuple[Path, ...],
        Option("Further expectations: exclusions, with a reason each.", metavar="FILE", panel=JUDGE),
    ] = ()
    run: Annotated[
        Path | None,
        Option("Certify this finished run of the target.", flags=("--from",), metavar="RUN", file=False, panel=SELECT),
    ] = None
    out: Annotated[
        Path | None,
        Option(
            "Folder of the certificate.",
            flags=("--out", "-o"),
            default="certificate-TARGET",
            metavar="FOLDER",
            file=False,
            panel=OUTPUT,
        ),
    ] = None
    check: Annotated[
        Path | None, Option("Check this certificate instead.", metavar="FOLDER", file=False, panel=OUTPUT)
    ] = None
    jobs: Annotated[int | None, Option("Most workers.", flags=("--jobs", "-j"), minimum=1, panel=MACHINE)] = None
    root: Root = DEFAULT_ROOT
    config: ConfigFile = None


def certify(options: CertifyOptions, *, progress: Progress = SILENT) -> Checked:
    """Observe a provider's contract, run the suite on it, and write its certificate; or check one.

    A certificate that is checked has `doubts`. Raises CertificateError where its folder is damaged or holds something
    else, OptionError where neither or both of target and check are given, and what `run` raises.
    """
    if bool(options.target) == bool(options.check):
        raise OptionError("name a TARGET to certify, or a certificate with --check FOLDER")
    if options.check:
        return check_certificate(options.check, load_mustpass(), version("epcheck"), digest_suite())
    with progress.installing() as step:
        target = resolve(options.target, load_config(options.config), step)
    folder = options.out or Path(f"certificate-{target.plain_name}")
    refuse_other_folder(folder)
    if options.run:
        check_run(options.run, target.name)
    with progress.working() as doing:
        doing("how the provider behaves in a process")
        contract = _add_kernels(target, observe_contract(target))
    ran = options.run or _run(options, progress)
    return write_certificate(folder, ran, contract, load_mustpass(), digest_suite())


def _run(options: CertifyOptions, progress: Progress) -> Path:
    """Run the suite; the folder of the run."""
    result = run(
        RunOptions(
            targets=(options.target,),
            operators=options.operators,
            thin=not options.whole,
            uses=options.uses,
            expect=options.expect,
            jobs=options.jobs,
            root=options.root,
            config=options.config,
        ),
        progress=progress,
    )
    return result.folder


def _add_kernels(target: Target, contract: Contract) -> Contract:
    """The contract with the kernels that the provider has registered, or the reason why none are known."""
    try:
        registered = read_kernel_registry(target)
    except TargetError as error:
        return replace(contract, source=str(error))
    kernels = (
        Kernel(each.name, each.versions, each.dtypes, each.state, each.why)
        for each in kernel_coverage.cover_kernels(registered)
        if each.state != kernel_coverage.UNKNOWN
    )
    return replace(contract, source=registered.source, kernels=tuple(kernels))
