"""Runs model.onnx on an execution provider and compares its outputs with what is right. Needs onnxruntime and numpy.

    python run.py [PROVIDER] [--git-bisect]

case.json says what the model is, on which provider it is run by default, and what is right besides the outputs.

A use of sessions runs in several processes, for threads take another course each time: SURE, if all of these are wrong;
otherwise MOST, or RIGHT_AFTER where none of these is wrong.

Exit code: 0 right on that provider, 1 wrong (also where the process dies or hangs), 2 it could not be run there, as
where this onnxruntime does not have the provider, or the provider does not take the node. With --git-bisect, 125 stands
for 2: `git bisect run python run.py PROVIDER --git-bisect` then skips that build.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

RIGHT, WRONG, CANNOT = 0, 1, 2
HERE = Path(__file__).resolve().parent
IN_THIS_PROCESS = "--in-this-process"
FOUND = "epcheck found: "
TIMEOUT_S, USE_TIMEOUT_S = 300, 100
SURE, RIGHT_AFTER, MOST = 3, 10, 20
NOBODY_TAKES_IT = re.compile(
    r"fallback to CPU EP has been explicitly disabled"
    r"|NOT_IMPLEMENTED : (Could not find an implementation|Failed to find kernel)"
    r"|Unsupported model IR version|Current official support for domain \S+ is till opset"
    r"|is not a registered function/op|IsNodeCompatibleWithProvider !node_provider_type\.empty\(\)"
)


class CannotRunError(Exception):
    """It cannot be run here; the message says why."""


def main() -> int:
    words = [word for word in sys.argv[1:] if word not in (IN_THIS_PROCESS, "--git-bisect")]
    case = json.loads((HERE / "case.json").read_text(encoding="utf-8"))
    provider = words[0] if words else case["provider"]
    if IN_THIS_PROCESS in sys.argv:
        try:
            return run(case, provider)
        except Exception:
            traceback.print_exc()
            return CANNOT
    session = case.get("session", {})
    for sentence in session.get("reduced", []):
        print("epcheck repro:", sentence, flush=True)
    codes = run_until_sure(provider) if session.get("use") else [run_apart(provider, TIMEOUT_S)]
    code = WRONG if WRONG in codes else max(codes)
    if len(codes) > 1:
        print("wrong in", codes.count(WRONG), "of", len(codes), "runs")
    return 125 if code == CANNOT and "--git-bisect" in sys.argv else code


def run_until_sure(provider: str) -> list[int]:
    """The exit codes of as many runs as it takes; of one that cannot be run."""
    codes: list[int] = []
    while len(codes) < MOST and CANNOT not in codes:
        codes.append(run_apart(provider, USE_TIMEOUT_S))
        wrong = codes.count(WRONG)
        if wrong == len(codes) == SURE or (not wrong and len(codes) == RIGHT_AFTER):
            break
    return codes


def run_apart(provider: str, timeout_s: int) -> int:
    """Run it in a process of its own."""
    command = [sys.executable, str(HERE / "run.py"), provider, IN_THIS_PROCESS]
    try:
        code = subprocess.run(command, timeout=timeout_s).returncode
    except subprocess.TimeoutExpired:
        print("WRONG: it does not end within", timeout_s, "s", flush=True)
        return WRONG
    if code not in (RIGHT, WRONG, CANNOT):
        print("WRONG: the process died with exit code", code, flush=True)
        return WRONG
    return code


def run(case: dict[str, Any], provider: str) -> int:
    try:
        import numpy as np
        import onnxruntime as ort
    except ImportError as error:
        print("CANNOT RUN:", error)
        return CANNOT
    how = settings(case, provider)
    if not how["plugin"] and provider not in ort.get_available_providers():
        available = ort.get_available_providers()
        print(f"CANNOT RUN: onnxruntime {ort.__version__} has no {provider}; it has {available}")
        return CANNOT
    if how["variant"]:
        print("as the target", how["target"], "runs it with", how["variant"])
    data = dict(np.load(HERE / "data.npz"))
    with tempfile.TemporaryDirectory(prefix="run-", ignore_cleanup_errors=True) as folder:
        try:
            model = source(ort, case, provider, how, Path(folder))
            used = use_sessions(ort, case, provider, how, model, data) if how["use"] else None
            session = make_session(ort, case, provider, how, model)
            if how["weights"] == "file" and sys.platform != "win32":
                for file in Path(folder).iterdir():  # the session has its weights
                    file.unlink()
            got, again = (outputs_of(ort, session, how, data) for _ in range(2))
            assigned = assignment(session)
            del session  # Windows deletes no file that is open
            if used is not None:
                got = again = used
        except CannotRunError as error:
            print("CANNOT RUN:", error)
            return CANNOT
        except Exception as error:
            if FOUND in str(error):
                print("WRONG:", str(error).partition(FOUND)[2])
                return WRONG
            return judge_refusal(case, provider, str(error), context=how["context"])
    if gap := placement_gap(case, provider, assigned):
        print("CANNOT RUN:", gap)
        return CANNOT
    if case["refused"]:
        print("WRONG: accepted what must be refused:", case["refused"])
        return WRONG
    wrong = False
    for prefix in how["prefixes"] or [""]:
        own = {name[len(prefix) :]: value for name, value in got.items() if name.startswith(prefix)}
        is_selection = bool(case["selection"])
        wrong |= selection_wrong(np, case["selection"], data, own) if is_selection else outputs_wrong(np, data, own)
    for name in got:
        if got[name].tobytes() != again[name].tobytes():
            print(name, "WRONG: a second run of the same session gives another value")
            wrong = True
    print("WRONG" if wrong else "right", "on", provider + ", onnxruntime", ort.__version__)
    return WRONG if wrong else RIGHT


def settings(case: dict[str, Any], provider: str) -> dict[str, Any]:
    """How the session is made; on another provider than that of the case without what is only for that one."""
    how: dict[str, Any] = {"variant": "", "options": {}, "config": {}, "plugin": None}
    how.update({"device": "", "context": "", "model": "model.onnx", "prefixes": []})
    how.update({"weights": "", "use": "", "extent": {}, "others": [], "settings": {}}, **case.get("session", {}))
    if provider != case["provider"]:
        how.update(options={}, config={}, plugin=None, device=how["device"] and "cpu")
    return how


def session_options(ort: Any, case: dict[str, Any], provider: str, how: dict[str, Any]) -> Any:
    """With the device of a plugin's provider; any other is named to the session."""
    ort.set_default_logger_severity(4)
    options = ort.SessionOptions()
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, case["level"])
    options.intra_op_num_threads = options.inter_op_num_threads = how["settings"].get("threads", 1)
    options.enable_mem_pattern = options.enable_cpu_mem_arena = "arena" in how["settings"]
    if "parallel" in how["settings"]:
        options.execution_mode = ort.ExecutionMode.ORT_PARALLEL
    options.use_deterministic_compute = "deterministic" in how["settings"]
    if how["weights"] == "memory":
        how["content"] = content = (HERE / "weights.bin").read_bytes()  # which must live as long as the options
        options.add_external_initializers_from_files_in_memory(["weights.bin"], [content], [len(content)])
    for name, value in how.get("initializers", {}).items():
        options.add_initializer(name, value)
    for key, value in how["config"].items():
        options.add_session_config_entry(key, value)
    if provider != "CPUExecutionProvider" and case["operator"]:
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    if hasattr(ort.InferenceSession, "get_provider_graph_assignment_info"):
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    if how["plugin"]:
        options.add_provider_for_devices([plugin_device(ort, how["plugin"], provider)], how["options"])
    return options


