"""Sessions used as applications use them: each planted fault is told by its use, and a right session by none."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from epcheck.conformance.targets.variants import SESSIONS, USES
from epcheck.conformance.workers.program.backends import uses
from epcheck.conformance.workers.program.backends.uses import Session, Values

OF_THREADS = ("threads=2", "threads=4", "threads=shared", "threads=creation")
"""The uses whose other model is the same with dynamic sizes."""

FEEDS: Values = {"x": np.arange(24, dtype=np.float32).reshape(4, 6)}
RIGHT = FEEDS["x"] * 2


def double(feeds: Values) -> Values:
    """A right session."""
    if feeds["x"].ndim != 2:
        raise ValueError("rank 2 is wanted")
    return {"y": feeds["x"] * 2}


def make_right() -> Session:
    return lambda feeds: double(feeds)


class SharedScratch:
    """All sessions write into one buffer, without a lock."""

    def __init__(self) -> None:
        self.buffer = np.zeros((0, 0), np.float32)

    def __call__(self) -> Session:
        owner = object()

        def run(feeds: Values) -> Values:
            self.last = owner
            time.sleep(0.001)
            return double(feeds) if self.last is owner else {"y": np.zeros_like(feeds["x"])}

        return run


class NotForThreads:
    """A session whose state two threads change."""

    def __call__(self) -> Session:
        state: dict[str, Any] = {}

        def run(feeds: Values) -> Values:
            state["x"] = feeds["x"]
            time.sleep(0.001)
            return {"y": state["x"] * 2}

        return run


class ClearedByCreation:
    """A new session clears what all have, for a moment."""

    def __init__(self) -> None:
        self.is_there = True

    def __call__(self) -> Session:
        self.is_there = False
        time.sleep(0.001)
        self.is_there = True

        def run(feeds: Values) -> Values:
            time.sleep(0.0002)
            return double(feeds) if self.is_there else {"y": np.zeros_like(feeds["x"])}

        return run


def keep_first_values() -> Session:
    """The first answer is given again, as if the feeds were the same."""
    kept: list[Values] = []

    def run(feeds: Values) -> Values:
        kept.append(double(feeds))
        return kept[0]

    return run


def keep_first_size() -> Session:
    """As many rows as the first time are computed; the others are zeros."""
    rows: list[int] = []

    def run(feeds: Values) -> Values:
        rows.append(len(feeds["x"]))
        outputs = double(feeds)
        outputs["y"][rows[0] :] = 0
        return outputs

    return run


def forget_after_other_feeds() -> Session:
    """The first feeds are right until others come."""
    seen: list[bytes] = []

    def run(feeds: Values) -> Values:
        seen.append(feeds["x"].tobytes())
        return double(feeds) if len(set(seen)) == 1 or seen[-1] != seen[0] else {"y": feeds["x"]}

    return run


def fail_for_ever() -> Session:
    """Once a run has failed, all give zeros."""
    failed: list[Exception] = []

    def run(feeds: Values) -> Values:
        try:
            outputs = double(feeds)
        except Exception as error:
            failed.append(error)
            raise
        return {"y": outputs["y"] * 0} if failed else outputs

    return run


class ReleasedForAll:
    """What the first session that is released takes down with it is that of all."""

    def __init__(self) -> None:
        self.alive = 0
        self.is_down = False

    def __call__(self) -> Session:
        outer = self
        outer.alive += 1

        class Run:
            def __call__(self, feeds: Values) -> Values:
                return {"y": feeds["x"] * 0} if outer.is_down else double(feeds)

            def __del__(self) -> None:
                outer.alive -= 1
                outer.is_down = outer.alive > 0

        return Run()


class Leaks:
    """Something stays of each session."""

    def __init__(self, what: Callable[[], Any]) -> None:
        self.what = what
        self.left: list[Any] = []

    def __call__(self) -> Session:
        self.left.append(self.what())
        return make_right()


def start_thread() -> threading.Event:
    over = threading.Event()
    threading.Thread(target=over.wait, daemon=True).start()
    return over


FAULTS = [
    ("threads=2", SharedScratch, "2 threads at once: "),
    ("threads=4", SharedScratch, "4 threads at once: "),
    ("threads=shared", NotForThreads, "5 threads at once: "),
    ("threads=creation", ClearedByCreation, "large feeds give other values while"),
    ("reruns=feeds", lambda: keep_first_values, "other feeds, those that a session runs after the first"),
    ("reruns=feeds", lambda: forget_after_other_feeds, ""),
    ("reruns=shapes", lambda: keep_first_size, "other feeds, those that a session runs after the first"),
    ("lifecycle=failed", lambda: fail_for_ever, ""),
    ("lifecycle=order", ReleasedForAll, ""),
]


class Bindable:
    """Makes what an InferenceSession is to a use: its outputs are written to addresses. beyond: bytes behind them."""

    def __init__(self, beyond: int = 0, is_zeroed: bool = False) -> None:
        self.beyond = beyond
        self.is_zeroed = is_zeroed

    def get_outputs(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(name="y")]

    def run(self, _names: Any, feeds: Values) -> list[Any]:
        return [double(feeds)["y"]]

    def io_binding(self) -> Bindable:
        return Bindable(self.beyond, self.is_zeroed)

    def bind_cpu_input(self, _name: str, value: Any) -> None:
        self.x = value

    def bind_input(self, _name: str, _device: str, _number: int, dtype: Any, shape: Any, address: int) -> None:
        size = int(np.prod(shape))
        self.x = np.ctypeslib.as_array((ctypes.c_float * size).from_address(address)).reshape(shape)
        assert self.x.dtype == dtype

    def bind_output(self, _name: str, _device: str, _number: int, _dtype: Any, _shape: Any, address: int) -> None:
        self.address = address

    def run_with_iobinding(self, binding: Bindable) -> None:
        if self.is_zeroed:
            ctypes.memset(binding.address, 0, binding.x.nbytes)
        content = double({"x": binding.x})["y"].tobytes() + bytes(self.beyond)
        ctypes.memmove(binding.address, content, len(content))

    def synchronize_outputs(self) -> None: ...


def differs(use: str, make: Callable[[], Session], accepts: Callable[[Values], bool] = lambda _feeds: True) -> str:
    """What a use finds: the words of its error, or `outputs`; empty for nothing."""
    return found_by(use, uses.Sessions(make, accepts=accepts, others=(make if use in OF_THREADS else make_other,)))


def make_other() -> Session:
    """A session of a model with other weights, or of another type."""
    return lambda feeds: {"y": feeds["x"] * 3}


def found_by(use: str, sessions: uses.Sessions) -> str:
    """The same."""
    feeds = {name: value.copy() for name, value in FEEDS.items()}
    try:
        outputs = uses.USES[use](sessions, feeds)
    except uses.UseError as error:
        return str(error)
    return "" if np.array_equal(outputs["y"], RIGHT) else "outputs"


@pytest.mark.parametrize("use", uses.USES)
def test_no_use_finds_anything_in_a_right_session(use: str) -> None:
    sessions = uses.Sessions(
        make_right,
        others=(make_other,),
        bind=Bindable,
        reference=Bindable,
        register_again=lambda: None,
        end=lambda _: 0,
        share=make_right,
    )
    if use in ("threads=2", "threads=4", "threads=shared", "threads=creation"):
        sessions = replace(sessions, others=(make_right,))
    assert found_by(use, sessions) == ""


@pytest.mark.parametrize(("use", "make", "words"), FAULTS)
def test_a_planted_fault_is_told_by_its_use(use: str, make: Callable[[], Callable[[], Session]], words: str) -> None:
    found = [differs(use, make()) for _ in range(3)]  # threads take another course each time
    assert any(each.startswith(f"{uses.FOUND}{words}" if words else "outputs") for each in found)


def change_feeds() -> Session:
    def run(feeds: Values) -> Values:
        outputs = double(feeds)
        feeds["x"][0] = 0
        return outputs

    return run


def keep_addresses() -> Session:
    """From the fourth run on the feeds are read where they were in the third."""
    seen: list[Values] = []

    def run(feeds: Values) -> Values:
        seen.append(feeds)
        return double(seen[min(len(seen) - 1, 2)])

    return run


def keep_padding() -> Session:
    """What was larger before is still there behind a smaller one."""
    longest = [np.zeros((0, 6), np.float32)]

    def run(feeds: Values) -> Values:
        outputs = double(feeds)
        if len(feeds["x"]) < len(longest[0]) and len(feeds["x"]) % 16 == 3:
            outputs["y"] = outputs["y"] + 1
        longest.append(feeds["x"])
        longest.sort(key=len, reverse=True)
        return outputs

    return run


class ByName:
    """Sessions compute with the factor that came first."""

    def __init__(self) -> None:
        self.factor = 0

    def make(self, factor: int) -> Session:
        self.factor = self.factor or factor
        return lambda feeds: {"y": feeds["x"] * np.float32(self.factor)}


def make_model(operator: str, domain: str, feeds: Values) -> bytes:
    """A node whose inputs have dynamic sizes. feeds: name -> value, empty for an optional input that is absent."""
    present = {name: value for name, value in feeds.items() if value is not None}
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [f"{name} {axis}" for axis in range(value.ndim)])
        for name, value in present.items()
    ]
    outputs = ["y", "present_key", "present_value"] if len(feeds) > 1 else ["y"]
    node = helper.make_node(operator, [name if name in present else "" for name in feeds], outputs, domain=domain)
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    opsets = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(helper.make_graph([node], "g", inputs, values), opset_imports=opsets, ir_version=10)
    content: bytes = model.SerializeToString()
    return content


@pytest.mark.parametrize(("rows", "is_right"), [(2, True), (3, False)])
def test_sizes_that_shape_inference_refuses_are_not_valid(rows: int, is_right: bool) -> None:
    """The kernel of Inverse does not look, and ends the process."""
    feeds: Values = {"x": np.eye(rows, 2, dtype=np.float32)}
    assert uses.is_valid(onnxruntime, make_model("Inverse", "com.microsoft", feeds), feeds) is is_right


@pytest.mark.parametrize(("batch", "is_right"), [(1, True), (2, False)])
def test_inputs_that_do_not_fit_each_other_are_not_valid(batch: int, is_right: bool) -> None:
    """The kernel of Attention does not look, and reads beyond the shorter input."""
    shapes = {
        "q": (batch, 4, 1, 2),
        "k": (batch, 4, 1, 2),
        "v": (1, 4, 1, 4),
        "": (),
        "pk": (1, 4, 5, 2),
        "pv": (1, 4, 5, 4),
    }
    feeds = {name: np.ones(shape, np.float32) if name else None for name, shape in shapes.items()}
    model = make_model("Attention", "", feeds)
    assert uses.is_valid(onnxruntime, model, {name: value for name, value in feeds.items() if name}) is is_right


def test_what_a_run_does_to_its_feeds_is_told() -> None:
    assert differs("reruns=feeds", change_feeds) == f"{uses.FOUND}a run changes its feeds"
    assert "give other values" in differs("reruns=feeds", keep_addresses)


def test_a_size_that_is_right_only_before_larger_ones_is_told() -> None:
    assert "after larger sizes" in differs("reruns=sizes", keep_padding)


def test_sessions_that_have_the_weights_of_another_are_told() -> None:
    by_name = ByName()
    sessions = uses.Sessions(lambda: by_name.make(2), others=(lambda: by_name.make(3),))
    assert found_by("weights=other", sessions) == "outputs"
    with pytest.raises(uses.NotUsableError, match="the other values of its initializers are not valid"):
        found_by("weights=other", replace(sessions, accepts=lambda _: False))


def test_shared_weights_that_go_with_the_first_session_are_told() -> None:
    sessions = uses.Sessions(make_right, share=ReleasedForAll())
    assert found_by("weights=shared", sessions) == "outputs"
    with pytest.raises(uses.NotUsableError, match="no initializer that sessions can share"):
        found_by("weights=shared", replace(sessions, share=None))


def test_bytes_behind_a_bound_output_are_watched() -> None:
    sessions = uses.Sessions(make_right, bind=lambda: Bindable(beyond=4))
    assert found_by("reruns=bound", sessions) == f"{uses.FOUND}a run writes beyond an output that is bound"


def test_an_output_in_the_memory_of_its_input_is_compared() -> None:
    wrong = uses.Sessions(make_right, others=(make_right,), bind=lambda: Bindable(is_zeroed=True), reference=Bindable)
    assert found_by("reruns=in_place", wrong) == "outputs"
    where_cpu_is_wrong = replace(wrong, reference=wrong.bind)
    with pytest.raises(uses.NotUsableError, match="no output may have the memory of an input"):
        found_by("reruns=in_place", where_cpu_is_wrong)


def test_a_library_that_does_not_come_back_and_a_process_that_dies_are_told() -> None:
    is_ready = [True]

    def make() -> Session:
        if not is_ready[0]:
            raise ValueError("no kernel")
        return make_right()

    with pytest.raises(ValueError, match="no kernel"):
        found_by("lifecycle=registered", uses.Sessions(make, register_again=lambda: is_ready.__setitem__(0, False)))
    with pytest.raises(uses.NotUsableError, match="no library that is registered"):
        differs("lifecycle=registered", make_right)
    found = found_by("lifecycle=exit", uses.Sessions(make_right, end=lambda _feeds: -6))
    assert found == f"{uses.FOUND}a process that ends while a session is there has the exit code -6"


def test_sessions_that_cannot_be_created_leave_room_for_others() -> None:
    failures = [0]

    def fail() -> Session:
        failures[0] += 1
        raise ValueError("a node is not taken")

    def make() -> Session:
        if failures[0] > 24:
            raise ValueError("all slots are in use")
        return make_right()

    with pytest.raises(ValueError, match="all slots are in use"):
        found_by("lifecycle=failed", uses.Sessions(make, others=(fail,)))


@pytest.mark.skipif(sys.platform == "win32", reason="handles are counted there, threads are not")
def test_what_released_sessions_leave_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    fewest = replace(uses.USES["lifecycle=repeated"], extent=uses.Extent(sessions=uses.FEWEST_SESSIONS))
    monkeypatch.setitem(uses.USES, "lifecycle=repeated", fewest)
    counted = uses.FEWEST_SESSIONS * 3 // 4
    handles = Leaks(lambda: os.open(os.devnull, os.O_RDONLY))
    try:
        assert differs("lifecycle=repeated", handles) == (
            f"{uses.FOUND}{counted} sessions that were released leave {counted} handles"
        )
    finally:
        for handle in handles.left:
            os.close(handle)
    threads = Leaks(start_thread)
    try:
        assert differs("lifecycle=repeated", threads) == (
            f"{uses.FOUND}{counted} sessions that were released leave {counted} threads"
        )
    finally:
        for over in threads.left:
            over.set()
    memory = Leaks(lambda: np.ones(1 << 17))
    assert "bytes of memory" in differs("lifecycle=repeated", memory)


def test_what_the_first_sessions_leave_is_no_leak_where_the_others_leave_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However slow they are: more are created, until that is seen, or all of them."""
    monkeypatch.setattr(uses, "SESSIONS_S", -1.0)  # the clock of Windows may stand still
    created: list[int] = []

    def create(*_: object) -> uses.Session:
        created.append(0)
        return make_right()

    until = [100]
    monkeypatch.setattr(uses, "measure_process", lambda: {"handles": min(len(created), until[0])})
    extent = uses.USES["lifecycle=repeated"].extent
    uses.run_repeatedly(uses.Sessions(create), FEEDS, extent)
    assert len(created) == 1 + 140  # 35 stay of the second 35, and 30 of 70 others
    created.clear()
    until[0] = 10
    uses.run_repeatedly(uses.Sessions(create), FEEDS, extent)
    assert len(created) == 1 + uses.FEWEST_SESSIONS
    created.clear()
    until[0] = 1000
    with pytest.raises(uses.UseError, match="150 sessions that were released leave 150 handles"):
        uses.run_repeatedly(uses.Sessions(create), FEEDS, extent)
    assert len(created) == 1 + uses.SESSIONS


