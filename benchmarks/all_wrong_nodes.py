"""Whether one search names every node of a model that is deliberately wrong, and no other.

    python benchmarks/all_wrong_nodes.py               # 60 models of the zoo with 1 to 5 faults, 15 of them in float16
    python benchmarks/all_wrong_nodes.py --models 5 --polygraphy   # and Polygraphy on the same models

A fault counts when it shows in the outputs by itself, by the thresholds of `epcheck validate`; all that are planted do.
Candidate and baseline run in this process. Polygraphy compares every value of the model: the first that differs, and
all nodes whose values differ, are held against the planted ones.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import onnx

sys.path.insert(0, str(Path(__file__).parents[1]))  # a script is given its own folder alone

from benchmarks.fault_injection import polygraphy_comparison, wrong_node
from benchmarks.fault_injection.wrong_places import Place, Subject, subjects
from benchmarks.rates import child_process
from benchmarks.wrong_nodes import shows
from epcheck.models.wrong_nodes.all_wrong_nodes import all_wrong_nodes
from epcheck.models.wrong_nodes.culprit import NAMED

MOST_FAULTS = 5
FLOAT16 = "resnet_float16"
"""The architecture of the zoo in float16; each fourth model is one."""


@dataclass(frozen=True)
class Outcome:
    """What an `runner.Runner` gives."""

    stage: str
    message: str = ""
    outputs: Mapping[str, Any] = field(default_factory=dict)
    repeat_differs: Sequence[str] = ()
    during: str = ""


@dataclass(frozen=True)
class Faulty:
    """ONNX Runtime's CPU provider in this process, with these faults."""

    places: Sequence[Place] = ()

    def __call__(self, model: onnx.ModelProto, feeds: Mapping[str, Any], *, level: str = "all") -> Outcome:  # noqa: ARG002
        description = "\n".join(place.description for place in self.places) or "none\n\nnone"
        try:
            return Outcome("done", outputs=wrong_node.with_fault(description, model.SerializeToString(), feeds))
        except Exception as error:
            return Outcome("run", str(error), during="the run")


def planted(count: int, seed: int) -> Iterator[tuple[Subject, list[Place]]]:
    """Models with faults on 1 to MOST_FAULTS different nodes, each of which shows alone."""
    rng, zoo = Random(seed), subjects()
    names = [name for name in zoo if name != FLOAT16]
    for index in range(count):
        subject = zoo[FLOAT16] if index % 4 == 3 else zoo[names[index % len(names)]]
        candidates = list(subject.places())
        rng.shuffle(candidates)
        right = Faulty()(subject.model, subject.feeds).outputs
        chosen: list[Place] = []
        for place in candidates:
            if place.node not in [other.node for other in chosen]:
                outcome = Faulty([place])(subject.model, subject.feeds)
                if outcome.stage == "done" and shows(subject, outcome.outputs, right):
                    chosen.append(place)
            if len(chosen) == index % MOST_FAULTS + 1:
                break
        yield subject, chosen


@dataclass
class Peer:
    """What Polygraphy makes of the models. first: of which the first value that differs is that of a planted node.
    exact: of which the nodes whose values differ are the planted ones. named, extra: planted and other nodes whose
    values differ. failed: models on which it could not be used."""

    models: int = 0
    first: int = 0
    exact: int = 0
    faults: int = 0
    named: int = 0
    extra: int = 0
    failed: int = 0

    def add(self, subject: Subject, places: Sequence[Place]) -> None:
        """Run it on a model."""
        self.models += 1
        wanted = {place.node for place in places}
        self.faults += len(wanted)
        try:
            names = polygraphy_comparison.named(places, subject)
        except (child_process.ChildFailed, OSError):
            self.failed += 1
            return
        nodes = [subject.wiring.producer[name] for name in names]
        self.first += bool(nodes) and nodes[0] in wanted
        self.exact += set(nodes) == wanted
        self.named += len(wanted & set(nodes))
        self.extra += len(set(nodes) - wanted)

    @property
    def words(self) -> str:
        """In a sentence."""
        return (f"Polygraphy: the first value that differs is a planted node's in {self.first} of {self.models} "
                f"models; of {self.faults} faults the values of {self.named} differ, with those of {self.extra} other "
                "nodes; "
                f"{self.exact} models exactly, {self.failed} could not be run")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=60)
    parser.add_argument("--seed", type=int, default=18)
    parser.add_argument("--polygraphy", action="store_true", help="run Polygraphy on the same models, too")
    options = parser.parse_args()
    exact, faults, missed, extra, seconds = 0, 0, 0, 0, []
    peer = Peer()
    for subject, places in planted(options.models, options.seed):
        if Faulty(places)(subject.model, subject.feeds).stage != "done":
            print(f"{subject.architecture.name}: the faults together end the session; left out", file=sys.stderr)
            continue
        if options.polygraphy:
            peer.add(subject, places)
        started = time.perf_counter()
        found = all_wrong_nodes(subject.model, subject.feeds, Faulty(places), Faulty())
        seconds.append(time.perf_counter() - started)
        named = {node.index for culprit in found.culprits if culprit.kind in NAMED for node in culprit.nodes}
        wanted = {place.node for place in places}
        exact, faults = exact + (named == wanted), faults + len(wanted)
        missed, extra = missed + len(wanted - named), extra + len(named - wanted)
        if named != wanted:
            lacking = [(place.node, place.op_type, place.fault) for place in places if place.node not in named]
            more = [(sorted(named - wanted), [culprit.words for culprit in found.culprits])] if named - wanted else ""
            print(
                f"{subject.architecture.name} {sorted(wanted)}: misses {lacking} {more} {found.remainder}", flush=True
            )
    print(f"{exact} of {len(seconds)} models exactly; of {faults} faults {faults - missed} named, {extra} other nodes; "
          f"{statistics.median(seconds):.2f} s in the median, {max(seconds):.1f} s at most")  # fmt: skip
    if options.polygraphy:
        print(peer.words)


if __name__ == "__main__":
    main()