def plugin_device(ort: Any, plugin: dict[str, Any], provider: str) -> Any:
    """The device that a plugin's provider uses; its library is registered first."""
    if not any(device.ep_name == provider for device in ort.get_ep_devices()):
        try:
            library = plugin["library"] or library_of(importlib.import_module(plugin["package"]))
            ort.register_execution_provider_library(provider, str(library))
        except Exception as error:
            raise CannotRunError(f"the library of {provider} cannot be registered: {error}") from None
    wanted = plugin["device"]
    own = [device for device in ort.get_ep_devices() if device.ep_name == provider]
    found = [device for device in own if is_meant(device.device, wanted)]
    index = int(wanted.get("index", 0))
    if index >= len(found):
        raise CannotRunError(f"{provider} offers no such device here")
    return found[index]


def library_of(package: Any) -> str:
    for name in ("get_library_path", "library_path", "EP_LIBRARY"):
        if hasattr(package, name):
            found = getattr(package, name)
            return str(found() if callable(found) else found)
    files = [file for file in sorted(Path(package.__file__).parent.rglob("*")) if file.suffix in (".so", ".dll")]
    return str(next(file for file in files if b"CreateEpFactories" in file.read_bytes()))


def is_meant(hardware: Any, wanted: dict[str, str]) -> bool:
    vendor = wanted.get("vendor", "").lower()
    return (
        (vendor in hardware.vendor.lower() or vendor == f"{hardware.vendor_id:#06x}")
        and ("device_id" not in wanted or int(wanted["device_id"], 0) == hardware.device_id)
        and ("type" not in wanted or str(hardware.type).rpartition(".")[2].lower() == wanted["type"])
    )


