"""Sessions of ONNX Runtime on one provider."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from ..failure import failure
from ..machine import file_version
from ..protocol import LEVELS
from . import timing, variants
from .canary import trouble_with
from .contract import answer_contract
from .directml.removal import HeldDevice
from .held import HeldSession
from .kernel_registry import answer_registry
from .plugin import PluginError, RegisteredPlugin
from .timed_session import TimedSessions
from .values import differing, flatten_values, model_feeds, name_outputs

PATTERN = 0xDB
"""Every byte of an output buffer before the second run."""

NO_FLOAT32_COPIES = ("optimization.disable_specified_optimizers", "FuseFp16InitializerToFp32NodeTransformer")
"""Session option. That optimiser replaces float16 weights that the CPU provider has no kernels for by float32 ones;
without it they are cast when they are needed: in the order of priorities right before, in the default order all
first (onnxruntime/core/graph/graph.cc; measured)."""


class OnnxRuntimeBackend:
    """Sessions on the providers that each request names."""

    def __init__(self, plugin: Any = None) -> None:
        """plugin: the library that a provider comes from; `trouble` says why it cannot be used."""
        self.plugin: Any = None
        self.trouble = ""
        self.can_record = hasattr(onnxruntime.InferenceSession, "get_provider_graph_assignment_info")
        self.kept: Any = None
        self.placed: Any = None
        self.timed = TimedSessions()
        self.held = HeldSession()
        self.device = HeldDevice()
        onnxruntime.set_default_logger_severity(4)
        load_cuda()
        if plugin:
            try:
                self.plugin = RegisteredPlugin(plugin)
            except PluginError as error:
                self.trouble = str(error)

    def trouble_with(self, sessions: dict[str, Any]) -> str:
        """Why sessions of this kind cannot be created, in one sentence; empty where they can."""
        return self.trouble or trouble_with(self, sessions)

    @property
    def provider(self) -> str:
        """The provider of the plugin; empty where there is none."""
        return self.plugin.provider if self.plugin else ""

    def facts(self) -> dict[str, str]:
        """Versions of the runtime and of DirectML, and the providers it offers."""
        found = {
            "onnxruntime": onnxruntime.__version__,
            "onnxruntime_build": onnxruntime.get_build_info(),
            "providers": ", ".join(onnxruntime.get_available_providers()),
            "assignment": "recorded" if self.can_record else "profiled",
        }
        directml = Path(onnxruntime.__file__).parent / "capi" / "DirectML.dll"
        if directml.exists():
            found["DirectML.dll"] = file_version(directml)
        if self.plugin:
            found.update(self.plugin.facts())
        return found

    def run(
        self, request: dict[str, Any], model: bytes, feeds: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Create the session, run it twice; the answer's header and the outputs."""
        answer: dict[str, Any] = {"stage": "create", "assignment": None, "unwritten": [], "repeat_differs": []}
        started = time.perf_counter()
        try:
            if "way" in request:
                outputs = variants.run(self, request, model, feeds, answer)
                return {**answer, "stage": "done"}, outputs
            session = self.session(request, model)
            answer["create_s"] = time.perf_counter() - started
            if request.get("place"):
                return {**answer, "stage": "placed", "assignment": self.assignment(session, recorded=True)}, {}
            answer["stage"] = "run"
            names = [output.name for output in session.get_outputs()]
            started = time.perf_counter()
            values = session.run(names, feeds)
            answer["run_s"] = time.perf_counter() - started
            outputs = name_outputs(names, values)
            answer["assignment"] = self.assignment(session, self.keeps_record(request))
            if request.get("bodies") and self.keeps_record(request):
                answer["assignment"] += elsewhere(kernels(session), request["providers"])
            if len(outputs) == len(names):
                run_dirtied(session, request, feeds, outputs, answer)
        except Exception as error:
            self.settle(request)
            self.held.check()
            return {**answer, **self.failure(error)}, {}
        return {**answer, "stage": "done"}, outputs

    def registry(self, request: dict[str, Any]) -> dict[str, Any]:
        """The kernels and schemas of this build, or the words in the provider's library; the answer's header."""
        return answer_registry(request, self.plugin)

    def contract(self, request: dict[str, Any], say: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        """How the provider behaves as a part of this process; the answer's header. say: sends one at once."""
        return answer_contract(self, request, say)

    def model(
        self, request: dict[str, Any], model: bytes, tensors: dict[str, Any], begin: Callable[[str], None]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Run a whole model twice, or once, in one session, which is kept; the header and the wanted outputs."""
        feeds = model_feeds(request, tensors)
        answer: dict[str, Any] = {"stage": "create", "assignment": None, "unwritten": [], "repeat_differs": []}
        try:
            if not request["kept"]:
                # The memory of the last session is free before the next one takes its own.
                self.kept = self.placed = None
                begin("create")
                started = time.perf_counter()
                self.kept = self.session(request, request["path"] or model)
                answer["create_s"] = time.perf_counter() - started
            answer["stage"] = "run"
            begin("run")
            started = time.perf_counter()
            values = self.run_kept(request, feeds)
            answer["run_s"] = time.perf_counter() - started
            if self.placed is None:
                self.placed = self.assignment(self.kept, self.keeps_record(request))
            answer["assignment"] = self.placed
            outputs = dict(zip(request["outputs"], values))
            if not request.get("once"):
                begin("repeat")
                self.repeat(request, feeds, outputs, answer)
            if request.get("seconds"):
                begin("timing")
                answer["timing"] = self.time_runs(request, model, feeds)
        except Exception as error:
            self.settle(request)
            self.held.check()
            return {**answer, **self.failure(error)}, {}
        return {**answer, "stage": "done"}, flatten_values(outputs)

    def speed(
        self, request: dict[str, Any], model: bytes, feeds: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Time a block of runs, of a new session or of the last one."""
        return self.timed.answer(self, request, model, feeds)

    def run_kept(self, request: dict[str, Any], feeds: dict[str, Any]) -> list[Any]:
        """The wanted outputs; those that share the buffer of an input are bound to it."""
        if not request.get("shared"):
            values: list[Any] = self.kept.run(request["outputs"], feeds)
            return values
        if request["device"] is None:
            raise ValueError("the device of this provider has no buffers that can be bound")
        return run_in_place(self.kept, request, feeds)

    def repeat(
        self, request: dict[str, Any], feeds: dict[str, Any], outputs: dict[str, Any], answer: dict[str, Any]
    ) -> None:
        """Run the session a second time; what is not as before becomes part of the answer."""
        if can_be_bound(request, feeds, outputs) and are_declared(self.kept, outputs):
            run_dirtied(self.kept, request, feeds, outputs, answer)
        else:
            again = dict(zip(request["outputs"], self.kept.run(request["outputs"], feeds)))
            answer["repeat_differs"] = differing(outputs, again)

    def time_runs(self, request: dict[str, Any], model: bytes, feeds: dict[str, Any]) -> dict[str, Any]:
        """Seconds of the session's runs, and of each node in another session, which profiles."""
        taken = timing.runs(lambda: self.kept.run(request["outputs"], feeds), request["seconds"])
        profiled = self.session({**request, "profile": True}, request["path"] or model)
        nodes = timing.nodes(profiled, lambda: profiled.run(request["outputs"], feeds))
        return {"runs_s": taken, "nodes": nodes}

    def session(self, request: dict[str, Any], model: bytes | str) -> Any:
        """A session on the provider of the request."""
        options, providers = self.options(request), self.providers(request)
        if self.plugin:
            options.add_provider_for_devices([self.plugin.device], providers[0][1])
            return onnxruntime.InferenceSession(model, options, enable_fallback=0)
        session = onnxruntime.InferenceSession(model, options, providers=providers, enable_fallback=0)
        if request["device"] == "dml":
            self.device.hold(providers)
        return session

    def failure(self, error: BaseException) -> dict[str, str]:
        """An exception as an answer has it; with the reason of the removal where the device was removed."""
        answer = failure(error)
        if removal := self.device.describe_removal():
            answer["message"] += f"; {removal}"
        return answer

    def compiler(self, request: dict[str, Any], model: bytes, embedded: bool) -> Any:
        """What compiles a model for the provider of the request, by ONNX Runtime's compile API (1.22 and later).

        embedded: what the provider compiled stands in the model and not in a file beside it.
        """
        options = self.options(request)
        options.enable_profiling = False
        for name, provider_options in self.providers(request):
            if self.plugin:
                options.add_provider_for_devices([self.plugin.device], provider_options)
            else:
                options.add_provider(name, provider_options)
        return onnxruntime.ModelCompiler(options, model, embed_compiled_data_into_model=embedded)

    def providers(self, request: dict[str, Any]) -> list[tuple[str, dict[str, str]]]:
        """(name, options) of each provider that the request names; of a plugin there is one."""
        return [(name, dict(provider_options)) for name, provider_options in request["providers"]]

    def options(self, request: dict[str, Any]) -> Any:
        """Those of a single-threaded session without graph optimisation, so that the node under test is the node that
        runs; a request for a whole model says otherwise. One that is timed has the memory that sessions have by
        default."""
        options = onnxruntime.SessionOptions()
        level = LEVELS[request.get("level", "disabled")]
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
        options.intra_op_num_threads = options.inter_op_num_threads = request.get("threads", 1)
        if request.get("parallel"):
            options.execution_mode = onnxruntime.ExecutionMode.ORT_PARALLEL
        if request.get("deterministic"):
            options.use_deterministic_compute = True
        if not request.get("arena") and (not request.get("seconds") or request["device"] != "cpu"):
            options.enable_mem_pattern = False
            options.enable_cpu_mem_arena = False
            if request.get("less_memory") and request["device"] == "cpu":
                options.execution_order = onnxruntime.ExecutionOrder.PRIORITY_BASED
                options.add_session_config_entry(*NO_FLOAT32_COPIES)
        for key, value in request["config"].items():
            if request.get("place") and key == "session.disable_cpu_ep_fallback":
                continue
            options.add_session_config_entry(key, value)
        for name, content in request.get("files", {}).items():
            options.add_external_initializers_from_files_in_memory([name], [content], [len(content)])
        for name, value in request.get("initializers", {}).items():
            options.add_initializer(name, value)
        unrecorded = not self.keeps_record(request) or request.get("bodies")
        if request.get("profile", unrecorded):
            options.enable_profiling = True
            # Each jail has process ids of its own, and the runtime adds the second alone.
            options.profile_file_prefix = str(Path(tempfile.gettempdir()) / f"epcheck-{os.urandom(8).hex()}")
        return options

    def settle(self, request: dict[str, Any]) -> None:
        """After a run that failed, while its exception is handled: what it left must not reach the next. On a device
        that was removed nothing does, and DirectML's provider reads a null pointer where it is asked to."""
        if not self.device.describe_removal():
            finish_commands(request["device"])

    def keeps_record(self, request: dict[str, Any]) -> bool:
        """Whether the session records assignments: newer releases do, when they are asked to."""
        return self.can_record and request["config"].get("session.record_ep_graph_assignment_info") == "1"

    def assignment(self, session: Any, recorded: bool) -> list[list[str]]:
        """[[provider, operator, node], ...] from the session's own record, or its profile where it keeps none."""
        if recorded:
            return [
                [subgraph.ep_name, node.op_type, node.name]
                for subgraph in session.get_provider_graph_assignment_info()
                for node in subgraph.get_nodes()
            ]
        return kernels(session)


def load_cuda() -> None:
    """Load the libraries of CUDA that are packages of the environment: the provider's own does not look there."""
    if "CUDAExecutionProvider" in onnxruntime.get_available_providers() and hasattr(onnxruntime, "preload_dlls"):
        onnxruntime.preload_dlls()  # what is not there it prints, and the loader of the system may still find it


def run_dirtied(
    session: Any, request: dict[str, Any], feeds: dict[str, Any], outputs: dict[str, Any], answer: dict[str, Any]
) -> None:
    """Run again into buffers full of PATTERN on the provider's own device and compare, byte by byte.

    What is not written is run once more, into other buffers: DirectML's provider takes a buffer for the one that it
    wrote last where their numbers are equal, which each allocator counts by itself (docs/findings/graphs).
    """
    if not can_be_bound(request, feeds, outputs):
        return
    buffers = run_into_dirty(session, request["device"], feeds, outputs)
    found = find_changed(buffers, outputs)
    if "unwritten" in found.values():
        others = run_into_dirty(session, request["device"], feeds, outputs)  # while the first keep their numbers
        found = find_changed(others, outputs)
    for name, how in found.items():
        answer[how].append(name)


def run_into_dirty(session: Any, device: str, feeds: dict[str, Any], outputs: dict[str, Any]) -> dict[str, Any]:
    """The buffers, by name of the output, after a run that had them full of PATTERN."""
    binding = session.io_binding()
    for name, value in feeds.items():
        binding.bind_cpu_input(name, value)
    buffers = {}
    for name, value in outputs.items():
        if value.size == 0 or name in feeds:  # an input that is an output as well is not written anywhere
            binding.bind_output(name, "cpu")
            continue
        dirty = np.full(value.nbytes, PATTERN, np.uint8).view(value.dtype).reshape(value.shape)
        buffers[name] = onnxruntime.OrtValue.ortvalue_from_numpy(dirty, device, 0)
        binding.bind_ortvalue_output(name, buffers[name])
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()  # a run may end before the device has written what is bound
    return buffers


def run_in_place(session: Any, request: dict[str, Any], feeds: dict[str, Any]) -> list[Any]:
    """The wanted outputs of a run in which each output of `shared` is written into the buffer of its input, on the
    provider's own device."""
    binding = session.io_binding()
    buffers = {name: onnxruntime.OrtValue.ortvalue_from_numpy(np.array(feeds[name]), request["device"], 0)
               for name in request["shared"]}  # fmt: skip
    for name, value in feeds.items():
        if name in buffers:
            binding.bind_ortvalue_input(name, buffers[name])
            binding.bind_ortvalue_output(request["shared"][name], buffers[name])
        else:
            binding.bind_cpu_input(name, value)
    places = request["shared"].values()
    bound = [*(request["shared"][name] for name in feeds if name in buffers),
             *(name for name in request["outputs"] if name not in places)]  # fmt: skip
    for name in bound[len(buffers) :]:
        binding.bind_output(name, "cpu")
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()  # a run may end before the device has written what is bound
    values = dict(zip(bound, binding.get_outputs()))  # in the order in which they were bound
    return [np.array(values[name].numpy()) for name in request["outputs"]]  # what numpy() gives ends with the binding


def find_changed(buffers: dict[str, Any], outputs: dict[str, Any]) -> dict[str, str]:
    """`unwritten` or `repeat_differs`, by name of each output that is not as it was in the first run."""
    found = {}
    for name, buffer in buffers.items():
        again, first = buffer.numpy().tobytes(), outputs[name].tobytes()
        if again != first:
            second = np.frombuffer(again, np.uint8)
            untouched = (second[second != np.frombuffer(first, np.uint8)] == PATTERN).all()
            found[name] = "unwritten" if untouched else "repeat_differs"
    return found


def kernels(session: Any) -> list[list[str]]:
    """[[provider, operator, node], ...] of the kernels that ran since the session was made, from its profile, which
    ends."""
    profile = Path(session.end_profiling())
    events = json.loads(profile.read_text(encoding="utf-8"))
    profile.unlink()
    return [
        [event["args"].get("provider", ""), event["args"].get("op_name", ""), event["name"][: -len("_kernel_time")]]
        for event in events
        if event.get("name", "").endswith("_kernel_time")
    ]


def elsewhere(ran: list[list[str]], providers: list[list[Any]]) -> list[list[str]]:
    """Those of the kernels that ran on none of these providers, without copies between devices."""
    names = [name for name, _ in providers]
    return [kernel for kernel in ran if kernel[0] not in names and not kernel[1].startswith("Memcpy")]


def finish_commands(device: str | None) -> None:
    """Have the provider execute what a failed session recorded; call it while the session's exception is handled.

    All sessions of a process share DirectML's command list. One that throws leaves its commands there, and its buffers
    are freed with it: the next session would execute these commands on freed memory, which kills or hangs the process
    or makes wrong values (docs/findings/failed-sessions.md). Reading a value back executes the list and waits, and
    the traceback keeps the session alive until then.
    """
    if device == "dml":
        with contextlib.suppress(Exception):  # the failure of the session is what counts
            onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros(1, np.float32), device, 0).numpy()


def are_declared(session: Any, outputs: dict[str, Any]) -> bool:
    """Whether only tensors enter, and the outputs have the shapes that the model declares. ONNX Runtime warns of other
    shapes, and refuses to write them into buffers of ours; an optional, fed as a tensor, cannot be bound."""
    if any(not entry.type.startswith("tensor(") for entry in session.get_inputs()):
        return False
    declared = {output.name: output.shape for output in session.get_outputs()}
    return all(
        name not in declared
        or (
            len(declared[name]) == value.ndim
            and all(not isinstance(size, int) or size in (-1, real) for size, real in zip(declared[name], value.shape))
        )
        for name, value in outputs.items()
    )


def can_be_bound(request: dict[str, Any], feeds: dict[str, Any], outputs: dict[str, Any]) -> bool:
    """Whether the outputs can be written into buffers of ours: tensors of numbers, on a device that has buffers."""
    values = [*feeds.values(), *outputs.values()]
    return request["device"] is not None and all(
        isinstance(v, np.ndarray) and v.dtype.kind not in "OSU" for v in values
    )
