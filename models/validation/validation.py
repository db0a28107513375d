"""The result of a validation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from epcheck.models.accuracy.verdict import AS_GOOD, EXPECTED, ORACLE, Verdict
from epcheck.models.execution.model_outcome import CREATE, DONE, RUN, STEPS
from epcheck.models.execution.session import Level
from epcheck.models.inspection.inspect import Inspection
from epcheck.models.placement.placement import Placement
from epcheck.models.validation.departures import Comparison, Departure
from epcheck.models.validation.generation import Generation
from epcheck.models.validation.names import shorten_words
from epcheck.models.validation.phases import DECIDING_NOTHING
from epcheck.models.validation.speed import Speeds
from epcheck.models.wrong_nodes.culprit import Culprit, name_culprits

RIGHT, WRONG, FAILS, REFUSED, UNJUDGED = "right", "wrong", "fails", "refused", "unjudged"
"""Statuses of a validation."""

NAMED_OUTPUTS = 3
"""Outputs that it names at most."""

CONTINUE = "continue with --resume, or with a larger --budget"

GIVE_FEEDS = "name suitable feeds with --feeds"


@dataclass(frozen=True)
class Step:
    """One trial on one target.

    stage, during, message, unwritten, repeat_differs: as in the model outcome. create_s, run_s: seconds, None where the
    step was not reached. outputs: names of what it gave. has_other: whether another trial is run in its place where it
    ends with an error.
    """

    trial: str
    target: str
    stage: str
    during: str
    message: str
    create_s: float | None
    run_s: float | None
    unwritten: tuple[str, ...]
    repeat_differs: tuple[str, ...]
    outputs: tuple[str, ...] = ()
    has_other: bool = False


@dataclass(frozen=True)
class Validation:
    """Everything that was found out about a model on a target.

    facts: target -> what its worker reports of itself: releases, device, driver. placement: None for a callable, which
    has no provider. truth: a sentence about the oracle: what it computed, or why it did not. culprit: the first node at
    fault, None where it was not looked for. other_culprits: the further ones, in the order of the graph. benign_nodes:
    wrong nodes that take no output beyond its threshold. unexplained: a sentence about the model without all of these.
    reduce_args: arguments of `epcheck reduce` that show the same failure, empty where nothing fails. feeds_generated:
    whether the feeds were generated. same_runtime: whether the baseline is the candidate's own runtime at another level
    of optimisation. seconds: phase -> how long it took. speeds: where they were asked for. random: outputs that differ
    because they depend on random numbers: they count as not compared. configuration: the notice of the `epcheck.toml`
    that nobody named, empty for none. wrong_nodes: nodes that are beyond their bounds alone, on the values that they
    should receive, whether the outputs are right or not. nodes_judged: a sentence that says how many were judged so.
    reference: the model beside the one that it was made from; None where none was named. validate_args: arguments of
    `epcheck validate` that ask the same. left_out: steps that were not done; stopped: why. generation: the modes in
    which it was decoded with its cache; None where that was not asked for.
    """

    path: Path
    target: str
    baseline: str | None
    provider: str | None
    level: Level
    facts: Mapping[str, Mapping[str, str]]
    inspection: Inspection
    placement: Placement | None
    steps: tuple[Step, ...]
    verdicts: tuple[Verdict, ...]
    truth: str
    culprit: Culprit | None
    reduce_args: tuple[str, ...] = ()
    feeds_generated: bool = False
    same_runtime: bool = False
    seconds: Mapping[str, float] = field(default_factory=dict)
    other_culprits: tuple[Culprit, ...] = ()
    benign_nodes: tuple[Culprit, ...] = ()
    unexplained: str = ""
    speeds: Speeds | None = None
    random: tuple[str, ...] = ()
    configuration: str = ""
    wrong_nodes: tuple[Culprit, ...] = ()
    nodes_judged: str = ""
    reference: Comparison | None = None
    validate_args: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    stopped: str = ""
    generation: Generation | None = None

    @property
    def plain(self) -> Validation:
        """The validation without the values that the nodes at fault received."""
        return replace(
            self,
            culprit=self.culprit and self.culprit.plain,
            other_culprits=tuple(culprit.plain for culprit in self.other_culprits),
            benign_nodes=tuple(culprit.plain for culprit in self.benign_nodes),
            wrong_nodes=tuple(culprit.plain for culprit in self.wrong_nodes),
        )

    @property
    def is_settled(self) -> bool:
        """Whether no node of the target is to be searched for: nothing is wrong that it could explain."""
        return self.status in (RIGHT, UNJUDGED) or self.is_model_at_fault or self.is_wrong_in_decoding_alone

    @property
    def unfinished(self) -> str:
        """Which steps were left out, and why, in a sentence; empty where none was."""
        return f"{self.stopped or 'not all was done'}; left out: {', '.join(self.left_out)}" if self.left_out else ""

    @property
    def culprits(self) -> tuple[Culprit, ...]:
        """All that are at fault, in the order of the graph; empty where they were not looked for."""
        return () if self.culprit is None else (self.culprit, *self.other_culprits)

    @property
    def status(self) -> str:
        """`refused`: the model does not load. `fails`: a run ends with an error, or any step in a crash or a timeout.
        `wrong`: an output is not right, is not written, or changes in the second run, a node departs from the
        reference, or a mode of decoding from the whole sequence. `unjudged`: nobody can tell, for the reason that
        `obstacle` gives. `right`: none of these."""
        failed = [step for step in self.candidate_steps
                  if step.during and step not in self.unsuitable and not self._may_be_unsuitable(step)]  # fmt: skip
        if any(step.stage == CREATE for step in failed):
            return REFUSED
        if failed:
            return FAILS
        if self._has_wrong_outputs or self.departures or (self.generation is not None and self.generation.is_wrong):
            return WRONG
        return UNJUDGED if self.obstacle else RIGHT

    @property
    def _has_wrong_outputs(self) -> bool:
        is_steady = not any(step.unwritten or step.repeat_differs for step in self.candidate_steps)
        return not is_steady or any(verdict.wrong for verdict in self.verdicts)

    @property
    def is_wrong_in_decoding_alone(self) -> bool:
        """Whether the outputs of all trials are right, and a mode of decoding departs."""
        return self.status == WRONG and not self._has_wrong_outputs and not self.departures

    @property
    def obstacle(self) -> tuple[str, str] | tuple[()]:
        """Why nobody can tell whether a model that is not wrong is right, and what to do; empty where that is clear."""
        where = self.provider or self.target
        if any(step not in DECIDING_NOTHING for step in self.left_out):
            return self.unfinished, CONTINUE
        decoded = self.generation is not None and self.generation.is_compared
        if self.unsuitable and not decoded and not any(step.stage == DONE for step in self.candidate_steps):
            return (
                f"the baseline '{self.baseline}' fails as well: the generated feeds do not suit the model",
                GIVE_FEEDS,
            )
        if self.generation is not None and (why := self.generation.obstacle):
            return why, GIVE_FEEDS
        if not self.verdicts and self.random:
            return (f"nothing was compared: {', '.join(self.random)}: random numbers, which differ from run to run"
                    ), "make them an input of the model"  # fmt: skip
        if not self.verdicts and not decoded:
            missing = f"'{self.baseline}' gives no result to compare with" if self.baseline else "no baseline"
            return f"nothing was compared: {missing}, and {self.truth}", "name another --baseline"
        if any(verdict.undecided for verdict in self.verdicts):
            names = ", ".join(dict.fromkeys(verdict.output for verdict in self.verdicts if verdict.undecided))
            what = "candidate and baseline are both far from what the oracle computes"
            return f"{what} for {names}", f"{GIVE_FEEDS}; or name another --baseline"
        if self.placement is not None and self.placement.elsewhere and not self.placement.count(where):
            return f"none of its nodes is on {where}", "see section 2 for the reason"
        return ()

    @property
    def placed_share(self) -> float | None:
        """The share of the nodes that run which are on the provider; None for a callable, and where no node is known to
        run, as where a provider without claims left no record."""
        if self.placement is None:
            return None
        count = sum(bool(node.provider) for node in self.placement.nodes)
        return self.placement.count(self.placement.provider) / count if count else None

    @property
    def error(self) -> float | None:
        """The largest relative error of an output: against the oracle, else against the baseline. None where none was
        measured."""
        by = {against: [v.metrics.relative for v in self.verdicts if v.against == against and v.metrics]
              for against in ("baseline", ORACLE)}  # fmt: skip
        return max(by[ORACLE] or by["baseline"], default=None)

    @property
    def unsuitable(self) -> tuple[Step, ...]:
        """The candidate's steps that end with an error in a run on generated feeds with which the baseline's run ends
        so as well: they do not suit the model."""
        alike = {step.trial for step in self.steps if step.target == self.baseline and step.stage == RUN}
        return tuple(
            step for step in self.candidate_steps if self.feeds_generated and step.stage == RUN and step.trial in alike
        )

    def _may_be_unsuitable(self, step: Step) -> bool:
        """Whether a step ends with an error on generated feeds that the baseline was not asked about any more."""
        unasked = {f"running on {self.baseline}", f"{step.trial} on {self.baseline}"}
        return self.feeds_generated and step.stage == RUN and not unasked.isdisjoint(self.left_out)

    @property
    def uncompared(self) -> tuple[str, ...]:
        """Trials of which nothing, or not every output that is no random number, was compared with anything."""
        compared = {(verdict.trial, verdict.output) for verdict in self.verdicts}
        return tuple(
            step.trial
            for step in self.candidate_steps
            if (step in self.unsuitable and not step.has_other)
            or any((step.trial, name) not in compared and name not in self.random for name in step.outputs)
        )

    @property
    def headline(self) -> str:
        """The result in one sentence, with long names cut."""
        return shorten_words(self.statement)

    @property
    def statement(self) -> str:
        """The result in one sentence, with whole names."""
        is_said = not self.unfinished or (self.status == UNJUDGED and self.obstacle[:1] == (self.unfinished,))
        return self._finding if is_said else f"{self._finding}; {self.unfinished}"

    @property
    def _finding(self) -> str:
        """What was found out, without what was left out."""
        name, where = self.path.name, self.provider or self.target
        match self.status:
            case "refused":
                too = "; nor does it on the baseline" if _baseline_fails_alike(self) else ""
                return f"{name} does not load on {where}{too}{self._culprit_named}"
            case "fails" if self._ends_in_creation:
                return f"{name} does not load on {where}: session creation ends the process{self._culprit_named}"
            case "fails":
                too = "; the baseline fails as well: the feeds do not suit it" if _baseline_fails_alike(self) else ""
                return f"{name} loads on {where}, but does not run{too}{self._culprit_named}"
            case "wrong" if self.is_wrong_in_decoding_alone:
                return f"{name} runs on {where}, but decodes wrongly: {_say_decoding(self)}{self._but_for_nodes}"
            case "wrong" if self.is_model_at_fault:
                return f"{name} runs on {where} as the model says, but {_say_departure(self)}{self._but_for_nodes}"
            case "wrong":
                return f"{name} runs on {where}, but its outputs are wrong{self._culprit_named}"
            case "unjudged":
                why, what_to_do = self.obstacle or ("", "")
                return f"{name}: cannot decide whether it is right on {where}: {why}; {what_to_do}{self._but_for_nodes}"
        return f"{name} {_say_placement(self, where)}{self._but_for_nodes}{_say_limits(self)}"

    @property
    def departures(self) -> tuple[Departure, ...]:
        """Where the model departs from the one that it was made from."""
        return () if self.reference is None else self.reference.departures

    @property
    def is_model_at_fault(self) -> bool:
        """Whether the candidate computes what the model says, and that is not what the user's files expect, or the
        reference computes."""
        wrong = [verdict for verdict in self.verdicts if verdict.wrong]
        is_steady = not any(step.unwritten or step.repeat_differs for step in self.candidate_steps)
        is_found = bool(wrong) or bool(self.departures)
        return self.status == WRONG and is_steady and is_found and all(verdict.blames_model for verdict in wrong)

    @property
    def nodes_beyond_bounds(self) -> str:
        """Which nodes are wrong alone, in a sentence; empty where none is."""
        if not self.wrong_nodes:
            return ""
        nodes = sum(len(culprit.innermost) for culprit in self.wrong_nodes)
        return f"{name_culprits(self.wrong_nodes)} {'is' if nodes == 1 else 'are'} wrong beyond the bound"

    @property
    def _but_for_nodes(self) -> str:
        return f", but {self.nodes_beyond_bounds}" if self.wrong_nodes else ""

    @property
    def _culprit_named(self) -> str:
        """The nodes at fault, as the end of a sentence."""
        named = name_culprits(culprit for culprit in self.culprits if culprit.is_named)
        return f": {named}" if named else ""

    @property
    def candidate_steps(self) -> tuple[Step, ...]:
        """The steps of the candidate."""
        return tuple(step for step in self.steps if step.target == self.target)

    @property
    def _ends_in_creation(self) -> bool:
        return any(step.during == STEPS[CREATE] for step in self.candidate_steps)


def _say_limits(found: Validation) -> str:
    """What limits the statement that a model is right."""
    sentence = ""
    if found.random:
        sentence = f"; not compared, since random numbers differ from run to run: {', '.join(found.random)}"
    if found.uncompared:
        trials = {step.trial for step in found.candidate_steps}
        listed = ", ".join(found.uncompared)
        sentence += f"; {len(found.uncompared)} of {len(trials)} trials were not compared: {listed}"
    if farther := list(dict.fromkeys(verdict.output for verdict in found.verdicts if verdict.is_nearer)):
        more = f" and {len(farther) - NAMED_OUTPUTS} more" if len(farther) > NAMED_OUTPUTS else ""
        sentence += (
            f"; the baseline '{found.baseline}' is more than {AS_GOOD:g} times the allowed distance from the truth: "
            f"{', '.join(farther[:NAMED_OUTPUTS])}{more}"
        )
    if reasons := list(dict.fromkeys(verdict.within_bounds for verdict in found.verdicts if verdict.within_bounds)):
        sentence += f"; right within the bounds of its nodes: {reasons[0]}"
    if found.same_runtime and not any(verdict.against in (ORACLE, EXPECTED) for verdict in found.verdicts):
        sentence += f"; it was compared with '{found.baseline}' alone, the same runtime: {found.truth}"
    return sentence


def _say_decoding(found: Validation) -> str:
    """The first mode that departs, and how many more do."""
    assert found.generation is not None
    (_, first), *others = found.generation.faults
    return f"{first}{f'; and {len(others)} more' if others else ''}"


def _say_departure(found: Validation) -> str:
    """How the model is at fault."""
    outputs = ", ".join(dict.fromkeys(verdict.output for verdict in found.verdicts if verdict.wrong))
    unexpected = f"the model is not what is expected: {outputs}" if outputs else ""
    if not found.departures:
        return unexpected
    assert found.reference is not None
    rest = len(found.departures) - 1
    more = f" and in {rest} more place{'s' if rest > 1 else ''}" if rest else ""
    departs = f"departs from '{found.reference.path.name}' first at {found.departures[0].node}{more}"
    return f"{unexpected}; it {departs}" if unexpected else f"the model {departs}"


def _say_placement(found: Validation, where: str) -> str:
    """How a model runs that is right."""
    if found.placement is None or not found.placement.elsewhere:
        return f"runs on {where} and is right"
    elsewhere, placed = len(found.placement.elsewhere), sum(bool(node.provider) for node in found.placement.nodes)
    are = "is" if elsewhere == 1 else "are"
    return f"runs and is right; {elsewhere} of its {placed} nodes {are} not on {where}"


def _baseline_fails_alike(found: Validation) -> bool:
    """Whether the baseline fails in every trial in which the candidate's failure counts, at the same stage."""
    failed = {(step.trial, step.stage) for step in found.candidate_steps
              if step.during and step not in found.unsuitable}  # fmt: skip
    return bool(failed) and failed <= {(step.trial, step.stage) for step in found.steps
                                       if step.target == found.baseline}  # fmt: skip