def make_session(
    ort: Any, case: dict[str, Any], provider: str, how: dict[str, Any], model: str | bytes, placed: bool = True
) -> Any:
    """placed: whether the session says where its nodes are."""
    options = session_options(ort, case, provider, how)
    if placed and not hasattr(ort.InferenceSession, "get_provider_graph_assignment_info"):
        options.enable_profiling = True
        options.profile_file_prefix = str(Path(tempfile.gettempdir()) / f"run-{os.getpid()}")
    if how["plugin"]:
        return ort.InferenceSession(model, options, enable_fallback=0)
    return ort.InferenceSession(model, options, providers=[(provider, how["options"])], enable_fallback=0)


def source(ort: Any, case: dict[str, Any], provider: str, how: dict[str, Any], folder: Path) -> str | bytes:
    """What the session is made of: the model, one with a copy of it, or the EPContext model that the provider makes."""
    if not how["context"]:
        model = HERE / how["model"]
        if how["weights"] == "file":
            shutil.copy(HERE / "weights.bin", folder)
            return str(shutil.copy(model, folder))
        return model.read_bytes() if how["weights"] == "memory" else str(model)
    if how["context"] == "from":
        return (HERE / "compiled.onnx").read_bytes()
    contexts = importlib.import_module("contexts")
    if not hasattr(ort, "ModelCompiler"):
        raise CannotRunError(f"onnxruntime {ort.__version__} has no compile API; install 1.22 or later")
    try:
        options = session_options(ort, case, provider, how)
        if not how["plugin"]:
            options.add_provider(provider, how["options"])
        embedded = how["context"] == "bytes"
        model = str(HERE / "model.onnx")
        compiler = ort.ModelCompiler(options, model, embed_compiled_data_into_model=embedded)
        if embedded:
            compiled: bytes = contexts.with_context(compiler.compile_to_bytes())
            return compiled
        path = folder / "context.onnx"
        compiler.compile_to_file(str(path))
        contexts.with_context(path.read_bytes() if path.is_file() else b"")
        if how["context"] in contexts.BREAK:
            make_session(ort, case, provider, how, str(path))
            contexts.BREAK[how["context"]](path)
        return str(contexts.PLACE[how["context"]](path) if how["context"] in contexts.PLACE else path)
    except contexts.NoContextError as error:
        raise CannotRunError(error) from None
    except Exception as error:
        if how["context"] in contexts.BREAK:
            raise CannotRunError(f"the context is refused as it was made: {error}") from None
        raise


