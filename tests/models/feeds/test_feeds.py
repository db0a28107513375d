"""Feeds that are made: of the right type and shape, and with values that the graph can take."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

from epcheck.generators.array import Array
from epcheck.models import zoo
from epcheck.models.feeds import feeds
from epcheck.models.feeds.dims import DimsError
from epcheck.models.feeds.feed_files import FeedError
from tests.models.written_models import model


def made(
    graph: str, seed: int = 0, opset: int = 17, imports: str = "", functions: str = "", **dims: int
) -> dict[str, Array]:
    built = model(graph, opset, imports, functions)
    return {name: np.asarray(value) for name, value in feeds.generate(built, seed, dims).items()}


def test_every_dtype_and_size_is_the_models() -> None:
    found = made("g (float[2,3] a, float16[B,4] b, double[1] c, uint8[7] d, bool[5] e, int64 f) => (float[2,3] y) {"
                 " y = Relu(a) }", B=5)  # fmt: skip
    assert {name: (value.dtype.name, value.shape) for name, value in found.items()} == {
        "a": ("float32", (2, 3)), "b": ("float16", (5, 4)), "c": ("float64", (1,)), "d": ("uint8", (7,)),
        "e": ("bool", (5,)), "f": ("int64", ()),
    }  # fmt: skip


def test_types_that_numpy_lacks_are_those_of_ml_dtypes() -> None:
    found = made("g (bfloat16[4] a, int4[4] b) => (bfloat16[4] y) { y = Identity(a) }", opset=21)
    assert (found["a"].dtype.name, found["b"].dtype.name) == ("bfloat16", "int4")


def test_the_same_seed_gives_the_same_values_and_another_seed_others() -> None:
    graph = "g (float[64] x) => (float[64] y) { y = Relu(x) }"
    assert np.array_equal(made(graph, 7)["x"], made(graph, 7)["x"])
    assert not np.array_equal(made(graph, 7)["x"], made(graph, 8)["x"])


def test_values_are_those_of_every_machine() -> None:
    """Pinned: a change here changes what everybody's validation runs on."""
    found = made("g (float[3] x, int64[4] ids) => (float[3] y) { y = Relu(x) }")
    np.testing.assert_allclose(found["x"], [-0.09801728, 0.20668992, 1.2123824], rtol=1e-5)
    assert found["ids"].tolist() == [5, 6, 0, 4]


def test_weights_that_are_inputs_as_well_are_left_alone() -> None:
    built = model("g (float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }")
    assert list(feeds.generate(built)) == ["x"]


def test_token_ids_are_rows_of_the_embedding() -> None:
    ids = made("g (int64[1,500] words) => (float[1,500,2] y) <float[11,2] table = {" + ",".join(["0.5"] * 22) + "}>"
               " { y = Gather(table, words) }")["words"]  # fmt: skip
    assert (ids.min(), ids.max()) == (0, 10)


def test_ids_are_followed_through_nodes_that_move_them_and_along_another_axis() -> None:
    ids = made("""g (int32[300] words) => (float[2,300,1] y)
        <float[2,5] table = {0,1,2,3,4,5,6,7,8,9}, int64[1] at = {1}> {
            wide = Cast<to = 7>(words)
            column = Unsqueeze(wide, at)
            y = Gather<axis = 1>(table, column)
        }""")
    assert set(ids["words"].tolist()) == set(range(5))


def test_ids_are_followed_into_local_functions() -> None:
    found = made(
        "g (int64[200] words) => (float[200] y) <float[3] table = {0,1,2}> { y = layers.Look(table, words) }",
        imports=', "layers": 1',
        functions='<domain: "layers", opset_import: ["": 17]> Look (t, i) => (r) { r = Gather(t, i) }',
    )
    assert set(found["words"].tolist()) == {0, 1, 2}


def test_ids_are_followed_into_branches_and_loops() -> None:
    found = made("""g (int64[200] words, bool flag) => (float[200] y) <float[3] table = {0,1,2}> {
        y = If (flag) <then_branch = a () => (float[200] p) { p = Gather(table, words) },
                       else_branch = b () => (float[200] q) { q = Cast<to = 1>(words) }>
    }""")
    assert set(found["words"].tolist()) == {0, 1, 2}


def test_a_table_that_is_computed_counts_by_its_inferred_size() -> None:
    found = made("g (float[6,N] data, int64[100] rows) => (float[100,6] y) {"
                 " turned = Transpose<perm = [1, 0]>(data) y = Gather(turned, rows) }", N=4)  # fmt: skip
    assert set(found["rows"].tolist()) == {0, 1, 2, 3}


def test_indices_are_0_where_the_graph_computes_the_number_of_rows() -> None:
    graph = ("g (int64[40] at, float[n, 2] x) => (float[40,2] y) { kept = NonZero(x) rows = Transpose(kept)"
             " y = Gather(rows, at) }")  # fmt: skip
    assert set(made(graph)["at"].tolist()) == {0}


