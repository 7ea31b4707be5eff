"""Users in episodes: what they hear, see, do and say, and that it is the same wherever the session lives."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

import callwright as cw
from callwright.environments import ClockPolicy
from callwright.episodes.conversation import Conversation
from callwright.episodes.driving import drive
from callwright.episodes.pool import EpisodePool
from callwright.episodes.sampling import converse
from callwright.errors import ComponentError, DataError
from callwright.language.speech import spoken
from callwright.testing.services.users import check_user_tools
from callwright.training.evaluation import judge
from callwright.training.ledger.ingredients import task_digests
from callwright.walk import ExecutionRules, replay
from callwright.walk.limits import TurnLimits
from callwright.walk.sampling import SamplingRequest
from callwright.walk.users.kinds import kinds_of

SUPPORT = Path(__file__).parent / "support"
HERMES = cw.parser("hermes")
LINE = '<tool_call>\n{"name": "line", "arguments": {}}\n</tool_call>'
RESET = '<tool_call>\n{"name": "reset", "arguments": {}}\n</tool_call>'
MEND = "<think>\nIt flies.\n</think>\n\nPlease switch airplane mode off."
LIMITS = TurnLimits(assistant_turns=8, user_turns=6)


@pytest.fixture
def phone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module of the phone, which processes find too."""
    monkeypatch.syspath_prepend(str(SUPPORT))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")]))
    import phone as module

    yield module
    sys.modules.pop("phone")


def begun(phone: Any, task: cw.Task, parser: Any = HERMES, **more: Any) -> Conversation:
    conditions = cw.Conditions(**{"limits": LIMITS, "users": kinds_of(_kept(phone)), **more})
    return Conversation(task, parser, [cw.Message.user(task.query)], conditions)


_REGISTRIES: dict[int, Any] = {}


def _kept(phone: Any) -> Any:
    return _REGISTRIES.setdefault(id(phone), phone.registry())


def played(talk: Conversation, texts: Sequence[str]) -> Conversation:
    """The conversation with these completions, as far as it goes."""
    for text in texts:
        if talk.over:
            break
        talk.accept(cw.Completion(text))
    return talk


def said(talk: Conversation) -> list[str]:
    return [turn.user.said.text for turn in talk.turns if turn.user is not None]


# What users do --------------------------------------------------------------------------------------------------------


def test_what_a_user_does_is_seen_by_the_agent_and_counts_in_the_state(phone: Any) -> None:
    talk = played(begun(phone, phone.task()), [LINE, MEND, LINE, "It works again."])
    attempt = talk.attempt
    assert [record.outcome.value["works"] for record in attempt.whole_trace.records] == [False, True]
    assert (talk.stop, said(talk)) == ("answered", ["I have switched it off.", "Thank you, that is all."])
    user = talk.turns[1].user
    assert user is not None
    assert user.trace is not None
    assert [(call.tool, call.arguments) for call in user.said.calls] == [("flip", {"on": False})]
    assert [record.outcome.value for record in user.trace.records] == [False]
    other = phone.PHONES.open("typical", 1)
    assert attempt.whole_trace.state == other.digest()
    assert other.user_call("flip", {"on": False}).kind == "ok"
    assert attempt.whole_trace.final_state == other.digest() != attempt.whole_trace.state


def test_an_agent_has_no_tool_of_its_user(phone: Any) -> None:
    check_user_tools(phone.PHONES)
    assert "flip" not in phone.PHONES.tools
    session = phone.PHONES.open()
    assert session.call("flip", {"on": False}).kind == "unknown_tool"
    assert session.user_call("line", {}).kind == "unknown_tool"
    flip = '<tool_call>\n{"name": "flip", "arguments": {"on": false}}\n</tool_call>'
    talk = played(begun(phone, phone.task()), [flip])
    assert talk.turns[0].trace is not None
    assert talk.turns[0].trace.records[0].outcome.kind == "unknown_tool"


def test_a_user_reads_what_came_of_its_calls_before_it_speaks(phone: Any) -> None:
    task = phone.task(user="tinkerer", calls=[[["flip", {"on": False}]], [["flip", {"on": "no"}], ["fly", {}]]])
    talk = played(begun(phone, task), ["Can you try?", "Thanks."])
    heard = [json.loads(one) for one in said(talk)[0].replace("} {", "}\n{").splitlines()]
    assert [sorted(one) for one in heard] == [
        ["id", "name", "result"],
        ["error", "id", "name"],
        ["error", "id", "name"],
    ]
    assert [one["id"] for one in heard] == [0, 1, 2]
    assert talk.turns[0].user is not None
    assert [call.tool for call in talk.turns[0].user.said.calls] == ["flip", "flip", "fly"]
    assert all(call.tool == "line" for turn in talk.turns for call in turn.calls)  # they are nobody's but the user's
    assert talk.attempt.trace is not None
    assert talk.attempt.trace.executed


