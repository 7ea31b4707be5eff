"""The work of ``callwright evaluate``: what a worker is told, what it makes of that, and what it does with tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click
from attrs import evolve, frozen

from callwright.capability import has
from callwright.commands.pipelines import benchmark_pipeline, make_benchmark, make_pipeline, make_sampler
from callwright.commands.safe_text import say
from callwright.episodes.long_context import ExtendsContext
from callwright.episodes.sampling import ConversesConcurrently
from callwright.errors import UsageError
from callwright.language.teaching import TeachesWhatIsAllowed
from callwright.measuring.benchmark import verdict_by
from callwright.measuring.drawing import even_draw
from callwright.measuring.rows import Row, kept_row, lost_row
from callwright.options import options_of
from callwright.pipeline import build_pipeline
from callwright.plugins import PluginSource, Registry
from callwright.recipe_file import Turns, load_recipe
from callwright.training.evaluation import Plan, Verdict, evaluated
from callwright.training.verdicts import masked_verdict
from callwright.walk.limits import TurnLimits, limits_of
from callwright.walk.prompt import oracle_shots
from callwright.walk.sampling import CountsRequests, KeepsReplies
from callwright.walk.tasks import usual_split

if TYPE_CHECKING:
    from callwright.environments.isolated.environment import Isolation
    from callwright.language.messages import Message
    from callwright.machines.model_server.reply_cache import ReplyCache
    from callwright.measuring.benchmark import Benchmark
    from callwright.pipeline import Pipeline
    from callwright.walk.attempt import Attempt
    from callwright.walk.sampling import Sampler
    from callwright.walk.tasks import Task

#: Tasks from the first position up to the second, which is not among them.
Batch = tuple[int, int]
#: The option of a sampler that bounds what it spends.
MOST: Final = "max_cost"
#: The option of a sampler that bounds an answer.
MOST_TOKENS: Final = "max_new_tokens"
#: As the name of a reward: the one that the recipe names.
OWN: Final = "own"
#: The sampler behind ``--agent``.
AGENT: Final = "agent"
#: Answers that an agent may have where nothing says how many, as with ``callwright gateway``: one alone, as a sampler
#: is asked for, would be the end of every agent that reads a result.
_ANSWERS_OF_AGENTS: Final = 64


@frozen
class Judged:
    """What came of some tasks: verdicts, a row to keep for each, and what a server was asked for them meanwhile."""

    verdicts: list[Verdict]
    rows: list[Row]
    asked: Mapping[str, float] = {}
    #: How long each took; empty where nobody knows.
    seconds: Sequence[float] = ()


@frozen
class EvaluationRequest:
    """What the command line asks for: all that a worker must know."""

    plugins: PluginSource
    recipe: str | None
    overrides: tuple[str, ...]
    corpus: str | None
    options: Mapping[str, Any]
    ir: str
    split: str | None
    sampler: str | None
    sampler_options: Mapping[str, Any]
    limit: int | None
    temperature: float
    shots: int
    seed: int
    batch: int
    time_limit: float | None = None
    isolation: Isolation | None = None
    #: Attempts at each task.
    samples: int = 1
    #: Completions of an episode, with ``corpus``; a recipe has limits of its own.
    turns: int | None = None
    #: In place of a corpus: a benchmark, as NAME[:VERSION], with the ``options``.
    benchmark: str | None = None
    #: The reward recipe whose totals are kept, too: a name, or :data:`OWN`.
    reward: str | None = None
    #: How many do the work at the same time: they share what one may ask of a server at a time.
    workers: int = 1
    #: Where answers of a server are kept, if they are.
    replies: ReplyCache | None = None

    def open(
        self, registry: Registry | None = None, made: Opened | None = None, *, measured: Benchmark | None = None
    ) -> Opened:
        """Corpus, tasks and sampler, unless they were ``made``; ``measured`` is the benchmark, if somebody has made it.

        Raises :class:`callwright.UsageError`.
        """
        if made is not None:
            return made
        registry = registry or self.plugins.load()
        name, given, split = self.sampler, dict(self.sampler_options), self.split
        benchmark: Benchmark | None = None
        if self.recipe is not None:
            loaded = load_recipe(self.recipe, self.overrides)
            pipeline = build_pipeline(loaded, registry, with_algorithm=False)
            split = split or loaded.recipe.corpus.evaluation
            if name is None and loaded.recipe.sampler is not None:
                name, given = loaded.recipe.sampler.name, {**loaded.recipe.sampler.options, **given}
        elif self.benchmark is not None:
            benchmark = measured or make_benchmark(registry, self.benchmark, self.options)
            pipeline = benchmark_pipeline(registry, benchmark, ir=self.ir, seed=self.seed)
            split = benchmark.version
        else:
            assert self.corpus is not None
            pipeline = make_pipeline(registry, self.corpus, self.options, ir=self.ir, seed=self.seed)
            split = split or usual_split(pipeline.corpus)
        turns = self.turns
        if turns is None and name == AGENT and benchmark is None and not _says_turns(pipeline):
            turns = _ANSWERS_OF_AGENTS
        if turns is not None:
            own = limits_of(pipeline.corpus)
            limits = TurnLimits(assistant_turns=turns) if own.single else evolve(own, assistant_turns=turns)
            pipeline = evolve(pipeline, conditions=evolve(pipeline.conditions, limits=limits))
        if self.reward is not None and self.reward != OWN:
            pipeline = evolve(pipeline, reward=registry.create("reward recipe", self.reward))
        if self.time_limit is not None:
            pipeline = evolve(pipeline, conditions=evolve(pipeline.conditions, time_limit=self.time_limit))
        if self.isolation is not None:
            pipeline = evolve(pipeline, conditions=evolve(pipeline.conditions, isolation=self.isolation))
        if name is None:
            raise click.UsageError("name what makes the completions: --sampler NAME")
        if benchmark is None and split not in pipeline.corpus.splits:
            known = ", ".join(pipeline.corpus.splits)
            raise UsageError(
                f"corpus {pipeline.corpus.name!r} has no split {split!r}; choose one with --split: {known}"
            )
        every = benchmark.tasks() if benchmark is not None else pipeline.corpus[split]
        tasks = _tasks(pipeline, every, self.limit)
        sampler = make_sampler(registry, name, given, ir=pipeline.parser.name)
        asked = evolve(self, turns=turns)  # what an agent may have is a setting, too
        return Opened(asked, pipeline, tasks, split, name, given, sampler, benchmark).keeping(self.replies)


def _says_turns(pipeline: Pipeline) -> bool:
    """Whether a recipe or a corpus says how many completions an episode has."""
    stated = pipeline.source is not None and pipeline.source.recipe.turns is not None
    return stated or not pipeline.conditions.limits.single


@frozen(eq=False)
class Opened:
    """What a worker has: the components, and what was asked of them."""

    asked: EvaluationRequest
    pipeline: Pipeline
    tasks: list[Task]
    split: str
    sampler_name: str
    sampler_options: dict[str, Any]
    sampler: Sampler
    benchmark: Benchmark | None = None

    def corpus_settings(self) -> dict[str, Any]:
        """The corpus as a recipe would name it, for those who go on."""
        from callwright.recipe_file import CorpusChoice

        made, asked = self.pipeline, self.asked
        if self.benchmark is not None:
            return {**asked.options, "name": self.benchmark.name}
        if made.source is not None:
            return made.source.recipe.corpus.model_dump(mode="json")
        stated = {"name": asked.corpus, "train": made.train, "evaluation": made.evaluation}
        return CorpusChoice.model_validate({**asked.options, **stated}).model_dump(mode="json")

    def sampler_settings(self) -> dict[str, Any]:
        """The sampler as a recipe would name it. What it may cost changes nothing that it writes."""
        return {"name": self.sampler_name, **{key: value for key, value in self.sampler_options.items() if key != MOST}}

    @property
    def most_cost(self) -> float | None:
        """The most that the evaluation may cost, if that is limited."""
        most = self.sampler_options.get(MOST)
        return float(most) if isinstance(most, int | float) else None

    def at_most(self, cost: float) -> Opened:
        """The same with a sampler that spends no more than this."""
        asked = evolve(self.asked, sampler_options={**self.asked.sampler_options, MOST: cost})
        given = {**self.sampler_options, MOST: cost}
        sampler = make_sampler(self.pipeline.registry, self.sampler_name, given, ir=self.pipeline.parser.name)
        return evolve(self, asked=asked, sampler=sampler).keeping(asked.replies)

    def keeping(self, replies: ReplyCache | None) -> Opened:
        """The same with a sampler whose answers are kept."""
        if replies is None or not isinstance(self.sampler, KeepsReplies):
            return self
        if isinstance(self.sampler, ConversesConcurrently) and self.sampler.concurrency == 0:
            return self  # it asks no server
        self.sampler.keep_replies(replies)
        return evolve(self, asked=evolve(self.asked, replies=replies))

    def taught_settings(self) -> dict[str, Any]:
        """What the form's instructions follow, where that is a choice: other prompts are another evaluation."""
        parser = self.pipeline.parser
        return {"instructions": parser.teaches} if isinstance(parser, TeachesWhatIsAllowed) else {}

    def shot_marks(self) -> dict[str, Any]:
        """What the result says of its examples: ``"shots": "oracle"`` where they give away the answer's shape."""
        return {"shots": "oracle"} if oracle_shots(self.pipeline.corpus, self.asked.shots) else {}

    def context_marks(self) -> dict[str, Any]:
        """What the result says of a context that was extended for it."""
        extended = self.sampler.extended_context if has(self.sampler, ExtendsContext) else None
        return {} if extended is None else {"context": dict(extended)}

    def longer_answers(self) -> str:
        """How answers are allowed more tokens, as an advice."""
        known, limits = self.pipeline.registry, self.pipeline.conditions.limits
        behind = self.sampler_options.get("engine")
        name = behind if self.sampler_name == AGENT and isinstance(behind, str) else self.sampler_name
        options = {one.name for one in options_of(known.spec("sampler", name))}
        ways = [f"raise {MOST_TOKENS} (--sampler-option {MOST_TOKENS}=N)"] if MOST_TOKENS in options else []
        stated = [key for key in ("turn_tokens", "total_tokens") if getattr(limits, key) is not None]
        ways += [f"raise {' and '.join(stated)} of the turns"] if stated else []
        return ", and ".join(ways) or "raise the sampler's limit of tokens"

    def more_settings(self) -> dict[str, Any]:
        """Settings that are stated only where they are not the usual ones, so that older evaluations go on."""
        asked, turns = self.asked, self.pipeline.source.recipe.turns if self.pipeline.source is not None else None
        stated = _turns(turns) if turns is not None else {"assistant_turns": asked.turns} if asked.turns else None
        benchmark = self.benchmark
        return {
            **({} if benchmark is None else {"benchmark": f"{benchmark.name}:{benchmark.version}"}),
            **({} if stated is None else {"turns": stated}),
            **({} if asked.samples == 1 else {"samples": asked.samples}),
            **({} if asked.reward is None else {"reward": asked.reward}),
            **({} if asked.limit is None else {"drawn": "evenly"}),
        }