def test_other_feeds_are_in_the_range_of_the_first_and_leave_parameters_alone() -> None:
    feeds = {"x": np.array([1, 2, 3], np.float32), "axes": np.array([0, 1]), "q": np.array([[1, 2]], np.uint8)}
    changed = uses.change_values(uses.Sessions(make_right), feeds)
    assert changed["x"].tolist() == [3, 1, 2]
    assert changed["axes"] is feeds["axes"]
    assert changed["q"].tolist() == [[2, 1]]
    assert uses.change_values(uses.Sessions(make_right), {"x": np.ones(3, np.float32)}) == {}
    assert uses.change_values(uses.Sessions(make_right, accepts=lambda _: False), feeds) == {}


def test_another_size_is_that_of_all_inputs_of_the_first_shape() -> None:
    feeds = {"a": np.ones((2, 3), np.float32), "b": np.zeros((2, 3), np.float32), "w": np.ones((2, 2), np.float32)}
    shapes = [{name: value.shape for name, value in uses.change_size(feeds, times).items()} for times in (2, 0.5, 0)]
    assert shapes == [{"a": (rows, 3), "b": (rows, 3), "w": (2, 2)} for rows in (4, 1, 0)]
    assert uses.change_size({"starts": np.array([0, 1])}, 2) == {}


