"""What came of decoding a model with its cache: the modes, and where one departs from the whole sequence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

ONE_PASS, STEPS, CHUNKS = "in one pass", "token by token", "with the prompt in chunks"
UNEQUAL, SHARED = "in a batch of unequal lengths", "with past and present in one buffer"
GREEDY, WINDOW = "in greedy decoding", "beyond the window"
"""Modes, as they stand behind `right` and `wrong`."""

REMEDIES = {
    ONE_PASS: "find the nodes at fault: validate it without --generate",
    STEPS: "correct at which end the cache takes new tokens, and the position_ids of a token behind the prompt",
    CHUNKS: "correct the causal mask and the positions of several tokens behind a cache",
    UNEQUAL: "correct how attention_mask and position_ids leave padding out",
    SHARED: "correct what the model takes for the length of a cache whose buffer is longer",
    GREEDY: "see the first step whose logits are wrong",
    WINDOW: "correct the size of the window: the token itself counts",
}
"""Mode -> what to correct in a model that is at fault."""


@dataclass(frozen=True)
class DecodingFault:
    """The first call of a mode that departs. mode: in which it was seen. call: its index; 0 has the prompt, or a part
    of it. place: the first that the call computes. cache: tokens of the row in front of it. row: of the batch.
    position: of the first token that is wrong. output: its name; empty where the call ends with an error. against:
    `oracle` or `baseline`, of the whole sequence; empty where the shape is wrong. why: how far off, in a sentence.
    is_of_model: whether the baseline departs in the mode as well."""

    mode: str
    call: int
    place: int
    cache: int = 0
    row: int = 0
    position: int = 0
    output: str = ""
    against: str = ""
    why: str = ""
    is_of_model: bool = False

    @property
    def where(self) -> str:
        """`token by token from step 5 with a cache of 12`."""
        if self.mode == ONE_PASS:
            return self.mode
        kind = "chunk" if self.mode == CHUNKS else "step"
        at = "in the prompt" if self.call == 0 and kind == "step" else f"from {kind} {self.call + (kind == 'chunk')}"
        return f"{self.mode} {at}{f' with a cache of {self.cache}' if self.cache else ''}"

    @property
    def words(self) -> str:
        """Where and how far off, in a part of a sentence."""
        if not self.output:
            return f"{self.where}: {self.why}"
        if not self.against:
            return f"{self.where}: '{self.output}': {self.why}"
        row = f" of row {self.row}" if self.mode == UNEQUAL else ""
        return f"{self.where}: '{self.output}'{row} at position {self.position}, against the {self.against}: {self.why}"


@dataclass(frozen=True)
class DecodingMode:
    """A mode. calls: how many were compared. fault: the first. undecided: of which output nobody can tell, and why.
    skipped: why it was not decoded, or not to its end. note: what else is known of it."""

    name: str
    calls: int = 0
    fault: DecodingFault | None = None
    undecided: str = ""
    skipped: str = ""
    note: str = ""

    @property
    def result(self) -> str:
        """`right`, `WRONG`, `undecided` or `left out`."""
        if self.fault is not None:
            return "WRONG"
        return "left out" if self.skipped else "undecided" if self.undecided else "right"

    @property
    def words(self) -> str:
        """What is known of it, in a sentence; empty for a mode that is simply right."""
        if self.fault is None:
            return self.skipped or self.undecided or self.note
        return self.fault.words if self.fault.mode == self.name else f"{self.name}, seen {self.fault.words}"

    def explains(self, other: DecodingMode) -> bool:
        """Whether another mode probably departs for the same reason."""
        if self.fault is None or other.fault is None or WINDOW in (self.name, other.name):
            return False
        is_behind = self.fault.call > 0 and other.fault.call > 0 and self.fault.is_of_model == other.fault.is_of_model
        return self.name == ONE_PASS or is_behind


@dataclass(frozen=True)
class Generation:
    """The modes of a decoder. prompt: tokens of the longest prompt; steps: tokens behind it. truth: a sentence that
    says who computed the whole sequence."""

    prompt: int
    steps: int
    truth: str
    modes: tuple[DecodingMode, ...]

    @property
    def is_compared(self) -> bool:
        """Whether any call was compared with the whole sequence."""
        return any(mode.calls for mode in self.modes)

    @property
    def is_wrong(self) -> bool:
        """Whether any mode departs."""
        return any(mode.fault for mode in self.modes)

    @property
    def obstacle(self) -> str:
        """Why nobody can tell whether it is right; empty where it is clear."""
        undecided = next((f"{mode.name}, {mode.undecided}" for mode in self.modes if mode.undecided), "")
        if self.is_compared:
            return undecided
        return f"nothing was decoded: {next((mode.skipped for mode in self.modes if mode.skipped), self.truth)}"

    @property
    def faults(self) -> Iterator[tuple[DecodingMode, str]]:
        """(mode, sentence) of each mode that departs, but for those in which it departs as in a mode before: in one
        pass, so that no cache is at fault, or behind a prompt that is right."""
        right = ", ".join(mode.name for mode in self.modes if mode.result == "right")
        wrong = [mode for mode in self.modes if mode.fault]
        while wrong:
            first = wrong[0]
            alike = [mode for mode in wrong[1:] if first.explains(mode)]
            also = f"; so {', '.join(mode.name for mode in alike)}" if alike else ""
            whose = "; the baseline departs there too" if first.fault and first.fault.is_of_model else ""
            yield first, f"{f'right {right}; ' if right else ''}wrong {first.words}{whose}{also}"
            wrong = [mode for mode in wrong[1:] if mode not in alike]
