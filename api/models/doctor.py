"""What float16 and quantisation do to a model on a target: the smallest set of nodes that has to stay in float32, and
the quantisers at fault."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from epcheck.api.models.examining.examination import examine
from epcheck.api.models.option_types import (
    Agreement,
    Atol,
    Candidate,
    Dims,
    FeedsFile,
    MostSeconds,
    MostSessions,
    OptimisationLevel,
    Rtol,
    Seeds,
    Snr,
    StepDeadline,
)
from epcheck.api.models.written_files import page_bytes, write_files, write_parts
from epcheck.api.option import Option
from epcheck.api.option_types import JsonFile, OwnProcess, Vulkan
from epcheck.api.progress import SILENT, Progress
from epcheck.conformance.records import strict_json
from epcheck.models.accuracy.thresholds import Override
from epcheck.models.execution.evaluators import choose
from epcheck.models.execution.session import DEADLINE_S
from epcheck.models.feeds.trials import SEEDS, Feeding
from epcheck.models.precision import page
from epcheck.models.precision.diagnosis import FAULTY as FAULTY
from epcheck.models.precision.diagnosis import MENDED as MENDED
from epcheck.models.precision.diagnosis import NOT_MENDED as NOT_MENDED
from epcheck.models.precision.diagnosis import RIGHT as RIGHT
from epcheck.models.precision.diagnosis import UNJUDGED as UNJUDGED
from epcheck.models.precision.diagnosis import Diagnosis as Diagnosis
from epcheck.models.precision.diagnosis import document
from epcheck.models.precision.doctor import DiagnosisRequest, diagnose
from epcheck.models.wrong_nodes.options import Limits


@dataclass(frozen=True)
class DoctorOptions:
    """Which model, on what, with which feeds, and what is right.

    model: in float16, or in float32 with `float16`, which asks what it were in float16. target: specification or
    target; None for the best of this machine. dims, seeds, rtol, atol, snr, agreement, deadline_s: as in
    ValidateOptions. sessions, seconds: of the search at most. write: the file of the model with the smallest set of
    nodes in float32. html, json: files that are written. None writes none.
    """

    model: Annotated[Path, Option("An ONNX model, with its external data beside it.", argument=True)]
    target: Candidate = None
    float16: Annotated[bool, Option("Check a float32 model as converted to float16.", flags=("--float16",))] = False
    write: Annotated[Path | None, Option("Write the model with these nodes in float32 to this file.", folder=False)] = (
        None
    )
    feeds: FeedsFile = None
    dims: Dims = field(default_factory=dict)
    seeds: Seeds = SEEDS
    level: OptimisationLevel = "all"
    rtol: Rtol = None
    atol: Atol = None
    snr: Snr = None
    agreement: Agreement = None
    sessions: MostSessions = Limits.sessions
    seconds: MostSeconds = Limits.seconds
    deadline_s: StepDeadline = DEADLINE_S
    vulkan: Vulkan = None
    html: Annotated[Path | None, Option("Write the page to this file. Default: MODEL.doctor.html", folder=False)] = None
    json: JsonFile = None
    own_process: OwnProcess = True


def doctor(options: DoctorOptions, *, progress: Progress = SILENT) -> Diagnosis:
    """Run a model in float16 on a target, find the smallest set of nodes that has to stay in float32, and write the
    model so, the page and the JSON document where that is asked for.

    Raises DoctorError where no node computes in float16 or quantises; ModelFileError, ExaminationError, FeedError,
    DimsError for files and options that cannot be used, ModelFileError also for a file that cannot be written;
    TargetError, TargetDown.
    """
    with progress.working() as say:
        request = _make_request(options)
        if options.own_process:
            found = examine(diagnose, request, options.model, say, options.deadline_s, (request.target,))
            found = _restore_own_facts(found, request)
        else:
            found = diagnose(request, say)
    files = {}
    if options.write and found.mended is not None:
        if found.data:
            parts = [(part.file, part.offset, part.length, part.target) for part in found.data]
            write_parts(options.write.with_name(_data_name(options.write)), options.model.absolute().parent, parts)
        files[options.write] = found.mended
        found = replace(found, written=options.write)
    if options.html:
        files[options.html] = page_bytes(page.render(found))
    if options.json:
        files[options.json] = strict_json.dumps(document(found)).encode()
    write_files(files)
    return replace(found, mended=None, data=())


def _data_name(path: Path) -> str:
    """Of the file of external data beside a model."""
    return f"{path.name}.data"


def _make_request(options: DoctorOptions) -> DiagnosisRequest:
    target = choose(options.target, "none", options.vulkan).candidate
    override = Override(options.rtol, options.atol, options.snr, options.agreement)
    limits = Limits(sessions=options.sessions, seconds=options.seconds)
    feeding = Feeding(options.feeds, options.seeds, options.dims)
    return DiagnosisRequest(
        options.model, target, feeding, options.float16, options.level, override, limits, options.deadline_s,
        mended=options.write is not None, data_name=_data_name(options.write) if options.write else None,
    )  # fmt: skip


def _restore_own_facts(found: Diagnosis, request: DiagnosisRequest) -> Diagnosis:
    """The diagnosis with what is our own to say: a process that a model has taken over names no file and no target."""
    target = request.target
    return replace(found, path=request.model.absolute(), target=target.name, provider=target.provider,
                   level=request.level, converted=request.converted, written=None)  # fmt: skip


def default_page(model: Path) -> Path:
    """Where the command line writes the page of a model, beside it."""
    return model.with_name(f"{model.name}.doctor.html")
