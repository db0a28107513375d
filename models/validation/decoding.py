"""Decode as applications do: a decoder with a cache runs a prompt and further tokens in several modes, and each call is
held against the whole sequence, computed at once.

The whole sequence, without a cache, is the definition of what a decoder computes: a token's logits, keys and values
depend on the tokens up to it alone. So the logits of a call are those of its positions in one pass, and its caches are
the keys and values of one pass up to there, whatever was computed in calls before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx

from epcheck.generators.array import Array
from epcheck.models.accuracy import verdict
from epcheck.models.accuracy.thresholds import Override, Threshold
from epcheck.models.accuracy.verdict import Verdict
from epcheck.models.execution.model_outcome import DONE, ModelOutcome
from epcheck.models.execution.model_source import LARGE_BYTES
from epcheck.models.execution.session import Level, ModelSessions
from epcheck.models.feeds import dims as dimensions
from epcheck.models.feeds import feeds
from epcheck.models.feeds.decoder import (
    IDS,
    LOGITS,
    MASK,
    Batch,
    Decoder,
    feed_call,
    find_decoder,
    find_misfits,
    find_positions,
    read_row,
)
from epcheck.models.feeds.trials import Trial
from epcheck.models.graph.feed import Feed
from epcheck.models.inspection.inspect import Inspection
from epcheck.models.validation import truth
from epcheck.models.validation.generation import (
    CHUNKS,
    GREEDY,
    ONE_PASS,
    SHARED,
    STEPS,
    UNEQUAL,
    WINDOW,
    DecodingFault,
    DecodingMode,
    Generation,
)
from epcheck.models.validation.judging import OutputJudge, Outputs, judge_outputs
from epcheck.models.validation.runnable import RunnableModel

PROMPT, CHUNK_COUNT = 8, 3
"""Tokens of a prompt that is made up, and the chunks that it is read in."""

MOST_TOKENS = 256
"""Of a sequence whose prompt is made longer so that the steps pass the model's window."""


@dataclass(frozen=True)
class DecodingRequest:
    """A decoder to decode. model: that the candidate runs. original: that baseline and oracle compute. trial: whose
    tokens are the prompt, if they are the user's. steps: tokens behind the prompt. level, baseline_level: of graph
    optimisation. override: of thresholds."""

    model: RunnableModel
    original: RunnableModel
    trial: Trial
    steps: int
    level: Level
    baseline_level: Level
    override: Override


RunCall = Callable[[Mapping[str, Feed], Mapping[str, str]], ModelOutcome]
"""Runs the model once. The second argument: input -> output that is written into its buffer."""


@dataclass(frozen=True)
class Whole:
    """Sequences in one pass. true: the outputs of the oracle, None where it has none. baseline: those of the baseline.
    words: who computed the truth. evaluate: the oracle's outputs with random rounding; True: each node rounds once."""

    true: Outputs | None
    baseline: Mapping[str, Array] | None
    words: str
    thresholds: Mapping[str, Threshold]
    evaluate: Callable[[bool], Iterator[Outputs]]
    rounded: dict[bool, list[Outputs]] = field(default_factory=dict)

    @property
    def logits(self) -> Array | None:
        """[rows, tokens, vocabulary], of the oracle, else of the baseline."""
        known = self.true if self.true is not None and LOGITS in self.true else self.baseline
        found = None if known is None else known.get(LOGITS)
        return found if isinstance(found, np.ndarray) else None

    def evaluate_again(self, once: bool) -> Iterator[Outputs]:
        """The same outputs with random rounding for every part that is judged, computed when they are first asked
        for."""
        if once not in self.rounded:
            self.rounded[once] = list(self.evaluate(once))
        yield from self.rounded[once]


Compute = Callable[[Batch], Whole]
"""Computes sequences in one pass, without padding and cache."""


@dataclass(frozen=True)
class Schedule:
    """How sequences are decoded in a mode. widths: places of each call. shares: whether past and present are one
    buffer."""

    mode: str
    batch: Batch
    widths: tuple[int, ...]
    shares: bool = False


@dataclass(frozen=True)
class Call:
    """A call of a model. places: the first, and the one behind the last, that it computes. misfit: the name of an
    output that has another shape than it should, and how."""

    index: int
    places: tuple[int, int]
    outcome: ModelOutcome
    misfit: tuple[str, str] | None = None


