"""Sessions run in another way by real workers of the CPU provider, and what becomes of a context that is broken."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from epcheck.conformance.preparation import prepared_case
from epcheck.conformance.records import terms
from epcheck.conformance.scheduling.pools import session_request
from epcheck.conformance.targets import variants as targets
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.variants import Axis, Variants, variants_of
from epcheck.conformance.workers.program import protocol
from epcheck.conformance.workers.program.backends import contexts, variants
from epcheck.conformance.workers.program.backends.declined import NotApplicableError
from epcheck.conformance.workers.program.backends.onnxruntime import OnnxRuntimeBackend
from epcheck.generators import suite
from tests.conformance.small_cases import identities, identity, records_of

CPU = resolve("cpu")
REQUEST: dict[str, Any] = {"providers": [["CPUExecutionProvider", {}]], "config": dict(CPU.config), "device": "cpu"}


def test_cases_of_the_suite_are_the_same_in_every_way() -> None:
    cases = list(suite.cases(("Relu",), ("float32",), limit=6))
    varied = variants_of([CPU], (Axis.LEVEL, Axis.IO_BINDING, Axis.CONTEXT, Axis.PACKING))
    found = records_of(cases, CPU, variants=varied)
    assert len(found) == len({case.sample for case in cases})
    for record in found.values():
        states = {v.variant: v.state for v in record.variants}
        assert states.pop("context") == terms.NOT_RUN
        assert states.keys() == {
            "level=basic", "level=extended", "level=all", "io_binding=device", "packing=alone", "packing=packed"
        }  # fmt: skip
        assert {states["io_binding=device"], states["packing=alone"]} == {terms.SAME}


def test_a_way_that_fails_is_found_confirmed_and_named() -> None:
    """The level does not exist, so that every session of this variant is refused."""
    (basic, *_) = variants_of([CPU], (Axis.LEVEL,))["cpu"].targets
    broken = replace(basic, name="cpu level=none", variant="level=none", request_defaults={"level": "none"})
    found = records_of(identities(3), CPU, variants={"cpu": Variants((basic, broken), {"context": "it makes none"})})
    for record in found.values():
        assert (record.status, record.reading) == (terms.VARIANT_DEPENDENT, terms.FAILURE)
        assert [(v.variant, v.state) for v in record.variants] == [
            ("level=basic", terms.SAME), ("level=none", terms.DIFFERS), ("context", terms.NOT_RUN)
        ]  # fmt: skip
        assert record.variants[1].opinion is not None
        assert record.variants[1].opinion.attempts == 2
        assert "level=none: refuses at create: " in record.reason
        way = '--target "cpu" --variant "level=none"'
        assert record.case.repro == f'epcheck repro "{record.case_id}" {way} --out repro'


def test_bound_on_the_device_the_outputs_are_the_same() -> None:
    backend, built = OnnxRuntimeBackend(), identity("a", number=7).build()
    answer, outputs = backend.run({**REQUEST, "way": "bound"}, built.model, dict(built.feeds))
    assert answer["stage"] == "done"
    np.testing.assert_array_equal(outputs["y"], [-1, 7])
    assert [(provider, operator) for provider, operator, _ in answer["assignment"]] == [
        ("CPUExecutionProvider", "Identity")
    ]


def test_text_has_no_memory_on_a_device() -> None:
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])], "g",
        [info("x", TensorProto.STRING, [1])], [info("y", TensorProto.STRING, [1])],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8).SerializeToString()
    answer, _ = OnnxRuntimeBackend().run({**REQUEST, "way": "bound"}, model, {"x": np.array(["a"], object)})
    assert (answer["stage"], answer["error"]) == ("create", "NotApplicableError")
    assert answer["message"] == "epcheck: this way of running does not apply: an input has no memory on a device"


def test_the_cpu_provider_makes_no_context() -> None:
    built = identity("a").build()
    request = {**REQUEST, "way": "context", "context": "file"}
    answer, _ = OnnxRuntimeBackend().run(request, built.model, dict(built.feeds))
    assert (answer["stage"], answer["error"]) == ("create", "NotApplicableError")


def context_model(**attributes: Any) -> bytes:
    node = helper.make_node("EPContext", ["x"], ["y"], domain="com.microsoft", **attributes)
    graph = helper.make_graph([node], "g", [], [])
    model: bytes = helper.make_model(graph).SerializeToString()
    return model


class Compiling:
    """A backend whose provider compiles to EPContext models, and says what it was given to load."""

    def __init__(self, refuses: bool = False) -> None:
        self.refuses = refuses
        self.embedded = False
        self.folders: list[Path] = []
        self.loaded: list[tuple[bytes, bytes]] = []

    def compiler(self, _request: Mapping[str, Any], _model: bytes, embedded: bool) -> Compiling:
        self.embedded = embedded
        return self

    def compile_to_bytes(self) -> bytes:
        assert self.embedded
        return context_model(ep_sdk_version="2025.4", ep_cache_context="context.bin")

    def compile_to_file(self, path: str) -> None:
        assert not self.embedded
        self.write(Path(path), beside=True)

    def write(self, path: Path, beside: bool) -> None:
        path.write_bytes(context_model(ep_sdk_version="2025.4", ep_cache_context="context.bin"))
        if beside:
            (path.parent / "context.bin").write_bytes(b"compiled")

    def session(self, request: Mapping[str, Any], model: bytes | str) -> Compiling:
        config = request["config"]
        if config.get("ep.context_enable") == "1":
            self.write(Path(config["ep.context_file_path"]), beside=config["ep.context_embed_mode"] == "0")
        elif self.refuses:
            raise RuntimeError("cannot be imported")
        elif isinstance(model, str):
            self.folders.append(Path(model).parent)
            self.loaded.append((Path(model).read_bytes(), (Path(model).parent / "context.bin").read_bytes()))
        else:
            self.loaded.append((model, b""))
        return self

    def get_outputs(self) -> list[Any]:
        return []

    def run(self, _names: list[str], _feeds: object) -> list[Any]:
        return []

    def assignment(self, _session: object, _recorded: bool) -> list[list[str]]:
        return [["ItsExecutionProvider", "Relu", "n"]]

    def keeps_record(self, _request: object) -> bool:
        return True


def loaded(how: str, backend: Compiling | None = None) -> list[tuple[bytes, bytes]]:
    backend = backend or Compiling()
    answer: dict[str, Any] = {}
    variants.run(backend, {"config": {}, "way": "context", "context": how}, b"", {}, answer)
    assert answer["assignment"] == [["ItsExecutionProvider", "Relu", "n"]]
    return backend.loaded


@pytest.mark.parametrize("has_compile_api", [True, False])
def test_a_context_is_loaded_from_its_file_and_from_its_bytes(
    monkeypatch: pytest.MonkeyPatch, has_compile_api: bool
) -> None:
    assert hasattr(variants.onnxruntime, "ModelCompiler")
    if not has_compile_api:  # as before ONNX Runtime 1.22
        monkeypatch.delattr(variants.onnxruntime, "ModelCompiler")
    (model, beside), (embedded, nothing) = *loaded("file"), *loaded("bytes")
    assert (model, beside, nothing) == (embedded, b"compiled", b"")


def test_a_moved_context_is_loaded_from_another_folder() -> None:
    moved, made = Compiling(), Compiling()
    assert loaded("moved", moved) == loaded("file", made)
    assert [backend.folders[0].name.startswith("epcheck-context-") for backend in (moved, made)] == [False, True]


@pytest.mark.parametrize("may_write", [False, True])
def test_a_read_only_context_and_its_folder_cannot_be_written(monkeypatch: pytest.MonkeyPatch, may_write: bool) -> None:
    modes: list[tuple[str, int]] = []
    monkeypatch.setattr(Path, "chmod", lambda path, mode: modes.append((path.name, mode)))
    monkeypatch.setattr(contexts.os, "access", lambda _path, _mode: may_write)  # root may, whatever the mode is
    if may_write:
        with pytest.raises(NotApplicableError, match=r": this user may write files that are read-only$"):
            loaded("read_only")
    else:
        assert loaded("read_only", backend := Compiling()) == loaded("file")
        assert backend.folders[0].name.startswith("epcheck-context-")
    assert sorted(modes[:2]) == [("context.bin", 0o444), ("context.onnx", 0o444)]
    assert [mode for _, mode in modes[2:]] == [0o555]


@pytest.mark.parametrize("has_compile_api", [True, False])
def test_what_one_worker_compiles_another_loads(monkeypatch: pytest.MonkeyPatch, has_compile_api: bool) -> None:
    if not has_compile_api:
        monkeypatch.delattr(variants.onnxruntime, "ModelCompiler")
    backend, request = Compiling(), {"config": {}, "way": "context"}
    outputs = variants.run(backend, {**request, "context": "compile"}, b"", {}, {})
    assert outputs.keys() == {protocol.CONTEXT}
    assert backend.loaded == []
    feeds = {protocol.CONTEXT: outputs[protocol.CONTEXT]}
    assert variants.run(backend, {**request, "context": "from"}, b"", feeds, {}) == {}
    assert [(b"EPContext" in model, beside) for model, beside in backend.loaded] == [(True, b"")]


def test_a_stale_context_names_another_release_and_is_else_the_same() -> None:
    (good, _), (stale, beside) = loaded("stale")
    assert len(good) == len(stale)
    (node,) = onnx.ModelProto.FromString(stale).graph.node
    assert [a.s for a in node.attribute if a.name == "ep_sdk_version"] == [b"7974.5"]
    assert beside == b"compiled"


def test_a_damaged_context_has_lost_its_second_half() -> None:
    (good, _), (model, beside) = loaded("damaged")
    assert (good, beside) == (model, b"comp\0\0\0\0")


@pytest.mark.parametrize("how", ["stale", "damaged"])
def test_where_a_good_context_is_refused_a_broken_one_proves_nothing(how: str) -> None:
    with pytest.raises(NotApplicableError, match="the context is refused as it was made: cannot be imported"):
        loaded(how, Compiling(refuses=True))


def test_packed_a_case_shares_its_session_with_a_copy_of_itself() -> None:
    case = prepared_case.of(identity("a", number=3).build())
    packed = replace(CPU, packed=True)
    frame = b"".join(session_request.encode("a case", [case], packed, place=False))
    found = protocol.read_frame(io.BytesIO(frame))
    assert found is not None
    model = onnx.ModelProto.FromString(dict(protocol.decode(*found))[""].tobytes())
    assert [node.op_type for node in model.graph.node] == ["Identity", "Identity"]
    assert len({node.name for node in model.graph.node}) == 2


def test_what_was_compiled_is_a_tensor_of_the_request() -> None:
    case = prepared_case.of(identity("a", number=3).build())
    frame = b"".join(session_request.encode("a case", [case], replace(CPU, compiled=b"compiled"), place=False))
    found = protocol.read_frame(io.BytesIO(frame))
    assert found is not None
    assert dict(protocol.decode(*found))[protocol.CONTEXT].tobytes() == b"compiled"


def test_a_target_that_compiles_for_another_has_workers_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are CPU's, which compiles nothing: the worker says so."""
    monkeypatch.setattr(targets, "NO_CONTEXT", ())
    of = variants_of([CPU], (Axis.CONTEXT,), (replace(CPU, name="other"),))["cpu"]
    varied = {"cpu": Variants(tuple(each for each in of.targets if each.compiler), {})}
    for record in records_of(identities(3), CPU, variants=varied).values():
        assert [(v.variant, v.state, v.reason) for v in record.variants] == [
            (
                "context=from:other",
                terms.NOT_RUN,
                "other compiles nothing of it: the provider makes no EPContext node of it",
            )
        ]
