"""Which cases passed alone, on targets where a pack may change an answer: those may share sessions from then on.

A verdict means the case alone. On a target whose packs do not agree (`pools/pack_parity.py`) each case therefore has a
session of its own until it has passed in one; what a later run then sees in a pack is a pass again, or it is run alone
after it, as every failure of a pack is. A case that never passed alone is never packed: one that is declined alone
and taken in a pack stays declined. It is kept for the provider, its options, its release and its device, and for the
case as it is: another model, other feeds or other code of the worker begin anew.
"""

from __future__ import annotations

from epcheck.conformance.cache.cache import Cache
from epcheck.conformance.cache.row_groups import RowGroups, group_of
from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.records import terms
from epcheck.conformance.records.opinion import Opinion
from epcheck.conformance.scheduling import run_history
from epcheck.conformance.scheduling.plan import Facts
from epcheck.conformance.targets.target import Target


class PassedAlone:
    """The cases that passed alone on the targets that it is asked to look after."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._rows: dict[str, RowGroups] = {}

    def look_after(self, target: Target, facts: Facts) -> None:
        """From now on cases of the target be packed only after they have passed alone. facts: of all targets."""
        who = run_history.provider_and_device(target, facts.get(target.name, {}))
        self._rows[target.name] = RowGroups(self._cache, "alone", bytes, bool, who)

    def may_be_packed(self, prepared: PreparedCase, target: Target) -> bool:
        """Whether the case ends in a pack as it does alone, as far as is known."""
        rows = self._rows.get(target.name)
        if rows is None:
            return True
        group = group_of(prepared.case)
        return prepared.digest in rows.of([group]).get(group, {})

    def put(self, prepared: PreparedCase, target: Target, opinion: Opinion) -> None:
        """Take down what came of the case."""
        if (rows := self._rows.get(target.name)) and opinion.status == terms.PASS and opinion.shared == 1:
            rows.put(group_of(prepared.case), prepared.digest, True)

    def write(self) -> None:
        """Hand what is new to the cache."""
        for rows in self._rows.values():
            rows.write()
