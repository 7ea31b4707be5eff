"""Turns as benchmarks have them, on a shelf of books: steps, unread text, tools that appear, openings, stop signs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

import callwright as cw
from callwright.environments import ClockPolicy
from callwright.episodes import EngineOutput, PlainCodec, TokenEpisode
from callwright.episodes.conversation import MORE_TOOLS, Conversation
from callwright.episodes.driving import drive
from callwright.episodes.pool import EpisodePool
from callwright.episodes.sampling import converse
from callwright.errors import ComponentError, DataError, UsageError
from callwright.language.messages import ToolCall
from callwright.measuring.benchmark import attempt_of
from callwright.measuring.rows import kept_row
from callwright.training.evaluation import judge
from callwright.training.ledger.ingredients import task_digests
from callwright.walk import replay
from callwright.walk.openings.opening import need_no_opening
from callwright.walk.prompt import build_messages
from callwright.walk.sampling import SamplingRequest

SUPPORT = Path(__file__).parent / "support"
HERMES = cw.parser("hermes")


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module of the shelf, which processes find too."""
    monkeypatch.syspath_prepend(str(SUPPORT))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")]))
    import shelf as module

    yield module
    sys.modules.pop("shelf")


def begun(shelf: Any, task: cw.Task, limits: Mapping[str, Any] | None = None, **more: Any) -> Conversation:
    native = more.pop("native", False)
    conditions = cw.Conditions(limits=evolve(shelf.LIMITS, **(limits or {})), **more)
    return Conversation(task, HERMES, build_messages(task, HERMES), conditions, native=native)


def played(talk: Conversation, texts: Sequence[str]) -> Conversation:
    for text in texts:
        if talk.over:
            break
        talk.accept(cw.Completion(text))
    return talk


def outcomes(talk: Conversation) -> list[Any]:
    return [record.outcome.value or record.outcome.kind for record in talk.attempt.whole_trace.records]


# All at once ----------------------------------------------------------------------------------------------------------


def test_the_gold_of_the_shelf_goes_through_all_of_it(shelf: Any) -> None:
    talk = played(begun(shelf, shelf.TASK), shelf.GOLD)
    attempt = talk.attempt
    assert talk.stop == "answered"
    assert outcomes(talk) == [
        3,
        ["Walden", "Emma", "Utopia", "Dracula"],
        "unknown_tool",
        ["Dracula", "Emma", "Utopia", "Walden"],
    ]
    assert [len(turns) for turns in attempt.user_turns] == [3, 2, 2]
    assert attempt.said[-1] == cw.Said("Thanks.", done=True, sign="###STOP###")
    verdict = judge(attempt)
    assert verdict.answer
    assert not verdict.valid  # a call failed on the way


# Text that cannot be read ---------------------------------------------------------------------------------------------


def test_what_cannot_be_read_ends_the_turn_of_the_user(shelf: Any) -> None:
    texts = [shelf.UNREAD, shelf.UNREAD, shelf.call("sort"), "Sorted."]
    talk = played(begun(shelf, shelf.TASK), texts)
    assert talk.stop == "answered"
    assert [len(turns) for turns in talk.attempt.user_turns] == [1, 1, 2]
    assert outcomes(talk) == [["Emma", "Utopia", "Walden"]]
    assert talk.attempt.failure is not None  # rewards are told of it as ever
    assert talk.attempt.program is None
    assert judge(talk.attempt).failure == "format:unclosed_tool_call"
    right = evolve(shelf.TASK, answer=cw.Answer((["Emma", "Utopia", "Walden"],)))
    verdict = judge(played(begun(shelf, right), texts).attempt)
    assert (verdict.answer, verdict.valid, verdict.error) == (True, False, "")


def test_by_default_it_ends_the_episode(shelf: Any) -> None:
    talk = played(begun(shelf, shelf.TASK, {"unparsed": "episode"}), [shelf.UNREAD, "Hm."])
    assert (talk.stop, len(talk.turns)) == ("unparsed", 1)
    nobody = played(begun(shelf, evolve(shelf.TASK, user=None)), [shelf.UNREAD])
    assert nobody.stop == "unparsed"  # with nobody to hear it, the turn is the episode