def _turns(stated: Turns) -> dict[str, Any]:
    """The limits of a recipe; of those that came later only what is not as it always was."""
    usual = Turns()
    later = [name for name in ("steps", "unparsed") if getattr(stated, name) == getattr(usual, name)]
    return stated.model_dump(exclude=set(later))


def _tasks(pipeline: Pipeline, every: Sequence[Task], limit: int | None) -> list[Task]:
    chosen = every if limit is None else [every[place] for place in even_draw(every, limit)]
    return [pipeline.placed(task) for task in chosen]


def evaluate_tasks(opened: Opened, batch: Batch) -> Iterator[Judged]:
    """What comes of tasks, in their order, as soon as it is there."""
    asked = opened.asked
    plan = Plan(
        temperature=asked.temperature,
        seed=asked.seed,
        batch=asked.batch,
        shots=asked.shots,
        workers=asked.workers,
        samples=asked.samples,
    )
    score = opened.pipeline.score if asked.reward is not None else None

    def kept(
        attempt: Attempt, verdict: Verdict, messages: Sequence[Message], seconds: float
    ) -> tuple[Verdict, Row, float]:
        if opened.benchmark is None:
            return verdict, kept_row(attempt, verdict, messages, score), seconds
        verdict, judgement = verdict_by(opened.benchmark, attempt, verdict.sample)
        return verdict, {**kept_row(attempt, verdict, messages, score), "judgement": judgement.to_json()}, seconds

    for some in evaluated(opened.pipeline, opened.tasks[slice(*batch)], opened.sampler, plan, kept):
        yield Judged([one[0] for one in some], [one[1] for one in some], seconds=[one[2] for one in some])


