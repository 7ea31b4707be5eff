"""The user that a model plays: what it is told, what becomes of its answers, and of its failures."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import evolve

import callwright as cw
from callwright.episodes.conversation import Conversation
from callwright.episodes.driving import drive
from callwright.errors import DataError, RecipeError, UsageError
from callwright.machines.model_server.budget import BudgetSpent
from callwright.pipeline import build_pipeline
from callwright.training.spending import used_by
from callwright.walk.sampling import SamplingRequest
from callwright.walk.users.kinds import UserKinds
from callwright_plugins.users.model import STOP, ModelUser

TESTS = Path(__file__).parents[2]
sys.path.append(str(TESTS / "core" / "support"))
sys.path.append(str(TESTS / "core" / "episodes" / "support"))

from phone import PHONES, task  # noqa: E402
from stand_in_server import StandIn, chat, refusal  # noqa: E402

REGISTRY = cw.default_registry()
HERMES = cw.parser("hermes")
LIMITS = cw.TurnLimits(assistant_turns=8, user_turns=6)
TALK = ["Hello?", "<think>secret</think>Which phone?", "It works.", "Bye.", "Bye."]


class Says:
    """A sampler that says these texts one after another, and keeps what it was asked."""

    name = "says"

    def __init__(self, *texts: str | cw.Completion, role: str = "user") -> None:
        self.texts, self.observation_role = list(texts), role
        self.asked: list[tuple[SamplingRequest, int, float]] = []

    def sample(
        self, requests: Sequence[SamplingRequest], *, n: int = 1, seed: int = 0, temperature: float = 1.0
    ) -> list[list[cw.Completion]]:
        self.asked.append((requests[0], seed, temperature))
        text = self.texts.pop(0)
        return [[cw.Completion(text) if isinstance(text, str) else text]]


def played(sampler: Any, texts: Sequence[str] = TALK, of: cw.Task | None = None, **options: Any) -> Conversation:
    user = ModelUser(REGISTRY, sampler, **options)

    class Kinds:
        def begin(self, task: cw.Task, seed: int) -> Any:
            return user.begin(task, seed)

    of = of or task(user="model")
    talk = Conversation(of, HERMES, [cw.Message.user(of.query)], cw.Conditions(limits=LIMITS, users=Kinds()))  # type: ignore[arg-type]
    for text in texts:
        if talk.over:
            break
        talk.accept(cw.Completion(text))
    return talk


def said(talk: Conversation) -> list[str]:
    return [turn.user.said.text for turn in talk.turns if turn.user is not None]


BARE = evolve(task(user="model"), environment=cw.environment("none", tools=[]), tools={})


def test_the_model_is_told_who_it_is_and_hears_the_agent_as_the_other_side() -> None:
    sampler = Says("It rings.", "<think>hm</think>The black one.", f"Thanks! {STOP}")
    talk = played(
        sampler,
        of=BARE,
        goal="You want your phone to work.",
        persona="You are Ada, 36, and in a hurry.",
        knows={"number": "555-1", "age": 36},
        temperature=0.2,
    )
    assert (talk.stop, said(talk)) == ("answered", ["It rings.", "The black one.", "Thanks!"])
    (first, *_), (last, _, temperature) = [one for one, *_ in sampler.asked], sampler.asked[-1]
    told = first.messages[0].text
    assert ["You are Ada" in told, "You want your phone" in told, "- number: 555-1\n- age: 36" in told] == [True] * 3
    assert STOP in told
    assert [(one.role, one.text) for one in last.messages[1:]] == [
        ("user", "Hello! What can I do for you?"),
        ("assistant", "My phone does not work."),
        ("user", "Hello?"),
        ("assistant", "It rings."),
        ("user", "Which phone?"),
        ("assistant", "The black one."),
        ("user", "It works."),
    ]
    assert temperature == 0.2
    assert len({seed for _, seed, _ in sampler.asked}) == 3
    again = Says("a", "b", "c", "d", "e")
    played(again, of=BARE)
    assert [seed for _, seed, _ in again.asked][:3] == [seed for _, seed, _ in sampler.asked]
    assert "You want" not in again.asked[0][0].messages[0].text
    assert f"# What you want\n{BARE.query}" in again.asked[0][0].messages[0].text


def test_what_the_world_knows_is_told() -> None:
    bank = cw.environment("banking")
    known = bank.open("", 1).knowledge()  # type: ignore[attr-defined]
    assert known
    sampler = Says(STOP)
    played(sampler, of=evolve(BARE, environment=bank, seed=1))
    told = sampler.asked[0][0].messages[0].text
    assert all(f"- {name}: " in told for name in known)
    other = Says(STOP)
    played(other, of=evolve(BARE, environment=bank, seed=1), entities=[])
    assert "# What you know" not in other.asked[0][0].messages[0].text


CALL = '<tool_call>\n{"name": "flip", "arguments": {"on": false}}\n</tool_call>'
LINE = '<tool_call>\n{"name": "line", "arguments": {}}\n</tool_call>'


@pytest.mark.parametrize("role", ["user", "tool"])
def test_its_own_tools_are_described_called_and_answered(role: str) -> None:
    sampler = Says(CALL, "I did it.", STOP, role=role)
    talk = played(sampler, ["Turn it on.", LINE, "Done."])
    assert [turn.trace.records[0].outcome.value for turn in talk.turns if turn.calls and turn.trace is not None] == [
        {"works": True, "reset": 0}
    ]
    system, *_, called, result = sampler.asked[1][0].messages
    assert '"name": "flip"' in system.text
    assert '"name": "line"' not in system.text
    assert called == cw.Message.assistant(CALL)
    assert result.role == role
    assert '{"id":0,"name":"flip","result":false}' in result.text
    assert said(talk) == ["I did it.", ""]
    assert talk.turns[0].user is not None
    assert [call.tool for call in talk.turns[0].user.said.calls] == ["flip"]


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (cw.Completion("", masked="refused by a filter"), "was not answered: refused by a filter"),
        (cw.Completion("Half a sen", truncated=True), "was cut off"),
        (cw.Completion("  <think>a</think> "), "wrote nothing|neither a call nor an answer"),
        (cw.Completion('<tool_call>\n{"name": 1}\n</tool_call>'), "a call that cannot be read"),
    ],
)
def test_what_is_no_answer_masks_the_sample(made: cw.Completion, reason: str) -> None:
    talk = played(Says(made))
    assert talk.stop == "machinery"
    assert talk.masked is not None
    assert any(one in talk.masked for one in reason.split("|"))
    assert cw.reward("tier").score_attempt(talk.attempt).total is None


def test_a_model_that_only_calls_masks_the_sample_and_stops_nothing() -> None:
    assert "called tools 12 times" in (played(Says(*[CALL] * 20)).masked or "")


def test_without_tools_a_call_is_words() -> None:
    assert said(played(Says("I [call] you <b>", STOP), of=BARE))[0] == "I [call] you <b>"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sampler": "opennai"}, "Did you mean 'openai'"),
        ({"sampler": "no-call", "stop": " "}, "ends the conversation"),
        ({"sampler": "no-call", "knows": ["a"]}, "'knows': .* dictionary, not"),
        ({"sampler": "no-call", "entities": "me"}, "'entities': .* Sequence"),
        ({"sampler": "no-call", "temperature": -1}, "equal to 0, not -1"),
        ({"sampler": "no-call", "goal": 3}, "'goal': .* string, not 3"),
        ({}, "needs the option 'sampler'"),
    ],
)
def test_options_that_are_wrong_are_said_in_words(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        cw.user("model", **options)


# With a server --------------------------------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[Callable[..., StandIn]]:
    made = []

    def start(*given: Any, **more: Any) -> StandIn:
        made.append(StandIn(*given, **more))
        return made[-1].__enter__()

    yield start
    for one in made:
        one.__exit__(None, None, None)


def of_server(url: str, **more: Any) -> UserKinds:
    options = {"model": "m", "base_url": url, "retries": 0, **more}
    return UserKinds(REGISTRY, {"model": {"sampler": "openai", "options": options}})


def served(kinds: UserKinds, texts: Sequence[str] = TALK, of: cw.Task = BARE) -> Conversation:
    talk = Conversation(of, HERMES, [cw.Message.user(of.query)], cw.Conditions(limits=LIMITS, users=kinds))
    for text in texts:
        if not talk.over:
            talk.accept(cw.Completion(text))
    return talk


def test_a_served_model_plays_and_what_it_took_is_counted(server: Callable[..., StandIn]) -> None:
    answers = iter(["It rings.", STOP])
    there = server(lambda asked: chat(next(answers), thought="hm", thought_field="reasoning"))
    talk = served(of_server(there.url, price_prompt=1.0, price_completion=2.0))
    assert (talk.stop, said(talk)) == ("answered", ["It rings.", ""])
    sent = there.asked[0].body["messages"]
    assert [one["role"] for one in sent] == ["system", "user", "assistant", "user"]
    usage = used_by(talk.attempt)
    assert usage is not None
    assert usage["requests"] == 2
    assert usage["cost"] > 0


def test_tools_of_users_go_to_a_server_as_functions(server: Callable[..., StandIn]) -> None:
    answers = iter([chat(None, calls=[("flip", '{"on": false}')]), chat("I did."), chat(STOP)])
    there = server(lambda asked: next(answers))
    talk = served(of_server(there.url, tools="native"), ["Turn it on.", LINE, "Done."], task(user="model"))
    assert [one["function"]["name"] for one in there.asked[0].body["tools"]] == ["flip", "drop"]
    assert [one["role"] for one in there.asked[1].body["messages"]][-2:] == ["assistant", "tool"]
    assert talk.attempt.whole_trace.records[0].outcome.value["works"] is True


def test_refusals_and_lost_servers_mask_and_budgets_end_the_command(server: Callable[..., StandIn]) -> None:
    refusing = server(lambda asked: refusal("openai", "filter"))
    assert served(of_server(refusing.url)).stop == "machinery"
    failing = server(lambda asked: chat("x"))
    failing.close()
    assert served(of_server(failing.url, timeout=2.0)).stop == "machinery"
    there = server(lambda asked: chat("More."))
    with pytest.raises(BudgetSpent):
        served(of_server(there.url, price_prompt=1.0, price_completion=1e6, max_cost=0.01))


def test_a_task_cannot_send_a_secret_to_a_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOMEBODYS_KEY", "secret")
    options = {
        "sampler": "openai",
        "options": {"model": "m", "base_url": "http://evil", "api_key_env": "SOMEBODYS_KEY"},
    }
    stated = evolve(BARE, user=cw.UserSpec("model", options))
    with pytest.raises(DataError, match=r"sends the environment variable SOMEBODYS_KEY to http://evil, which a task"):
        served(UserKinds(REGISTRY), of=stated)
    given = UserKinds(REGISTRY, {"model": options})
    assert isinstance(given.kind(cw.UserSpec("model", {"goal": "x"})), ModelUser)


def test_a_recipe_says_who_plays(tmp_path: Path) -> None:
    recipe = {"corpus": "toolworld-mini-v1", "user": {"name": "model", "sampler": "no-call", "temperature": 0.0}}
    line = build_pipeline(cw.load_recipe(recipe), with_algorithm=False)
    assert line.conditions.users is not None
    kind: Any = line.conditions.users.kind(cw.UserSpec("model", {"goal": "x", "temperature": 1.0, "sampler": "gold"}))
    assert (kind.goal, kind.temperature, kind.sampler.name) == ("x", 0.0, "no-call")
    assert line.conditions.users.kind(cw.UserSpec("replayed")).name == "replayed"
    file = tmp_path / "r.toml"
    file.write_text('corpus = "toolworld-mini-v1"\n[user]\nname = "modell"\n')
    with pytest.raises(RecipeError, match=r"r.toml:2.*Did you mean 'model'"):
        build_pipeline(cw.load_recipe(file), with_algorithm=False)


def test_a_user_of_a_registry_travels_as_its_options() -> None:
    import pickle

    made: Any = pickle.loads(pickle.dumps(cw.user("model", sampler="no-call", goal="x")))
    assert (made.goal, made.sampler.name) == ("x", "no-call")
    assert json.loads(json.dumps(PHONES.user_tools["flip"].parameters))["required"] == ["on"]


def test_one_that_begins_says_what_it_wants_before_it_does_anything() -> None:
    greeted = evolve(
        task(user="model"), query="", opening=cw.Opening(history=(cw.Message.assistant("Hello, who is it?"),))
    )
    flip = HERMES.render(cw.Program((cw.Call(0, "flip", {"on": True}),)))

    def begun(sampler: Says) -> Conversation:
        user = ModelUser(REGISTRY, sampler)
        kinds: Any = SimpleNamespace(begin=user.begin)
        return Conversation(greeted, HERMES, [], cw.Conditions(limits=LIMITS, users=kinds))

    says = Says("My phone is dead.", flip, "I did it.", STOP)
    talk = begun(says)
    assert talk.task.query == "My phone is dead."
    assert dict(says.asked[0][0].task.tools) == {}
    assert "flip" in says.asked[0][0].messages[0].text
    talk.accept(cw.Completion("Please flip the switch."))
    assert set(says.asked[1][0].task.tools) == set(PHONES.user_tools)
    assert talk.turns[0].user is not None
    assert [call.tool for call in talk.turns[0].user.said.calls] == ["flip"]
    for text, told in ((flip, "called a tool"), (STOP, "ended the conversation")):
        assert begun(Says(text)).masked == f"the user 'model' {told} before it said what it wants"


def test_users_that_wait_for_a_server_are_asked_together(server: Callable[..., StandIn]) -> None:
    there = server(lambda asked: chat(STOP), latency=(0.3, 0.3))
    conditions = cw.Conditions(limits=LIMITS, users=of_server(there.url))
    talks = [Conversation(evolve(BARE, id=f"b{n}"), HERMES, [cw.Message.user("?")], conditions) for n in range(6)]
    drive(talks, lambda live: [cw.Completion("Hello?")] * len(live))
    assert [talk.stop for talk in talks] == ["answered"] * 6
    assert there.most >= 3
    refusing = of_server(there.url, price_prompt=1.0, price_completion=1e6, max_cost=0.01)
    poor = [Conversation(BARE, HERMES, [cw.Message.user("?")], evolve(conditions, users=refusing)) for _ in range(3)]
    with pytest.raises(BudgetSpent):
        drive(poor, lambda live: [cw.Completion("Hello?")] * len(live))
