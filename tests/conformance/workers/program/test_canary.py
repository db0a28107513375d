"""The canary: a provider that cannot be used is told before the suite, in one sentence with the reason."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx

from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.target import CPU, DML, RECORD
from epcheck.conformance.workers.idle_workers import IdleWorkers, needs_canary
from epcheck.conformance.workers.program.backends import canary
from epcheck.conformance.workers.program.backends.onnxruntime import OnnxRuntimeBackend
from epcheck.conformance.workers.program.backends.plugin import reason
from tests.command_line import call

LOG = "\x1b[1;31m2026-11-22 16:11:09.9 [E:onnxruntime:, provider.cc:790 Start] {}\x1b[m\n"


class OtherBackend(OnnxRuntimeBackend):
    """Sessions as another provider would have them: it writes to stderr, and the session's record is another one."""

    def __init__(self, log: str = "", providers: tuple[str, ...] = ("Other", CPU), nodes: Any = ()) -> None:
        super().__init__()
        self.log, self.providers, self.nodes = log, providers, nodes

    def session(self, _request: dict[str, Any], _model: bytes | str) -> Any:
        os.write(2, self.log.encode())

        class Session:
            def get_providers(_self) -> list[str]:  # noqa: N805
                return list(self.providers)

        return Session()

    def assignment(self, _session: Any, recorded: bool) -> list[list[str]]:
        assert recorded
        return [list(node) for node in self.nodes]


def trouble(backend: OnnxRuntimeBackend, options: Mapping[str, str] = {}, config: Mapping[str, str] = {}) -> str:
    name = "Other" if isinstance(backend, OtherBackend) else CPU
    sessions = {"providers": [[name, dict(options)]], "config": {RECORD: "1", **config}, "device": None}
    return canary.trouble_with(backend, sessions)


def test_its_model_is_an_addition() -> None:
    model = onnx.load_from_string(canary.MODEL)
    onnx.checker.check_model(model)
    assert [node.op_type for node in model.graph.node] == ["Add"]


def test_the_cpu_provider_has_no_trouble_and_records() -> None:
    backend = OnnxRuntimeBackend()
    assert (trouble(backend), backend.can_record) == ("", True)


def test_a_misspelt_session_option_is_named_with_the_one_that_was_meant() -> None:
    assert trouble(OnnxRuntimeBackend(), config={"session.intra_op.allow_spining": "0"}) == (
        "onnxruntime has no session option 'session.intra_op.allow_spining'. "
        "Did you mean session.intra_op.allow_spinning?"
    )
    assert trouble(OnnxRuntimeBackend(), config={"session.intra_op.allow_spinning": "0"}) == ""


def test_a_beginning_of_an_option_is_not_the_option() -> None:
    known = "session.disable_prepacking"
    assert trouble(OnnxRuntimeBackend(), config={known[:-3]: "0"}).startswith(
        f"onnxruntime has no session option '{known[:-3]}'"
    )


def test_an_option_that_no_library_holds_is_refused() -> None:
    assert trouble(OnnxRuntimeBackend(), {"qqxyzzyqq": "1"}).startswith(f"{CPU} has no option 'qqxyzzyqq'")


def test_a_provider_that_is_left_out_of_the_session_is_told_with_what_the_log_says() -> None:
    cause = "Failed to load library libprovider.so with error: libmissing.so.12: cannot open shared object"
    assert trouble(OtherBackend(LOG.format(cause), providers=(CPU,), nodes=[(CPU, "Add", "canary")])) == (
        f"Other cannot start: {cause}"
    )


def test_an_error_in_the_log_counts_where_the_node_is_not_taken_or_an_option_is_named() -> None:
    taken, left = [("Other", "Add", "canary")], [(CPU, "Add", "canary")]
    log = LOG.format("Failed to parse 'device_id' value.")
    assert trouble(OtherBackend(log, nodes=taken), {"device_id": "x"}) == (
        "Other cannot start: Failed to parse 'device_id' value.; its options are device_id = x"
    )
    assert trouble(OtherBackend(log, nodes=taken)) == ""
    assert trouble(OtherBackend(log, nodes=left)) == "Other cannot start: Failed to parse 'device_id' value."
    assert trouble(OtherBackend(nodes=left)) == ""


def test_the_session_is_kept_where_there_is_no_trouble() -> None:
    without, with_trouble = OtherBackend(nodes=[("Other", "Add", "canary")]), OtherBackend(providers=(CPU,))
    assert [bool(trouble(backend)) for backend in (without, with_trouble)] == [False, True]
    assert [backend.held.session is not None for backend in (without, with_trouble)] == [True, False]
    cpu = OnnxRuntimeBackend()
    assert (trouble(cpu), cpu.held.session) == ("", None)


def test_an_empty_record_makes_the_profile_the_proof() -> None:
    backend = OtherBackend(nodes=[])
    assert (trouble(backend), backend.can_record) == ("", False)
    assert backend.facts()["assignment"] == "profiled"


def test_a_reason_has_no_source_files_and_no_signatures() -> None:
    message = (
        "[ONNXRuntimeError] : 11 : EP_FAIL : /onnxruntime_src/onnxruntime/core/session/interfaces.cc:393 virtual "
        "std::unique_ptr<onnxruntime::IExecutionProvider> onnxruntime::Factory::CreateProvider(const "
        "OrtSessionOptions&, const OrtLogger&) [ONNXRuntimeError] : 11 : EP_FAIL : /onnxruntime_src/context.cc:136 "
        "onnxruntime::webgpu::Initialize(const Config&)::<lambda()> Failed to get an adapter\n"
    )
    assert reason(message) == "Failed to get an adapter"
    windows = r"E:\_work\1\s\dml_provider_factory.cc(513)\onnxruntime_pybind11_state.pyd!00006FFF: (caller: 00006FFF) "
    assert reason(f"{windows}Exception(1) tid(ec) 887A0002 no adapter") == "887A0002 no adapter"


def test_a_run_on_a_target_with_a_misspelt_option_is_one_sentence_and_exit_code_2(tmp_path: Path) -> None:
    config = tmp_path / "epcheck.toml"
    config.write_text('[targets.mine]\nbase = "cpu"\nconfig = { "session.intra_op.allow_spining" = "0" }\n')
    arguments = ("--config", str(config), "-t", "mine", "--op", "Add", "--limit", "2", "--baseline", "none")
    done = call("run", *arguments, "--root", str(tmp_path / "runs"))
    assert done.code == 2
    assert "target 'mine': onnxruntime has no session option" in done.err
    night = call("nightly", *arguments, "--root", str(tmp_path / "runs"), "--store", str(tmp_path / "store"))
    assert night.code == 2


def test_who_is_tried_before_the_suite_and_how_often() -> None:
    cpu, direct = resolve("cpu"), replace(resolve("cpu"), calls_directml=True)
    assert [needs_canary(each) for each in (cpu, direct, resolve("reference"))] == [True, False, False]
    assert cpu.provider in (CPU, DML)
    workers = IdleWorkers()
    assert workers.needs_canary(cpu)
    workers.note_start(cpu, {"onnxruntime": "1.0"})
    assert not workers.needs_canary(cpu)
    assert workers.needs_canary(replace(cpu, options={"a": "b"}))
    other = replace(cpu, provider="Other")
    workers.note_start(other, {"onnxruntime": "2.0"})
    assert workers.needs_canary(other)
    assert workers.facts(replace(cpu, name="like it")) == {"onnxruntime": "1.0"}
