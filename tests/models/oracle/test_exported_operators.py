"""Operators that quantisers and scikit-learn's exporters write, by the oracle and by ONNX Runtime's CPU provider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference.ops.aionnxml._common_classifier import compute_softmax_zero

from epcheck.models.oracle import oracle, reference, svm_classifier
from epcheck.models.validation.truth import tensors_by_name

RNG = np.random.default_rng(0)
MS = "com.microsoft"
SEVEN_BITS = (-64, 65)
"""Without VNNI the CPU provider adds two products of uint8 and int8 in 16 bits, which hold these."""


def built(nodes: Sequence[onnx.NodeProto], feeds: Mapping[str, Any], weights: Mapping[str, Any]) -> onnx.ModelProto:
    """A model of these nodes whose outputs are those of the last one."""
    inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
              for name, value in feeds.items()]  # fmt: skip
    outputs = [onnx.ValueInfoProto(name=name) for name in nodes[-1].output]
    stored = [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()]
    ml = 5 if nodes[-1].op_type == "TreeEnsemble" else 4  # in which there are its predecessors
    imports = [helper.make_opsetid(*each) for each in (("", 17), (MS, 1), ("ai.onnx.ml", ml))]
    graph = helper.make_graph(nodes, "g", inputs, outputs, stored)
    return helper.make_model(graph, opset_imports=imports, ir_version=9)


def on_cpu(nodes: Sequence[onnx.NodeProto], feeds: Mapping[str, Any], weights: Mapping[str, Any]) -> Sequence[Any]:
    model = built(nodes, feeds, weights)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    found: Sequence[Any] = session.run(list(nodes[-1].output), dict(feeds))
    return found


def evaluated(node: onnx.NodeProto, feeds: Mapping[str, Any], weights: Mapping[str, Any]) -> Mapping[str, Any]:
    """The outputs of the oracle."""
    found = oracle.evaluate(built([node], feeds, weights), feeds)
    assert found.skipped == {}
    return found.values


def both(
    node: onnx.NodeProto, feeds: Mapping[str, Any], weights: Mapping[str, Any]
) -> tuple[Sequence[Any], Sequence[Any]]:
    """The outputs of the CPU provider, and of the oracle."""
    found = evaluated(node, feeds, weights)
    return on_cpu([node], feeds, weights), [found[name] for name in node.output]


@pytest.mark.parametrize(("transposed", "biased", "quantised"), [(0, 1, 1), (1, 0, 0), (1, 1, 1)])
def test_q_gemm(transposed: int, biased: int, quantised: int) -> None:
    weights: dict[str, Any] = {
        "as": np.float32(0.02), "az": np.uint8(120), "bz": np.zeros(5, np.int8),
        "b": RNG.integers(*SEVEN_BITS, (5, 8) if transposed else (8, 5)).astype(np.int8),
        "bs": np.float32(0.01) * np.arange(1, 6, dtype=np.float32),
    }  # fmt: skip
    names = ["a", "as", "az", "b", "bs", "bz", "c" if biased else ""]
    if biased:
        weights["c"] = RNG.integers(-1000, 1000, 5).astype(np.int32)
    if quantised:
        weights |= {"ys": np.float32(0.05), "yz": np.uint8(100)}
        names += ["ys", "yz"]
    node = helper.make_node("QGemm", names, ["y"], domain=MS, transB=transposed, alpha=0.7)
    (got,), (true,) = both(node, {"a": RNG.integers(0, 256, (3, 8)).astype(np.uint8)}, weights)
    if quantised:
        np.testing.assert_array_equal(got, true)
    else:
        np.testing.assert_allclose(got, true, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("directions", "columns"), [(1, 1), (2, 1), (2, 16)])
def test_dynamic_quantize_lstm_is_an_lstm_of_dequantized_weights(directions: int, columns: int) -> None:
    scales = (directions,) if columns == 1 else (directions, columns)
    weights: dict[str, Any] = {
        "w": RNG.integers(*SEVEN_BITS, (directions, 3, 16)).astype(np.int8),
        "r": RNG.integers(*SEVEN_BITS, (directions, 4, 16)).astype(np.int8),
        "b": RNG.standard_normal((directions, 32)).astype(np.float32),
        "ws": (RNG.random(scales) * 0.01).astype(np.float32), "wz": np.zeros(scales, np.int8),
        "rs": (RNG.random(scales) * 0.01).astype(np.float32), "rz": np.zeros(scales, np.int8),
    }  # fmt: skip
    node = helper.make_node(
        "DynamicQuantizeLSTM", ["x", "w", "r", "b", "", "", "", "", "ws", "wz", "rs", "rz"], ["y", "h", "c"],
        domain=MS, hidden_size=4, direction="bidirectional" if directions == 2 else "forward",
    )  # fmt: skip
    got, true = both(node, {"x": RNG.standard_normal((5, 2, 3)).astype(np.float32)}, weights)
    for mine, its in zip(got, true, strict=True):
        assert mine.shape == its.shape
        np.testing.assert_allclose(mine, its, atol=0.01)  # a step of 8 bits of the activations


@pytest.mark.parametrize("labels", [{"classlabels_strings": ["a", "bc"]}, {"classlabels_int64s": [7, 2]}])
def test_zip_map_gives_a_map_for_each_row(labels: Mapping[str, Any]) -> None:
    scores = np.array([[0.25, 0.75], [1, 0]], np.float32)
    node = helper.make_node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", **labels)
    (got,), (true,) = both(node, {"x": scores}, {})
    assert got == true
    flat = dict(tensors_by_name({"y": true}))
    assert list(flat) == ["y[0].keys", "y[0].values", "y[1].keys", "y[1].values"]
    assert flat["y[1].values"].tolist() == [1, 0]  # type: ignore[union-attr]
    keys = flat["y[0].keys"]
    assert isinstance(keys, np.ndarray)
    assert keys.tolist() == ([[97, 0], [98, 99]] if "classlabels_strings" in labels else [7, 2])


FEATURES = np.array([[-1, 2, 0.5], [0.3, -2, 1], [2, 0.1, -3], [4, 4, 4]], np.float32)
LEAVES = [0.3, -1.2, 0.5, 0.0, 2.5, 0.0]
"""Of each target one tree, with a leaf for at most 0.1 of its feature, and one for more."""


def tree_ensemble(transform: int, targets: int) -> onnx.NodeProto:
    def tensor(name: str, values: Sequence[float], kind: int = TensorProto.FLOAT) -> onnx.TensorProto:
        return helper.make_tensor(name, kind, (len(values),), values)

    each = list(range(targets))
    return helper.make_node(
        "TreeEnsemble", ["x"], ["y"], domain="ai.onnx.ml", n_targets=targets, aggregate_function=1, tree_roots=each,
        post_transform=transform, nodes_modes=tensor("m", [0] * targets, TensorProto.UINT8), nodes_featureids=each,
        nodes_splits=tensor("s", [0.1] * targets), nodes_truenodeids=[2 * at for at in each],
        nodes_falsenodeids=[2 * at + 1 for at in each], nodes_trueleafs=[1] * targets, nodes_falseleafs=[1] * targets,
        leaf_targetids=sorted(each * 2), leaf_weights=tensor("w", LEAVES[: 2 * targets]),
    )  # fmt: skip


def tree_regressor(transform: str, targets: int) -> onnx.NodeProto:
    """The same trees, of the older operator."""
    twice, thrice = sorted(list(range(targets)) * 2), sorted(list(range(targets)) * 3)
    return helper.make_node(
        "TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=targets, post_transform=transform,
        nodes_treeids=thrice, nodes_nodeids=[0, 1, 2] * targets, nodes_featureids=thrice,
        nodes_values=[0.1, 0.0, 0.0] * targets, nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"] * targets,
        nodes_truenodeids=[1, 0, 0] * targets, nodes_falsenodeids=[2, 0, 0] * targets, target_treeids=twice,
        target_nodeids=[1, 2] * targets, target_ids=twice, target_weights=LEAVES[: 2 * targets],
    )  # fmt: skip


def linear_regressor(transform: str, targets: int) -> onnx.NodeProto:
    return helper.make_node(
        "LinearRegressor", ["x"], ["y"], domain="ai.onnx.ml", targets=targets, post_transform=transform,
        coefficients=[0.5, -1.0, 2.0, 0.1, 0.3, -0.7, 0.0, 1.0, 0.25][: 3 * targets], intercepts=[0.0] * targets,
    )  # fmt: skip


TRANSFORMS = {
    "NONE": 0, "SOFTMAX": 1, "LOGISTIC": 2, "SOFTMAX_ZERO": 3,
}  # fmt: skip
"""Name -> number, as the page of TreeEnsemble has them."""


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("make", [tree_regressor, linear_regressor])
@pytest.mark.parametrize("targets", [2, 3])
def test_scores_are_transformed_as_on_the_cpu(make: Any, transform: str, targets: int) -> None:
    (got,), (true,) = both(make(transform, targets), {"x": FEATURES}, {})
    np.testing.assert_allclose(got, true, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("targets", [1, 2, 3])
def test_tree_ensemble_has_its_transform_as_a_number(transform: str, targets: int) -> None:
    """The CPU provider of ONNX Runtime 1.32 takes LOGISTIC for SOFTMAX and SOFTMAX for LOGISTIC."""
    _, (true,) = both(tree_ensemble(TRANSFORMS[transform], targets), {"x": FEATURES}, {})
    (plain,), (scores,) = both(tree_ensemble(0, targets), {"x": FEATURES}, {})
    np.testing.assert_allclose(plain, scores, rtol=1e-6)
    functions: dict[str, Any] = {
        "NONE": lambda row: row,
        "LOGISTIC": lambda row: (1 + np.tanh(row / 2)) / 2,
        "SOFTMAX": lambda row: np.exp(row) / sum(np.exp(row)),
        "SOFTMAX_ZERO": compute_softmax_zero,
    }
    np.testing.assert_allclose(true, [functions[transform](row.copy()) for row in scores], rtol=1e-12)


def test_the_score_of_one_target_is_transformed() -> None:
    """The CPU provider of ONNX Runtime 1.32 leaves it as it is: its issue 26596."""
    for make in (tree_regressor, linear_regressor):
        _, (scores,) = both(make("NONE", 1), {"x": FEATURES}, {})
        _, (true,) = both(make("LOGISTIC", 1), {"x": FEATURES}, {})
        np.testing.assert_allclose(true, 1 / (1 + np.exp(-scores)), rtol=1e-12)


def test_a_softmax_of_scores_that_are_all_0_has_no_oracle() -> None:
    with pytest.raises(oracle.OracleError, match="SOFTMAX_ZERO of scores that are all 0 open"):
        evaluated(linear_regressor("SOFTMAX_ZERO", 2), {"x": np.zeros((2, 3), np.float32)}, {})


def test_probit_has_no_oracle() -> None:
    for node in (tree_ensemble(4, 2), tree_regressor("PROBIT", 2)):
        assert reference.explain_distrust(node).startswith("the ONNX page does not define PROBIT")


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("axes", [[-1], [0, 2], []])
@pytest.mark.parametrize("keep", [0, 1])
def test_a_quantised_mean_is_that_of_its_definition(dtype: Any, axes: list[int], keep: int) -> None:
    limits = np.iinfo(dtype)
    data = RNG.integers(limits.min, limits.max, (3, 4, 50), dtype, endpoint=True)
    weights: dict[str, Any] = {
        "s": np.float32(0.03),
        "z": np.array(7, dtype),
        "rs": np.float32(0.004),
        "rz": np.array(100, dtype),
    }
    node = helper.make_node("QLinearReduceMean", ["x", "s", "z", "rs", "rz"], ["y"], domain=MS, keepdims=keep)
    node.attribute.append(helper.make_attribute("axes", axes, attr_type=onnx.AttributeProto.INTS))
    found = evaluated(node, {"x": data}, weights)["y"]
    assert isinstance(found, np.ndarray)
    parts = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["wide"]),
        helper.make_node("ReduceMean", ["wide"], ["mean"], axes=axes or None, keepdims=keep),
        helper.make_node("QuantizeLinear", ["mean", "rs", "rz"], ["y"]),
    ]
    (expected,) = on_cpu(parts, {"x": data}, weights)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(found, expected)


SCIKIT_LEARN: dict[str, Any] = {
    "classlabels_ints": [0, 1, 2],
    "coefficients": [1.0, 1.0, -1.0, -1.0, -0.222222224, 0.0, 0.222222224, 0.0, 0.5, -0.5],
    "prob_a": [-2.39789534, -2.39789534, -2.39789534],
    "prob_b": [5.07207564e-16, 5.07207564e-16, 5.07207564e-16],
    "rho": [1.0, 1.0, 2.0],
    "support_vectors": [0.0, 0.0, 1.0, 1.0, 3.0],
    "vectors_per_class": [2, 2, 1],
}
SCIKIT_LEARN_PROBABILITIES = [
    [0.87774621, 0.08355728, 0.03869651], [0.08425018, 0.85219955, 0.06355026], [0.07332697, 0.37420362, 0.55246941],
]  # fmt: skip
"""The attributes that skl2onnx 1.20.0 writes, and what `predict_proba` gives of 0, 1 and 2.2."""


def support_vectors(kernel: str, classes: int, with_probabilities: bool, **attributes: Any) -> onnx.NodeProto:
    rng = np.random.default_rng(3)
    counts, pairs = [2, 3, 1, 2][:classes], classes * (classes - 1) // 2
    if with_probabilities:
        attributes |= {"prob_a": rng.normal(-1.5, 0.5, pairs).tolist(), "prob_b": rng.normal(0, 0.5, pairs).tolist()}
    return helper.make_node(
        "SVMClassifier", ["x"], ["y", "z"], domain="ai.onnx.ml", kernel_type=kernel, kernel_params=[0.3, 0.2, 2.0],
        vectors_per_class=counts, support_vectors=rng.normal(0, 1, sum(counts) * 4).tolist(),
        coefficients=rng.normal(0, 1, (classes - 1) * sum(counts)).tolist(), rho=rng.normal(0, 0.5, pairs).tolist(),
        classlabels_ints=[7, 5, 3, 9][:classes], **attributes,
    )  # fmt: skip


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
@pytest.mark.parametrize(("classes", "with_probabilities"), [(2, True), (3, False), (3, True), (4, True)])
def test_support_vector_machines(kernel: str, classes: int, with_probabilities: bool) -> None:
    x = RNG.standard_normal((20, 4)).astype(np.float32)
    (label, scores), (true, exact) = both(support_vectors(kernel, classes, with_probabilities), {"x": x}, {})
    np.testing.assert_array_equal(label, true)
    np.testing.assert_allclose(scores, exact, rtol=1e-5, atol=2e-6)
    assert len(set(label.tolist())) > 1


def test_probabilities_of_scikit_learn() -> None:
    """SVC(kernel="linear", C=1, probability=True, random_state=0) of scikit-learn 1.9.1, fitted to ten rows of each of
    the values 0, 1 and 3, a class each."""
    node = helper.make_node("SVMClassifier", ["x"], ["y", "z"], domain="ai.onnx.ml", **SCIKIT_LEARN)
    found = svm_classifier.evaluate(node, [np.array([[0.0], [1.0], [2.2]])])
    np.testing.assert_array_equal(found[0], [0, 1, 2])  # type: ignore[arg-type]
    np.testing.assert_allclose(np.asarray(found[1]), SCIKIT_LEARN_PROBABILITIES, atol=1e-6)


@pytest.mark.parametrize(
    ("classes", "changed", "why"),
    [
        (2, {}, "two classes"),
        (3, {"post_transform": "SOFTMAX"}, "transform"),
        (3, {"vectors_per_class": []}, "without"),
    ],
)
def test_what_the_page_of_support_vector_machines_leaves_open(classes: int, changed: dict[str, Any], why: str) -> None:
    node = support_vectors("RBF", classes, with_probabilities=False)
    kept = [attribute for attribute in node.attribute if attribute.name not in changed]
    del node.attribute[:]
    node.attribute.extend([*kept, *(helper.make_attribute(name, value) for name, value in changed.items() if value)])
    assert why in svm_classifier.explain_distrust(node)
