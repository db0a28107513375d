"""com.microsoft::BifurcationDetector: the tokens that a prediction adds, and where the source goes on after them.

Source: ONNX Runtime's ContribOperators.md. It gives the match as the start of the n-gram and uses it, as
prev_suffix_match_idx, where the source goes on behind the n-gram; and it does not say of which n-gram, of those that
max_ngram_size and min_ngram_size allow. Any of these is accepted where there is a match; that there is none is -1.
prev_suffix_match_idx without pred_tokens means nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.case import CaseContext, expect_refusal
from epcheck.generators.families.drawn import Drawn, DrawnSample
from epcheck.generators.node import Attribute, Node
from epcheck.generators.truth import Output, Outputs, Refusal, Truth, Undefined

DECLARES = ("com.microsoft::BifurcationDetector",)

Tokens = tuple[int, ...]
ONE_DTYPE = "tokens are int64 and have one dimension"
SOURCE: Tokens = (1, 5, 3, 4, 2, 7, 3, 4, 9, 8, 6, 5)


@dataclass(frozen=True, kw_only=True)
class BifurcationSample(DrawnSample):
    """source, current, predicted: the tokens. start: prev_suffix_match_idx."""

    source: Tokens = SOURCE
    current: Tokens = (0, 11)
    predicted: Tokens = ()
    start: int = 0


def _sample(name: str, least: int, most: int, **members: object) -> BifurcationSample:
    attributes: Mapping[str, Attribute] = {"min_ngram_size": least, "max_ngram_size": most}
    present = ("pred_tokens",) if members.get("predicted") else ()
    return BifurcationSample(name=name, attributes=attributes, present=present, **members)  # type: ignore[arg-type]


def samples() -> Iterator[BifurcationSample]:
    for least, most in ((1, 1), (1, 3), (2, 2), (2, 4), (3, 3)):
        label = f"{least}_to_{most}"
        for name, current in {
            "no_match": (0, 11), "match_at_the_begin": (0, 1, 5, 3), "match_inside": (0, 4, 2, 7),
            "two_matches": (0, 11, 3, 4), "match_at_the_end": (0, 8, 6, 5), "two_matches_of_the_shorter": (11, 7, 3, 4),
            "short": (2,),
        }.items():  # fmt: skip
            yield _sample(f"{name}_of_{label}", least, most, current=current)
        for start in (0, 4, 11, 12):
            rest = SOURCE[start:]
            for agree in sorted({0, len(rest) // 2, len(rest)}):
                predicted = (*rest[:agree], *(20 + i for i in range(len(rest) + 1 - agree)))
                yield _sample(
                    f"predicted_{agree}_from_{start}_of_{label}", least, most, start=start, predicted=predicted
                )
    long = tuple(np.random.Generator(np.random.Philox(key=1)).permutation(1500).tolist())
    yield _sample(
        "source_1500", 1, 3, source=long, current=long[700:705], start=705, predicted=(*long[705:1400], *[0] * 101)
    )
    yield _sample("no_source", 1, 1, source=(), current=(3,), start=0, predicted=(4,))
    yield expect_refusal(_sample("predicted_too_short", 1, 2, predicted=SOURCE))
    yield expect_refusal(_sample("start_beyond_source", 1, 2, start=13, predicted=(1,)))
    yield expect_refusal(_sample("start_below_0", 1, 2, start=-1, predicted=(*SOURCE, 1, 2)))
    yield expect_refusal(_sample("least_above_most", 3, 2))
    yield expect_refusal(_sample("least_0", 0, 2))


def draw(sample: BifurcationSample, _context: CaseContext) -> Mapping[str, Array]:
    values = {"src_tokens": sample.source, "cur_tokens": sample.current, "pred_tokens": sample.predicted}
    found = {name: np.array(tokens, np.int64) for name, tokens in values.items()}
    return {**found, "prev_suffix_match_idx": np.array([sample.start], np.int64)}


def _find(source: list[int], gram: list[int]) -> list[int]:
    return [at for at in range(len(source) - len(gram) + 1) if source[at : at + len(gram)] == gram]


def truth(node: Node) -> Truth:
    source, current = node.array("src_tokens").tolist(), node.array("cur_tokens").tolist()
    start, predicted = int(node.array("prev_suffix_match_idx")[0]), node.value("pred_tokens")
    least, most = node.integer("min_ngram_size", 0), node.integer("max_ngram_size", 0)
    if not 0 < least <= most:
        return Refusal(f"min_ngram_size {least} must be above 0 and at most max_ngram_size {most}")
    tokens = current
    if predicted is not None:
        added = predicted.tolist()
        if not 0 <= start <= len(source) or len(added) != len(source) + 1 - start:
            return Refusal(f"pred_tokens must have one token more than the source from {start} on")
        agree = next((i for i, (p, s) in enumerate(zip(added, source[start:], strict=False)) if p != s), len(added) - 1)
        tokens = current + added[: agree + 1]
    matches = set()
    for size in range(least, min(most, len(tokens)) + 1):
        places = _find(source, tokens[len(tokens) - size :])
        if len(places) == 1:
            matches |= {places[0], places[0] + size}
    accepted = np.array(sorted(matches) or [-1], np.int64)
    index = Output("suffix_match_idx", accepted[-1:])
    if matches:
        index = Output("suffix_match_idx", accepted[-1:], undefined=Undefined(np.array([True]), accepted))
    return Outputs((Output("tokens", np.array(tokens, np.int64)), index))


OPERATORS = (
    Drawn("BifurcationDetector", samples, draw, truth, ("src_tokens",), first=("int64",)).declare(
        without_rank_dtypes=ONE_DTYPE
    ),
)