def test_a_user_hears_what_could_not_be_read_without_the_thought(shelf: Any) -> None:
    heard: list[str] = []

    class Listener:
        def begin(self, task: cw.Task, seed: int) -> Any:
            return self

        def reply(self, messages: Sequence[cw.Message], session: Any) -> cw.Said:
            heard.append(messages[-1].text)
            return cw.Said(done=True)

    played(begun(shelf, shelf.TASK, users=Listener()), [f"<think>secret</think>{shelf.UNREAD}"])
    assert heard == [shelf.UNREAD.strip()]


def test_time_passes_when_an_unread_text_hands_the_turn_to_the_user(shelf: Any) -> None:
    clock = ClockPolicy(call=10, user_turn=100)
    digests = []
    for first in (shelf.UNREAD, "I cannot."):
        talk = played(begun(shelf, shelf.TASK, clock=clock), [first, shelf.call("titles"), "Bye.", "Bye.", "Bye."])
        digests.append(talk.attempt.whole_trace.final_state)
        assert replay(talk.attempt).same
    assert digests[0] == digests[1]
    still = played(begun(shelf, shelf.TASK), ["I cannot.", shelf.call("titles"), "Bye.", "Bye.", "Bye."])
    assert still.attempt.whole_trace.final_state != digests[0]


# Steps ----------------------------------------------------------------------------------------------------------------


def test_one_step_beyond_the_limit_is_executed_and_ends_the_episode(shelf: Any) -> None:
    one = shelf.call("titles")
    talk = played(begun(shelf, shelf.TASK), [one, one, shelf.call("put", title="Late"), "Done."])
    assert (talk.stop, len(talk.turns)) == ("steps", 3)
    assert outcomes(talk)[-1] == 3
    assert not talk.attempt.truncated  # it is no limit of length
    assert talk.masked is None


def test_each_turn_of_the_user_has_its_own_steps(shelf: Any) -> None:
    one = shelf.call("titles")
    talk = played(begun(shelf, shelf.TASK), [one, one, "Done.", one, one, "Done.", one, one, "Done."])
    assert (talk.stop, [len(turns) for turns in talk.attempt.user_turns]) == ("answered", [3, 3, 3])
    without = begun(shelf, shelf.TASK, {"steps": None, "assistant_turns": 7})
    assert played(without, [one] * 9).stop == "assistant_turns"


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"steps": True}, {"unparsed": "turns"}, {"unparsed": None}])
def test_limits_that_are_none_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        cw.TurnLimits(**wrong)


# Tools that appear ----------------------------------------------------------------------------------------------------


def test_a_tool_appears_with_a_turn_in_which_the_user_says_nothing(shelf: Any) -> None:
    talk = begun(shelf, shelf.TASK)
    assert sorted(talk.offered) == ["put", "titles"]
    assert '"sort"' not in talk.messages[0].text
    played(talk, shelf.GOLD[:3])
    assert sorted(talk.offered) == ["put", "titles"]
    played(talk, shelf.GOLD[3:5])
    assert sorted(talk.offered) == ["put", "sort", "titles"]
    told = talk.messages[-1]
    assert told.role == "user"
    assert told.text.startswith('# More tools\n{"name": "sort"')
    assert told.text.count("\n") == 1


def test_a_model_that_gets_tools_as_functions_is_only_told_of_it(shelf: Any) -> None:
    talk = played(begun(shelf, shelf.TASK, native=True), ["Hm.", "Hm."])
    assert [message.text for message in talk.messages if message.role == "user"][-2:] == ["Sort them.", MORE_TOOLS]
    request = SamplingRequest(talk.messages, talk.task, talk.turns)
    assert sorted(request.offered) == ["put", "sort", "titles"]
    assert sorted(SamplingRequest((), talk.task).offered) == ["put", "titles"]


