"""The synthesizer ``grounded``: what every synthesizer has to be, and a recipe from its knowledge to its tasks."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.plugins.synthesis.dialogue.talks import played

import callwright as cw
from callwright.errors import UnknownName, UsageError
from callwright.plugins import default_registry
from callwright.testing import check_component
from callwright.testing.corpora import check_tasks
from callwright.training.synthesis.synthesizer import Materials
from callwright.training.synthesis.units import Accepted
from callwright.training.verdicts import judge
from callwright.walk.task_rows.writing import write_rows
from callwright_plugins.synthesis import grounded as grounded_module
from callwright_plugins.synthesis.blueprints.knowledge import Knowledge
from callwright_plugins.synthesis.exploration.explored import Explored, explore
from callwright_plugins.synthesis.graph.edges import Graph
from callwright_plugins.synthesis.grounded import Grounded


def grounded(cache: Path, **options: Any) -> Grounded:
    return Grounded(cache=str(cache), calls=1500, gates=False, **options)


def test_it_is_a_synthesizer(kept_knowledge: Path) -> None:
    assert check_component("synthesizer", grounded(kept_knowledge), environment=cw.environment("video_meeting")) == ()


def test_all_that_it_accepts_reaches_its_goal_in_an_episode_and_a_file(tmp_path: Path, kept_knowledge: Path) -> None:
    environment = cw.environment("vehicle")
    materials = Materials(environment, seed=1, count=24)
    synthesizer = grounded(kept_knowledge, clarifications=0.2, abstentions=0.1)
    units = synthesizer.plan(materials)
    made = [synthesizer.make(unit, materials) for unit in units]
    accepted = [one for one in made if isinstance(one, Accepted)]
    assert len(accepted) >= 0.9 * len(made), made
    assert Counter(one.facts["kind"] for one in accepted).keys() == {"task", "failing", "clarification", "abstention"}
    file = tmp_path / "tasks.jsonl"
    write_rows(file, (one.row for one in accepted), limits=synthesizer.limits, registry=materials.registry)
    corpus = cw.corpus("tasks", file=str(file))
    check_tasks(corpus)
    assert any(task.facts.get("distractors") for split in corpus.splits for task in corpus[split])
    for task in cw.read_tasks(file):
        episode = played(task, "hermes")
        assert episode.stop == "answered"
        assert judge(episode.attempt).answer
        parser = cw.parser("hermes")
        nothing = cw.Attempt(task, parser.render(cw.Program((), text="No.")), parser)
        assert judge(nothing).answer == (
            task.facts["changes_nothing"] and task.facts["kind"] in ("failing", "abstention")
        )
        assert len(episode.turns) <= synthesizer.knobs.assistant_turns == 10
        assert sum(message.role == "user" for message in episode.messages) <= synthesizer.knobs.user_turns == 5


def test_references_are_as_short_as_is_asked_for(tmp_path: Path, kept_knowledge: Path) -> None:
    materials = Materials(cw.environment("vehicle"), seed=2, count=20)
    synthesizer = grounded(
        kept_knowledge, assistant_turns=5, user_turns=3, most_turns=2, least_turns=1, missing=0.5, recoveries=0.3
    )
    lengths = []
    made = [synthesizer.make(unit, materials) for unit in synthesizer.plan(materials)]
    rows = [one.row for one in made if isinstance(one, Accepted)]
    assert len(rows) >= 18
    file = tmp_path / "tasks.jsonl"
    write_rows(file, rows, limits=synthesizer.limits, registry=materials.registry)
    for task in cw.read_tasks(file):
        episode = played(task, "hermes")
        assert judge(episode.attempt).answer
        asked = sum(message.role == "user" for message in episode.messages)
        lengths.append((len(episode.turns), asked))
    assert max(turns for turns, _ in lengths) == 5
    assert max(asked for _, asked in lengths) == 3
    with pytest.raises(UsageError, match="most_turns"):
        grounded(kept_knowledge, user_turns=2)


def test_options_that_are_wrong_are_said_in_words() -> None:
    with pytest.raises(UnknownName, match="distractors"):
        Grounded(distracters=0.2)
    for wrong in ({"seeds": [1]}, {"seeds": "01"}, {"gates": "no"}, {"calls": 0}, {"missing": 2}, {"cache": 3}):
        with pytest.raises(UsageError):
            Grounded(**wrong)  # type: ignore[arg-type]


def test_a_cache_that_cannot_be_written_is_said_before_anything_is_explored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explored(*_: Any, **__: Any) -> None:
        raise AssertionError("explored")

    monkeypatch.setattr(grounded_module, "known", explored)
    (tmp_path / "file").touch()
    materials = Materials(environment=cw.environment("vehicle"), seed=0, count=1, registry=default_registry())
    with pytest.raises(
        UsageError, match=r"the cache .*/file/nope of the synthesizer 'grounded' cannot be made or written"
    ):
        Grounded(cache=str(tmp_path / "file" / "nope")).plan(materials)
    with pytest.raises(AssertionError, match="explored"):
        Grounded(cache=str(tmp_path / "new")).plan(materials)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]  # looking leaves nothing


def test_warnings_about_tools_name_their_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = cw.environment("vehicle")
    explored = explore(environment, calls=20)
    monkeypatch.setattr(Explored, "untold", ("start_engine",))
    monkeypatch.setattr(Explored, "forbidden", ("stop_engine",), raising=False)
    graph = Graph("vehicle", explored.schema, explored.tools, ())
    monkeypatch.setattr(grounded_module, "known", lambda *_, **__: Knowledge(explored, graph))
    monkeypatch.setattr(grounded_module, "plan_blueprints", lambda *_: [])
    with capture_logs() as told:
        Grounded().plan(Materials(environment=environment, seed=0, count=1, registry=default_registry()))
    assert [one["environment"] for one in told] == ["vehicle", "vehicle"]
