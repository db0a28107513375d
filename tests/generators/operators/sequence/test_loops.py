"""Loop, Scan and SplitToSequence: what named cases must give."""

from __future__ import annotations

import numpy as np
import pytest

from epcheck.generators import suite
from epcheck.generators.array import Array
from epcheck.generators.truth import Outputs


def found(case_id: str) -> tuple[dict[str, Array], dict[str, Array]]:
    """The inputs and the outputs of a case."""
    built = suite.case_by_id(case_id).build()
    assert isinstance(built.truth, Outputs)
    return dict(built.feeds), {output.name: output.value for output in built.truth.outputs}


COUNTS = {"trips_0": 0, "trips_3": 3, "cond_false": 0, "trips_negative": 0, "body_ends_at_once": 1,
          "end_ignored_as_cond_omitted": 4}  # fmt: skip


@pytest.mark.parametrize(("sample", "count"), COUNTS.items())
def test_a_loop_that_exchanges_two_values(sample: str, count: int) -> None:
    feeds, outputs = found(f"Loop-25/float32/{sample}[runtime]")
    pair = [feeds["X"], feeds["Y"]]
    assert np.array_equal(outputs["output_0"], pair[count % 2])
    assert np.array_equal(outputs["output_1"], pair[1 - count % 2])
    assert outputs["output_2"].shape == (count, 2, 3)
    assert all(np.array_equal(row, pair[i % 2]) for i, row in enumerate(outputs["output_2"]))


@pytest.mark.parametrize(("limit", "count"), [(1, 1), (2, 2), (5, 3)])
def test_a_loop_ends_by_its_count_or_its_condition(limit: int, count: int) -> None:
    assert len(found(f"Loop-25/float32/until_{limit}_of_3_trips[runtime]")[1]["output_2"]) == count


def test_a_nested_loop_runs_as_often_as_the_iteration_says() -> None:
    feeds, outputs = found("Loop-25/float32/nested[runtime]")  # 0 + 1 + 2 + 3 exchanges
    assert np.array_equal(outputs["output_0"], feeds["X"])


def test_a_scan_gives_the_last_slice_and_those_before() -> None:
    feeds, outputs = found("Scan-25/float32/shift[runtime]")
    assert np.array_equal(outputs["output_0"], feeds["X"][-1])
    assert np.array_equal(outputs["output_1"], np.stack([feeds["S"], *feeds["X"][:-1]]))


def test_a_scan_backwards_along_another_axis() -> None:
    feeds, outputs = found("Scan-25/float32/axes_and_directions[runtime]")  # gives Z, then X, whose axes are 1, 0
    assert np.array_equal(outputs["output_0"], feeds["Z"])
    assert np.array_equal(outputs["output_1"], np.moveaxis(feeds["X"], 1, 2))


def test_batches_of_a_scan_end_by_themselves() -> None:
    feeds, outputs = found("Scan-8/float32/sequence_lens_3_1[runtime]")
    assert np.array_equal(outputs["output_0"], np.stack([feeds["X"][0, 2], feeds["X"][1, 0]]))


def test_a_chunk_keeps_its_axis_where_split_is_there() -> None:
    feeds, outputs = found("SplitToSequence-24/float32/keepdims_0_ignored_scalar_1[initializer]")
    assert outputs["length"] == 4
    assert outputs["tensor_1"].shape == (1, 3)
    feeds, outputs = found("SplitToSequence-24/float32/keepdims_0[runtime]")
    assert np.array_equal(outputs["tensor_1"], feeds["input"][1])
