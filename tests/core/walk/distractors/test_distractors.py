"""Distractors that work: tools of other environments run in the session of the task, and their effects count."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from attrs import evolve

import callwright as cw
from callwright.errors import UnknownName, UsageError
from callwright.language.program import Call, Program, Reference
from callwright.plugins import load_plugins
from callwright.testing import checks_for
from callwright.training.verdicts import judge
from callwright.walk import execute
from callwright.walk.completion import Completion
from callwright.walk.distractors.corpus import DistractedCorpus
from callwright.walk.distractors.tasks import composed_with, distracted
from callwright.walk.tasks import Answer, Task, depths_of
from callwright.walk.users.said import UserSpec

EMAIL, CHAT, CALENDAR = (cw.environment(name) for name in ("email", "team_chat", "calendar"))
EVENT = {"title": "Tea", "start": "2026-04-01T09:00Z", "end": "2026-04-01T10:00Z", "allow_conflict": True}
DRAFT = {"holds": [{"table": "drafts", "where": {"subject": "Tea"}}]}


def task(**more: Any) -> Task:
    program = Program((Call(0, "search_messages", {"query": "the"}), Call(1, "create_draft", {"subject": "Tea"})))
    tools = {name: EMAIL.tools[name] for name in ("search_messages", "create_draft")}
    given = {"program": program, "facts": {"goal": DRAFT, "family": "drafts"}, "seed": 3, **more}
    return Task("one", "Draft a mail about tea", tools, Answer(()), EMAIL, "sparse", **given)


def test_distractors_run_and_what_they_do_fails_the_goal() -> None:
    whole = composed_with(EMAIL, [CALENDAR])
    found = distracted(task(), whole, tools=17)
    assert len(found.tools) == 19
    assert found.program is not None
    session = whole.open(found.scenario, found.seed)
    for call in found.program.calls:
        assert session.call(call.tool, dict(call.arguments)).executed
    assert session.check_goal(found.facts["goal"]).equal
    made = session.call("create_event", EVENT)
    assert made.executed, made
    assert [one.path.partition("[")[0] for one in session.check_goal(found.facts["goal"]).differences][:1] == [
        "calendar.events"
    ]


def test_the_world_of_the_task_is_as_it_was_and_so_are_its_answers() -> None:
    whole = composed_with(EMAIL, [CALENDAR, CHAT])
    found = distracted(task(), whole)
    session, alone = whole.open(found.scenario, found.seed), EMAIL.open("sparse", 3)
    assert session.part("email").digest() == alone.digest()
    assert json.loads(found.scenario) == {"email": ["sparse", 3]}


def test_names_that_others_have_too_are_qualified_in_the_program_as_well() -> None:
    found = distracted(task(), composed_with(EMAIL, [CHAT]), tools=3)
    assert found.program is not None
    assert [call.tool for call in found.program.calls] == ["email__search_messages", "create_draft"]
    assert {"email__search_messages", "create_draft"} < set(found.tools)
    assert len(found.tools) == 5
    assert found.tools["email__search_messages"].name == "email__search_messages"


def test_goals_of_the_task_and_of_its_user_name_tables_by_the_part() -> None:
    user = UserSpec("scripted", {"satisfied": DRAFT, "then": [{"say": "And?", "when": DRAFT}], "knows": {"day": "1"}})
    found = distracted(task(user=user), composed_with(EMAIL, [CALENDAR]))
    placed = {"holds": [{"table": "email.drafts", "where": {"subject": "Tea"}}]}
    assert found.facts == {"goal": placed, "family": "drafts"}
    assert found.user is not None
    assert found.user.options == {"satisfied": placed, "then": [{"say": "And?", "when": placed}], "knows": {"day": "1"}}


def test_what_is_drawn_hangs_on_the_seed_and_the_task_alone() -> None:
    whole = composed_with(EMAIL, [CALENDAR, CHAT])
    assert list(distracted(task(), whole).tools) == list(distracted(task(), whole).tools)
    assert list(distracted(task(), whole, seed=1).tools) != list(distracted(task(), whole).tools)
    assert set(distracted(task(), whole, tools=0).tools) == {"email__search_messages", "create_draft"}
    with pytest.raises(UsageError, match="a number of tools"):
        distracted(task(), whole, tools=-1)


def test_a_corpus_among_distractors_has_its_tasks_and_answers() -> None:
    inner = cw.corpus("toolworld-mini-v1")
    corpus = cw.with_distractors(inner, "calendar", tools=5)
    assert isinstance(corpus, DistractedCorpus)
    assert corpus.name == "toolworld-mini-v1+calendar"
    assert corpus.splits == inner.splits
    assert list(depths_of(corpus["evaluation"]))[:9] == list(depths_of(inner["evaluation"]))[:9]
    reward = cw.reward("tier")
    parser = cw.parser("json")
    for mine, theirs in zip(corpus["evaluation"][:12], inner["evaluation"][:12], strict=True):
        assert set(theirs.tools) < set(mine.tools)
        assert len(mine.tools) == len(theirs.tools) + 5
        assert mine.answer == theirs.answer
        assert mine.program is not None
        text = parser.render(mine.program)
        assert reward.score(mine, text).total == reward.score(theirs, text).total == 1.0
    assert corpus.task("evaluation-3") == corpus["evaluation"][3]


def test_a_distractor_that_is_called_executes_where_it_was_unknown_before() -> None:
    inner = cw.corpus("toolworld-mini-v1")
    plain = inner["evaluation"][0]
    offered = cw.environment("calendar").tools["list_calendars"]
    program = Program((Call(0, "list_calendars", {}),))
    before = evolve(plain, tools={**plain.tools, "list_calendars": offered})
    trace = execute(program, before.environment, before.tools, scenario=before.scenario, seed=before.seed)
    assert trace.records[0].outcome.kind == "unknown_tool"
    after = distracted(plain, composed_with(plain.environment, [CALENDAR]), tools=17)
    trace = execute(program, after.environment, after.tools, scenario=after.scenario, seed=after.seed)
    assert trace.records[0].outcome.kind == "ok"


def test_registries_know_them_by_name_and_they_are_pickled() -> None:
    corpus: Any = cw.corpus("toolworld-mini-v1+calendar+email", tools=4, corpus={"train_size": 5})
    assert corpus.splits["train"] == 5
    assert len(corpus.others) == 2
    copy = pickle.loads(pickle.dumps(corpus))
    assert list(copy["train"][2].tools) == list(corpus["train"][2].tools)
    task_copy = pickle.loads(pickle.dumps(corpus["train"][2]))
    assert (
        task_copy.environment.open(task_copy.scenario).digest()
        == corpus["train"][2].environment.open(corpus["train"][2].scenario).digest()
    )
    assert corpus.fingerprint("train")["distractors"] == ["calendar", "email"]
    registry = load_plugins()
    assert registry.knows("corpus", "toolworld-mini-v1+email")
    assert not registry.knows("corpus", "email+toolworld-mini-v1")
    with pytest.raises(UnknownName, match="email"):
        cw.corpus("toolworld-mini-v1+emial")
    with pytest.raises(UsageError, match="name one"):
        cw.with_distractors("toolworld-mini-v1")


def test_references_in_renamed_calls_stay() -> None:
    program = Program((Call(0, "search_messages", {"query": "a"}), Call(1, "create_draft", {"subject": Reference(0)})))
    found = distracted(task(program=program), composed_with(EMAIL, [CHAT]))
    assert found.program is not None
    assert found.program.calls[1].arguments["subject"] == Reference(0)


@pytest.mark.parametrize("check", checks_for("corpus"), ids=str)
def test_it_passes_the_conformance_kit(check: Any) -> None:
    check(cw.corpus("toolworld-mini-v1+calendar", tools=3, corpus={"train_size": 20, "evaluation_size": 2}))


def test_further_worlds_are_those_of_the_tasks_own_part() -> None:
    corpus: Any = cw.corpus("depthbench-v1.1", instances=True)
    whole = composed_with(corpus.environment, [EMAIL])
    parser = cw.parser("json")
    plain = next(one for one in corpus["validation"] if one.instances)
    found = distracted(plain, whole)
    assert found.program is not None
    right = cw.Attempt(found, Completion(parser.render(found.program)), parser)
    assert judge(right).answer  # the further worlds were opened in every part, which knows none of that name
    wrong = [evolve(one, answer=Answer(("somewhere else",))) for one in found.instances]
    other = cw.Attempt(evolve(found, instances=tuple(wrong)), Completion(parser.render(found.program)), parser)
    assert judge(other).failure == "answer:other_world"


def test_prompts_that_list_fewer_tools_list_the_distractors_besides() -> None:
    found = distracted(task(shown=("search_messages",)), composed_with(EMAIL, [CHAT]), tools=3)
    assert "create_draft" in found.tools
    assert set(found.offered) == set(found.tools) - {"create_draft"}
    assert list(found.offered) == [name for name in found.tools if name != "create_draft"]
    assert "email__search_messages" in found.offered


def test_reference_calls_in_facts_have_the_names_of_the_program() -> None:
    call = {"arguments": {"query": "the"}}
    facts = {
        "steps": [{"calls": [{"name": "search_messages", **call}], "after": []}, {"name": "search_messages", **call}],
        "gold": [{"calls": [{"tool": "search_messages", **call}]}, {"say": "search_messages"}],
    }
    plain = task(facts=facts, program=Program((Call(0, "search_messages", {"query": "the"}),)))
    found = distracted(plain, composed_with(EMAIL, [CHAT]))
    named = "email__search_messages"
    assert found.facts == {
        "steps": [{"calls": [{"name": named, **call}], "after": []}, {"name": named, **call}],
        "gold": [{"calls": [{"tool": named, **call}]}, {"say": "search_messages"}],
    }
    assert found.program is not None
    assert plain.program is not None
    reward, parser = cw.reward("prove"), cw.parser("json")
    assert (
        reward.score(found, parser.render(found.program)).total
        == reward.score(plain, parser.render(plain.program)).total
    )
