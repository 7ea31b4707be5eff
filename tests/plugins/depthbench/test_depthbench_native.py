"""DepthBench by native calls over turns: handles of tables, and all results where all are wanted."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from attrs import evolve

import callwright as cw
from callwright.episodes.pool import EpisodePool
from callwright.errors import CannotExpress
from callwright.language.program import Program, Reference
from callwright.training.evaluation import evaluate, judge, summarise
from callwright.walk.attempt import Attempt
from callwright.walk.calls.handles import shows_handles
from callwright.walk.conditions import Conditions
from callwright.walk.limits import TurnLimits
from callwright.walk.prompt import build_messages
from callwright.walk.tasks import Task

CORPUS = cw.corpus("depthbench-v1")
TASKS: list[Task] = [task for split in CORPUS.splits for task in CORPUS[split]]
SEVERAL = Conditions(limits=TurnLimits())


def pipeline(form: str = "hermes", conditions: Conditions = SEVERAL) -> cw.Pipeline:
    return cw.Pipeline(CORPUS, parser=form, conditions=conditions)


def calls(*made: tuple[str, dict[str, Any]]) -> str:
    lines = (json.dumps({"name": name, "arguments": arguments}) for name, arguments in made)
    return "\n".join(f"<tool_call>\n{line}\n</tool_call>" for line in lines)


def tree() -> Task:
    """A list of songs, and three things that are asked of it."""
    return CORPUS.task("validation-0710")


def right_turns() -> list[str]:
    task = tree()
    assert task.program is not None
    first, *others = task.program.calls
    turns = [calls((first.tool, dict(first.arguments)))]
    turns += [calls((call.tool, {**call.arguments, "songs": "result_0"})) for call in others]
    return [*turns, "Here you are."]


@pytest.mark.parametrize("form", ["hermes", "toolrl"])
def test_every_task_is_solved_by_native_gold_calls_over_turns(form: str) -> None:
    made = pipeline(form)
    chosen = TASKS if form == "hermes" else [task for task in TASKS if task.depth > 3]
    gold = made.registry.create("sampler", "gold", ir=form)
    turns: Counter[int] = Counter()
    found = evaluate(made, chosen, gold, keep=lambda attempt, _: turns.update([len(attempt.completions)]))
    result = summarise(found)
    assert (result["overall"], result["valid_overall"], result["masked"]) == (1.0, 1.0, 0)
    if form == "hermes":
        assert sum(task.depth > 1 for task in chosen) == 719
        assert max(turns) == 7  # six calls in a chain, and the answer


def test_without_turns_the_form_says_what_it_lacks() -> None:
    made = pipeline(conditions=Conditions())
    gold = made.registry.create("sampler", "gold", ir="hermes")
    with pytest.raises(CannotExpress, match="no notation"):
        evaluate(made, [tree()], gold)


def test_all_results_are_collected_over_the_turns() -> None:
    task, parser = tree(), cw.parser("hermes")
    turns = right_turns()
    assert judge(Attempt(task, turns, parser, SEVERAL)).valid
    assert judge(Attempt(task, [turns[0], *reversed(turns[1:-1])], parser, SEVERAL)).valid
    assert not judge(Attempt(task, turns[:-2], parser, SEVERAL)).answer  # one of them was never asked for
    assert not judge(Attempt(task, [*turns[:-1], turns[1]], parser, SEVERAL)).answer  # one twice
    put_right = [turns[0], turns[1].replace("result_0", "result_5"), *turns[1:]]
    verdict = judge(Attempt(task, put_right, parser, SEVERAL))
    assert (verdict.answer, verdict.valid) == (True, False)
    tier = cw.reward("tier")
    assert tier.score_attempt(Attempt(task, turns, cw.parser("toolrl"), SEVERAL)).total == 0.0  # another form
    assert judge(Attempt(task, "\n".join(turns[:1]), parser, SEVERAL)).failure == "answer:wrong"


def test_one_result_is_still_that_of_the_last_turn() -> None:
    task = next(one for one in CORPUS["validation"] if one.structure == "linear" and one.depth == 2)
    assert task.program is not None
    gold = pipeline().registry.create("sampler", "gold", ir="hermes")
    (verdict,) = evaluate(pipeline(), [task], gold)
    assert verdict.answer
    both = evolve(task, returns="all")  # the same values are not what is expected then, as there is one
    assert evaluate(pipeline(), [both], gold)[0].answer  # what the last turn handed over still counts


def test_a_handle_is_a_reference_to_the_call_of_an_earlier_turn() -> None:
    attempt = Attempt(tree(), right_turns(), cw.parser("hermes"), SEVERAL)
    program = attempt.program
    assert isinstance(program, Program)
    assert [call.arguments.get("songs") for call in program.calls[1:]] == [Reference(0)] * 3
    assert program.structure == "tree"
    assert attempt.validation is not None
    assert attempt.validation.valid


@pytest.mark.parametrize(
    "text", ["result_1", "result_4", "result_0x", "Result_0", "result_-1", "result_0000000000", ""]
)
def test_what_is_no_handle_of_an_earlier_turn_is_a_text(text: str) -> None:
    turns = right_turns()
    attempt = Attempt(tree(), [turns[0], turns[1].replace("result_0", text)], cw.parser("hermes"), SEVERAL)
    assert attempt.whole.calls[1].arguments["songs"] == text
    assert not judge(attempt).answer


def test_a_handle_of_the_same_turn_or_of_a_failed_call_comes_to_nothing() -> None:
    task, parser = tree(), cw.parser("hermes")
    assert task.program is not None
    first, second, *_ = task.program.calls
    together = calls((first.tool, dict(first.arguments)), (second.tool, {"songs": "result_0"}))
    assert judge(Attempt(task, [together], parser, SEVERAL)).failure == "schema:wrong_type"
    failed = Attempt(
        task, [calls((first.tool, {"artist": "Nobody"})), calls((second.tool, {"songs": "result_0"}))], parser, SEVERAL
    )
    assert [record.outcome.code for record in failed.whole_trace.records] == ["unknown_artist", "failed_dependency"]


def test_results_show_handles_where_a_tool_takes_them_and_the_form_has_no_references() -> None:
    for form, shown in (("hermes", True), ("json", False)):
        conversation = pipeline(form).conversation(tree())
        parser = cw.parser(form)
        assert tree().program is not None
        assert shows_handles(tree(), parser) is shown
        first = tree().program.calls[:1]  # type: ignore[union-attr]
        conversation.accept(cw.Completion(parser.render(Program(first))))
        told = json.loads(conversation.messages[-1].text)
        assert told.get("handle") == ("result_0" if shown else None)
        assert ("handle" in conversation.messages[0].text) is shown
    plain = next(task for task in CORPUS["train"] if task.depth == 1 and not shows_handles(task, cw.parser("hermes")))
    assert "handle" not in pipeline().messages(plain)[0].text
    assert "handle" not in pipeline(conditions=Conditions()).messages(tree())[0].text


def test_native_examples_hand_tables_on_by_their_handles() -> None:
    shots = CORPUS.shots(tree(), 2)  # type: ignore[attr-defined]
    for limits, handed in ((TurnLimits(), "result_0"), (None, None)):
        messages = build_messages(tree(), cw.parser("hermes"), shots=shots[:1], native=True, limits=limits)
        made = [json.loads(message.tool_calls[0].arguments) for message in messages if message.tool_calls]
        results = [json.loads(message.text) for message in messages if message.role == "tool"]
        assert ("handle" in messages[0].text) is (handed is not None)
        assert [one.get("handle") for one in results] == (["result_0", "result_1"] if handed else [None, None])
        assert (made[1]["cars"] == handed) is (handed is not None)
        assert isinstance(made[1]["cars"], str if handed else list)


@pytest.mark.parametrize("executor", ["thread", "process"])
def test_workers_resolve_handles_as_one_process_does(executor: str) -> None:
    made = pipeline()
    here = made.conversation(tree())
    for text in right_turns():
        here.accept(cw.Completion(text))
    with EpisodePool(made.parser, made.reward, None, executor=executor, workers=2) as pool:
        there = made.conversation(tree())
        pool.adopt(there)
        for text in right_turns():
            pool.wait(pool.begin(there, lambda text=text: there.accept(cw.Completion(text))))  # type: ignore[misc]
    assert there.messages == here.messages
    assert there.attempt.program == here.attempt.program
    assert judge(there.attempt) == judge(here.attempt)
    assert judge(here.attempt).valid


def test_sessions_in_processes_resolve_handles() -> None:
    made = pipeline(conditions=Conditions(limits=TurnLimits(), isolation="process"))
    attempt = Attempt(tree(), right_turns(), made.parser, made.conditions)
    assert judge(attempt).valid