def evaluate_batch(opened: Opened, batch: Batch) -> Judged:
    """What came of a batch, when all of it is there."""
    before = asked_so_far(opened.sampler)
    made = joined(list(evaluate_tasks(opened, batch)))
    after = asked_so_far(opened.sampler)
    return evolve(made, asked={name: value - before.get(name, 0) for name, value in after.items()})


def asked_so_far(sampler: Sampler) -> dict[str, float]:
    """What a server was asked through this sampler, in this process, by name; empty for one that asks none."""
    return dict(sampler.usage.to_json()) if has(sampler, CountsRequests) else {}


def halves_of_batch(batch: Batch) -> Sequence[Batch]:
    """A batch in two, or as it is if it holds one task. What is sampled hangs on the task, not on its batch."""
    start, end = batch
    middle = (start + end) // 2
    return ((start, middle), (middle, end)) if middle > start else (batch,)


def joined(parts: Sequence[Judged]) -> Judged:
    """What came of the parts of a batch, as what came of the batch."""
    asked: Counter[str] = Counter()
    for part in parts:
        asked.update(part.asked)
    return Judged(
        [one for part in parts for one in part.verdicts],
        [row for part in parts for row in part.rows],
        asked,
        [one for part in parts for one in part.seconds],
    )


def lost_task(opened: Opened, batch: Batch, reason: str) -> Judged:
    """A task that cost several workers: nothing is known of it, so it is masked, and its row says why."""
    task = opened.tasks[batch[0]]
    say(f"task {task.id!r}: several workers were lost to it ({reason}); it is masked")
    verdicts = [masked_verdict(task, sample, reason) for sample in range(opened.asked.samples)]
    return Judged(verdicts, [lost_row(task, verdict) for verdict in verdicts])
