"""Case ids in as few globs as say exactly the same: `Slice-13/*/start_*[runtime]`.

A glob stands for its cases only where all of them are meant; one case that is not makes it too wide.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import product

from epcheck.generators.case_pattern import matches

_PARTS = re.compile(
    r"(?P<operator>.*)-(?P<version>\d+)/(?P<dtype>[^/]*)/(?P<sample>.*)\[(?P<binding>[^\[\]]*)\]", re.DOTALL
)
_NUMBER = re.compile(r"\d+")


def globs(wanted: Collection[str], others: Collection[str]) -> tuple[str, ...]:
    """Globs, as `case_pattern.matches` reads them, that match every id of `wanted` and none of `others`, those of most
    ids first, each no wider than these need; then the ids that no glob tells from others."""
    left, excluded = set(wanted), set(others) - set(wanted)
    too_wide = {glob for case_id in excluded for glob in _wider(case_id)}
    members: dict[str, set[str]] = {}
    for case_id in left:
        for glob in _wider(case_id):
            if glob not in too_wide:
                members.setdefault(glob, set()).add(case_id)
    found = []
    for glob in sorted(members, key=lambda name: (-len(members[name]), -len(name.replace("*", "")), name)):
        new = members[glob] & left
        if len(new) > 1 and not any(matches(case_id, glob) for case_id in excluded):
            found.append(glob)
            left -= new
    return (*found, *(_alone(case_id, excluded) for case_id in sorted(left)))


def _alone(case_id: str, excluded: Collection[str]) -> str:
    """The id. Without a wildcard it would be looked for anywhere in an id, as in that of another domain's operator."""
    is_part = any(case_id in other for other in excluded)
    return f"{case_id}*" if is_part else case_id


def _wider(case_id: str) -> Iterator[str]:
    """The globs that a case may be one of: `*` for its version, its dtype, its binding, its sample or the numbers in
    that, in any combination."""
    parts = _PARTS.fullmatch(case_id)
    if parts is None or "*" in case_id or "?" in case_id:
        return
    operator, version, dtype, sample, binding = parts.groups()
    samples = dict.fromkeys((sample, _NUMBER.sub("*", sample), "*"))
    for chosen in product((version, "*"), (dtype, "*"), samples, (binding, "*")):
        if any("*" in part for part in chosen):
            yield "{}-{}/{}/{}[{}]".format(operator, *chosen)