def use_sessions(
    ort: Any, case: dict[str, Any], provider: str, how: dict[str, Any], model: str | bytes, data: dict[str, Any]
) -> dict[str, Any]:
    """Make and run sessions as `use` says, each of them with the feeds of the case and with others."""
    import numpy as np

    uses, device_memory = importlib.import_module("uses"), importlib.import_module("device_memory")

    def bind() -> Any:
        return make_session(ort, case, provider, how, model, placed=False)

    def make_of(content: str | bytes, **changes: Any) -> Any:
        session = make_session(ort, case, provider, {**how, **changes}, content, placed=False)
        names = [output.name for output in session.get_outputs()]
        return lambda feeds: dict(zip(names, session.run(names, feeds)))

    others = [str(HERE / name) for name in how["others"]]
    reference = others[0] if others else model

    file = HERE / "initializers.npz"
    arrays = np.load(file) if file.exists() else {}
    shared = {name[len("initializer.") :]: ort.OrtValue.ortvalue_from_numpy(arrays[name]) for name in arrays}
    sessions = uses.Sessions(
        lambda: make_of(model),
        accepts=functools.partial(uses.is_valid, ort, reference),
        others=tuple(functools.partial(make_of, other) for other in others),
        bind=bind,
        reference=functools.partial(ort.InferenceSession, reference, providers=["CPUExecutionProvider"]),
        register_again=functools.partial(register_again, ort, provider) if how["plugin"] else None,
        share=functools.partial(make_of, model, initializers=shared) if shared else None,
        read_device_bytes=device_memory.read_device_bytes,
    )
    feeds = {name[len("input.") :]: value for name, value in data.items() if name.startswith("input.")}
    try:
        outputs: dict[str, Any] = uses.USES[how["use"]](sessions, feeds, **how["extent"])
    except uses.NotUsableError as error:
        raise CannotRunError(error) from None
    return outputs


def register_again(ort: Any, provider: str) -> None:
    """The next session registers the library."""
    ort.unregister_execution_provider_library(provider)