def test_native_requests_offer_what_has_appeared(shelf: Any) -> None:
    from callwright_plugins.openai_sampler.functions import Functions

    talk = begun(shelf, shelf.TASK, native=True)
    offered = []
    for text in ("Hm.", "Hm.", "Hm."):
        fields = Functions().fields(SamplingRequest(talk.messages, talk.task, talk.turns))
        offered.append([tool["function"]["name"] for tool in fields["tools"]])
        talk.accept(cw.Completion(text))
    assert offered == [["titles", "put"], ["titles", "put"], ["titles", "put", "sort"]]


def test_a_tool_that_is_not_there_yet_is_unknown_in_a_single_turn_too(shelf: Any) -> None:
    attempt = cw.Attempt(shelf.TASK, shelf.call("sort"), HERMES)
    assert [record.outcome.kind for record in attempt.whole_trace.records] == ["unknown_tool"]
    later = evolve(shelf.TASK, appear={"sort": 0})
    assert cw.Attempt(later, shelf.call("sort"), HERMES).whole_trace.records[0].outcome.kind == "ok"


def test_a_recording_may_be_silent_only_where_tools_appear(shelf: Any) -> None:
    silent = evolve(shelf.TASK, appear={})
    with pytest.raises(DataError, match=r"task 'shelf-1': the user 'replayed': says\[1\] is empty"):
        begun(shelf, silent)


# Before the episode ---------------------------------------------------------------------------------------------------


def test_an_opening_is_done_and_told_and_nobody_is_scored_for_it(shelf: Any) -> None:
    talk = played(begun(shelf, shelf.TASK), [shelf.call("titles"), "Done."])
    assert outcomes(talk) == [["Walden", "Emma", "Utopia"]]
    assert len(talk.attempt.whole_trace.records) == 1
    shown = [(message.role, message.text) for message in talk.messages[1:6]]
    assert shown[0] == ("user", "Is there room for Utopia?")
    assert shown[1][0] == "assistant"
    assert HERMES.parse(shown[1][1]) == cw.Program((cw.Call(0, "put", {"title": "Utopia"}),))
    assert shown[2:] == [("tool", "2"), ("assistant", "Yes, it stands there now."), ("user", "Put Dracula there.")]
    native = build_messages(shelf.TASK, HERMES, native=True)
    assert native[2].tool_calls == (ToolCall("c1", "put", '{"title": "Utopia"}'),)
    fresh = shelf.SHELF.open("typical", 0)
    assert talk.attempt.whole_trace.state != fresh.digest()


def test_a_user_knows_what_was_said_before(shelf: Any) -> None:
    heard: list[tuple[cw.Message, ...]] = []

    class Listener:
        def begin(self, task: cw.Task, seed: int) -> Any:
            return self

        def reply(self, messages: Sequence[cw.Message], session: Any) -> cw.Said:
            heard.append(tuple(messages))
            return cw.Said(done=True)

    played(begun(shelf, shelf.TASK, users=Listener()), ["Hello."])
    assert [(one.role, one.text) for one in heard[0]] == [
        ("user", "Is there room for Utopia?"),
        ("assistant", "Yes, it stands there now."),
        ("user", "Put Dracula there."),
        ("assistant", "Hello."),
    ]


def test_what_a_user_did_before_is_done_by_its_tools_and_not_shown(shelf: Any) -> None:
    history = [
        cw.Message("user", "I take Walden.", tool_calls=[ToolCall("u1", "lend", '{"title": "Walden"}')]),
        cw.Message.tool('"Walden"', "u1"),
        cw.Message("user", tool_calls=[ToolCall("u2", "lend", '{"title": "Nothing"}')]),
        cw.Message.tool("error", "u2"),
    ]
    task = evolve(shelf.TASK, query="", opening=cw.Opening(history=history))
    talk = begun(shelf, task)
    assert [(one.role, one.text, one.tool_calls) for one in talk.messages[1:]] == [("user", "I take Walden.", ())]
    (record,) = played(talk, [shelf.call("titles")]).attempt.whole_trace.records
    assert record.outcome.value == []


