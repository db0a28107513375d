"""Operators that quantisers and scikit-learn's exporters write, by the oracle and by ONNX Runtime's CPU provider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from epcheck.models.oracle import oracle, reference, svm_classifier
from epcheck.models.validation.truth import tensors_by_name

RNG = np.random.default_rng(0)
MS = "com.microsoft"


def both(
    node: onnx.NodeProto, feeds: Mapping[str, Any], weights: Mapping[str, Any]
) -> tuple[Sequence[Any], Sequence[Any]]:
    """The outputs of the CPU provider, and of the oracle."""
    inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
              for name, value in feeds.items()]  # fmt: skip
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output]
    stored = [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()]
    imports = [helper.make_opsetid(*each) for each in (("", 17), (MS, 1), ("ai.onnx.ml", 5))]
    graph = helper.make_graph([node], "g", inputs, outputs, stored)
    model = helper.make_model(graph, opset_imports=imports, ir_version=9)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    found = oracle.evaluate(model, feeds)
    assert found.skipped == {}
    return session.run(list(node.output), dict(feeds)), [found.values[name] for name in node.output]


@pytest.mark.parametrize(("transposed", "biased", "quantised"), [(0, 1, 1), (1, 0, 0), (1, 1, 1)])
def test_q_gemm(transposed: int, biased: int, quantised: int) -> None:
    weights: dict[str, Any] = {
        "as": np.float32(0.02), "az": np.uint8(120), "bz": np.zeros(5, np.int8),
        "b": RNG.integers(-127, 128, (5, 8) if transposed else (8, 5)).astype(np.int8),
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
        "w": RNG.integers(-127, 128, (directions, 3, 16)).astype(np.int8),
        "r": RNG.integers(-127, 128, (directions, 4, 16)).astype(np.int8),
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


def trees(transform: int) -> onnx.NodeProto:
    def tensor(name: str, values: Sequence[float], kind: int = TensorProto.FLOAT) -> onnx.TensorProto:
        return helper.make_tensor(name, kind, (len(values),), values)

    return helper.make_node(
        "TreeEnsemble", ["x"], ["y"], domain="ai.onnx.ml", n_targets=2, aggregate_function=1, tree_roots=[0],
        post_transform=transform, nodes_modes=tensor("m", [0, 0, 0], TensorProto.UINT8), nodes_featureids=[0, 0, 0],
        nodes_splits=tensor("s", [3.14, 1.2, 4.2]), nodes_truenodeids=[1, 0, 1], nodes_trueleafs=[0, 1, 1],
        nodes_falsenodeids=[2, 2, 3], nodes_falseleafs=[0, 1, 1], leaf_targetids=[0, 1, 0, 1],
        leaf_weights=tensor("w", [5.23, 12.12, -12.23, 7.21]),
    )  # fmt: skip


def test_tree_ensemble_has_its_transform_as_a_number() -> None:
    x = np.array([[1.2, 0], [3.4, 0], [-0.12, 0], [1.66, 0], [4.14, 1], [5, 1]], np.float32)
    (got,), (true,) = both(trees(0), {"x": x}, {})
    np.testing.assert_allclose(got, true, rtol=1e-6)
    assert reference.explain_distrust(trees(2)) == "onnx's reference does not apply the transform"


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