def run_calls(decoder: Decoder, schedule: Schedule, run: RunCall) -> Iterator[Call]:
    """The calls of a mode, each with the caches that the one before it gave; the last is one that fails."""
    start, total = 0, sum(schedule.widths)
    caches = decoder.make_caches(len(schedule.batch.prompts), total if schedule.shares else 0)
    shared = {each.past: each.present for each in decoder.caches} if schedule.shares else {}
    for index, width in enumerate(schedule.widths):
        outcome = run(feed_call(decoder, schedule.batch, start, width) | caches, shared)
        length = total if schedule.shares else start + width
        misfits = find_misfits(decoder, outcome.outputs, len(schedule.batch.prompts), width, length)
        misfit = next(misfits, None) if outcome.is_done else None
        yield Call(index, (start, start + width), outcome, misfit)
        if not outcome.is_done or misfit:
            return
        caches = {each.past: outcome.outputs[each.present] for each in decoder.caches}
        start += width


def plan_modes(tokens: Array, prompt: int) -> tuple[Schedule, ...]:
    """The modes whose tokens are known before. tokens: [rows, length], whose last rows are those of the batch."""
    count = tokens.shape[1] - prompt
    alone = Batch(tokens[:1], (prompt,))
    steps = (prompt, *(1,) * count)
    chunk = -(-prompt // CHUNK_COUNT)
    chunks = tuple(min(chunk, prompt - at) for at in range(0, prompt, chunk))
    unequal = Batch(tokens, (max(1, prompt // 2), *(prompt,) * (len(tokens) - 1)))
    return (
        Schedule(ONE_PASS, Batch(tokens, (tokens.shape[1],) * len(tokens)), tokens.shape[1:]),
        Schedule(STEPS, alone, steps),
        Schedule(CHUNKS, alone, (*chunks, 1)),
        Schedule(UNEQUAL, unequal, steps),
        Schedule(SHARED, alone, steps, shares=True),
    )


def find_obstacle(decoder: Decoder, mode: str, has_buffers: bool) -> str:
    """Why a model cannot be decoded in a mode; empty where it can. has_buffers: whether the target has some that can be
    bound."""
    if mode == SHARED and not has_buffers:
        return "the target has no buffers that can be bound"
    if mode == UNEQUAL and decoder.batch == 1:
        return "the model takes a batch of 1 alone"
    if mode == UNEQUAL and MASK not in decoder.dtypes:
        return "the model has no attention_mask"
    if mode == SHARED and not decoder.has_group_query:
        return "no GroupQueryAttention writes its caches: what it gives is longer than what it reads"
    return ""


class Generating:
    """Decodes a model in every mode. run, run_baseline: of the candidate and the baseline; None without one.
    has_buffers: as of `find_obstacle`."""

    def __init__(
        self, decoder: Decoder, run: RunCall, run_baseline: RunCall | None, compute: Compute,
        is_spent: Callable[[], bool], has_buffers: bool,
    ) -> None:  # fmt: skip
        self._has_buffers = has_buffers
        self._decoder, self._run, self._run_baseline = decoder, run, run_baseline
        self._compute, self._is_spent = compute, is_spent

    def decode(self, tokens: Array, prompt: int) -> Generation:
        """The modes, one after the other until the time is up. tokens: [rows, prompt and the tokens behind it]."""
        whole = self._compute(Batch(tokens, (tokens.shape[1],) * len(tokens)))
        modes = [self._decode_mode(schedule, whole) for schedule in plan_modes(tokens, prompt)]
        shares = any(mode.name == SHARED and not mode.skipped for mode in modes)
        modes.append(self._decode_greedily(Batch(tokens[:1].copy(), (prompt,)), shares, whole))
        if self._decoder.window:
            modes = list(set_window_apart(modes, self._decoder.window, tokens.shape[1]))
        return Generation(prompt, tokens.shape[1] - prompt, whole.words, tuple(modes))

    def _decode_mode(self, schedule: Schedule, whole: Whole) -> DecodingMode:
        found = DecodingMode(schedule.mode)
        obstacle = find_obstacle(self._decoder, schedule.mode, self._has_buffers) or self._why_not(whole)
        if obstacle:
            return replace(found, skipped=obstacle)
        for call in run_calls(self._decoder, schedule, self._run):
            fault, undecided = self._judge_call(schedule, call, whole)
            found = replace(found, calls=call.index + 1, undecided=found.undecided or undecided)
            if fault is not None:
                return self._ask_baseline(replace(found, fault=fault), schedule, whole)
            if self._is_spent():
                return replace(found, skipped="the budget is spent")
        return found

    def _why_not(self, whole: Whole) -> str:
        if whole.logits is None:
            return f"there is nothing to compare with: {whole.words}"
        return "the budget is spent" if self._is_spent() else ""

    def _judge_call(self, schedule: Schedule, call: Call, whole: Whole) -> tuple[DecodingFault | None, str]:
        """The first fault of a call, and why an output cannot be decided on."""
        step = DecodingFault(schedule.mode, call.index, call.places[0])
        if not call.outcome.is_done:
            return replace(step, why=f"{call.outcome.during} ends with: {call.outcome.message}"), ""
        if call.misfit is not None:
            return replace(step, output=call.misfit[0], position=call.places[0], why=call.misfit[1]), ""
        undecided = ""
        for row in range(len(schedule.batch.prompts)):
            mine = read_row(self._decoder, schedule.batch, call.outcome.outputs, row, call.places)
            if schedule.mode == UNEQUAL and not self._decoder.has_positions:
                mine = {LOGITS: mine[LOGITS]}  # padding moves the keys as well, which relative positions permit
            at = find_positions(self._decoder, schedule.batch, call.places[1])[row]
            last = int(at.max(initial=-1)) + 1
            for judged in sorted(judge_part(whole, row, last, mine), key=lambda each: each.against != verdict.ORACLE):
                place = f"'{judged.output}' of row {row}" if len(schedule.batch.prompts) > 1 else f"'{judged.output}'"
                undecided = undecided or (f"{place} in call {call.index}: {judged.why}" if judged.undecided else "")
                if judged.wrong:
                    position = find_first_position(whole, row, last, mine, judged.output)
                    cached = int((at[: call.places[0]] >= 0).sum())
                    return replace(step, row=row, position=position, output=judged.output, against=judged.against,
                                   why=judged.why, cache=cached), undecided  # fmt: skip
        return None, undecided

    def _ask_baseline(self, found: DecodingMode, schedule: Schedule, whole: Whole) -> DecodingMode:
        """The mode, with whether the baseline departs in it as well: then the model is at fault, or what it is fed. A
        mode in which both end with an error is none that the model has, unless every application decodes so."""
        fault = found.fault
        if self._run_baseline is None or fault is None or (schedule.mode == ONE_PASS and fault.output):
            return found
        for call in run_calls(self._decoder, schedule, self._run_baseline):
            alike, _ = self._judge_call(schedule, call, whole)
            is_alike = alike is not None and bool(alike.output) == bool(fault.output)
            if is_alike and not fault.output and schedule.mode not in (STEPS, GREEDY):
                return replace(found, fault=None, skipped=f"candidate and baseline do not run so: {fault.why}")
            if is_alike:
                return replace(found, fault=replace(fault, is_of_model=True))
            if alike is not None or call.index == fault.call:
                break
        return found

    def _decode_greedily(self, batch: Batch, shares: bool, whole: Whole) -> DecodingMode:
        """Each token is the one of the largest logit. The truth is computed of the tokens that the candidate chose: up
        to the first that departs, both chose the same."""
        found, (prompt,) = DecodingMode(GREEDY), batch.prompts
        obstacle = self._why_not(whole)
        if obstacle:
            return replace(found, skipped=obstacle)
        schedule = Schedule(GREEDY, batch, (prompt, *(1,) * (batch.tokens.shape[1] - prompt)), shares)
        calls = []
        for call in run_calls(self._decoder, schedule, self._run):
            calls.append(call)
            if not call.outcome.is_done or call.misfit:
                fault, _ = self._judge_call(schedule, call, whole)
                return self._ask_baseline(replace(found, fault=fault), schedule, whole)
            if call.places[1] < batch.tokens.shape[1]:  # read by the next call
                batch.tokens[0, call.places[1]] = int(np.argmax(call.outcome.outputs[LOGITS][0, -1]))
            if self._is_spent():
                return replace(found, skipped="the budget is spent")
        return replace(self._compare_tokens(found, schedule, calls, self._compute(batch)), calls=len(calls))

    def _compare_tokens(
        self, found: DecodingMode, schedule: Schedule, calls: Sequence[Call], whole: Whole
    ) -> DecodingMode:
        if whole.logits is None:
            return replace(found, skipped=self._why_not(whole))
        ties = []
        for call in calls:
            true, mine = whole.logits[0, call.places[1] - 1], call.outcome.outputs[LOGITS][0, -1]
            best, chosen = int(np.argmax(true)), int(np.argmax(mine))
            if best == chosen:
                continue
            words = (f"token {call.index + 1} is {chosen}, and {best} in the truth, where its logit is larger by "
                     f"{float(true[best] - true[chosen]):.3g}")  # fmt: skip
            fault, _ = self._judge_call(schedule, call, whole)
            if fault is not None:
                return self._ask_baseline(
                    replace(found, fault=replace(fault, why=f"{words}; {fault.why}")), schedule, whole
                )
            ties.append(f"{words}: a tie within the bound")
        return replace(found, note=ties[0] if ties else f"all {len(calls)} tokens are those of the truth")


def set_window_apart(modes: Sequence[DecodingMode], window: int, length: int) -> Iterator[DecodingMode]:
    """The modes, and that beyond the window, which takes over the first fault of a position that the window does not
    reach back from to the first token. length: of the sequences."""
    beyond = DecodingMode(WINDOW)
    if length <= window:
        beyond = replace(beyond, skipped=f"the window of {window} tokens is longer than the sequence of {length}")
    for mode in modes:
        if mode.fault is not None and mode.fault.output and mode.fault.position >= window:
            beyond = beyond if beyond.fault else replace(beyond, fault=mode.fault)
            mode = replace(mode, fault=None, note="up to the window")
        yield mode
    calls = max((mode.calls for mode in modes), default=0)
    yield replace(beyond, calls=0 if beyond.skipped else calls)


def judge_part(whole: Whole, row: int, last: int, outputs: Mapping[str, Array]) -> list[Verdict]:
    """The verdicts on what a call made of a sequence, logits [tokens, vocabulary] and caches [heads, tokens, size].
    last: the position behind its last token."""

    def cut(values: Mapping[str, Feed]) -> dict[str, Array]:
        return {name: _cut(name, value, row, last, outputs[name]) for name in outputs
                if isinstance(value := values.get(name), np.ndarray)}  # fmt: skip

    known = whole.true and cut(whole.true), whole.baseline and cut(whole.baseline)
    asked = f"row {row}", outputs, known[1], known[0], whole.thresholds
    return judge_outputs(asked, lambda once: (cut(values) for values in whole.evaluate_again(once)))


def _cut(name: str, value: Array, row: int, last: int, like: Array) -> Array:
    """The part of a value of whole sequences that a call has."""
    return value[row, last - len(like) : last] if name == LOGITS else value[row, :, :last]


def find_first_position(whole: Whole, row: int, last: int, outputs: Mapping[str, Array], name: str) -> int:
    """The first position of a sequence at which an output is wrong by itself; the last where none is."""
    mine = outputs[name]
    first = last - len(mine) if name == LOGITS else 0
    known = whole.true if whole.true is not None and name in whole.true else whole.baseline
    theirs = None if known is None else known.get(name)
    if not isinstance(theirs, np.ndarray):
        return last - 1
    for position in range(first, last):
        if name == LOGITS:
            pair = mine[position - first], theirs[row, position]
        else:
            pair = mine[:, position], theirs[row, :, position]
        baseline, true = (None, {name: pair[1]}) if known is whole.true else ({name: pair[1]}, None)
        judged = verdict.judge("", {name: pair[0]}, baseline, true, whole.thresholds)
        if any(each.wrong for each in judged):
            return position
    return last - 1


def make_tokens(model: onnx.ModelProto, decoder: Decoder, trial: Trial, steps: int) -> tuple[Array, int]:
    """Tokens [rows, prompt and `steps` behind it], and how many are the prompt's. The prompt is that of the user's
    feeds, whose tokens then follow once more; otherwise it is made up, and made longer where the steps then pass the
    window. The second row has the tokens of the first one place later."""
    prompt = PROMPT
    own = trial.inputs.get(IDS)
    if decoder.window and PROMPT + steps <= decoder.window <= MOST_TOKENS - steps:
        prompt = max(PROMPT, decoder.window - steps // 2)
    if not trial.is_generated and isinstance(own, np.ndarray) and own.size:
        mask = trial.inputs.get(MASK)
        row = own[0][np.asarray(mask)[0, -own.shape[1] :] != 0] if isinstance(mask, np.ndarray) else own[0]
        prompt, tokens = row.size, np.resize(row, row.size + steps)
    else:
        (axis,) = (value.type.tensor_type.shape.dim[1] for value in model.graph.input if value.name == IDS)
        made = feeds.generate(model, 0, {dimensions.name_of(IDS, 1, axis): prompt + steps})[IDS]
        tokens = np.asarray(made)[0]
    rows = [tokens] if decoder.batch == 1 else [tokens, np.roll(tokens, 1)]
    return np.stack(rows).astype(np.int64), prompt


def decode_model(
    request: DecodingRequest,
    inspection: Inspection,
    sessions: tuple[ModelSessions, ModelSessions | None],
    is_spent: Callable[[], bool],
) -> Generation:
    """Decode a model in every mode. inspection: of its file. sessions: of the candidate and the baseline. Raises
    NotADecoderError, FeedError."""
    candidate, baseline = sessions
    decoder = find_decoder(request.model.graph)
    apart = inspection.bytes > LARGE_BYTES
    run = make_run_call(request.model, candidate, request.level, baseline if apart else None)
    run_baseline = None
    if baseline is not None:
        run_baseline = make_run_call(request.original, baseline, request.baseline_level, candidate if apart else None)
    compute = make_compute(request, decoder, inspection, run_baseline, baseline)
    has_buffers = candidate.target.provider is not None and candidate.target.device is not None
    tokens, prompt = make_tokens(request.model.graph, decoder, request.trial, request.steps)
    return Generating(decoder, run, run_baseline, compute, is_spent, has_buffers).decode(tokens, prompt)


def make_run_call(
    model: RunnableModel, sessions: ModelSessions, level: Level, instead_of: ModelSessions | None
) -> RunCall:
    """Run the model in sessions. instead_of: sessions whose worker is ended before, where there is memory for one of
    the two only."""

    def run(fed: Mapping[str, Feed], shared: Mapping[str, str]) -> ModelOutcome:
        if instead_of is not None:
            instead_of.end_worker()
        return sessions.run_in_place(model.run, fed, shared, level, model.folder)

    return run


def make_compute(
    request: DecodingRequest,
    decoder: Decoder,
    inspection: Inspection,
    run_baseline: RunCall | None,
    baseline: ModelSessions | None,
) -> Compute:
    """Compute whole sequences by the oracle and the baseline. inspection: of the file."""

    def keep_fitting(outputs: Mapping[str, Any], batch: Batch) -> dict[str, Any]:
        """What has the shape that whole sequences give."""
        length = batch.tokens.shape[1]
        misfits = dict(find_misfits(decoder, outputs, len(batch.tokens), length, length))
        return {name: value for name, value in outputs.items() if name not in misfits}

    def compute(batch: Batch) -> Whole:
        length = batch.tokens.shape[1]
        batch = Batch(batch.tokens, (length,) * len(batch.tokens))
        trial = Trial("the whole sequence", feed_call(decoder, batch, 0, length) | decoder.make_caches(
            len(batch.tokens), 0), ())  # fmt: skip
        outcome = run_baseline(trial.inputs, {}) if run_baseline else None
        judge = OutputJudge(request.original, [trial], request.override)
        known = judge.find_truth(inspection, [ModelOutcome(DONE)], baseline)
        substitutes = known.substitutes[0] if known.substitutes else {}
        true = known.values[0] and keep_fitting(known.values[0], batch)
        own = keep_fitting(outcome.outputs, batch) if outcome and outcome.is_done else None
        instead = "; the baseline's answer in one pass takes its place" if own and not true else ""
        return Whole(
            true, own, f"{known.words}{instead}", judge.thresholds,
            lambda once: judge.evaluate_with_rounding(trial, substitutes, truth.ORACLE_S, once),
        )  # fmt: skip

    return compute
