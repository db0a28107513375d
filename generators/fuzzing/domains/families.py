"""What the pages of single operators leave open, beyond what their samples show. Each rule names its source."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from epcheck.generators.claims import newest_claimed_version
from epcheck.generators.fuzzing.domains import counts, places
from epcheck.generators.node import Node
from epcheck.generators.operators.reduction import reduction

FUSED = "DmlFused"
"""What the names of operators begin with that are another one and an activation."""

EXACT = 2.0**53
"""Integers up to here are float64 as they are."""


def why_open(node: Node) -> str:
    """Why the page of the operator leaves the node open, in words; empty where it does not."""
    rule = RULES.get(node.op_type) or RULES.get(node.op_type.removeprefix(FUSED))
    return (rule(node) if rule else "") or _check_fused(node)


def _check_fused(node: Node) -> str:
    """Operators with a fused activation: its version is the one that graphs have; the fusion knows no other."""
    name = node.text("fused_activation", "")
    version = node.integer("fused_activation_since_version", 0)
    if name and version and version != newest_claimed_version(name):
        return f"{name} has no version {version} of its own"
    return ""


def _rotary(node: Node) -> str:
    """RotaryEmbedding: positions beyond the caches have no angle, and angles turn pairs of elements."""
    if node.integer("rotary_embedding_dim", 0) % 2:
        return "rotary_embedding_dim is odd"
    cache, x = node.value("cos_cache"), node.inputs[0]
    if x is None or cache is None:
        return ""
    if x.value.ndim == 3 and not node.integer("num_heads", 0):
        return "a 3-D input needs num_heads"
    sequence = x.value.shape[1] if x.value.ndim == 3 else x.value.shape[2]
    ids = node.value("position_ids")
    if cache.ndim == 2 and (ids is None or ids.size == 1):
        first = int(ids.reshape(-1)[0]) if ids is not None else 0
        return "positions beyond the caches" if first < 0 or first + sequence > cache.shape[0] else ""
    if cache.ndim == 2 and ids is not None and ids.size and not 0 <= int(ids.min()) <= int(ids.max()) < cache.shape[0]:
        return "positions beyond the caches"
    return ""


def _attention(node: Node) -> str:
    """Attention: inputs of rank 3 need the numbers of heads; a mask has one of the listed shapes."""
    q = node.inputs[0]
    needed = {"q_num_heads", "kv_num_heads"}
    if node.domain and (reason := places.check_mask(node)):
        return reason
    if node.domain == "" and q is not None and q.value.ndim == 3 and not needed <= node.attributes.keys():
        return "3-D inputs need q_num_heads and kv_num_heads"
    return ""


def _recurrent(node: Node) -> str:
    """RNN, GRU, LSTM: hidden_size is derivable from R, but the text takes it as given; NaN beyond sequence_lens. Beside
    the jump of ThresholdedRelu rounding decides."""
    if "hidden_size" not in node.attributes:
        return "hidden_size is not given"
    names = node.attributes.get("activations", ())
    if isinstance(names, tuple) and any(str(name).lower() == "thresholdedrelu" for name in names):
        return "ThresholdedRelu jumps at its threshold"
    return _lengths(node)


def _lengths(node: Node) -> str:
    """Recurrent operators, ReverseSequence: what a sequence of no steps gives is said nowhere."""
    lengths = node.value("sequence_lens")
    return "a sequence has no steps" if lengths is not None and bool((lengths < 1).any()) else ""


def _check_crop(node: Node) -> str:
    """Crop: borders that leave nothing."""
    x, border = node.inputs[0], node.integers("border", ())
    if x is None or len(border) != 4 or x.value.ndim != 4:
        return ""
    left, top, right, bottom = border
    return "nothing is left" if top + bottom >= x.value.shape[2] or left + right >= x.value.shape[3] else ""


def _matrices(node: Node) -> str:
    """DynamicQuantizeMatMul: the page speaks of matrices; its kernels want two dimensions at least."""
    if any(o is not None and o.name in ("A", "B") and o.value.ndim < 2 for o in node.inputs):
        return "a matrix has less than two dimensions"
    scale, zero_point = node.value("b_scale"), node.value("b_zero_point")
    alike = scale is None or zero_point is None or scale.shape == zero_point.shape
    return "" if alike else "scale and zero point have different shapes"


def _shrunk(node: Node) -> str:
    """Shrink: what a fraction does to an integer is said nowhere."""
    x = node.inputs[0]
    whole = node.number("bias", 0.0).is_integer()
    return "a fraction is taken from an integer" if x is not None and x.value.dtype.kind in "iu" and not whole else ""


def _inverse(node: Node) -> str:
    """DFT: half a spectrum is written of real signals, of which inverse and onesided together have none."""
    both = node.integer("inverse", 0) and node.integer("onesided", 0)
    return "inverse and onesided together" if both else ""


def _epsilon(node: Node) -> str:
    """GroupNormalization and its like: without an epsilon data without variance is 0 / 0."""
    return "the epsilon is 0" if "epsilon" in node.attributes and node.number("epsilon", 1e-5) == 0 else ""


def _check_scales(node: Node) -> str:
    """QLinear*: the pages say scalar; whether a list of one is one is left open."""
    for operand in node.inputs:
        if operand is not None and operand.name.endswith(("_scale", "_zero_point")) and operand.value.ndim:
            return f"{operand.name} must be a scalar"
    return ""


def _check_normalization(node: Node) -> str:
    """LayerNormalization and its like: Scale and B are broadcast to X, X is not broadcast to them."""
    x = node.inputs[0]
    for operand in node.inputs[1:]:
        if operand is None or x is None or not operand.value.ndim:
            continue
        sizes, own = operand.value.shape, x.value.shape[-operand.value.ndim :]
        if len(own) != len(sizes) or any(a not in (1, b) for a, b in zip(sizes, own, strict=True)):
            return f"{operand.name} cannot be broadcast to {x.name}"
    return ""


def _check_skip(node: Node) -> str:
    """SkipLayerNormalization: skip has the shape of input, or that of one batch of it, where it has batches."""
    x, skip = node.inputs[0], node.value("skip")
    if x is None or skip is None or skip.shape == x.value.shape:
        return ""
    if x.value.ndim == 3 and skip.shape in (x.value.shape[1:], (1, *x.value.shape[1:])):
        return ""
    return "skip has another shape than input"


def _head(node: Node) -> str:
    """RotaryEmbedding: half of a head is turned against the other half."""
    x, heads = node.inputs[0], max(node.integer("num_heads", 1), 1)
    if x is None or node.integer("rotary_embedding_dim", 0) or not x.value.ndim:
        return ""
    last = x.value.shape[-1]
    return "a head has an odd size" if (last // heads if x.value.ndim == 3 else last) % 2 else ""


def _axes(node: Node) -> str:
    """Axes outside of the rank, or the same one twice: most pages do not say what they mean."""
    x = node.inputs[0]
    operand = node.value("axes")
    listed = node.integers("axes", ()) if operand is None else tuple(int(axis) for axis in operand.reshape(-1))
    rank = x.value.ndim if x is not None else 0
    if any(not -rank <= axis < rank for axis in listed) or len({axis % max(rank, 1) for axis in listed}) < len(listed):
        return "axes outside of the rank, or repeated"
    return ""


def _constant(node: Node) -> str:
    """MeanVarianceNormalization: without variance 0 is divided by 0; the function body adds an epsilon."""
    x = node.inputs[0]
    if x is None or not x.value.size:
        return ""
    axes = tuple(axis % max(x.value.ndim, 1) for axis in node.integers("axes", (0, 2, 3)) if axis < x.value.ndim)
    return "" if (np.ptp(x.value.astype(np.float64), axis=axes) > 0).all() else "the data has no variance"


def _pad(node: Node) -> str:
    """Pad: a reflection of more than there is has no text."""
    if reason := _axes(node):
        return reason
    pads = node.value("pads")
    listed = (
        node.integers("pads", node.integers("paddings", ())) if pads is None else [int(p) for p in pads.reshape(-1)]
    )
    x, axes = node.inputs[0], node.value("axes")
    if node.text("mode", "constant") not in ("reflect", "wrap") or x is None:
        return ""
    padded = range(x.value.ndim) if axes is None else axes.reshape(-1).tolist()
    sizes = [x.value.shape[axis] for axis in padded]
    beyond = any(abs(pad) >= max(size, 1) for pad, size in zip(listed, 2 * sizes, strict=False))
    return "more is reflected than there is" if beyond else ""


def _check_reduction(node: Node) -> str:
    """ReduceMean, ReduceL2 and the logarithms of integers: how a fraction is rounded is said nowhere."""
    x = node.inputs[0]
    if x is None or x.value.dtype.kind not in "iu" or not x.value.size:
        return ""
    axes = reduction.axes_of(node)
    if isinstance(axes, str):
        return ""
    wide = x.value.astype(np.float64)
    if np.abs(wide).sum() > EXACT:
        return "sums of these integers leave float64"
    count = np.prod([x.value.shape[axis] for axis in axes])
    with np.errstate(all="ignore"):
        exact = {
            "ReduceMean": lambda: wide.sum(axis=axes) / count,
            "ReduceL2": lambda: np.sqrt((wide * wide).sum(axis=axes)),
            "ReduceLogSum": lambda: np.log(wide.sum(axis=axes)),
            "ReduceLogSumExp": lambda: np.log(np.exp(wide).sum(axis=axes)),
        }[node.op_type]()
    whole = np.isfinite(exact).all() and (exact == np.rint(exact)).all()
    return "" if whole else "the result is a fraction, and the dtype has none"


def _zeros(node: Node) -> str:
    """The largest and the smallest of +0 and -0: which one it is is said nowhere."""
    for operand in node.inputs:
        if operand is not None and operand.value.dtype.kind == "f":
            signs = np.signbit(operand.value[operand.value == 0])
            if signs.any() and (not signs.all() or node.op_type in ("Max", "Min")):
                return "zeros of both signs are compared"
    return ""


def _windows(node: Node) -> str:
    """Convolution and pooling: pads cannot be used together with auto_pad."""
    if node.text("auto_pad", "NOTSET") != "NOTSET" and "pads" in node.attributes:
        return "pads cannot be used together with auto_pad"
    return ""


def _check_division(node: Node) -> str:
    """Div, Mod: integers divided by 0 are undefined."""
    divisor = node.inputs[1] if len(node.inputs) > 1 else None
    if divisor is not None and divisor.value.dtype.kind in "iu" and bool((divisor.value == 0).any()):
        return "integers are divided by 0"
    return ""


def _optional(node: Node) -> str:
    """OptionalGetElement: of an empty optional it is an error, and whether one is empty is seen at run time alone."""
    around = node.surroundings
    made = {name for proto in around.before for name in proto.input} if around else {"some"}
    return "" if made else "the optional is empty"


def _check_grouped(node: Node) -> str:
    """GroupQueryAttention: the kernels state limits that the page does not have: heads of a multiple of 16, and one
    batch where several tokens follow a past."""
    query, past = node.inputs[0], node.value("past_key")
    heads = node.integer("num_heads", 1) + (0 if node.value("key") is not None else 2 * node.integer("kv_num_heads", 1))
    if query is None or query.value.ndim != 3 or not heads or query.value.shape[-1] // heads % 16:
        return "the size of a head is no multiple of 16"
    batch, sequence, _ = query.value.shape
    return "several tokens of several batches follow a past" if past is not None and batch > 1 < sequence else ""


def _check_random(node: Node) -> str:
    """Dropout in training draws at random, unless its ratio is 0."""
    training = node.value("training_mode")
    ratio = node.value("ratio")
    if ratio is not None and not bool(np.all((ratio >= 0) & (ratio < 1))):
        return "the ratio is outside of [0, 1)"
    if training is None or not bool(np.all(training)):
        return ""
    return "" if ratio is not None and float(ratio.reshape(-1)[0]) == 0 else "what is dropped is random"


RULES: Mapping[str, Callable[[Node], str]] = {
    "RotaryEmbedding": lambda node: _rotary(node) or _head(node) or counts.check_caches(node),
    "MeanVarianceNormalization": lambda node: _axes(node) or _constant(node),
    "Pad": _pad,
    **dict.fromkeys(("ReduceMean", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp"), _check_reduction),
    "Attention": _attention,
    "RNN": _recurrent,
    "GRU": _recurrent,
    "LSTM": _recurrent,
    "Dropout": _check_random,
    "Shrink": _shrunk,
    "DFT": _inverse,
    **dict.fromkeys(("GroupNormalization", "GroupNorm", "InstanceNormalization", "BatchNormalization"), _epsilon),
    "ReverseSequence": _lengths,
    "Crop": _check_crop,
    "MaxUnpool": places.check_max_unpool,
    "RoiAlign": places.check_roi_align,
    "GridSample": places.check_grid_sample,
    "Clip": places.check_clip,
    "MultiHeadAttention": places.check_bias,
    "DynamicQuantizeMatMul": _matrices,
    **dict.fromkeys(("ReduceMax", "ReduceMin", "Max", "Min", "GlobalMaxPool", "MaxRoiPool"), _zeros),
    **dict.fromkeys(("LayerNormalization", "SimplifiedLayerNormalization", "RMSNormalization"), _check_normalization),
    **dict.fromkeys(("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"), _check_skip),
    "Div": _check_division,
    "Mod": _check_division,
    "OptionalGetElement": _optional,
    "GroupQueryAttention": _check_grouped,
    **dict.fromkeys(
        (
            "Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "FusedConv", "NhwcConv", "AveragePool", "MaxPool",
            "LpPool", "DmlFusedConv", "DmlFusedConvTranspose", "ConvTransposeWithDynamicPads",
        ),
        _windows,
    ),
    "MaxPool": lambda node: _windows(node) or _zeros(node),
    **dict.fromkeys(("QLinearAdd", "QLinearMul"), lambda node: _check_scales(node) or counts.check_zero_points(node)),
    **dict.fromkeys(("QLinearGlobalAveragePool", "QLinearConcat"), counts.check_zero_points),
    "QLinearAveragePool": lambda node: _windows(node) or counts.check_zero_points(node),
    "AffineGrid": counts.grid,
    "QuantizeLinear": lambda node: counts.check_blocks(node) or places.check_float8(node),
    "DequantizeLinear": counts.check_blocks,
    "Compress": counts.check_selected,
    "Split": counts.check_split,
    "OneHot": counts.hot,
    "FusedMatMulActivation": counts.check_activation,
    "TfIdfVectorizer": counts.grams,
    "MatMulNBits": counts.check_widths,
}  # fmt: skip
"""Operator -> why its page leaves a node open."""