def test_an_attention_mask_is_ones_and_then_zeros_and_never_empty() -> None:
    mask = made("g (int64[40,9] attention_mask) => (float[40,9] y) { y = Cast<to = 1>(attention_mask) }")[
        "attention_mask"
    ]
    assert set(np.unique(mask)) == {0, 1}
    assert (mask[:, 0] == 1).all()
    assert (np.diff(mask, axis=1) <= 0).all()
    assert (mask[0] == 1).all()


def test_a_mask_is_known_by_what_is_done_with_it() -> None:
    mask = made("g (int64[40,9] keep) => (float[40,9] y) <float one = {1.0}, float low = {-10000.0}> {"
                " real = Cast<to = 1>(keep) off = Sub(one, real) y = Mul(off, low) }")["keep"]  # fmt: skip
    assert set(np.unique(mask)) == {0, 1}
    assert (np.diff(mask, axis=1) <= 0).all()


def test_a_mask_that_is_added_is_zero_and_very_low() -> None:
    mask = made("g (float[4,8] mask, float[4,8] s) => (float[4,8] y) { t = Add(s, mask) y = Softmax(t) }")["mask"]
    assert set(np.unique(mask)) == {0.0, -10000.0}


def test_position_ids_count_on_from_the_past_and_stay_inside_the_table() -> None:
    inputs = feeds.generate(zoo.named("decoder").build(), 0, {"sequence_length": 3, "past_sequence_length": 5})
    assert np.asarray(inputs["position_ids"]).tolist() == [[5, 6, 7]]
    short = made(
        "g (int64[1,6] position_ids) => (float[1,6] y) <float[4] t = {0,1,2,3}> { y = Gather(t, position_ids) }"
    )
    assert short["position_ids"].tolist() == [[0, 1, 2, 3, 3, 3]]


@pytest.mark.parametrize(
    ("graph", "least", "most"),
    [
        ("g (float[1,3,40,40] image) => (float[1,3,40,40] y) { y = Relu(image) }", 0.0, 1.0),
        ("g (float[1,40,40,3] image) => (float[1,40,40,3] y) { y = Relu(image) }", 0.0, 1.0),
        ("g (float[1,3,40,40] image) => (float[1,3,40,40] y) <float f = {255.0}> { y = Div(image, f) }", 0.0, 255.0),
        ("g (float[999] x) => (uint8[999] y) <float s = {0.5}, uint8 z = {128}> { y = QuantizeLinear(x, s, z) }",
         -64.0, 63.5),
        ("g (float[999] x) => (float[999] y) { y = Acosh(x) }", 1.0, 4.0),
    ],
)  # fmt: skip
def test_numbers_fill_the_range_that_the_graph_tells(graph: str, least: float, most: float) -> None:
    (values,) = made(graph).values()
    assert least <= values.min() < least + 0.02 * (most - least)
    assert most - 0.02 * (most - least) < values.max() <= most


@pytest.mark.parametrize(
    ("graph", "name", "allowed"),
    [
        ("g (float[2,5] x, int64[1] k) => (float[2,N] v, int64[2,N] i) { v, i = TopK(x, k) }", "k", range(1, 6)),
        ("g (int64 s, int64 e, int64 d) => (int64[N] y) { y = Range(s, e, d) }", "d", [1]),
        ("g (int64 s, int64 e, int64 d) => (int64[N] y) { y = Range(s, e, d) }", "e", range(1, 9)),
        ("g (float[9] x, int64[1] a, int64[1] b) => (float[N] y) { y = Slice(x, a, b) }", "a", [0]),
        ("g (float[9] x, int64[1] a, int64[1] b) => (float[N] y) { y = Slice(x, a, b) }", "b", [2**31 - 1]),
        ("g (int64[3] i, int64 n) => (int64[3,M] y) <int64[2] v = {0, 1}> { y = OneHot(i, n, v) }", "n", [8]),
        ("g (float[3] x, int64[3] d) => (float[3] y) { z = Cast<to = 7>(x) q = Div(z, d) y = Cast<to = 1>(q) }", "d",
         range(1, 10)),
    ],
)  # fmt: skip
def test_counts_ends_and_steps_are_such_that_the_node_can_use(graph: str, name: str, allowed: list[int]) -> None:
    for seed in range(8):
        assert set(made(graph, seed)[name].reshape(-1).tolist()) <= set(allowed)


def test_lengths_of_sequences_are_between_one_and_the_longest() -> None:
    tagger = zoo.named("lstm_tagger").build()
    lengths = feeds.generate(tagger, 0, {"batch": 40, "sequence": 3})["lengths"]
    assert set(np.asarray(lengths).tolist()) == {1, 2, 3}


