"""Rows executed again: every value whole, and what each call changed in the world.

A row keeps values up to a size, and of the world a digest. Here its completions are parsed and executed in a fresh
session of its task, as ``callwright rescore`` does it, with what their user did between them; what came then is held
against what the row says. Of a synthesised task, the reference is executed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import define, evolve, field, frozen

from callwright.capability import has
from callwright.commands.pipelines import find_task, make_pipeline
from callwright.commands.row_files.episodes import episode_of
from callwright.commands.trust import SCORED, not_yet_allowed
from callwright.environments.capabilities import Diffs, Forks
from callwright.environments.living.called_by_users import call_by
from callwright.environments.protocol import Outcome, Session, TellsGoalState
from callwright.errors import UsageError
from callwright.language.program import Call, plain
from callwright.language.shortening import shortened
from callwright.measuring.folders import SETTINGS
from callwright.pipeline import build_pipeline
from callwright.recipe_file import load_recipe
from callwright.training.spoken_references import conversation_of, speaks
from callwright.walk.completion import Completion
from callwright.walk.trace import observations
from callwright_plugins.viewer.sources.entries import Row, listed, table, text_of
from callwright_plugins.viewer.sources.finding import Source

if TYPE_CHECKING:
    from callwright.pipeline import Pipeline
    from callwright.plugins import Registry
    from callwright.walk.tasks import Task

#: Keys of an evaluation's corpus that choose splits; the others are its options.
_SPLITS: Final = frozenset({"name", "split", "train", "evaluation"})
_KEPT: Final = ("kind", "code", "value", "state")


@frozen
class Made:
    """A call as it reached the session, and what it changed there; ``None`` where the session cannot say."""

    by: str
    tool: str
    arguments: Mapping[str, Any]
    outcome: Outcome
    changes: Mapping[str, Any] | None

    def to_json(self) -> dict[str, Any]:
        """As pages get it."""
        outcome = self.outcome
        made = {"by": self.by, "tool": self.tool, "arguments": plain(dict(self.arguments)), "kind": outcome.kind}
        if outcome.executed:
            made["value"] = outcome.value
        made |= {name: value for name in ("code", "message") if (value := getattr(outcome, name))}
        if outcome.notices:
            made["notices"] = list(outcome.notices)
        return {**made, "changes": self.changes}


@define
class Watching:
    """How calls reach a session while somebody looks on: before each the session is copied, and compared after it.

    Of a session that cannot be copied the end state that it tells (a server's workspace) is compared.
    """

    made: list[Made] = field(factory=list)

    def __call__(self, session: Session, call: Call, arguments: dict[str, Any]) -> Outcome:
        """A call of the model."""
        return self._watched("agent", session, call, arguments)

    def as_user(self, session: Session, call: Call, arguments: dict[str, Any]) -> Outcome:
        """A call of the user, by a tool of its own."""
        return self._watched("user", session, call, arguments)

    def _watched(self, by: str, session: Session, call: Call, arguments: dict[str, Any]) -> Outcome:
        before = session.fork() if has(session, Forks) and has(session, Diffs) else None
        state: Any = session.goal_state() if before is None and has(session, TellsGoalState) else None
        changes: dict[str, Any] | None = None
        try:
            outcome = call_by(by, session, call, arguments)
            if before is not None and has(session, Diffs):
                changes = session.diff(before)
            elif isinstance(state, Mapping) and has(session, TellsGoalState):
                changes = _otherwise(state, session.goal_state())
        finally:
            if before is not None:
                before.close()
        self.made.append(Made(by, call.tool, arguments, outcome, changes))
        return outcome


def _otherwise(before: Mapping[str, Any], after: Any) -> dict[str, Any]:
    """What an end state says otherwise than before, by its keys; of objects in it the keys that are otherwise."""
    found: dict[str, Any] = {}
    for name in dict.fromkeys((*before, *(after if isinstance(after, Mapping) else ()))):
        was, now = before.get(name), after.get(name) if isinstance(after, Mapping) else after
        if was != now:
            if isinstance(was, Mapping) and isinstance(now, Mapping):
                found[name] = _otherwise(was, now)
            else:
                found[name] = {"before": was, "after": now}
    return found


class Again:
    """Executes rows again, one at a time, in pipelines of the runs, evaluations and task files that they are of.

    ``recall`` is told a folder before its pipeline is made, and may load the plugins that it remembers. Without ``yes``
    nothing is made of a recipe that would start processes or reach for hosts and was not allowed before.
    """

    def __init__(
        self, registry: Registry, recall: Callable[[Path], object] = lambda folder: None, *, yes: bool = False
    ) -> None:
        self._registry, self._recall, self._yes = registry, recall, yes
        self._pipelines: dict[str, Pipeline] = {}
        self._one_at_a_time = threading.Lock()

    def row(self, source: Source, row: Row) -> dict[str, Any]:
        """What the calls of a row come to now: ``{"calls", "differences", "masked"}``.

        Calls stand in the order in which the page has them; one that never reached its session has no ``changes``.
        Raises :class:`callwright.UsageError` or :class:`callwright.errors.DataError` where it cannot be executed.
        """
        with self._one_at_a_time:
            pipeline = self._pipelines.get(source.key)
            if pipeline is None:
                pipeline = self._pipelines[source.key] = self._pipeline(source)
            watching = Watching()
            watched = evolve(pipeline, conditions=evolve(pipeline.conditions, caller=watching))
            name = row.get("id") if source.kind == "tasks" else row.get("task")
            task = find_task(watched, str(name))
            if source.kind == "tasks":
                return _reference(watched, task, watching)
            return _completions(watched, task, row, watching)

    def _pipeline(self, source: Source) -> Pipeline:
        folder = source.folder
        if source.kind == "tasks":
            # Trusted only once nothing is reached for that was not allowed.
            return self._of_corpus("tasks", {"file": str(source.rows), "trust": True}, {}, str(source.rows))
        if folder is None or source.kind not in ("run", "evaluation"):
            raise UsageError(
                f"{source.name} does not say what its tasks are of: rows of runs, evaluations and task files can be "
                "executed again"
            )
        self._recall(folder)
        if source.kind == "evaluation":
            settings = table(source.json(SETTINGS))
            corpus = table(settings.get("corpus"))
            if not text_of(corpus.get("name")) or "benchmark" in settings:
                raise UsageError(f"{folder} names no corpus whose tasks could be executed again")
            options = {name: value for name, value in corpus.items() if name not in _SPLITS}
            return self._of_corpus(text_of(corpus["name"]), options, settings, str(folder / SETTINGS))
        loaded = load_recipe(folder / "recipe.toml")
        if not self._yes:
            _refuse(not_yet_allowed(loaded, self._registry, SCORED, run_folder=folder))
        return build_pipeline(loaded, self._registry, with_algorithm=False)

    def _of_corpus(self, name: str, options: Mapping[str, Any], settings: Row, where: str) -> Pipeline:
        if not self._yes:
            reached = self._registry.spec("corpus", name).reach(options)
            _refuse([f"{where}: corpus {name!r} {reach.what}" for reach in reached])
        seed = settings.get("seed", 0)
        ir = text_of(settings.get("ir")) or "json"
        return make_pipeline(self._registry, name, options, ir=ir, seed=seed if isinstance(seed, int) else 0)


def _refuse(asked: Sequence[object]) -> None:
    if asked:
        raise UsageError(f"not executed: {'; '.join(map(str, asked))}. If that is meant, start with --yes")


def _completions(pipeline: Pipeline, task: Task, row: Row, watching: Watching) -> dict[str, Any]:
    episode = episode_of(row)
    if episode is not None:
        attempt = pipeline.attempt(task, episode.completions, said=episode.said)
    else:
        text = Completion(text_of(row.get("completion")), truncated=row.get("truncated") is True)
        attempt = pipeline.attempt(task, text)
    trace = attempt.trace
    records = [] if trace is None else list(trace.records)
    left = list(watching.made)
    calls = []
    for record in records:
        made = Made(record.by, record.tool, record.arguments, record.outcome, None)
        place = next((n for n, one in enumerate(left) if _is(one, made)), None)
        calls.append((made if place is None else left.pop(place)).to_json())
    return {"calls": calls, "differences": _differences(row, observations(trace) or []), "masked": attempt.masked}


def _is(one: Made, other: Made) -> bool:
    """Whether a call that reached the session is that of a record, which may hold a copy of its outcome."""
    mine, theirs = one.outcome, other.outcome
    return (one.by, one.tool, mine.kind, mine.code) == (other.by, other.tool, theirs.kind, theirs.code)


def _differences(row: Row, now: Sequence[Mapping[str, Any]]) -> list[str]:
    """What is otherwise than the row says, a sentence a call; empty for a row that says nothing."""
    if row.get("observations") is None:
        return []
    then = [table(one) for one in listed(row.get("observations"))]
    if len(then) != len(now):
        return [f"there were {len(then)} calls, and there are {len(now)}"]
    found = []
    for number, (before, after) in enumerate(zip(then, now, strict=True)):
        key = next((key for key in _KEPT if before.get(key) != after[key]), None)
        if key is not None:
            was, is_ = shortened(str(before.get(key)), 60), shortened(str(after[key]), 60)
            found.append(f"call {number}: its {key} was {was}, and is {is_}")
    return found


def _reference(pipeline: Pipeline, task: Task, watching: Watching) -> dict[str, Any]:
    if speaks(task):
        conversation_of(task, pipeline.conditions)
    elif task.program is not None:
        conditions = pipeline.conditions
        execution = conditions.execution(task)
        try:
            execution.run(task.program)
        finally:
            execution.close()
    else:
        raise UsageError(f"the task {task.id} has no reference")
    return {
        "calls": [one.to_json() for one in watching.made if one.by == "agent"],
        "differences": [],
        "masked": None,
    }
