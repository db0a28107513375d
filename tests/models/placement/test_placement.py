"""Where nodes go by the claims, and the reasons in words; what a session's record adds."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from epcheck.models.graph import flops
from epcheck.models.placement import placement
from epcheck.models.placement.placement import NO_NODE, Placement, place
from tests.models.placed_models import CPU, DML, model, node, placed


def reasons(found: Placement) -> dict[str, str]:
    return {placed_node.name: placed_node.reason for placed_node in found.nodes if placed_node.predicted == CPU}


def test_a_node_with_a_kernel_is_predicted_on_the_provider() -> None:
    assert [
        (placed_node.predicted, placed_node.reason) for placed_node in placed(model(node("Relu", "x", "y"))).nodes
    ] == [(DML, "")]


def test_a_newer_version_than_the_kernel_is_told_with_the_opset_that_has_one() -> None:
    found = placed(model(node("Elu", "x", "y"), opset=22))
    assert reasons(found) == {"y": "no kernel for Elu-22, although there is one for Elu-6"}
    assert found.nodes[0].suggestion == "re-export with opset 21"
    assert found.best_opset == (21, 1)


def test_an_operator_that_the_provider_never_has_is_told() -> None:
    found = placed(model(node("Det", "x", "y"), shape=(3, 3)))
    assert reasons(found) == {"y": "the provider has no kernel for Det in any version"}


def test_a_dtype_that_the_kernel_does_not_take_is_told_with_those_that_it_takes() -> None:
    found = placed(model(node("Elu", "x", "y"), dtype=TensorProto.DOUBLE))
    assert reasons(found) == {"y": "Elu-6 is not claimed for T = float64: its kernel takes float16, float32"}


def test_a_rule_of_the_providers_own_is_told() -> None:
    resize = node("Resize", "x  sizes", "y", mode="cubic")
    resize.ClearField("input")
    resize.input.extend(["x", "", "", "sizes"])
    found = placed(model(resize, constants={"sizes": np.array([4, 6])}))
    assert reasons(found) == {"y": "the provider declines it because mode is cubic"}


def test_a_custom_domain_is_told() -> None:
    found = placed(model(node("Anything", "x", "y", domain="my.domain")))
    assert reasons(found) == {"y": "the provider has no kernels of the domain 'my.domain'"}


def test_more_dimensions_than_directml_has_are_told_although_the_provider_takes_the_node() -> None:
    (placed_node,) = placed(model(node("Relu", "x", "y"), shape=(1,) * 9)).nodes
    assert placed_node.predicted == DML
    assert "more than 8 dimensions" in placed_node.reason


def test_what_computes_a_shape_goes_back_to_the_cpu_but_for_shape_itself_and_who_reads_it_there() -> None:
    whole = model(
        node("Shape", "x", "s"),
        node("Gather", "s zero", "batch"),
        node("Concat", "batch minus", "target", axis=0),
        node("Reshape", "x target", "y"),
        constants={"zero": np.array([0]), "minus": np.array([-1])},
    )
    found = placed(whole)
    assert {placed_node.name: placed_node.predicted for placed_node in found.nodes} == {
        "s": DML,
        "batch": CPU,
        "target": CPU,
        "y": DML,
    }
    assert set(reasons(found).values()) == {
        "ONNX Runtime prefers the CPU: it computes a shape, from values that are in the CPU's memory"
    }


def test_a_float16_value_is_never_taken_back_to_the_cpu() -> None:
    whole = model(node("Shape", "x", "s"), node("Cast", "s", "h", to=TensorProto.FLOAT16), node("Neg", "h", "y"))
    assert reasons(placed(whole)) == {"h": reasons(placed(whole))["h"]}


def test_the_record_of_the_session_has_the_last_word() -> None:
    whole = model(node("Relu", "x", "a"), node("Neg", "a", "b"), node("Det", "b", "y"), shape=(3, 3))
    found = placed(whole, [(CPU, "Relu", "a"), (DML, "Det", "y"), (DML, "Fused", "made")])
    assert [
        (placed_node.name, placed_node.predicted, placed_node.real, placed_node.kind) for placed_node in found.nodes
    ] == [
        ("a", DML, CPU, "unexplained"),
        ("b", DML, "", "folded"),
        ("y", CPU, DML, "better"),
    ]
    assert found.nodes[1].reason == NO_NODE
    assert found.unmatched == ((DML, "Fused", "made"),)


def test_an_operator_that_runs_as_those_that_define_it_is_where_they_are() -> None:
    swish = model(node("HardSwish", "x", "y"), node("Relu", "y", "z"))
    parts = [(DML, "HardSigmoid", ""), (DML, "Mul", ""), (DML, "Relu", "z")]
    assert [(placed_node.real, placed_node.kind) for placed_node in placed(swish, parts).nodes] == [
        (DML, "expanded"),
        (DML, ""),
    ]
    assert placed(swish).nodes[0].provider == CPU  # nothing ran: there is only what the claims say
    assert not placed(swish, parts).copies[1:-1]


def test_copies_are_counted_once_for_each_direction_with_their_bytes() -> None:
    whole = model(node("Relu", "x", "a"), node("Det", "a", "d"), node("Neg", "d", "y"), shape=(3, 3))
    found = placed(whole)
    assert [(copy.value, copy.direction, copy.bytes) for copy in found.copies] == [
        ("x", "to the provider", 36),
        ("a", "from the provider", 36),
        ("d", "to the provider", 4),
        ("y", "from the provider", 4),
    ]
    assert found.partitions == 2


def test_the_share_of_arithmetic_is_by_operations_not_by_nodes() -> None:
    whole = model(
        node("MatMul", "x w", "m"), node("Elu", "m", "y"), opset=22, constants={"w": np.ones((3, 100), np.float32)}
    )
    found = placed(whole)
    assert [(placed_node.name, placed_node.flops) for placed_node in found.nodes] == [("m", 1200.0), ("y", 200.0)]
    assert found.share == pytest.approx(1200 / 1400)


def test_there_is_no_share_of_arithmetic_where_nobody_knows_how_much_a_product_is() -> None:
    whole = model(node("MatMul", "x w", "m"), node("Elu", "m", "y"), opset=22)
    whole.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, None))
    found = placed(whole)
    assert [placed_node.flops for placed_node in found.nodes] == [None, None]
    assert found.share is None


def test_nodes_in_bodies_are_placed_too_and_named_by_their_way() -> None:
    def branch(operator: str) -> onnx.GraphProto:
        out = helper.make_tensor_value_info(operator, TensorProto.FLOAT, None)
        return helper.make_graph([helper.make_node(operator, ["x"], [operator], name=operator)], operator, [], [out])

    choice = node("If", "c", "y", then_branch=branch("Relu"), else_branch=branch("Mish"))
    found = placed(model(node("Constant", "", "c", value=numpy_helper.from_array(np.array(True))), choice, opset=18))
    assert [(f"{placed_node.scope}{placed_node.name}", placed_node.predicted) for placed_node in found.nodes] == [
        ("y", DML), ("y.else_branch/Mish", CPU), ("y.then_branch/Relu", DML),
    ]  # fmt: skip


def test_every_node_gets_a_name_of_its_own_and_a_named_model_stays_itself() -> None:
    whole = model(node("Relu", "x", "a"), node("Neg", "a", "b"), node("Neg", "b", "y"))
    assert placement.name_nodes(whole) is whole
    for placed_node, name in zip(whole.graph.node, ("", "same", "same"), strict=True):
        placed_node.name = name
    names = [proto.name for proto in placement.name_nodes(whole).graph.node]
    assert len(set(names)) == 3
    assert names[1] == "same"
    assert "" not in names


@pytest.mark.parametrize(
    ("operator", "inputs", "outputs", "expected"),
    [
        ("MatMul", [(2, 3, 4), (4, 5)], [(2, 3, 5)], 2 * 30 * 4),
        ("Conv", [(1, 3, 8, 8), (16, 3, 3, 3)], [(1, 16, 6, 6)], 2 * 16 * 36 * 27),
        ("Relu", [(2, 3)], [(2, 3)], 6),
        ("ReduceSum", [(2, 30)], [(2,)], 60),
        ("Transpose", [(2, 3)], [(3, 2)], 0),
        ("MatMul", [(None, 4), (4, 5)], [(None, 5)], None),
    ],
)
def test_arithmetic_is_counted_from_shapes(
    operator: str, inputs: list[flops.Shape], outputs: list[flops.Shape], expected: float | None
) -> None:
    assert flops.of(helper.make_node(operator, [], []), inputs, outputs) == expected


def test_a_folded_node_is_nowhere_and_not_on_the_cpu() -> None:
    """Elu-22 has no kernel, so that the claims send it to the CPU; the session that was made has no such node."""
    whole = model(node("Elu", "x", "e"), node("Relu", "e", "y"), opset=22)
    found = placed(whole, [(DML, "Relu", "y")])
    assert [(each.name, each.provider) for each in found.nodes] == [("e", ""), ("y", DML)]
    assert (found.elsewhere, found.count(DML)) == ((), 1)
    assert [each.name for each in placed(whole, [(CPU, "Elu", "e"), (DML, "Relu", "y")]).elsewhere] == ["e"]


def test_a_provider_whose_rules_are_not_known_is_explained_by_its_table_of_claims() -> None:
    webgpu = "WebGpuExecutionProvider"
    whole = model(node("Det", "x", "a"), node("Relu", "a", "b"), node("Neg", "b", "y"), shape=(3, 3))
    record = [(CPU, "Det", "a"), (CPU, "Relu", "b"), (webgpu, "Neg", "y")]
    det, relu, neg = place(whole, webgpu, record, {}).nodes
    assert (det.kind, det.reason) == ("operator", "the provider did not take it: no kernel for Det-11")
    assert relu.reason == "the provider did not take it, although its table of claims has the operator"
    assert neg.reason == ""
    (det, *_) = place(whole, "AnyProvider", record, {}).nodes
    assert det.reason == "the provider did not take it"