def test_strings_are_words_that_the_graph_knows_and_others() -> None:
    words = made("g (string[60] w) => (int64[60] y) {"
                 ' y = ai.onnx.ml.LabelEncoder<keys_strings = ["red", "blue"], values_int64s = [1, 2]>(w) }',
                 imports=', "ai.onnx.ml": 2')["w"]  # fmt: skip
    assert {"red", "blue", ""} < set(words.tolist())


def test_a_sequence_is_a_list_of_tensors_and_an_optional_is_there_for_even_seeds() -> None:
    tensor = helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, (2, "n"))
    inputs = [helper.make_value_info("s", helper.make_sequence_type_proto(tensor)),
              helper.make_value_info("o", helper.make_optional_type_proto(tensor))]  # fmt: skip
    nodes = [helper.make_node("SequenceLength", ["s"], ["y"])]
    built = helper.make_model(helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", 7, ())]))
    even, odd = feeds.generate(built, 0, {"n": 3}), feeds.generate(built, 1, {"n": 3})
    assert [tensor.shape for tensor in even["s"]] == [(2, 3), (2, 3)]
    assert even["o"].shape == (2, 3)
    assert odd["o"] is None


def test_a_map_is_refused_by_name() -> None:
    kind = onnx.TypeProto()
    kind.map_type.key_type = onnx.TensorProto.STRING
    kind.map_type.value_type.CopyFrom(helper.make_tensor_type_proto(1, ()))
    graph = helper.make_graph(
        [helper.make_node("Identity", ["m"], ["y"])], "g", [helper.make_value_info("m", kind)], []
    )
    with pytest.raises(FeedError, match="input 'm' is a map, for which no value can be generated"):
        feeds.generate(helper.make_model(graph))


def test_more_memory_than_allowed_is_refused_before_it_is_taken() -> None:
    built = model("g (float[B,1000000] x) => (float[B,1000000] y) { y = Relu(x) }")
    with pytest.raises(FeedError, match=r"input 'x' of shape \[1000000, 1000000\] makes the feeds larger than"):
        feeds.generate(built, 0, {"B": 1_000_000})


def test_a_dimension_that_is_a_sum_follows_its_parts() -> None:
    inputs = feeds.generate(
        zoo.named("decoder").build(), 0, {"sequence_length": 3, "past_sequence_length": 5, "batch": 2}
    )
    assert inputs["attention_mask"].shape == (2, 8)
    assert inputs["past_key_values.0.key"].shape == (2, 2, 5, 8)


@pytest.mark.parametrize("size", [0, 4])
def test_a_total_follows_the_past_and_the_new(size: int) -> None:
    graph = """g (int64[1,total_length] m, int64[1,length] i, float[1,past_length] p) => (float[1,past_length] y) {
        y = Relu(p)
    }"""
    assert made(graph, past_length=size, length=3)["m"].shape == (1, size + 3)


def test_a_dimension_without_a_name_is_called_by_its_place() -> None:
    found = made("g (float[?,3,?] x) => (float[?,3,?] y) { y = Relu(x) }", **{"x[0]": 2, "x[2]": 5})
    assert found["x"].shape == (2, 3, 5)


def test_combinations_are_all_of_them_in_order() -> None:
    built = zoo.named("bert").build()
    assert list(feeds.combinations(built, {"batch": (1, 4), "sequence": (1, 17)})) == [
        {"batch": 1, "sequence": 1}, {"batch": 1, "sequence": 17}, {"batch": 4, "sequence": 1},
        {"batch": 4, "sequence": 17},
    ]  # fmt: skip
    assert list(feeds.combinations(built, {})) == [{}]


@pytest.mark.parametrize(
    ("dims", "sentence"),
    [
        ({"length": (3,)}, "no free dynamic dimension 'length'; they have 'batch', 'sequence_length', 'past_sequence_"),
        ({"past_sequence_length + sequence_length": (3,)}, "no free dynamic dimension 'past_sequence_length"),
        ({"batch": (1, -2)}, "dimension 'batch' cannot have the size -2"),
        ({"batch": ()}, "dimension 'batch' has no size to try"),
    ],
)  # fmt: skip
def test_dimensions_that_the_model_does_not_have_are_refused(dims: dict[str, tuple[int, ...]], sentence: str) -> None:
    with pytest.raises(DimsError) as refusal:
        feeds.combinations(zoo.named("decoder").build(), dims)
    assert sentence in str(refusal.value)


def test_a_name_that_only_looks_like_arithmetic_is_a_name() -> None:
    kind = helper.make_tensor_value_info("x", 1, ("unk__12", "a.b", "__import__('os')", "2 ** 99"))
    node = helper.make_node("Identity", ["x"], ["y"])
    built = helper.make_model(helper.make_graph([node], "g", [kind], [helper.make_tensor_value_info("y", 1, None)]))
    sizes = {"unk__12": 2, "a.b": 3, "__import__('os')": 4, "2 ** 99": 5}
    assert feeds.generate(built, 0, sizes)["x"].shape == (2, 3, 4, 5)
