"""The nodes of a main graph in topological order, as ONNX demands it and ONNX Runtime does not."""

from __future__ import annotations

import onnx

from epcheck.models.graph.wiring import wire


def order_nodes(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model whose nodes stand behind those that they read from: itself where they do, or where no order would do.
    What need not move stays in its place."""
    wiring = wire(model)
    order: list[int] = []
    placed = [False] * wiring.nodes
    for start in range(wiring.nodes):
        pending = [start]
        while pending:
            node = pending[-1]
            before = [wiring.producer[name] for name in wiring.reads[node] if name in wiring.producer]
            missing = [other for other in before if not placed[other]]
            if placed[node] or not missing:
                pending.pop()
                if not placed[node]:
                    placed[node] = True
                    order.append(node)
            elif set(missing) & set(pending):  # a circle
                return model
            else:
                pending.extend(missing)
    if order == list(range(wiring.nodes)):
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.node[:]
    for node in order:
        copy.graph.node.add().CopyFrom(model.graph.node[node])
    return copy