def test_a_model_that_takes_no_dynamic_sizes_is_not_used_so() -> None:
    def refuse() -> Session:
        raise RuntimeError("static shapes only")

    with pytest.raises(uses.NotUsableError, match="no session takes dynamic sizes: static shapes only"):
        uses.USES["reruns=shapes"](uses.Sessions(refuse), FEEDS)


def test_where_other_sizes_are_refused_the_first_are_asked_again() -> None:
    def make() -> Session:
        def run(feeds: Values) -> Values:
            if len(feeds["x"]) != 4:
                raise ValueError("4 rows are wanted")
            return double(feeds)

        return run

    assert differs("reruns=shapes", make) == ""


def test_sizes_that_are_not_valid_are_not_asked_for() -> None:
    assert differs("reruns=shapes", keep_first_size, lambda feeds: 0 < len(feeds["x"]) < 4) == ""
    with pytest.raises(uses.NotUsableError, match="no other size of its first input is valid"):
        differs("reruns=shapes", keep_first_size, lambda _feeds: False)


def test_an_error_in_a_thread_is_raised() -> None:
    def make() -> Session:
        if threading.current_thread() is not threading.main_thread():
            raise ValueError("one thread alone")
        return make_right()

    with pytest.raises(ValueError, match="one thread alone"):
        uses.USES["threads=2"](uses.Sessions(make), FEEDS)


def test_the_runner_and_the_worker_know_the_same_uses() -> None:
    known = {request["use"] for axis in USES for request in SESSIONS[axis].values() if "use" in request}
    assert known == uses.USES.keys()
