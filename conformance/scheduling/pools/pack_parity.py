"""Whether a provider answers cases that share a session as it answers them alone: a sample, measured on the provider.

A provider that compiles subgraphs may take a node among others that it declines alone, and the reverse: on OpenVINO 106
of 1,916 verdicts changed. So cases share sessions only on a provider of which that is known (`PACKS_AGREE`), or whose
sample agrees. Each case of the sample runs alone; then those that pass run together, and each of the others beside some
that pass. A session of several that fails says nothing, since its cases run alone after it.
"""

from __future__ import annotations

import contextlib
import queue
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import batched

from epcheck.conformance.judging.opinion import opinion
from epcheck.conformance.preparation import prepared_case
from epcheck.conformance.preparation.prepared_case import FULL, PreparedCase
from epcheck.conformance.records import terms
from epcheck.conformance.records.outcome import Outcome
from epcheck.conformance.scheduling.pools.pool import Pool
from epcheck.conformance.scheduling.pools.supervisor import Job
from epcheck.conformance.targets.target import PACKS_AGREE, Target
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.conformance.workers.process import Event
from epcheck.generators import suite