def test_openings_meet_no_hazards_and_the_episode_does(shelf: Any) -> None:
    task = evolve(shelf.TASK, scenario="faulty")
    talk = played(begun(shelf, task), [shelf.call("titles"), shelf.call("put", title="Dune")])
    assert outcomes(talk) == [["Walden", "Emma", "Utopia"], "execution_error"]
    assert talk.turns[1].trace is not None
    assert talk.turns[1].trace.records[0].outcome.injected == "unavailable"


def test_an_action_that_does_not_execute_is_a_mistake_of_the_task(shelf: Any) -> None:
    for action, said in (
        (cw.InitialCall("put", {}), "call 0 .'put'. of the opening must execute, and came to schema_error"),
        (cw.InitialCall("throw", {}), "came to unknown_tool"),
        (cw.InitialCall("put", {"title": "A"}, by="user"), "came to unknown_tool"),
    ):
        task = evolve(shelf.TASK, opening=cw.Opening([action]))
        with pytest.raises(DataError, match=f"task 'shelf-1': .*{said}"):
            played(begun(shelf, task), [shelf.call("titles")])
        with pytest.raises(DataError, match=said):
            cw.Attempt(task, shelf.call("titles"), HERMES).whole_trace  # noqa: B018


@pytest.mark.parametrize(
    "wrong",
    [
        {"actions": {}},
        {"history": "hello"},
        {"hisstory": []},
        {"actions": [{"tool": 3}]},
        {"actions": [{"tool": "put", "arguments": []}]},
        {"actions": [{"tool": "put", "by": "nobody"}]},
        {"actions": ["put"]},
        {"history": [{"role": "system", "content": "Be brief."}]},
        {"history": [{"role": "assistant", "tool_calls": [{"function": {"name": "put", "arguments": "{"}}]}]},
        {"history": [{"role": "assistant", "tool_calls": [{"function": {"name": "put", "arguments": "[]"}}]}]},
    ],
)
def test_openings_that_cannot_be_read_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(DataError):
        cw.Opening.from_json(wrong)


def test_an_opening_travels_with_its_task(shelf: Any) -> None:
    spec = shelf.OPENING
    assert cw.Opening.from_json(json.loads(json.dumps(spec.to_json()))) == spec
    assert cw.Opening.from_json(None) is None
    tasks = [shelf.TASK, evolve(shelf.TASK, opening=None), evolve(shelf.TASK, appear={"sort": 1})]
    assert len({task_digests([task])["shelf-1"] for task in tasks}) == 3


def test_drivers_that_know_no_openings_refuse_them_by_name(shelf: Any) -> None:
    need_no_opening(shelf.PLAIN, "another driver", "take ours")
    with pytest.raises(UsageError, match="task 'shelf-1' has an opening, which another driver does"):
        need_no_opening(shelf.TASK, "another driver", "take ours")
    late = evolve(shelf.PLAIN, appear={"sort": 1})
    with pytest.raises(UsageError, match="tools that appear later"):
        need_no_opening(late, "another driver", "take ours")


def test_rows_for_a_loop_that_knows_no_openings_are_refused(shelf: Any) -> None:
    from callwright_plugins.verl_bridge.parquet import rows

    class Corpus:
        name, environment, splits = "shelves", shelf.SHELF, {"train": 1}

        def __init__(self, task: cw.Task) -> None:
            self.one = task

        def __getitem__(self, split: str) -> list[cw.Task]:
            return [self.one]

        def task(self, task_id: str) -> cw.Task:
            return self.one

    opened = evolve(shelf.PLAIN, opening=shelf.OPENING)
    with pytest.raises(UsageError, match="task 'shelf-1' has an opening, which verl's own loop does not know"):
        rows(Corpus(opened), "train", None)
    (row,) = rows(Corpus(opened), "train", HERMES)  # with the agent loop of the bridge it is an episode as any other
    assert [message["role"] for message in row["prompt"]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]


# Wherever it is done --------------------------------------------------------------------------------------------------


def scripts(shelf: Any) -> list[list[str]]:
    one, unread = shelf.call("titles"), shelf.UNREAD
    return [
        shelf.GOLD,
        [unread, one, "Hm.", shelf.call("sort"), unread],
        [one, one, one, "never"],
        [unread, unread, unread],
        ["Hm.", one, unread, shelf.call("sort"), one, unread],
    ]


