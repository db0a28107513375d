"""What a user does, as one documented call each; nothing here prints, and errors are exceptions (`EpcheckError`).

    from epcheck import api

    result = api.run(api.RunOptions(targets=("dml",), operators=("Slice",)))
    print(result.folder, result.conforms)

A call takes one frozen dataclass of options. What takes long reports to a `Progress`. Importing this package imports
none of the calls: each is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from epcheck.api.bug_reports.report_bug import BugReport, BugReportError, ReportBugOptions, report_bug
    from epcheck.api.fuzzing.fuzz import FuzzOptions, FuzzResult, fuzz
    from epcheck.api.machine.cache import CacheStatus, cache_status, clear_cache
    from epcheck.api.machine.demo import DemoOptions, demo
    from epcheck.api.machine.env import (
        CreateEnvOptions,
        Environment,
        RemoveEnvOptions,
        create_env,
        environments,
        remove_env,
    )
    from epcheck.api.machine.lab import (
        InstallLabOptions,
        LabOptions,
        LabStatusOptions,
        Packed,
        PackLabOptions,
        UnpackLabOptions,
        VulkanStatus,
        install_lab,
        lab_status,
        pack_lab,
        remove_lab,
        unpack_lab,
        vulkan_status,
    )
    from epcheck.api.machine.probe import ProbedClaims, ProbeOptions, probe
    from epcheck.api.machine.status import MachineStatus, StatusOptions, TargetStatus, status
    from epcheck.api.models.doctor import DoctorOptions, doctor
    from epcheck.api.models.harvest import Harvest, HarvestError, HarvestOptions, ModelHarvest, harvest
    from epcheck.api.models.reduce import ReduceOptions, reduce
    from epcheck.api.models.validate import Gate, ValidateOptions, validate
    from epcheck.api.models.zoo import WriteZooOptions, architectures, write_zoo
    from epcheck.api.option import OptionError
    from epcheck.api.progress import SILENT, Progress
    from epcheck.api.releases.bisect import Bisected, BisectOptions, bisect
    from epcheck.api.runs.diff import DiffOptions, diff
    from epcheck.api.runs.merge import MergeOptions, merge
    from epcheck.api.runs.profile import (
        ProfileError,
        ProfileOptions,
        ProviderProfile,
        ReadProfileOptions,
        profile_schema,
        profile_text,
        provider_profile,
        read_profile,
    )
    from epcheck.api.runs.report import ReportOptions, report
    from epcheck.api.runs.result import RunResult
    from epcheck.api.runs.site import SiteOptions, site
    from epcheck.api.runs.store import (
        AddToStoreOptions,
        NotAdded,
        PruneStoreOptions,
        StoreOptions,
        add_to_store,
        check_store,
        prune_store,
        stored_runs,
    )
    from epcheck.api.runs.trend import TrendOptions, trend
    from epcheck.api.suite.claims import ClaimsError, RefreshClaimsOptions, refresh_claims
    from epcheck.api.suite.coverage import CoverageOptions, coverage, kind_coverage, separations
    from epcheck.api.suite.directml import DirectMLOptions, DirectMLResult, directml
    from epcheck.api.suite.expect import Expected, ExpectOptions, expect
    from epcheck.api.suite.listing import (
        CasesOptions,
        available_targets,
        cases,
        element_types,
        expectations,
        left_out,
        operators,
        restampings,
    )
    from epcheck.api.suite.nightly import Night, NightlyOptions, nightly
    from epcheck.api.suite.replay import ReplayOptions, replay
    from epcheck.api.suite.repro import ReproOptions, repro
    from epcheck.api.suite.run import run
    from epcheck.api.suite.run_options import Axis, RunOptions, Source
    from epcheck.conformance.lab.status import LabStatus
    from epcheck.conformance.scheduling.shard import Shard
    from epcheck.conformance.scheduling.stream import CaseStream, CaseStreamError
    from epcheck.conformance.workers.idle_workers import IdleWorkers
    from epcheck.generators.error import EpcheckError
    from epcheck.models.precision.diagnosis import Diagnosis
    from epcheck.models.validation.validation import Validation
    from epcheck.models.wrong_nodes.reduce import Reduced
    from epcheck.reports.diff.assessment import Assessment
    from epcheck.reports.site.page import Site
    from epcheck.reports.trend.trend import Trend

_MODULES = {
    "api.bug_reports.report_bug": ("BugReport", "BugReportError", "ReportBugOptions", "report_bug"),
    "api.fuzzing.fuzz": ("FuzzOptions", "FuzzResult", "fuzz"),
    "api.machine.cache": ("CacheStatus", "cache_status", "clear_cache"),
    "api.machine.demo": ("DemoOptions", "demo"),
    "api.machine.env": (
        "CreateEnvOptions", "Environment", "RemoveEnvOptions", "create_env", "environments", "remove_env",
    ),
    "api.machine.lab": (
        "InstallLabOptions", "LabOptions", "LabStatus", "LabStatusOptions", "PackLabOptions", "Packed",
        "UnpackLabOptions", "VulkanStatus", "install_lab", "lab_status", "pack_lab", "remove_lab", "unpack_lab",
        "vulkan_status",
    ),
    "api.machine.probe": ("ProbeOptions", "ProbedClaims", "probe"),
    "api.machine.status": ("MachineStatus", "StatusOptions", "TargetStatus", "status"),
    "api.models.doctor": ("Diagnosis", "DoctorOptions", "doctor"),
    "api.models.harvest": ("Harvest", "HarvestError", "HarvestOptions", "ModelHarvest", "harvest"),
    "api.models.reduce": ("ReduceOptions", "Reduced", "reduce"),
    "api.models.validate": ("Gate", "ValidateOptions", "Validation", "validate"),
    "api.models.zoo": ("WriteZooOptions", "architectures", "write_zoo"),
    "api.option": ("OptionError",),
    "api.progress": ("SILENT", "Progress"),
    "api.releases.bisect": ("BisectOptions", "Bisected", "bisect"),
    "api.runs.diff": ("Assessment", "DiffOptions", "diff"),
    "api.runs.merge": ("MergeOptions", "merge"),
    "api.runs.report": ("ReportOptions", "report"),
    "api.runs.result": ("RunResult",),
    "api.runs.site": ("Site", "SiteOptions", "site"),
    "api.runs.store": (
        "AddToStoreOptions", "NotAdded", "PruneStoreOptions", "StoreOptions", "add_to_store", "check_store",
        "prune_store", "stored_runs",
    ),
    "api.runs.trend": ("Trend", "TrendOptions", "trend"),
    "api.suite.claims": ("ClaimsError", "RefreshClaimsOptions", "refresh_claims"),
    "api.suite.coverage": ("CoverageOptions", "coverage", "kind_coverage", "separations"),
    "api.suite.directml": ("DirectMLOptions", "DirectMLResult", "directml"),
    "api.suite.expect": ("ExpectOptions", "Expected", "expect"),
    "api.suite.listing": (
        "CasesOptions", "available_targets", "cases", "element_types", "expectations", "left_out", "operators",
        "restampings",
    ),
    "api.suite.nightly": ("Night", "NightlyOptions", "nightly"),
    "api.runs.profile": (
        "ProfileError", "ProfileOptions", "ProviderProfile", "ReadProfileOptions", "profile_schema", "profile_text",
        "provider_profile", "read_profile",
    ),
    "api.suite.replay": ("ReplayOptions", "replay"),
    "api.suite.repro": ("ReproOptions", "repro"),
    "api.suite.run": ("run",),
    "api.suite.stream": ("CaseStream", "CaseStreamError"),
    "api.suite.run_options": ("Axis", "RunOptions", "Shard", "Source"),
    "conformance.workers.idle_workers": ("IdleWorkers",),
    "generators.error": ("EpcheckError",),
}  # fmt: skip
"""Module, without `epcheck.` -> the names that it lends to this package."""

_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "SILENT",
    "AddToStoreOptions",
    "Assessment",
    "Axis",
    "BisectOptions",
    "Bisected",
    "BugReport",
    "BugReportError",
    "CacheStatus",
    "CaseStream",
    "CaseStreamError",
    "CasesOptions",
    "ClaimsError",
    "CoverageOptions",
    "CreateEnvOptions",
    "DemoOptions",
    "Diagnosis",
    "DiffOptions",
    "DirectMLOptions",
    "DirectMLResult",
    "DoctorOptions",
    "Environment",
    "EpcheckError",
    "ExpectOptions",
    "Expected",
    "FuzzOptions",
    "FuzzResult",
    "Gate",
    "Harvest",
    "HarvestError",
    "HarvestOptions",
    "IdleWorkers",
    "InstallLabOptions",
    "LabOptions",
    "LabStatus",
    "LabStatusOptions",
    "MachineStatus",
    "MergeOptions",
    "ModelHarvest",
    "Night",
    "NightlyOptions",
    "NotAdded",
    "OptionError",
    "PackLabOptions",
    "Packed",
    "ProbeOptions",
    "ProbedClaims",
    "ProfileError",
    "ProfileOptions",
    "Progress",
    "ProviderProfile",
    "PruneStoreOptions",
    "ReadProfileOptions",
    "ReduceOptions",
    "Reduced",
    "RefreshClaimsOptions",
    "RemoveEnvOptions",
    "ReplayOptions",
    "ReportBugOptions",
    "ReportOptions",
    "ReproOptions",
    "RunOptions",
    "RunResult",
    "Shard",
    "Site",
    "SiteOptions",
    "Source",
    "StatusOptions",
    "StoreOptions",
    "TargetStatus",
    "Trend",
    "TrendOptions",
    "UnpackLabOptions",
    "ValidateOptions",
    "Validation",
    "VulkanStatus",
    "WriteZooOptions",
    "add_to_store",
    "architectures",
    "available_targets",
    "bisect",
    "cache_status",
    "cases",
    "check_store",
    "clear_cache",
    "coverage",
    "create_env",
    "demo",
    "diff",
    "directml",
    "doctor",
    "element_types",
    "environments",
    "expect",
    "expectations",
    "fuzz",
    "harvest",
    "install_lab",
    "kind_coverage",
    "lab_status",
    "left_out",
    "merge",
    "nightly",
    "operators",
    "pack_lab",
    "probe",
    "profile_schema",
    "profile_text",
    "provider_profile",
    "prune_store",
    "read_profile",
    "reduce",
    "refresh_claims",
    "remove_env",
    "remove_lab",
    "replay",
    "report",
    "report_bug",
    "repro",
    "restampings",
    "run",
    "separations",
    "site",
    "status",
    "stored_runs",
    "trend",
    "unpack_lab",
    "validate",
    "vulkan_status",
    "write_zoo",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"epcheck.{_HOME[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
