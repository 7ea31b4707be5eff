"""Tasks of Agent World Model and their verifiers, on files that we wrote in their format (``lamps.py``)."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.plugins.awm.lamps import TASKS, write, write_world

import callwright as cw
from callwright.errors import DataError, UnknownName
from callwright.pipeline import open_pipeline
from callwright.testing import check_component
from callwright.training.evaluation import evaluate
from callwright.walk.completion import Completion

for _package in ("fastapi", "sqlalchemy", "httpx"):
    pytest.importorskip(_package, reason="pip install 'callwright[awm]'")

FORM = cw.parser("hermes")
WORLDS = [f"lamps {number}" for number in range(12)]
SET = ("set_level", {"lamp_id": 2, "level": 7})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_world(tmp_path)
    return tmp_path


def attempted(folder: Path, number: int, *turns: tuple[str, dict[str, Any]] | str) -> cw.Reward:
    """What the reward says of these calls and words, a turn each."""
    pipeline = open_pipeline("awm", cw.corpus("awm", data=folder), FORM)
    conversation = pipeline.conversation(pipeline.task(f"smart_lamps-{number}"))
    for turn in turns:
        said = turn if isinstance(turn, str) else FORM.render(cw.Program((cw.Call(0, turn[0], turn[1]),)))
        conversation.accept(Completion(said))
    assert conversation.stop == "answered"
    return pipeline.score(conversation.attempt)


def test_tasks_with_a_verifier_are_read(folder: Path) -> None:
    corpus = cw.corpus("awm", data=folder)
    (split,) = corpus.splits
    assert [task.id for task in corpus[split]] == ["smart_lamps-0", "smart_lamps-1", "smart_lamps-3"]
    task = corpus.task("smart_lamps-1")
    assert task.query == TASKS[1]
    assert list(task.tools) == ["list_lamps", "set_level"]
    assert corpus.task("smart_lamps-0").environment is task.environment
    again = pickle.loads(pickle.dumps(corpus))
    assert again.task("smart_lamps-3").facts == corpus.task("smart_lamps-3").facts
    assert again.fingerprint(split) == corpus.fingerprint(split)
    assert corpus.fingerprint("other") is None


def test_a_world_is_in_one_split(tmp_path: Path) -> None:
    write_world(tmp_path, WORLDS)
    corpus = cw.corpus("awm", data=tmp_path)
    worlds = {split: {task.id.rpartition("-")[0] for task in corpus[split]} for split in ("train", "evaluation")}
    assert sum(corpus.splits.values()) == 3 * len(WORLDS)
    assert worlds["train"].isdisjoint(worlds["evaluation"])
    assert len(worlds["train"] | worlds["evaluation"]) == len(WORLDS)
    one = cw.corpus("awm", data=tmp_path, worlds=["Lamps 3"], turns=4)
    assert {task.facts["world"] for split in one.splits for task in one[split]} == {"lamps_3"}
    assert one.limits.assistant_turns == 4


def test_the_verifier_compares_what_was_left(folder: Path) -> None:
    assert attempted(folder, 0, SET, "Done.").total == 1.0
    assert attempted(folder, 0, ("set_level", {"lamp_id": 1, "level": 7}), "Done.").total == 0.0
    nothing = attempted(folder, 0, "Done.")
    assert (nothing.total, nothing.masked) == (0.0, None)
    assert "does not call what was left and said complete" in nothing.explain()


def test_the_verifier_hears_what_was_said(folder: Path) -> None:
    look = ("list_lamps", {"room": "hall"})
    assert attempted(folder, 1, look, "It is at 0.").total == 1.0
    assert attempted(folder, 1, look, "It is at 5.").total == 0.0
    set_first = ("set_level", {"lamp_id": 1, "level": 5})
    assert attempted(folder, 1, set_first, "It is at 5.").total == 1.0


def test_a_verifier_that_fails_masks(folder: Path) -> None:
    reward = attempted(folder, 3, SET, "Done.")
    assert reward.masked is not None
    assert "the task's verifier failed: KeyError: 'no such row'" in reward.masked


@pytest.mark.parametrize(
    ("code", "total", "words"),
    [
        ("def verify_it(before, after):\n    return {'result': 'complete'}", 1.0, ""),
        ("def verify_it(before, after, said):\n    return {'result': said}", 0.0, ""),
        ("def verify_it(final_answer):\n    return {'result': 'complete' * (final_answer == 'Done.')}", 1.0, ""),
        ("def verify_it(final_db_path):\n    os.remove(final_db_path)\n    return {'result': 'complete'}", 1.0, ""),
        ("def verify_it(before, after):\n    return 'complete'", None, "returned no verdict: 'complete'"),
        ("def check_it(before, after):\n    return {'result': 'complete'}", None, "KeyError: 'verify_task_completion'"),
        ("def verify_it(before, after:\n", None, "SyntaxError"),
    ],
)
def test_verifiers_as_they_come(folder: Path, code: str, total: float | None, words: str) -> None:
    row = {"scenario": "smart_lamps", "task_idx": 0, "verification": {"code": code}}
    write(folder, "gen_verifier.pure_code", [row])
    reward = attempted(folder, 0, SET, "Done.")
    if total is None:
        assert words in str(reward.masked)
    else:
        assert (reward.masked, reward.total) == (None, total)


class Scripted:
    """Says what stands in a list for each query, a turn each."""

    name = "scripted"

    def __init__(self, said: Mapping[str, Sequence[str]]) -> None:
        self.said = said

    def sample(
        self, requests: Sequence[Any], *, n: int = 1, seed: int = 0, temperature: float = 1.0
    ) -> list[list[Completion]]:
        return [[Completion(self._next(one))] * n for one in requests]

    def _next(self, request: Any) -> str:
        turn = sum(message.role == "assistant" for message in request.messages)
        return self.said[request.task.query][turn]


def test_an_evaluation_asks_it(folder: Path) -> None:
    corpus = cw.corpus("awm", data=folder)
    (split,) = corpus.splits
    look = FORM.render(cw.Program((cw.Call(0, "list_lamps", {}),)))
    said = {
        TASKS[0]: [FORM.render(cw.Program((cw.Call(0, *SET),))), "Done."],
        TASKS[1]: [look, "5."],
        TASKS[3]: ["No."],
    }
    pipeline = open_pipeline("awm", corpus, FORM)
    kept: list[cw.Attempt] = []
    found = evaluate(pipeline, corpus[split], Scripted(said), keep=lambda attempt, _: kept.append(attempt))
    assert [(one.answer, one.masked) for one in found] == [(True, False), (False, False), (False, True)]
    briefing = "You are logged in already. Where a tool asks for a user's id, yours is 1."
    assert briefing in pipeline.conversation(kept[0].task).messages[0].text


def test_a_log_is_judged_while_it_is_open(folder: Path) -> None:
    task = cw.corpus("awm", data=folder).task("smart_lamps-1")
    reward = cw.reward("awm")
    asked = {"id": "a", "type": "function", "function": {"name": "list_lamps", "arguments": "{}"}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": task.query},
        {"role": "assistant", "content": "", "tool_calls": [asked]},
        {"role": "tool", "tool_call_id": "a", "content": "[]"},
    ]
    with cw.Log(task) as log:
        log.call("list_lamps", {}, call_id="a")
        right = reward.score_attempt(log.episode([*messages, {"role": "assistant", "content": "It is at 0."}]))
        wrong = reward.score_attempt(log.episode([*messages, {"role": "assistant", "content": "It is at 3."}]))
    assert (right.total, wrong.total) == (1.0, 0.0)
    with cw.Log(task) as log:
        log.call("list_lamps", {}, call_id="a")
    late = reward.score_attempt(log.episode([*messages, {"role": "assistant", "content": "It is at 0."}]))
    assert "closed before its messages were known" in str(late.masked)


def test_the_corpus_passes_the_kit(folder: Path) -> None:
    check_component("corpus", cw.corpus("awm", data=folder))


@pytest.mark.parametrize(
    ("file", "row", "words"),
    [
        ("gen_tasks", {"scenario": "smart_lamps", "tasks": "one"}, "are no list of texts"),
        ("gen_verifier.pure_code", {"scenario": "smart_lamps", "task_idx": 0}, "is no verifier"),
        ("gen_verifier.pure_code", {"scenario": "another"}, "no task of gen_tasks.jsonl that is wanted"),
        ("gen_tasks", {"name": "smart_lamps"}, "gen_tasks.jsonl:1: no object with a scenario"),
    ],
)
def test_files_that_cannot_be_read(folder: Path, file: str, row: Any, words: str) -> None:
    write(folder, file, [row])
    with pytest.raises(DataError, match=words):
        cw.corpus("awm", data=folder)


def test_names_that_are_not_there(folder: Path) -> None:
    with pytest.raises(UnknownName, match="smart_lamps"):
        cw.corpus("awm", data=folder, worlds=["smart_lamp"])
    with pytest.raises(UnknownName, match="smart_lamps-0"):
        cw.corpus("awm", data=folder).task("smart_lamps-2")
    task = cw.corpus("awm", data=folder).task("smart_lamps-0")
    session = task.environment.open()
    with pytest.raises(DataError, match="is no task of 'smart_lamps'"):
        session.check_answer({"awm": "smart_lamps", "task": 2}, "")  # type: ignore[attr-defined]
    session.close()