def all_played(shelf: Any, pool: EpisodePool | None = None, **more: Any) -> list[tuple[Any, ...]]:
    form = HERMES if pool is None else pool.parser
    given = {"limits": shelf.LIMITS, "clock": ClockPolicy(call=5, user_turn=60), "time_limit": float("inf"), **more}
    talks = [Conversation(shelf.TASK, form, (), cw.Conditions(**given)) for _ in scripts(shelf)]
    texts = {id(talk): script for talk, script in zip(talks, scripts(shelf), strict=True)}

    def ask(live: list[Conversation]) -> list[cw.Completion]:
        return [cw.Completion(texts[id(one)][len(one.history)]) for one in live]

    drive(talks, ask, retries=1, pool=pool)
    return [(one.turns, one.messages, one.stop, one.masked, one.attempt.whole_trace) for one in talks]


@pytest.mark.parametrize(("executor", "workers"), [("thread", 3), ("process", 2)])
def test_it_is_the_same_with_any_executor(shelf: Any, executor: str, workers: int) -> None:
    expected = all_played(shelf)
    assert {stop for _, _, stop, *_ in expected} == {"answered", "steps"}
    with EpisodePool(HERMES, cw.reward("tier"), executor=executor, workers=workers) as pool:
        assert all_played(shelf, pool) == expected


def test_it_is_the_same_in_sessions_of_other_processes(shelf: Any) -> None:
    there = all_played(shelf, isolation="process", time_limit=60.0)
    assert there == all_played(shelf)


def test_hazards_wait_for_the_episode_in_other_processes_too(shelf: Any) -> None:
    task = evolve(shelf.TASK, scenario="faulty")
    texts = [shelf.call("titles"), shelf.call("put", title="Dune")]
    talk = played(begun(shelf, task, isolation="process", time_limit=60.0), texts)
    assert outcomes(talk) == [["Walden", "Emma", "Utopia"], "execution_error"]
    talk.close()


def test_it_is_the_same_by_any_sampler_of_texts(shelf: Any) -> None:
    class Script:
        name = "script"
        observation_role = "tool"

        def sample(self, requests: Any, *, n: int = 1, seed: int = 0, temperature: float = 1.0) -> Any:
            return [[cw.Completion(shelf.GOLD[len(request.turns)])] * n for request in requests]

    line = cw.Pipeline(shelf.Shelves(), "tier", HERMES, conditions=cw.Conditions(limits=shelf.LIMITS))
    request = SamplingRequest(line.messages(shelf.TASK), shelf.TASK)
    (group,) = converse(line, Script(), [request], n=2)
    expected = played(begun(shelf, shelf.TASK), shelf.GOLD)
    assert [one.attempt.turns for one in group] == [expected.turns] * 2
    assert [one.messages[1:] for one in group] == [expected.messages[1:]] * 2


def test_what_happened_before_and_what_users_say_carries_no_loss(shelf: Any) -> None:
    pytest.importorskip("tokenizers", reason="tokenizers need the extra 'train'")
    from callwright_plugins.local_trainer.models.vocabulary import build_tokenizer

    words = {word for text in (*shelf.GOLD, shelf.UNREAD) for word in text.split()}
    tokenizer = build_tokenizer(sorted(words))
    conditions = cw.Conditions(limits=shelf.LIMITS)
    codec = PlainCodec(tokenizer, lambda task: task.query)
    messages = build_messages(shelf.TASK, HERMES)
    episode = TokenEpisode(shelf.TASK, HERMES, codec, messages, conditions)
    script = iter([cw.Completion(text) for text in shelf.GOLD])
    made = []
    while not episode.over:
        ids = (*tokenizer.encode(next(script).text, add_special_tokens=False), tokenizer.eos_token_id)
        made.append(len(ids))
        episode.accept(EngineOutput(ids))
    assert [end - start for start, end in episode.ranges] == made
    assert sum(episode.mask) == sum(made)
    assert episode.prompt_ids == codec.prompt_ids(messages, shelf.TASK)


