"""What the standard says of a node: which outputs are right, and how far a provider may be away from them."""

from __future__ import annotations

from dataclasses import dataclass

from epcheck.generators.array import Array
from epcheck.generators.citation import Citations


@dataclass(frozen=True)
class Exact:
    """Every element equals the truth: same bits, except that any NaN equals any NaN."""


@dataclass(frozen=True)
class Ulp:
    """At most `bound` ULP of the output dtype away from the float64 truth.

    floor: absolute difference that is always accepted (results near zero by cancellation): one for all elements, or
    float64 of the output's shape.
    citations: where the bound comes from; a bound without a source is not a bound.
    is_one_rounding: the result is one operation of IEEE 754-2019, 5.4, which gives the exact result rounded to the
    nearest, ties to even: a target that keeps to IEEE 754 gives `Output.value` itself.
    """

    bound: float
    citations: Citations
    floor: float | Array = 0.0
    is_one_rounding: bool = False


@dataclass(frozen=True)
class OneStep:
    """Quantised output: the exact integer, or one step beside it where `allowed` (bool, the output's shape) is set."""

    allowed: Array


Bound = Exact | Ulp | OneStep


@dataclass(frozen=True)
class ZeroSigns:
    """A zero of an output within ULP has the sign of the truth, which a distance in ULP does not see.

    source: who defines the sign; a rule without a source is not a rule. where: for which elements it does: all, or bool
    of the output's shape.
    """

    source: str
    where: bool | Array = True


@dataclass(frozen=True)
class Undefined:
    """Elements of an output for which the standard defines nothing.

    where: bool of the output's shape. among: 1-D, of its dtype: what may stand there, where the operator only moves
    data; None for anything.
    """

    where: Array
    among: Array | None = None


@dataclass(frozen=True)
class Output:
    """The truth of one output.

    value: the true result, rounded once to the output dtype.
    exact: the result before that rounding (float64), where ULP are measured; None when `value` is exact itself.
    zeros: which zeros must have the sign of the truth, beside the bound; None where nobody defines it. `Exact` needs
    none: it compares the signs of all.
    undefined: the elements that have no truth; `value` holds there whatever it holds. None for none.
    """

    name: str
    value: Array
    bound: Bound = Exact()
    exact: Array | None = None
    zeros: ZeroSigns | None = None
    undefined: Undefined | None = None


@dataclass(frozen=True)
class Outputs:
    """The standard defines every output element, but those of `Output.undefined`.

    undefined: what the standard leaves open, and who says so: the node may be refused as well. Empty where it may not.
    """

    outputs: tuple[Output, ...]
    undefined: str = ""


@dataclass(frozen=True)
class Selection:
    """The standard defines which elements are selected along an axis, and the values must be those at the indices.

    accepted: the (values, indices) pairs that follow the standard, the preferred one first; more than one
    where the standard leaves an order open (NaN).
    ordered: the order along `axis` is defined too; otherwise any permutation of an accepted pair is right.
    names: of the two outputs, values and indices.
    """

    data: Array
    axis: int
    accepted: tuple[tuple[Array, Array], ...]
    ordered: bool
    names: tuple[str, str]


@dataclass(frozen=True)
class Refusal:
    """The node must be refused with a clean error; `reason` says which rule of the standard it breaks."""

    reason: str


@dataclass(frozen=True)
class Open:
    """The oracle cannot judge the node; `reason` says why, in words."""

    reason: str


Truth = Outputs | Selection | Refusal
