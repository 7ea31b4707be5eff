"""Episodes of token ids: ids, masks and budgets for any engine; why episodes stop; retries; both drivers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

import callwright as cw
from callwright.episodes.driving import drive_batch, drive_many, drive_one
from callwright.episodes.results import LEFT_OUT
from callwright.episodes.token_episode import (
    Codec,
    EngineOutput,
    PromptTooLong,
    TokenEpisode,
    describe_episodes,
    start_episodes,
)
from callwright.errors import ComponentError, DataError
from callwright.language.messages import Message
from callwright.training import judge
from callwright.walk import Progress
from callwright.walk.limits import SINGLE_TURN, TurnLimits

END = 0


class Letters:
    """One id a character; a turn is ``r:text``, and the model ends its own with the id 0."""

    ends = frozenset({END})
    prefix_text = ""

    def prompt_ids(self, messages: Sequence[Message], task: cw.Task) -> tuple[int, ...]:
        return ids(lines(messages) + "a:")

    def observation_ids(
        self, messages: Sequence[Message], completion_ids: Sequence[int], observations: Sequence[Message]
    ) -> tuple[int, ...]:
        ended = completion_ids and completion_ids[-1] == END
        return ids(("" if ended else chr(END)) + lines(observations) + "a:")

    def text(self, ids: Sequence[int]) -> str:
        return "".join(map(chr, ids[:-1] if ids and ids[-1] == END else ids))


def lines(messages: Sequence[Message]) -> str:
    return "".join(f"{message.role[0]}:{message.content}\n" for message in messages)


def ids(text: str) -> tuple[int, ...]:
    return tuple(map(ord, text))


CODEC = Letters()
TURNS = cw.Conditions(limits=TurnLimits())


def call(tool: str = "add", **arguments: Any) -> str:
    return json.dumps([[tool, arguments]])


class Counter:
    """``add`` changes a number and returns it; ``broken`` sessions fail at ``fail``, and at nothing if none are left.

    ``drift`` is added to what every further session returns, so that no two sessions agree.
    """

    name, pure = "counter", True
    tools = {name: cw.ToolSpec(name) for name in ("add", "fail", "long")}  # noqa: RUF012

    def __init__(self, broken: int = 0, drift: int = 0) -> None:
        self.broken, self.drift = broken, drift
        self.sessions: list[CounterSession] = []

    def open(self, scenario: str = "", seed: int = 0) -> CounterSession:
        self.sessions.append(CounterSession(len(self.sessions) < self.broken, self.drift * len(self.sessions)))
        return self.sessions[-1]


class CounterSession:
    def __init__(self, broken: bool, value: int) -> None:
        self.broken, self.value, self.closed = broken, value, False

    def call(self, tool: str, arguments: dict[str, Any]) -> cw.Outcome:
        assert not self.closed
        if tool == "fail" and self.broken:
            raise cw.InfrastructureFailure("the server is gone")
        if tool == "long":
            return cw.Outcome("ok", "x" * arguments.get("n", 500))
        self.value += arguments.get("n", 1)
        return cw.Outcome("ok", self.value)

    def digest(self) -> str:
        return str(self.value)

    def close(self) -> None:
        self.closed = True


def make_task(world: Counter | None = None, *, name: str = "t", says: Sequence[str] = ()) -> cw.Task:
    world = world or Counter()
    user = cw.UserSpec("replayed", {"says": says}) if says else None
    return cw.Task(name, f"query of {name}", world.tools, cw.Answer((1,)), world, user=user)


def prompt(task: cw.Task) -> tuple[Message, ...]:
    return (Message.user(task.query),)


class Script:
    """An engine that writes the next of its texts for whichever task a context is of, cut to the room there is.

    A text that does not fit is cut and not finished. ``unended`` completions stop without an end token.
    """

    def __init__(self, texts: Mapping[str, Sequence[str]] | Sequence[str], unended: bool = False) -> None:
        self.texts = texts if isinstance(texts, Mapping) else {"t": texts}
        self.unended = unended
        self.asked: list[tuple[int, ...]] = []

    def one(self, context: tuple[int, ...], room: int | None) -> EngineOutput:
        self.asked.append(context)
        text = "".join(map(chr, context))
        name = text.split("query of ", 1)[1].split("\n", 1)[0]
        made = (*ids(self.texts[name][context.count(END)]), *(() if self.unended else (END,)))
        cut = made[:room]
        return EngineOutput(cut, tuple(-1.0 - index for index in range(len(cut))), len(cut) == len(made))

    def __call__(self, contexts: Sequence[tuple[int, ...]], rooms: Sequence[int | None]) -> list[EngineOutput]:
        return [self.one(context, room) for context, room in zip(contexts, rooms, strict=True)]


@pytest.fixture
def start(list_parser: Any) -> Callable[..., TokenEpisode]:
    def make(task: cw.Task | None = None, limits: TurnLimits = TURNS.limits) -> TokenEpisode:
        task = task or make_task()
        return TokenEpisode(task, list_parser, CODEC, prompt(task), cw.Conditions(limits=limits))

    return make


def test_the_codec_of_these_tests_is_one() -> None:
    assert isinstance(CODEC, Codec)


# Ids and masks --------------------------------------------------------------------------------------------------------


def test_two_turns_id_for_id(start: Callable[..., TokenEpisode]) -> None:
    episode = start()
    assert episode.context == episode.prompt_ids == ids("u:query of t\na:")
    assert (episode.room, episode.over, episode.stop, episode.response_ids) == (None, False, None, ())
    episode.accept(EngineOutput((*ids(call(n=4)), END), (-0.5,) * (len(call(n=4)) + 1)))
    observed = 't:{"id":0,"name":"add","result":4}\na:'
    assert episode.response_ids == (*ids(call(n=4)), END, *ids(observed))
    episode.accept(EngineOutput((*ids("[]"), END), (-0.25,) * 3))
    first, gap = len(call(n=4)) + 1, len(observed)
    assert episode.ranges == ((0, first), (first + gap, first + gap + 3))
    assert episode.mask == (1,) * first + (0,) * gap + (1,) * 3
    assert episode.logprobs == (-0.5,) * first + (0.0,) * gap + (-0.25,) * 3
    assert (episode.over, episode.stop, episode.room, episode.masked) == (True, "answered", 0, None)
    assert [message.role for message in episode.messages] == ["user", "assistant", "tool", "assistant"]
    assert episode.attempt.trace is not None
    assert episode.attempt.trace.returned == (4,)
    with pytest.raises(cw.UsageError, match="is over"):
        episode.accept(EngineOutput((END,)))


TEXTS = st.sampled_from(
    ["[]", call(n=1), call("long", n=300), call("nothing"), "no program", call(), '[["add", {}], ["long", {"n": 30}]]']
)
LIMITS = st.builds(
    TurnLimits,
    assistant_turns=st.integers(1, 6),
    user_turns=st.integers(1, 4),
    turn_tokens=st.none() | st.integers(1, 60),
    total_tokens=st.none() | st.integers(1, 900),
    observation_tokens=st.none() | st.integers(70, 400),
    context_tokens=st.none() | st.integers(20, 900),
)


@given(texts=st.lists(TEXTS, min_size=6, max_size=6), limits=LIMITS, unended=st.booleans(), later=st.integers(0, 4))
def test_whatever_an_engine_writes_ids_and_budgets_hold(
    list_parser: Any, texts: list[str], limits: TurnLimits, unended: bool, later: int
) -> None:
    task = make_task(says=[f"more {number}" for number in range(later)])
    episode = TokenEpisode(task, list_parser, CODEC, prompt(task), cw.Conditions(limits=limits))
    engine, sampled = Script(texts, unended), []
    while not episode.over:
        assert episode.room is None or episode.room >= 1
        assert episode.context == (*episode.prompt_ids, *episode.response_ids)
        generated = engine.one(episode.context, episode.room)
        sampled.append(generated)
        episode.accept(generated)
    response, mask = episode.response_ids, episode.mask
    assert len(response) == len(mask) == len(episode.logprobs)
    assert [index for first, last in episode.ranges for index in range(first, last)] == [
        index for index, one in enumerate(mask) if one
    ]
    assert [response[first:last] for first, last in episode.ranges] == [one.token_ids for one in sampled]
    assert [episode.logprobs[first:last] for first, last in episode.ranges] == [one.logprobs for one in sampled]
    assert all(not logprob for logprob, one in zip(episode.logprobs, mask, strict=True) if not one)
    assert mask[-1] == 1  # nothing follows the last completion
    assert episode.messages == engine_view(episode.context)
    # budgets
    assert len(episode.ranges) <= limits.assistant_turns
    assert sum(message.role == "user" for message in episode.messages) <= limits.user_turns
    assert limits.turn_tokens is None or all(last - first <= limits.turn_tokens for first, last in episode.ranges)
    assert limits.total_tokens is None or len(response) <= limits.total_tokens
    assert limits.context_tokens is None or len(episode.context) <= limits.context_tokens
    for (_, gap), (following, _) in zip(episode.ranges, episode.ranges[1:], strict=False):
        said = "".join(map(chr, response[gap:following]))
        assert limits.observation_tokens is None or "u:" in said or len(said) <= limits.observation_tokens
    # why it stopped
    last = episode.attempt.turns[-1]
    if not sampled[-1].finished:
        assert episode.stop in ("tokens", "context")
        assert last.completion.truncated
    elif episode.stop == "answered":
        assert not last.calls
    elif episode.stop == "unparsed":
        assert last.trace is None
    elif episode.stop == "assistant_turns":
        assert len(episode.ranges) == limits.assistant_turns
    elif episode.stop == "user_turns":
        assert limits.user_turns <= later
    else:
        assert episode.stop in ("tokens", "context")
    assert episode.masked is None


def engine_view(context: tuple[int, ...]) -> tuple[Message, ...]:
    """The messages that the text of a context shows (no content of these tests has a line break)."""
    roles = {"u": "user", "a": "assistant", "t": "tool"}
    parts = "".join(map(chr, context)).replace(chr(END), "\n").rstrip("\n").split("\n")
    return tuple(Message(role=roles[part[0]], content=part[2:]) for part in parts)  # type: ignore[arg-type]


def test_a_single_turn_is_the_attempt(start: Callable[..., TokenEpisode], list_parser: Any) -> None:
    for text in ("[]", call(n=1), "no program"):
        task = make_task()
        episode = start(task, limits=SINGLE_TURN)
        episode.accept(EngineOutput((*ids(text), END)))
        assert episode.over
        assert (episode.response_ids, set(episode.mask)) == ((*ids(text), END), {1})
        attempt = cw.Attempt(task, text, list_parser)
        for name in ("tier", "tier-released", "tier-guarded"):
            recipe = cw.reward(name)
            assert recipe.score_attempt(episode.attempt).to_json() == recipe.score_attempt(attempt).to_json()
        assert judge(episode.attempt) == judge(attempt)


def test_log_probabilities_are_all_or_none(start: Callable[..., TokenEpisode]) -> None:
    episode = start()
    episode.accept(EngineOutput((*ids(call()), END), (-1.0,) * (len(call()) + 1)))
    episode.accept(EngineOutput((*ids("[]"), END)))
    assert episode.logprobs == ()


@pytest.mark.parametrize(
    ("generated", "message"),
    [
        (EngineOutput(ids("x" * 9), (), False), "9 tokens where 8 had room"),
        (EngineOutput(ids("xyz"), (-1.0,)), "1 log-probabilities for 3 tokens"),
    ],
)
def test_an_engine_that_breaks_its_word_is_named(
    start: Callable[..., TokenEpisode], generated: EngineOutput, message: str
) -> None:
    episode = start(limits=TurnLimits(turn_tokens=8))
    with pytest.raises(ComponentError, match=message):
        episode.accept(generated)
    with pytest.raises(ComponentError, match="2 completions for 1 contexts"):
        drive_batch([episode], lambda contexts, rooms: [EngineOutput((END,))] * 2)


# Limits ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "limits", "stop", "turns"),
    [
        ([call(), "[]"], TurnLimits(), "answered", 2),
        ([call(), "no program"], TurnLimits(), "unparsed", 2),
        ([call()] * 9, TurnLimits(assistant_turns=4), "assistant_turns", 4),
        (["[]"] * 9, TurnLimits(user_turns=2), "user_turns", 2),
        (["[]"] * 9, TurnLimits(user_turns=9), "answered", 4),
        (["[]"] * 9, TurnLimits(assistant_turns=2), "assistant_turns", 2),
        ([call(), "[]"], TurnLimits(turn_tokens=3), "tokens", 1),
        ([call("long", n=500), "[]"], TurnLimits(total_tokens=200), "tokens", 1),
        ([call("long", n=500), "[]"], TurnLimits(context_tokens=200), "context", 1),
        ([call(), call()], TurnLimits(context_tokens=20), "context", 1),
        ([call(), "[]"], TurnLimits(context_tokens=19, turn_tokens=5), "context", 1),
        ([call(), "[]"], TurnLimits(context_tokens=40, turn_tokens=5), "tokens", 1),
    ],
)
def test_every_reason_to_stop(
    start: Callable[..., TokenEpisode], texts: list[str], limits: TurnLimits, stop: str, turns: int
) -> None:
    task = make_task(says=["two", "three", "four"] if texts[0] == "[]" else [])
    episode = start(task, limits=limits)
    drive_batch([episode], Script(texts))
    assert (episode.stop, len(episode.attempt.turns)) == (stop, turns)
    if stop in ("tokens", "context"):
        assert episode.response_ids[-1] != ord(":")  # no observation that nobody answers


def test_the_last_session_is_given_back(start: Callable[..., TokenEpisode]) -> None:
    world = Counter()
    episode = start(make_task(world))
    drive_batch([episode], Script([call(), call(), "[]"]))
    assert [session.closed for session in world.sessions] == [True]
    early = start(make_task(world))
    early.accept(EngineOutput(ids(call())))
    assert not world.sessions[-1].closed
    early.close()
    assert world.sessions[-1].closed


@pytest.mark.parametrize("limit", [0, -1, 2.0, True, "5"])
def test_limits_are_whole_numbers(limit: Any) -> None:
    with pytest.raises(cw.UsageError, match="'turn_tokens' is a whole number"):
        TurnLimits(turn_tokens=limit)
    with pytest.raises(cw.UsageError, match="'assistant_turns' is a whole number"):
        TurnLimits(assistant_turns=limit)


def test_a_prompt_is_never_cut(start: Callable[..., TokenEpisode]) -> None:
    length = len("u:query of t\na:")
    with pytest.raises(PromptTooLong, match=f"task 't' has {length} tokens.*no room in the {length}"):
        start(limits=TurnLimits(context_tokens=length))
    assert start(limits=TurnLimits(context_tokens=length + 1)).room == 1
    tasks = [make_task(name="t"), make_task(name="much longer"), make_task(name="u")]
    limits = TurnLimits(context_tokens=length + 3)
    episodes, skipped = start_episodes(tasks, lambda task: start(task, limits=limits), skip_too_long=True)
    assert [episode.task.id for episode in episodes] == ["t", "u"]
    assert [(task.id, str(why).split(",")[0]) for task, why in skipped] == [
        ("much longer", f"the prompt of task 'much longer' has {length + 10} tokens")
    ]
    with pytest.raises(DataError):
        start_episodes(tasks, lambda task: start(task, limits=limits))


# Observations ---------------------------------------------------------------------------------------------------------


def test_long_results_are_cut_in_the_middle_and_say_so(start: Callable[..., TokenEpisode]) -> None:
    limits = TurnLimits(observation_tokens=100)
    episode = start(limits=limits)
    episode.accept(EngineOutput((*ids(call("long", n=400)), END)))
    said = episode.messages[-1].text
    whole = '{"id":0,"name":"long","result":"' + "x" * 400 + '"}'
    head, _, rest = said.partition("[")
    number, _, tail = rest.partition(" characters left out]")
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert len(head) + int(number) + len(tail) == len(whole)
    gap = len(episode.response_ids) - episode.ranges[0][1]
    assert 95 <= gap <= 100
    assert episode.observations_cut == 1
    many = start(limits=limits)
    many.accept(EngineOutput((*ids(json.dumps([["long", {}]] * 9)), END)))
    assert [message.content for message in many.messages[2:]] == [LEFT_OUT]
    with pytest.raises(cw.UsageError, match="'observation_tokens' is 20"):
        start(limits=TurnLimits(observation_tokens=20)).accept(EngineOutput((*ids(call("long")), END)))


def test_results_of_every_kind_are_told(start: Callable[..., TokenEpisode]) -> None:
    episode = start()
    episode.accept(EngineOutput((*ids('[["add", {"n": 2}], ["nothing", {}]]'), END)))
    assert [message.content for message in episode.messages[2:]] == [
        '{"id":0,"name":"add","result":2}',
        '{"id":1,"name":"nothing","error":{"code":"unknown_tool","message":"no tool named \'nothing\' is offered"}}',
    ]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({1, 2}, '"<set>"'),
        ("half \ud800", '"half \\ud800"'),
        ("é\n", '"é\\n"'),
        (float("inf"), "Infinity"),
        ({(1, 2): 3}, None),
    ],
)
def test_results_that_are_no_json(value: Any, shown: str | None) -> None:
    from callwright.episodes.results import describe_step
    from callwright.walk.trace import CallRecord

    text = describe_step(CallRecord(3, "odd", {}, cw.Outcome("ok", value)))
    text.encode()
    expected = '"error":{"code":"not_json","message":"TypeError"}' if shown is None else f'"result":{shown}'
    assert text == '{"id":3,"name":"odd",' + expected + "}"


def test_a_parser_may_tell_results_itself(list_parser: Any) -> None:
    class Telling(type(list_parser)):  # type: ignore[misc]
        def observe(self, turn: cw.walk.Turn) -> Any:
            assert turn.trace is not None
            value = turn.trace.returned[0]
            return f"it is {value}" if value == 1 else [{"role": "user", "content": f"see: {value}"}]

    task = make_task()
    episode = TokenEpisode(task, Telling(), CODEC, prompt(task), TURNS)
    drive_batch([episode], Script([call(), call(), "[]"]))
    assert [episode.messages[at].to_openai() for at in (2, 4)] == [
        {"role": "tool", "content": "it is 1"},
        {"role": "user", "content": "see: 2"},
    ]


@pytest.mark.parametrize("made", [None, [], [{"role": "cook", "content": ""}], ["text"], 7])
def test_a_parser_that_tells_nothing_is_named(list_parser: Any, made: Any) -> None:
    class Telling(type(list_parser)):  # type: ignore[misc]
        def observe(self, turn: cw.walk.Turn) -> Any:
            if made == 7:
                raise KeyError("x")
            return made

    task = make_task()
    with pytest.raises(ComponentError, match=r"'list'.*'observe'"):
        drive_batch([TokenEpisode(task, Telling(), CODEC, prompt(task), TURNS)], Script([call(), "[]"]))


def test_what_a_user_says_goes_on_in_the_same_session(start: Callable[..., TokenEpisode]) -> None:
    task = make_task(says=["and again", "thanks"])
    episode = start(task)
    drive_batch([episode], Script([call(n=2), "[]", call(n=3), "[]", "[]"]))
    assert [message.content for message in episode.messages if message.role == "user"] == [
        "query of t",
        "and again",
        "thanks",
    ]
    assert episode.attempt.trace is not None
    assert episode.attempt.trace.returned == (5,)
    assert episode.stop == "answered"
    with pytest.raises(DataError, match=r"task 't': the user 'replayed': the option 'says'.*is a list of lines"):
        start(make_task(says="and again"))


def test_an_open_thought_is_part_of_the_text_and_not_of_the_ids(list_parser: Any) -> None:
    class Opened(Letters):
        prefix_text = "["

        def prompt_ids(self, messages: Sequence[Message], task: cw.Task) -> tuple[int, ...]:
            return (*super().prompt_ids(messages, task), ord("["))

    task = make_task()
    episode = TokenEpisode(task, list_parser, Opened(), prompt(task), TURNS)
    episode.accept(EngineOutput((*ids(call()[1:]), END)))
    assert episode.attempt.completion.text == call()
    assert episode.attempt.completion.token_ids == (*ids(call()[1:]), END)
    episode.accept(EngineOutput((*ids("[]"), END)))  # after results this codec opens nothing
    assert episode.stop == "answered"


# Failures of the machinery --------------------------------------------------------------------------------------------

TROUBLE = [call(n=2), call("fail", n=3), call(n=4), "[]"]


def test_a_retry_replays_what_was_sampled(start: Callable[..., TokenEpisode]) -> None:
    whole, engine = start(make_task(Counter())), Script(TROUBLE)
    drive_batch([whole], engine)
    asked = list(engine.asked)
    world = Counter(broken=2)
    episode, engine = start(make_task(world)), Script(TROUBLE)
    drive_batch([episode], engine, retries=2)
    assert fields(episode) == fields(whole)
    assert episode.retried == 2
    assert engine.asked == asked  # nothing was sampled twice
    assert [session.closed for session in world.sessions] == [True, True, True]


def test_what_fails_again_and_again_is_masked(start: Callable[..., TokenEpisode]) -> None:
    episode = start(make_task(Counter(broken=99)))
    drive_batch([episode], Script(TROUBLE), retries=3)
    assert (episode.stop, episode.retried, len(episode.ranges)) == ("machinery", 3, 2)
    assert episode.masked is not None
    assert "the server is gone" in episode.masked
    reward = cw.reward("tier").score_attempt(episode.attempt)
    assert reward.total is None
    assert "the server is gone" in str(reward.masked)
    assert judge(episode.attempt).masked


def test_a_reward_that_executes_nothing_is_masked_too(start: Callable[..., TokenEpisode]) -> None:
    class Long(cw.RewardComponent):
        name = "long"

        def score(self, attempt: cw.Attempt) -> cw.Score:
            return cw.Score(1.0)

    recipe = cw.RewardRecipe("long", (cw.Term(Long(), 1.0),))
    lost, whole = start(make_task(Counter(broken=9))), start()
    drive_batch([lost, whole], Script(TROUBLE))
    assert recipe.score_attempt(lost.attempt).total is None
    assert recipe.score_attempt(whole.attempt).total == 1.0


def test_sampling_goes_on_where_a_replay_differs(start: Callable[..., TokenEpisode]) -> None:
    episode, engine = start(make_task(Counter(broken=1, drift=100))), Script(TROUBLE)
    drive_batch([episode], engine, retries=1)
    assert episode.stop == "answered"
    assert [json.loads(message.content)["result"] for message in episode.messages if message.role == "tool"] == [
        102,
        105,
        109,
    ]
    # first turn once; the second again, as its context changed; then the rest
    assert len(engine.asked) == 5
    assert [episode.response_ids[start:end] for start, end in episode.ranges] == [
        turn.completion.token_ids for turn in episode.attempt.turns
    ]


@pytest.mark.parametrize("alone", [True, False])
def test_an_engine_that_fails_is_asked_again(start: Callable[..., TokenEpisode], alone: bool) -> None:
    script = Script({"t": TROUBLE, "u": ["[]"]})
    failures = [cw.InfrastructureFailure("busy")] * 2

    def generate(contexts: Sequence[tuple[int, ...]], rooms: Sequence[int | None]) -> list[Any]:
        made: list[Any] = script(contexts, rooms)
        if len(contexts[0]) > 60 and failures:
            if not alone:
                raise failures.pop()
            made[0] = failures.pop()
        return made

    episodes = [start(make_task(name="t")), start(make_task(name="u"))]
    drive_batch(episodes, generate, retries=2)
    assert [(episode.stop, episode.retried) for episode in episodes] == [("answered", 2), ("answered", 0)]
    lost = start()
    failures[:] = [cw.InfrastructureFailure("down")] * 9
    drive_batch([lost], generate, retries=1)
    assert (lost.stop, lost.masked, lost.retried, len(lost.ranges)) == ("machinery", "down", 1, 1)
    assert cw.reward("tier").score_attempt(lost.attempt).total is None


def test_bugs_are_not_masked(start: Callable[..., TokenEpisode]) -> None:
    def generate(contexts: Any, rooms: Any) -> Any:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        drive_batch([start()], generate, retries=3)


# Drivers --------------------------------------------------------------------------------------------------------------


def fields(episode: TokenEpisode) -> tuple[Any, ...]:
    return (
        episode.prompt_ids,
        episode.response_ids,
        episode.mask,
        episode.logprobs,
        episode.ranges,
        episode.stop,
        episode.masked,
        episode.messages,
        episode.observations_cut,
        [turn.completion for turn in episode.attempt.turns],
    )


@given(
    texts=st.lists(st.lists(TEXTS | st.just(call("fail")), min_size=6, max_size=6), min_size=1, max_size=4),
    limits=LIMITS.filter(lambda limits: limits.context_tokens is None),
    broken=st.integers(0, 3),
    concurrency=st.sampled_from([None, 1, 2]),
    threads=st.booleans(),
)
def test_both_drivers_give_the_same(
    list_parser: Any,
    texts: list[list[str]],
    limits: TurnLimits,
    broken: int,
    concurrency: int | None,
    threads: bool,
) -> None:
    script = Script({f"t{number}": one for number, one in enumerate(texts)})

    def begin() -> list[TokenEpisode]:
        tasks = [make_task(Counter(broken), name=name) for name in script.texts]
        return [TokenEpisode(task, list_parser, CODEC, prompt(task), cw.Conditions(limits=limits)) for task in tasks]

    async def generate(context: tuple[int, ...], room: int | None) -> EngineOutput:
        await asyncio.sleep(0)
        return script.one(context, room)

    batch, alone = begin(), begin()
    drive_batch(batch, script, retries=2)
    asyncio.run(drive_many(alone, generate, retries=2, concurrency=concurrency, threads=threads))
    assert list(map(fields, alone)) == list(map(fields, batch))
    assert describe_episodes(alone) == describe_episodes(batch)


def test_no_more_at_a_time_than_asked_for(start: Callable[..., TokenEpisode]) -> None:
    script = Script({f"t{number}": [call(), "[]"] for number in range(7)})
    running, most = 0, 0

    async def generate(context: tuple[int, ...], room: int | None) -> EngineOutput:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return script.one(context, room)

    episodes = [start(make_task(name=name)) for name in script.texts]
    asyncio.run(drive_many(episodes, generate, concurrency=3))
    assert most == 3
    assert all(episode.stop == "answered" for episode in episodes)


def test_an_error_stops_every_episode_and_is_raised(start: Callable[..., TokenEpisode]) -> None:
    script = Script({"t": ["[]"], "u": ["[]"]})
    stopped = []

    async def generate(context: tuple[int, ...], room: int | None) -> EngineOutput:
        if "query of u" in "".join(map(chr, context)):
            raise ZeroDivisionError
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.append(True)
            raise
        return script.one(context, room)

    with pytest.raises(ZeroDivisionError):
        asyncio.run(drive_many([start(make_task(name=name)) for name in ("t", "u")], generate))
    assert stopped == [True]


def test_a_remote_engine_that_fails_is_retried_then_masked(start: Callable[..., TokenEpisode]) -> None:
    async def generate(context: tuple[int, ...], room: int | None) -> EngineOutput:
        raise cw.InfrastructureFailure("504")

    episode = start()
    asyncio.run(drive_one(episode, generate, retries=4))
    assert (episode.stop, episode.masked, episode.retried) == ("machinery", "504", 4)


def test_the_counts_of_a_metrics_row(start: Callable[..., TokenEpisode]) -> None:
    texts = {"t": [call(), "[]"], "u": ["no program"], "v": [call("fail"), "[]"]}
    episodes = [start(make_task(Counter(broken=9 if name == "v" else 0), name=name)) for name in texts]
    drive_batch(episodes, Script(texts), retries=1)
    assert describe_episodes(episodes) == {
        "rollouts": 3,
        "turns": 4 / 3,
        "stops": {"answered": 1, "machinery": 1, "unparsed": 1},
        "tokens": sum(len(text) + 1 for text in (call(), "[]", "no program", call("fail"))),
        "environment_tokens": len('t:{"id":0,"name":"add","result":1}\na:'),
        "observations_cut": 0,
        "retried": 1,
        "masked": 1,
    }
    assert describe_episodes([])["turns"] is None


def test_everything_that_an_episode_is_told_reaches_it(list_parser: Any) -> None:
    seen: list[Any] = []

    class Opening(Counter):
        def open(self, scenario: str = "", seed: int = 0) -> CounterSession:
            seen.append((scenario, seed))
            return super().open(scenario, seed)

    def caller(session: Any, made: cw.Call, arguments: dict[str, Any]) -> cw.Outcome:
        seen.append(made.tool)
        return cw.Outcome("ok", 1)

    task = evolve(make_task(Opening()), scenario="s", seed=7)
    conditions = cw.Conditions(seed=11, limits=TurnLimits(), progress=Progress(3, 10), caller=caller, time_limit=5.0)
    episode = TokenEpisode(task, list_parser, CODEC, prompt(task), conditions)
    drive_batch([episode], Script([call(), "[]"]))
    assert seen == [("s", 7), "add"]
    assert (episode.attempt.task.seed, episode.attempt.progress) == (7, Progress(3, 10))
    assert episode.attempt.conditions is conditions