# Again ----------------------------------------------------------------------------------------------------------------


def test_a_row_is_scored_again_to_the_same(shelf: Any) -> None:
    for script in scripts(shelf):
        lived = played(begun(shelf, shelf.TASK, clock=ClockPolicy(call=5, user_turn=60)), script).attempt
        assert replay(lived).same
        written = cw.Attempt(lived.task, lived.completions, HERMES, lived.conditions, said=lived.said)
        assert written.turns == lived.turns
        assert written.whole_trace == lived.whole_trace
        assert [len(turns) for turns in written.user_turns] == [len(turns) for turns in lived.user_turns]
        assert evolve(judge(written), thought_words=None) == evolve(judge(lived), thought_words=None)


def test_rows_group_calls_by_turns_of_the_user(shelf: Any) -> None:
    talk = played(begun(shelf, shelf.TASK), shelf.GOLD)
    row = kept_row(talk.attempt, judge(talk.attempt), talk.messages)
    assert row["user_turns"] == [3, 2, 2]
    assert [(step["turn"], step["user_turn"], step["tool"]) for step in row["trace"]] == [
        (0, 0, "put"),
        (1, 0, "titles"),
        (3, 1, "sort"),
        (5, 2, "sort"),
    ]
    assert row["said"][-1] == {"text": "Thanks.", "done": True, "sign": "###STOP###"}
    kind, again = attempt_of(json.loads(json.dumps(row)), shelf.TASK, HERMES, talk.conditions) or ("", None)
    assert again is not None
    assert (kind, again.turns, again.stop) == ("completion", talk.turns, "answered")
    single = cw.Attempt(shelf.PLAIN, shelf.call("titles"), HERMES)
    row = kept_row(single, judge(single))
    assert "user_turns" not in row
    assert "user_turn" not in row["trace"][0]


def test_answers_may_be_grouped_by_turns_of_the_user(shelf: Any) -> None:
    conditions = cw.Conditions(limits=shelf.LIMITS)
    grouped = [[shelf.GOLD[0], shelf.GOLD[1]], [], [shelf.GOLD[5]]]
    found = attempt_of({"completion": grouped}, shelf.TASK, HERMES, conditions)
    assert found is not None
    attempt = found[1]
    assert [len(turns) for turns in attempt.user_turns] == [3, 1, 2]
    assert attempt.whole_trace.returned == (["Dracula", "Emma", "Utopia", "Walden"],)
    flat = attempt_of({"completions": shelf.GOLD}, shelf.TASK, HERMES, conditions)
    assert flat is not None
    assert flat[1].turns == played(begun(shelf, shelf.TASK), shelf.GOLD).turns
    for wrong in ([["a", 3]], [["a"], "b"], [], 3):
        with pytest.raises(DataError):
            attempt_of({"completion": wrong or [3]}, shelf.TASK, HERMES, conditions)


def test_it_is_the_same_among_distractors(shelf: Any) -> None:
    from callwright.walk.distractors.tasks import composed_with, distracted

    whole = composed_with(shelf.SHELF, [cw.environment("calendar")])
    task = distracted(shelf.TASK, whole, tools=3)
    assert len(task.tools) == 6
    assert task.appear == {"sort": 2}
    talk = played(begun(shelf, task), shelf.GOLD)
    usual = played(begun(shelf, shelf.TASK), shelf.GOLD)
    assert outcomes(talk) == outcomes(usual)
    assert [turn.user for turn in talk.turns if turn.user][-1].said == usual.attempt.said[-1]  # type: ignore[union-attr]


# The user speaks first ------------------------------------------------------------------------------------------------


def greeted(shelf: Any, **more: Any) -> cw.Task:
    says = ["Put Dracula there.", "Sort them.", f"Thanks. {shelf.DONE}"]
    user = cw.UserSpec("replayed", {"says": says, "stop": shelf.DONE})
    opening = cw.Opening(history=[cw.Message.assistant("Hi! How can I help you today?")])
    return evolve(shelf.TASK, **{"query": "", "user": user, "opening": opening, "appear": {"sort": 1}, **more})