def test_a_user_looks_at_the_world_when_its_time_has_passed(phone: Any) -> None:
    policy = ClockPolicy(call=10, user_turn=100, jumps=(0, 3600))
    talk = played(begun(phone, phone.task(user="gambler", turns=2), clock=policy), [LINE, "One", "Two", "Three"])
    begin = phone.PHONES.open("typical", 1).tell_time()
    times = [int(text.split(" at ")[1].split(",")[0]) - begin for text in said(talk)]
    assert times == [110, 110 + 3700, 110 + 3700 + 100]
    assert talk.stop == "answered"


def test_nobody_answers_where_the_user_may_say_nothing_but_the_query(phone: Any) -> None:
    limits = TurnLimits(assistant_turns=4, user_turns=1)
    talk = played(begun(phone, phone.task(user="broken", how="raises"), limits=limits), ["Hello?"])
    assert (talk.stop, talk.turns[0].user) == ("user_turns", None)


@pytest.mark.parametrize(
    ("limits", "stop"), [({"user_turns": 2}, "user_turns"), ({"assistant_turns": 2}, "assistant_turns")]
)
def test_limits_end_what_a_user_would_go_on_with(phone: Any, limits: dict[str, int], stop: str) -> None:
    talk = played(begun(phone, phone.task(), limits=evolve(LIMITS, **limits)), ["Hm."] * 8)
    assert (talk.stop, len(talk.turns)) == (stop, 2)
    assert sum(message.role == "user" for message in talk.messages) <= 2


# What they hear -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["json", "xml", "direct", "toolrl", "hermes"])
@pytest.mark.parametrize("text", ["Which day?", "It costs < 5 & more.\nShall I?", "{}", "[]"])
def test_the_words_of_an_answer_reach_the_user_in_every_form(form: str, text: str) -> None:
    parser = cw.parser(form)
    written = parser.render(cw.Program((), "one", "A secret.", text))
    read = parser.parse(written)
    assert isinstance(read, cw.Program)
    assert read == cw.Program()
    assert spoken(read, cw.Completion(written)) == text
    assert read.thought == "A secret."
    calling = parser.parse(parser.render(cw.Program((cw.Call(0, "line", {}),), "one", "A secret.")))
    assert isinstance(calling, cw.Program)
    assert calling.text is None


def test_a_form_that_does_not_tell_hands_on_all_but_the_thought() -> None:
    told = {
        "<think>a</think>\nb": "b",
        "b": "b",
        "a</think> b": "b",
        "<think>a</think>": "",
        " b <think> ": "b <think>",
    }
    assert {text: spoken(cw.Program(), cw.Completion(text)) for text in told} == told


def test_of_an_answer_of_a_server_the_user_hears_the_content() -> None:
    parser = cw.parser("json")
    message = cw.Message.assistant("<think>secret</think>Which day?", reasoning="hm")
    text = parser.render(cw.Program((), "one", "hm\n\nWhich day?"))
    read = parser.parse(text)
    assert isinstance(read, cw.Program)
    assert spoken(read, cw.Completion(text, message=message)) == "Which day?"


def test_a_user_hears_no_thought_and_no_call(phone: Any) -> None:
    heard: list[tuple[cw.Message, ...]] = []

    class Listener:
        name = "listener"

        def begin(self, task: cw.Task, seed: int) -> Any:
            return self

        def reply(self, messages: Sequence[cw.Message], session: Any) -> cw.Said:
            heard.append(tuple(messages))
            return cw.Said("Go on.", done=len(heard) == 2)

    class Kinds:
        def begin(self, task: cw.Task, seed: int) -> Any:
            return Listener().begin(task, seed)

    played(begun(phone, phone.task(), users=Kinds()), [LINE, MEND, RESET, "<think>b</think>Done."])
    assert [(one.role, one.text) for one in heard[-1]] == [
        ("user", "My phone does not work."),
        ("assistant", "Please switch airplane mode off."),
        ("user", "Go on."),
        ("assistant", "Done."),
    ]


# Wherever the session lives -------------------------------------------------------------------------------------------

SCRIPTS = [
    [LINE, MEND, RESET, LINE, "Done."],
    [MEND, "Done."],
    ["Hello.", RESET, "Hm.", LINE, "Again."],
    ["Hello.", "Hello.", "Hello.", "Hello."],
    [RESET, "no program <tool_call>"],
]