def outputs_of(ort: Any, session: Any, how: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    names = [output.name for output in session.get_outputs()]
    prefixes = how["prefixes"] or [""]
    feeds = {}
    for value in session.get_inputs():
        prefix = next(prefix for prefix in prefixes if value.name.startswith(prefix))
        feeds[value.name] = data["input." + value.name[len(prefix) :]]
    if not how["device"]:
        return dict(zip(names, session.run(None, feeds)))
    binding = session.io_binding()
    kept = {name: ort.OrtValue.ortvalue_from_numpy(value, how["device"], 0) for name, value in feeds.items()}
    for name, value in kept.items():
        binding.bind_ortvalue_input(name, value)
    for name in names:
        binding.bind_output(name, how["device"])
    binding.synchronize_inputs()
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()
    return {name: value.numpy() for name, value in zip(names, binding.get_outputs())}


def assignment(session: Any) -> list[tuple[str, str]]:
    """(provider, operator) of each node, as the session says."""
    if hasattr(session, "get_provider_graph_assignment_info"):
        parts = session.get_provider_graph_assignment_info()
        return [(part.ep_name, node.op_type) for part in parts for node in part.get_nodes()]
    profile = Path(session.end_profiling())
    events = json.loads(profile.read_text(encoding="utf-8"))
    profile.unlink()
    kernels = [event["args"] for event in events if event.get("name", "").endswith("_kernel_time")]
    return [(kernel.get("provider", ""), kernel.get("op_name", "")) for kernel in kernels]


def placement_gap(case: dict[str, Any], provider: str, assigned: list[tuple[str, str]]) -> str:
    """Why nothing proves that the provider ran the operator of the case, or any node of a model; empty if it did."""
    if not assigned:
        return "no proof of placement: the session records no node"
    for name, operator in assigned:
        if name != provider and operator == case["operator"]:
            return operator + " ran on " + name
    if not any(name == provider for name, _ in assigned):
        return "no node ran on " + provider
    return ""


def judge_refusal(case: dict[str, Any], provider: str, message: str, context: str) -> int:
    if context in ("stale", "damaged"):
        print("right: refused, as a broken context must be:", message)
        return RIGHT
    if context == "from":
        print("right: refused, as what another target compiled may be:", message)
        return RIGHT
    if NOBODY_TAKES_IT.search(message):
        print("CANNOT RUN:", provider, "does not take it:", message)
        return CANNOT
    if case["refused"]:
        print("right: refused, as it must be:", message)
        return RIGHT
    if case.get("undefined"):
        print("right: refused, as it may be:", message)
        return RIGHT
    print("WRONG: refused:", message)
    return WRONG


def outputs_wrong(np: Any, data: dict[str, Any], got: dict[str, Any]) -> bool:
    found = [name for name in got if not output_right(np, data, name, got[name])]
    return bool(found)


def output_right(np: Any, data: dict[str, Any], name: str, value: Any) -> bool:
    """`output.NAME` is what is right; `allowed.NAME` how far from `exact.NAME` each element may be; `zeros.NAME` where
    a zero must have the sign of what is right."""
    expected = data.get("output." + name)
    if expected is None:
        print(name, "nobody knows what is right")
        return True
    right = bool(value.shape == expected.shape and value.dtype == expected.dtype)
    if right:
        near = same(np, expected, value)
        if "allowed." + name in data:
            exact = data.get("exact." + name, expected).astype(np.float64)
            with np.errstate(all="ignore"):
                near |= np.abs(value.astype(np.float64) - exact) <= data["allowed." + name]
        if "zeros." + name in data:
            turned = (expected == 0) & (value == 0) & (np.signbit(expected) != np.signbit(value))
            near &= ~(turned & data["zeros." + name])
        if "undefined." + name in data:
            among = data.get("among." + name)
            near = np.where(data["undefined." + name], True if among is None else np.isin(value, among), near)
        right = bool(near.all())
    print(name, "as expected" if right else f"WRONG\n{value}\nexpected\n{expected}")
    return right


def same(np: Any, first: Any, second: Any) -> Any:
    """Equal bits, or both NaN."""
    if first.dtype.kind not in "fc":
        return first == second
    both_nan = np.isnan(first) & np.isnan(second)
    return (first == second) & (np.signbit(first.real) == np.signbit(second.real)) | both_nan


def selection_wrong(np: Any, selection: dict[str, Any], data: dict[str, Any], got: dict[str, Any]) -> bool:
    """Values and indices must be one of the accepted pairs, in any order where the order is not defined."""
    pair = [got[name] for name in selection["names"]]
    number = 0
    while f"accepted.{number}.0" in data:
        accepted = [data[f"accepted.{number}.{part}"] for part in range(2)]
        alike = all(a.shape == b.shape and a.dtype == b.dtype for a, b in zip(accepted, pair))
        if alike and not selection["ordered"]:
            ordered = [by_index(np, each, selection["axis"]) for each in (accepted, pair)]
        else:
            ordered = [accepted, pair]
        if alike and all(same(np, a, b).all() for a, b in zip(*ordered)):
            print("values and indices as expected")
            return False
        number += 1
    print(
        "values and indices WRONG\n{}\n{}\nexpected\n{}\n{}".format(*pair, data["accepted.0.0"], data["accepted.0.1"])
    )
    return True


def by_index(np: Any, pair: list[Any], axis: int) -> list[Any]:
    order = np.argsort(pair[1], axis=axis, kind="stable")
    return [np.take_along_axis(part, order, axis) for part in pair]


if __name__ == "__main__":
    sys.exit(main())