def test_a_user_that_was_greeted_says_what_it_wants(shelf: Any) -> None:
    talk = begun(shelf, greeted(shelf))
    assert [(one.role, one.text) for one in talk.messages[1:]] == [
        ("assistant", "Hi! How can I help you today?"),
        ("user", "Put Dracula there."),
    ]
    played(talk, [shelf.GOLD[0], "Done.", shelf.GOLD[5], "Sorted."])
    assert talk.stop == "answered"
    assert talk.attempt.task.query == "Put Dracula there."
    assert talk.attempt.whole_trace.returned == (["Dracula", "Walden"],)
    assert [len(turns) for turns in talk.attempt.user_turns] == [2, 2]
    assert replay(talk.attempt).same


def test_a_user_begins_in_its_own_words_in_every_sample(shelf: Any) -> None:
    asked: list[list[str]] = []

    class Kinds:
        def begin(self, task: cw.Task, seed: int) -> Any:
            return Drawing(seed)

    class Drawing:
        def __init__(self, seed: int) -> None:
            self.seed = seed

        def reply(self, messages: Sequence[cw.Message], session: Any) -> cw.Said:
            return cw.Said(f"I am {self.seed}.") if len(messages) == 1 else cw.Said(done=True)

    class Script:
        name = "script"

        def sample(self, requests: Any, *, n: int = 1, seed: int = 0, temperature: float = 1.0) -> Any:
            asked.append([request.messages[-1].text for request in requests])
            return [[cw.Completion("Hm.")] * n for _ in requests]

    conditions = cw.Conditions(limits=shelf.LIMITS, users=Kinds())
    line = cw.Pipeline(shelf.Shelves(), "tier", HERMES, conditions=conditions)
    task = greeted(shelf)
    (group,) = converse(line, Script(), [SamplingRequest(line.messages(task), task)], n=3)
    words = [one.attempt.task.query for one in group]
    assert len(set(words)) == 3
    assert sorted(text for some in asked for text in some) == sorted(words)
    assert [one.messages[-2].text for one in group] == words


def test_a_user_that_cannot_begin_masks_or_is_refused(shelf: Any) -> None:
    class Kinds:
        def __init__(self, said: cw.Said | None) -> None:
            self.said = said

        def begin(self, task: cw.Task, seed: int) -> Any:
            return self

        def reply(self, messages: Sequence[cw.Message], session: Any) -> cw.Said:
            if self.said is None:
                raise cw.InfrastructureFailure("nobody answers")
            return self.said

    lost = begun(shelf, greeted(shelf), users=Kinds(None))
    assert (lost.stop, lost.masked) == ("machinery", "nobody answers")
    for said in (cw.Said(done=True), cw.Said("Hm.", [cw.Call(0, "lend", {"title": "Walden"})])):
        with pytest.raises(ComponentError, match="begins the conversation"):
            begun(shelf, greeted(shelf), users=Kinds(said))
    with pytest.raises(UsageError, match="leaves no turn"):
        begun(shelf, greeted(shelf), {"user_turns": 1})


def test_what_a_user_wants_is_part_of_the_prompt_and_carries_no_loss(shelf: Any) -> None:
    pytest.importorskip("tokenizers", reason="tokenizers need the extra 'train'")
    from callwright_plugins.local_trainer.models.vocabulary import build_tokenizer

    task = greeted(shelf)
    tokenizer = build_tokenizer(sorted({word for text in (*shelf.GOLD, "Put Dracula there.") for word in text.split()}))
    codec = PlainCodec(tokenizer, lambda task: task.query)
    episode = TokenEpisode(task, HERMES, codec, build_messages(task, HERMES), cw.Conditions(limits=shelf.LIMITS))
    assert episode.prompt_ids == codec.prompt_ids((), evolve(task, query="Put Dracula there."))
    before = episode.prompt_ids
    episode.begin_again()
    assert episode.prompt_ids == before
    assert episode.mask == ()