def all_played(
    phone: Any, tasks: Sequence[cw.Task], scripts: Sequence[Sequence[str]], pool: EpisodePool | None = None, **more: Any
) -> list[tuple[Any, ...]]:
    form = HERMES if pool is None else pool.parser
    talks = [begun(phone, task, form, time_limit=float("inf"), **more) for task in tasks]
    script = {id(talk): texts for talk, texts in zip(talks, scripts, strict=True)}

    def ask(live: list[Conversation]) -> list[cw.Completion]:
        return [cw.Completion(script[id(one)][len(one.history)]) for one in live]

    drive(talks, ask, retries=1, pool=pool)
    return [(one.turns, one.messages, one.stop, one.masked, one.attempt.whole_trace) for one in talks]


@pytest.mark.parametrize(("executor", "workers"), [("thread", 3), ("process", 2)])
def test_users_are_the_same_with_any_executor(phone: Any, executor: str, workers: int) -> None:
    tasks = [phone.task(number) for number in range(len(SCRIPTS))]
    tasks += [phone.task(9 + number, user="gambler", turns=3) for number in range(len(SCRIPTS))]
    scripts = [[*script, *["Well."] * 8] for script in SCRIPTS] * 2
    clock = ClockPolicy(call=5, user_turn=60)
    expected = all_played(phone, tasks, scripts, clock=clock)
    assert {stop for _, _, stop, *_ in expected} >= {"answered", "unparsed"}
    with EpisodePool(HERMES, cw.reward("tier"), executor=executor, workers=workers) as pool:
        assert all_played(phone, tasks, scripts, pool, clock=clock) == expected


def test_a_worker_that_dies_of_a_users_call_is_replaced_and_all_is_done_again(phone: Any, tmp_path: Path) -> None:
    def task(sign: str) -> cw.Task:
        return phone.task(
            user="replayed",
            says=[
                {"say": "I did.", "calls": [{"tool": "flip", "arguments": {"on": False}}]},
                {"say": "Oh.", "calls": [{"tool": "drop", "arguments": {"sign": sign}}]},
            ],
        )

    script = [[RESET, "Switch it.", RESET, "Drop it.", LINE, "Done."]]
    (tmp_path / "dropped").touch()
    expected = all_played(phone, [task(str(tmp_path / "dropped"))], script)
    with EpisodePool(HERMES, cw.reward("tier"), executor="process", workers=1) as pool:
        found = all_played(phone, [task(str(tmp_path / "sign"))], script, pool)
    assert (tmp_path / "sign").exists()
    assert found[0][1:] == expected[0][1:]
    assert found[0][4].records[-1].outcome.value == {"works": True, "reset": 2}


@pytest.mark.parametrize("isolation", ["process", "none"])
def test_users_act_in_sessions_of_other_processes(phone: Any, isolation: Any) -> None:
    usual = played(begun(phone, phone.task()), SCRIPTS[0])
    found = played(begun(phone, phone.task(), isolation=isolation, time_limit=20.0), SCRIPTS[0])
    assert found.turns == usual.turns
    assert found.attempt.whole_trace == usual.attempt.whole_trace


# Again ----------------------------------------------------------------------------------------------------------------


def test_an_attempt_is_replayed_with_what_its_user_did(phone: Any) -> None:
    clock = ClockPolicy(call=5, user_turn=60)
    talk = played(begun(phone, phone.task(), clock=clock), SCRIPTS[0])
    attempt = talk.attempt
    found = replay(attempt)
    assert found.same
    assert found.compared == 4
    again = attempt.execution(ExecutionRules(missing_field="whole"))
    assert again is not None
    assert again.records == attempt.whole_trace.records
    user = talk.turns[1].user
    assert user is not None
    assert user.trace is not None
    record = user.trace.records[0]
    wrong = evolve(user, trace=evolve(user.trace, records=(evolve(record, outcome=evolve(record.outcome, value=1)),)))
    turns = [evolve(turn, user=wrong) if turn.user is user else turn for turn in talk.turns]
    told = replay(cw.Attempt.told(attempt.task, HERMES, turns, attempt.conditions))
    assert str(told.difference) == "replay diverged at call 0 flip: of the user: it gave 1, and gives False"


def test_a_written_attempt_comes_to_the_same_with_what_its_user_said(phone: Any) -> None:
    talk = played(begun(phone, phone.task()), SCRIPTS[0])
    lived = talk.attempt
    written = cw.Attempt(lived.task, lived.completions, HERMES, lived.conditions, said=lived.said)
    assert written.turns == lived.turns
    assert written.whole_trace == lived.whole_trace
    alone = cw.Attempt(lived.task, lived.completions, HERMES, lived.conditions)
    assert alone.whole_trace.records != lived.whole_trace.records  # nobody switched anything


def test_the_final_state_is_what_the_user_has_made_of_it_too(phone: Any) -> None:
    from callwright_plugins.prove_rewards.final_state import FinalState

    task = evolve(phone.task(), facts={"goal": phone.WORKS})
    mended = played(begun(phone, task), SCRIPTS[0]).attempt
    assert FinalState().score(mended).value == 1
    assert FinalState().score(played(begun(phone, task), ["Bye."] * 4).attempt).value == 0


