"""The scorer of rows: a pipeline with what is remembered from row to row, and what comes of rows."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import define, field, frozen

from callwright.commands.jsonl import BadRow
from callwright.commands.outputs.provenance import digests_of
from callwright.commands.pipelines import make_pipeline
from callwright.commands.quarantine import NumberedRow
from callwright.commands.row_corpus import make_row_pipeline
from callwright.commands.row_files.episodes import as_masked, episode_of
from callwright.commands.scoring.completion_rows import read_row
from callwright.commands.scoring.reward_rows import EvidenceKept, RewardWriter
from callwright.commands.tally import Tally
from callwright.errors import DataError
from callwright.machines.redaction import redacted_value
from callwright.plugins import PluginSource
from callwright.training.ledger.ingredients import plugin_digests
from callwright.training.ledger.named_files import file_digests
from callwright.training.spending import Meter
from callwright.walk.completion import Completion

if TYPE_CHECKING:
    from callwright.environments.isolated.environment import Isolation
    from callwright.pipeline import Pipeline
    from callwright.plugins import Registry
    from callwright.walk.attempt import Attempt
    from callwright.walk.reward import Reward
    from callwright.walk.tasks import Task


@frozen
class ScoringRequest:
    """What a worker must know to score rows."""

    plugins: PluginSource
    corpus: str | None
    options: Mapping[str, Any]
    ir: str
    reward: str
    reward_options: Mapping[str, Any]
    seed: int
    time_limit: float | None = None
    isolation: Isolation | None = None
    evidence: EvidenceKept = "all"

    def about(self, registry: Registry) -> dict[str, Any]:
        """What the rewards hang on besides the rows. Workers do not change them, so they are not among it."""
        return {
            "command": "score",
            "corpus": self.corpus,
            "corpus options": self.options,
            "files of the corpus": digests_of(self.options),
            "form": self.ir,
            "reward": self.reward,
            "reward options": redacted_value(self.reward_options),
            "files of the reward": file_digests(self.reward_options),
            "seed": self.seed,
            "time limit": self.time_limit,
            "isolation": self.isolation or "auto",
            "evidence": self.evidence,
            "plugins": plugin_digests(registry),
        }

    def open(self) -> Scorer:
        """The scorer, in this process."""
        return Scorer(make_scoring_pipeline(self.plugins.load(), self), self.evidence)


def make_scoring_pipeline(registry: Registry, scoring: ScoringRequest) -> Pipeline:
    """The pipeline that the command line describes. Raises :class:`callwright.UsageError` for what does not exist."""
    ir, reward, terms, seed = scoring.ir, scoring.reward, scoring.reward_options, scoring.seed
    if scoring.corpus is None:
        return make_row_pipeline(registry, ir=ir, reward=reward, reward_options=terms, seed=seed)
    return make_pipeline(
        registry,
        scoring.corpus,
        scoring.options,
        ir=ir,
        reward=reward,
        reward_options=terms,
        seed=seed,
        time_limit=scoring.time_limit,
        isolation=scoring.isolation,
    )


class Scorer:
    """A pipeline, with what is remembered from row to row.

    One that does not count leaves that to the command, in the same process: a summary for each row and adding it to
    the whole would take a tenth of the time.
    """

    def __init__(self, pipeline: Pipeline, evidence: EvidenceKept = "all", *, counts: bool = True) -> None:
        self.pipeline = pipeline
        self.writer = RewardWriter(evidence)
        self.counts = counts
        self.meter = Meter(pipeline.reward)
        self.tasks: dict[str, Task | str] = {}

    def taken(self, number: int, row: dict[str, Any] | str, found: Scored) -> tuple[str | int, Attempt] | None:
        """The id and the attempt of a row; ``None`` for a bad one, about which ``found`` has a complaint then."""
        pipeline = self.pipeline
        try:
            if isinstance(row, str):
                raise BadRow(row)
            row_id, task, completion, progress = read_row(pipeline, self.tasks, row)
            episode = episode_of(row) if "completions" in row or "turns" in row else None
        except (BadRow, DataError) as bad:
            found.tally.bad += 1
            found.complaints.append((number, str(bad)))
            return None
        if episode is not None:
            return row_id, pipeline.attempt(task, as_masked(row, episode.completions), progress, said=episode.said)
        if row.get("masked") is True:
            (completion,) = as_masked(row, [Completion(completion) if isinstance(completion, str) else completion])
        return row_id, pipeline.attempt(task, completion, progress)

    def keep(self, found: Scored, row_id: str | int, attempt: Attempt, reward: Reward) -> None:
        """Put a reward where it belongs."""
        if self.counts:
            found.tally.add(reward)
            found.tally.tools.add(attempt)
        else:
            found.uncounted.append((attempt, reward))
        found.lines.append(self.writer.line(row_id, reward))

    def spent(self, found: Scored) -> None:
        """Count what the reward has asked of servers since the last rows."""
        if usage := self.meter.take():
            found.tally.spend(usage)


@define
class Scored:
    """What came of some rows: lines of output, what is wrong with the others, and their part of the summary."""

    lines: list[str] = field(factory=list)
    complaints: list[tuple[int, str]] = field(factory=list)
    counted: Tally | None = None
    #: Attempts and rewards that are not in the summary yet.
    uncounted: list[tuple[Attempt, Reward]] = field(factory=list)
    #: Rows that cost several workers, with how these were lost.
    lost: list[tuple[int, dict[str, Any], str]] = field(factory=list)
    #: How long it took, if somebody looked at the clock.
    seconds: float = 0.0

    @property
    def tally(self) -> Tally:
        """The part of the summary, made when something is counted."""
        if self.counted is None:
            self.counted = Tally()
        return self.counted


def merged(parts: Sequence[Scored]) -> Scored:
    """What came of the parts of a chunk, as what came of the chunk."""
    whole = Scored()
    for part in parts:
        whole.lines += part.lines
        whole.complaints += part.complaints
        whole.lost += part.lost
        whole.uncounted += part.uncounted
        whole.seconds += part.seconds
        if part.counted is not None:
            whole.tally.merge(part.counted)
    return whole


def set_aside(rows: Sequence[NumberedRow], reason: str) -> Scored:
    """What comes of a row that costs workers: it is named, and counted among the bad ones."""
    found = Scored(lost=[(number, row, reason) for number, row in rows if not isinstance(row, str)])
    found.tally.bad += len(found.lost)
    return found


def score_rows(scorer: Scorer, rows: Sequence[NumberedRow]) -> Scored:
    """Score rows, each with its line number; a text in place of a row says why there is none."""
    began = time.monotonic()
    if scorer.pipeline.reward.waits:
        found = merged(list(score_streaming(scorer, ([row] for row in rows))))
    else:
        found, ids = Scored(), deque[str | int]()

        def attempts() -> Iterator[Attempt]:
            for number, row in rows:
                taken = scorer.taken(number, row, found)
                if taken is not None:
                    ids.append(taken[0])
                    yield taken[1]

        for attempt, reward in scorer.pipeline.scoring(attempts()):
            scorer.keep(found, ids.popleft(), attempt, reward)
    scorer.spent(found)
    found.seconds = time.monotonic() - began
    return found


def score_streaming(scorer: Scorer, chunks: Iterable[Sequence[NumberedRow]]) -> Iterator[Scored]:
    """Score chunks of one row each, those that wait for something together. What comes of them comes in their order."""
    under_way = deque[tuple[Scored, str | int | None]]()

    def attempts() -> Iterator[Attempt]:
        for ((number, row),) in chunks:
            found = Scored()
            taken = scorer.taken(number, row, found)
            under_way.append((found, None if taken is None else taken[0]))
            if taken is not None:
                yield taken[1]

    for attempt, reward in scorer.pipeline.scoring(attempts()):
        while under_way[0][1] is None:
            yield under_way.popleft()[0]
        found, row_id = under_way.popleft()
        assert row_id is not None
        scorer.keep(found, row_id, attempt, reward)
        scorer.spent(found)
        yield found
    for found, _ in under_way:
        yield found