class Lossy:
    """Phones of which the third call of a user or an agent is lost, once."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.name, self.tools, self.pure = inner, inner.name, inner.tools, True
        self.user_tools, self.lost = inner.user_tools, False

    def open(self, scenario: str = "", seed: int = 0) -> Any:
        world, session = self, self.inner.open(scenario, seed)

        class Session:
            def user_call(self, tool: str, arguments: dict[str, Any]) -> cw.Outcome:
                if not world.lost:
                    world.lost = True
                    raise cw.InfrastructureFailure("the line is dead")
                return session.user_call(tool, arguments)

            def __getattr__(self, name: str) -> Any:
                return getattr(session, name)

        return Session()


def test_a_retry_begins_with_a_fresh_user(phone: Any) -> None:
    usual = all_played(phone, [phone.task()], [SCRIPTS[0]])
    world = Lossy(phone.PHONES)
    found = all_played(phone, [evolve(phone.task(), environment=world)], [SCRIPTS[0]])
    assert world.lost
    assert [(one[1:], [turn.user for turn in one[0]]) for one in found] == [
        (one[1:], [turn.user for turn in one[0]]) for one in usual
    ]
    lost = begun(phone, evolve(phone.task(), environment=Lossy(phone.PHONES)))
    assert played(lost, SCRIPTS[0]).stop == "machinery"
    assert lost.masked == "of the user: call 0 flip: infrastructure: the line is dead"


@pytest.mark.parametrize("how", ["raises", "is silent", "says 7", "calls on"])
def test_a_bug_of_a_user_stops_the_run_and_names_it(phone: Any, how: str) -> None:
    with pytest.raises(ComponentError, match=r"user 'broken'.*(this is its bug|This is a bug of the user)"):
        played(begun(phone, phone.task(user="broken", how=how)), ["Hello."])


def test_a_user_that_cannot_answer_masks_the_sample(phone: Any) -> None:
    talk = played(begun(phone, phone.task(user="broken", how="fails")), ["Hello."])
    assert (talk.stop, talk.masked) == ("machinery", "nobody answers the phone")
    assert judge(talk.attempt).masked
    assert cw.reward("tier").score_attempt(talk.attempt).total is None


def test_users_that_do_not_exist_are_named_with_their_task(phone: Any) -> None:
    with pytest.raises(DataError, match=r"task 'p1': the user 'scriptet': There is no user.*Did you mean 'scripted'"):
        begun(phone, evolve(phone.task(), user=cw.UserSpec("scriptet")))
    with pytest.raises(DataError, match=r"task 'p1': the user 'scripted':.*'patiens'.*Did you mean 'patience'"):
        begun(phone, phone.task(patiens=3))
    with pytest.raises(DataError, match="must be JSON"):
        cw.UserSpec("scripted", {"knows": {"a": {1, 2}}})


def test_users_of_one_prompt_differ_and_are_the_same_again(phone: Any) -> None:
    class Silent:
        name = "silent"

        def sample(self, requests: Any, *, n: int = 1, seed: int = 0, temperature: float = 1.0) -> Any:
            return [[cw.Completion("Hm.")] * n for _ in requests]

    class Phones:
        name, environment, splits = "phones-v1", phone.PHONES, {"train": 1}

        def task(self, task_id: str) -> cw.Task:
            return phone.task(user="gambler", turns=1)

        def __getitem__(self, split: str) -> Any:
            return [self.task("")]

    task = phone.task(user="gambler", turns=1)
    line = cw.Pipeline(Phones(), "tier", HERMES, conditions=cw.Conditions(limits=LIMITS), registry=_kept(phone))
    request = SamplingRequest((cw.Message.user("?"),), task)

    def drawn(seed: int) -> list[str]:
        conditions = cw.Conditions(limits=LIMITS, seed=seed)
        (group,) = converse(line, Silent(), [request], conditions=conditions, n=4)
        return [said(one)[0] for one in group]  # type: ignore[arg-type]

    assert len(set(drawn(1))) == 4
    assert drawn(1) == drawn(1)
    assert not set(drawn(1)) & set(drawn(2))


def test_a_user_travels_with_its_task(phone: Any) -> None:
    spec = phone.task().user
    changed = [phone.task(), evolve(phone.task(), user=None), phone.task(patience=1)]
    assert len({task_digests([task])["p1"] for task in changed}) == 3
    assert cw.UserSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec
    assert cw.UserSpec.from_json(None) is None
    for wrong in ("scripted", {"options": {}}, {"name": "scripted", "option": {}}, {"name": 3}):
        with pytest.raises(DataError):
            cw.UserSpec.from_json(wrong)
