"""EpisodeSampler: any sampler over several turns, and evaluations of it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import callwright as cw
from callwright.environments import FunctionEnvironment
from callwright.episodes.codec import PlainCodec
from callwright.episodes.conversation import Conversation
from callwright.episodes.driving import drive, drive_batch, drive_one, goes_on
from callwright.episodes.sampling import EpisodeSampler, Start, converse, draw_seed, turn_seed
from callwright.episodes.token_episode import EngineOutput
from callwright.errors import CallwrightError, ComponentError, RecipeError
from callwright.pipeline import Pipeline, build_pipeline
from callwright.recipe_file import parse_recipe
from callwright.training import judge
from callwright.walk.completion import Completion
from callwright.walk.limits import SINGLE_TURN, TurnLimits
from callwright.walk.sampling import SamplingRequest

RECIPE = 'seed = 3\n[corpus]\nname = "toolworld-mini-v1"\n[turns]\nassistant_turns = 3\ntotal_tokens = 900\n'


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return build_pipeline(parse_recipe(RECIPE), cw.default_registry(), with_algorithm=False)


@pytest.fixture(scope="module")
def single() -> Pipeline:
    return build_pipeline(parse_recipe(RECIPE.partition("[turns]")[0]), cw.default_registry(), with_algorithm=False)


def test_the_recipe_says_how_long_an_episode_may_become(pipeline: Pipeline, single: Pipeline) -> None:
    assert pipeline.conditions.limits == TurnLimits(assistant_turns=3, total_tokens=900)
    assert single.conditions.limits == SINGLE_TURN
    prove = parse_recipe(RECIPE.partition("assistant")[0])
    assert prove.recipe.turns is not None
    assert TurnLimits(**prove.recipe.turns.model_dump()) == TurnLimits()
    codec = PlainCodec(_Bytes(), lambda task: task.query)
    task = pipeline.tasks("evaluation")[0]
    episode = pipeline.token_episode(task, codec)
    assert (episode.conditions.limits, episode.conditions.seed) == (pipeline.conditions.limits, 3)
    assert episode.messages == pipeline.messages(task)
    assert single.token_episode(task, codec).conditions.limits == SINGLE_TURN


class _Bytes:
    """The least that a codec needs of a tokenizer."""

    eos_token_id, bos_token_id, all_special_tokens = 0, None, ()

    def encode(self, text: str, **options: Any) -> list[int]:
        return list(text.encode())

    def decode(self, ids: list[int], **options: Any) -> str:
        return bytes(ids).decode()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("[turns]\nassistant_turns = 0\n", r"turns\.assistant_turns: .*greater than or equal to 1"),
        ("[turns]\ntotal_tokens = 'all'\n", r"turns\.total_tokens: "),
        ("[turns]\nassistent_turns = 3\n", "Did you mean 'assistant_turns'"),
        ("turn = 3\n", "Did you mean 'turns'"),
    ],
)
def test_wrong_limits_name_their_line(table: str, message: str) -> None:
    text = f"{table}corpus = 'toolworld-mini-v1'\n" if table.startswith("turn ") else f"corpus = 'x'\n{table}"
    with pytest.raises(RecipeError, match=message) as caught:
        parse_recipe(text, "r.toml")
    assert str(caught.value).startswith("r.toml:1:" if table.startswith("turn ") else "r.toml:3:")


@pytest.mark.parametrize("name", ["gold", "no-call", "noisy-gold", "random-valid"])
def test_one_turn_of_a_conversation_is_what_was_evaluated_before(single: Pipeline, name: str) -> None:
    tasks = single.tasks("evaluation", 40)
    sampler = single.registry.create("sampler", name)
    before = cw.evaluate(single, tasks, sampler, seed=5, temperature=1.0)
    assert cw.evaluate(single, tasks, sampler, seed=5, temperature=1.0, limits=SINGLE_TURN) == before
    assert name != "gold" or all(verdict.valid for verdict in before)


def test_gold_is_right_in_as_many_turns_as_it_takes(pipeline: Pipeline) -> None:
    tasks = pipeline.tasks("evaluation", 40)
    kept: list[cw.Attempt] = []
    verdicts = cw.evaluate(
        pipeline, tasks, cw.sampler("gold"), keep=lambda attempt, verdict: kept.append(attempt), batch=16
    )
    assert all(verdict.answer for verdict in verdicts)
    turns = [len(attempt.turns) for attempt in kept]
    assert len(turns) == 40
    for task, count in zip(tasks, turns, strict=True):
        assert count == 1 if not task.depth else 2 <= count <= 3


class Stepwise:
    """Makes the calls of the reference one at a time, values in place of references, as a chat model would."""

    name = "stepwise"

    def __init__(self, parser: cw.Parser) -> None:
        self.parser = parser
        self.requests: list[list[SamplingRequest]] = []
        self.seeds: list[int] = []

    def sample(
        self, requests: Sequence[SamplingRequest], *, n: int = 1, seed: int = 0, temperature: float = 1.0
    ) -> list[list[Completion]]:
        self.requests.append(list(requests))
        self.seeds.append(seed)
        return [[Completion(self.parser.render(self.next(request)))] * n for request in requests]

    def next(self, request: SamplingRequest) -> cw.Program:
        program = request.task.program
        assert program is not None
        done = len(request.turns)
        if done == len(program.calls):
            return cw.Program()
        results = [turn.trace.records[0].outcome.value for turn in request.turns if turn.trace is not None]
        for turn, message in zip(request.turns, request.messages[3::2], strict=True):
            assert turn.trace is not None
            said = message.content
            if message.role == "user":
                said = said.removeprefix("<tool_response>\n").removesuffix("\n</tool_response>")
            assert json.loads(said)["result"] == turn.trace.records[0].outcome.value
        call = program.calls[done]
        arguments = {key: _given(value, results, request.task, program) for key, value in call.arguments.items()}
        return cw.Program((cw.Call(0, call.tool, arguments),))


def _given(value: Any, results: list[Any], task: cw.Task, program: cw.Program) -> Any:
    if not isinstance(value, cw.Reference):
        return value
    position = [call.id for call in program.calls].index(value.call)
    found = results[position]
    field = task.tools[program.calls[position].tool].result_field
    for part in value.path or ((field,) if field else ()):
        found = found[part]
    return found


@pytest.mark.parametrize("role", [None, "tool", "user"])
def test_a_chain_call_by_call(pipeline: Pipeline, role: str | None) -> None:
    tasks = [task for task in pipeline.tasks("evaluation", 60) if task.returns == "one"]
    sampler = Stepwise(pipeline.parser)
    if role is not None:
        sampler.observation_role = role  # type: ignore[attr-defined]
    limits = TurnLimits(assistant_turns=8)
    verdicts = cw.evaluate(pipeline, tasks, sampler, limits=limits, seed=11)
    assert all(verdict.answer for verdict in verdicts)
    live = [len(requests) for requests in sampler.requests]
    assert live == [sum(task.depth >= turn for task in tasks) for turn in range(len(live))]
    assert sampler.seeds[0] == 11
    assert len(set(sampler.seeds)) == len(sampler.seeds)
    roles = {message.role for request in sampler.requests[-1] for message in request.messages}
    assert ("tool" in roles) == (role == "tool")


def test_copies_of_a_task_go_their_own_ways(pipeline: Pipeline) -> None:
    class Uneven(Stepwise):
        """The first of the copies answers at once."""

        def sample(self, requests: Sequence[SamplingRequest], **options: Any) -> list[list[Completion]]:
            made = super().sample(requests, **options)
            if len(made[0]) > 1:
                made[0][0] = Completion(self.parser.render(cw.Program()))
            return made

    task = next(task for task in pipeline.tasks("evaluation") if task.depth == 2 and task.returns == "one")
    sampler = Uneven(pipeline.parser)
    request = SamplingRequest(pipeline.messages(task), task)
    conditions = cw.Conditions(seed=1, limits=TurnLimits())
    (made,) = converse(pipeline, sampler, [request], conditions=conditions, n=3)
    assert [len(one.attempt.turns) for one in made] == [1, 3, 3]
    assert [one.stop for one in made] == ["answered"] * 3
    assert sampler.seeds == [1, turn_seed(1, 1, 1), turn_seed(1, 1, 2), turn_seed(1, 2, 1), turn_seed(1, 2, 2)]
    again = Uneven(pipeline.parser)
    (same,) = converse(pipeline, again, [request], conditions=conditions, n=3)
    assert [one.messages for one in same] == [one.messages for one in made]


def test_a_call_put_right_in_a_later_turn_is_an_answer_but_not_valid(
    make_task: Callable[..., cw.Task], list_parser: Any
) -> None:
    task = make_task(4)
    wrong, right = '[["double", {"number": "x"}]]', '[["double", {"number": 2}]]'
    assert judge(cw.Attempt(task, [right], list_parser)).valid
    put_right = judge(cw.Attempt(task, ['[["shout", {"text": ""}]]', right, "[]"], list_parser))
    assert (put_right.answer, put_right.valid, put_right.failure) == (True, False, "")
    spoiled = judge(cw.Attempt(task, [right, wrong, "[]"], list_parser))
    assert not spoiled.answer
    assert judge(cw.Attempt(task, [right, "no list"], list_parser)).failure == "format:not_a_list"


def test_a_sampler_of_token_ids_drives_episodes_itself(pipeline: Pipeline) -> None:
    task = pipeline.tasks("evaluation")[5]
    assert task.program is not None
    texts = [pipeline.parser.render(task.program), pipeline.parser.render(cw.Program())]
    codec = PlainCodec(_Bytes(), lambda task: task.query)

    class Tokens:
        name = "tokens"
        asked: Any = None

        def sample(self, requests: Any, **options: Any) -> Any:
            raise AssertionError

        def converse(
            self, requests: Sequence[SamplingRequest], start: Start, **options: Any
        ) -> Sequence[Sequence[Any]]:
            self.asked = options
            groups = [[start(request, codec, copy) for copy in range(options["n"])] for request in requests]
            drive_batch([one for group in groups for one in group], self.generate, retries=options["retries"])
            return groups

        def generate(self, contexts: Sequence[tuple[int, ...]], rooms: Any) -> list[EngineOutput]:
            return [EngineOutput((*codec.tokenizer.encode(texts[min(one.count(0), 1)]), 0)) for one in contexts]

    sampler = Tokens()
    assert isinstance(sampler, EpisodeSampler)
    assert not isinstance(cw.sampler("gold"), EpisodeSampler)
    limits = TurnLimits(assistant_turns=4)
    request = SamplingRequest(pipeline.messages(task), task)
    conditions = cw.Conditions(seed=9, limits=limits)
    (made,) = converse(pipeline, sampler, [request], conditions=conditions, n=2, temperature=0.5, retries=1)
    assert sampler.asked == {"n": 2, "seed": 9, "temperature": 0.5, "retries": 1}
    assert [(one.stop, one.retried, one.masked) for one in made] == [("answered", 0, None)] * 2
    drawn = [one.attempt.conditions.seed for one in made]
    assert drawn == [draw_seed(9, task.id, copy) for copy in range(2)]
    assert len(set(drawn)) == 2
    assert cw.evaluate(pipeline, [task], sampler, limits=limits)[0].answer


def test_a_failed_session_is_tried_again(make_task: Callable[..., cw.Task], list_parser: Any) -> None:
    class Failing:
        name, pure, left = "failing", True, 1
        tools: dict[str, cw.ToolSpec] = {}  # noqa: RUF012

        def open(self, scenario: str = "", seed: int = 0) -> Any:
            self.left -= 1
            if self.left >= 0:
                raise cw.InfrastructureFailure("no server")
            return FunctionEnvironment("none", []).open()

    task = make_task(4, environment=Failing())
    conditions = cw.Conditions(limits=TurnLimits())
    conversation = Conversation(task, list_parser, (cw.Message.user("q"),), conditions)
    assert conversation.take(Completion('[["double", {"number": 2}]]')) == ()
    assert conversation.over
    assert "no server" in str(conversation.masked)
    assert goes_on(conversation, 1)
    assert not conversation.over
    assert (conversation.masked, conversation.retried) == (None, 1)
    assert [message.role for message in conversation.messages] == ["user", "assistant", "tool"]


def test_a_lost_completion_is_asked_for_again_then_masked(pipeline: Pipeline) -> None:
    class Losing(Stepwise):
        left = 0

        def sample(self, requests: Sequence[SamplingRequest], **options: Any) -> list[list[Completion]]:
            made = super().sample(requests, **options)
            if requests[0].turns and self.left:
                self.left -= 1
                made[0] = [Completion("", masked="503")]
            return made

    task = next(task for task in pipeline.tasks("evaluation") if task.depth == 2 and task.returns == "one")
    for lost, retries, masked in ((2, 2, False), (9, 2, True), (1, 0, True)):
        sampler = Losing(pipeline.parser)
        sampler.left = lost
        (verdict,) = cw.evaluate(pipeline, [task], sampler, retries=retries)
        assert (verdict.masked, verdict.answer) == (masked, not masked)
        assert sum(not requests[0].turns for requests in sampler.requests) == 1  # what was not lost is kept
        request = SamplingRequest(pipeline.messages(task), task)
        conditions = cw.Conditions(limits=TurnLimits())
        (made,) = converse(pipeline, sampler, [request], conditions=conditions)
        sampler.left = 0
        (again,) = converse(pipeline, sampler, [request], conditions=conditions)
        if masked and lost > 1:
            assert (made[0].masked, made[0].stop) == ("503", "machinery")
            assert cw.reward("tier").score_attempt(made[0].attempt).total is None
        assert again[0].masked is None


def test_a_sampler_that_gives_too_few_is_named(pipeline: Pipeline) -> None:
    class Few:
        name = "few"

        def sample(self, requests: Any, **options: Any) -> Any:
            return [[]]

    task = pipeline.tasks("evaluation")[0]
    with pytest.raises(ComponentError, match="'few' did not give 1"):
        converse(pipeline, Few(), [SamplingRequest((), task)])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (KeyError("oops"), "sampler 'odd' raised KeyError: 'oops'. This is a bug of the sampler"),
        (SystemExit(3), "sampler 'odd' raised SystemExit: 3. This is a bug of the sampler"),
        (None, "sampler 'odd' raised TypeError: 'NoneType' object is not iterable"),
        ([["a text"]], "sampler 'odd' gave 'a text', which is no callwright.Completion"),
        ([[Completion(b"x")]], "sampler 'odd' gave a completion whose text is b'x'; it must be a str"),
    ],
)
def test_a_sampler_with_a_bug_is_named(pipeline: Pipeline, given: Any, said: str) -> None:
    class Odd:
        name = "odd"

        def sample(self, requests: Any, **options: Any) -> Any:
            if isinstance(given, BaseException):
                raise given
            return given

    task = pipeline.tasks("evaluation")[0]
    with pytest.raises(ComponentError) as caught:
        converse(pipeline, Odd(), [SamplingRequest((), task)])
    assert str(caught.value).startswith(said)


def test_a_sampler_whose_service_is_away_is_named_and_has_no_bug(pipeline: Pipeline) -> None:
    class Away:
        name = "away"

        def sample(self, requests: Any, **options: Any) -> Any:
            raise ConnectionError("refused")

    with pytest.raises(CallwrightError) as caught:
        converse(pipeline, Away(), [SamplingRequest((), pipeline.tasks("evaluation")[0])])
    assert (str(caught.value), caught.value.exit_status) == ("sampler 'away' raised ConnectionError: refused", 1)


def test_what_is_over_is_not_asked_for_again(pipeline: Pipeline) -> None:
    """A first answer that was lost, with no try left, must not be sampled anew while the other tasks go on."""

    class Losing(Stepwise):
        def sample(self, requests: Sequence[SamplingRequest], **options: Any) -> list[list[Completion]]:
            made = super().sample(requests, **options)
            return [
                [Completion("", masked="503")] * len(group) if request.task is lost else group
                for request, group in zip(requests, made, strict=True)
            ]

    lost, other = [task for task in pipeline.tasks("evaluation") if task.depth == 2 and task.returns == "one"][:2]
    requests = [SamplingRequest(pipeline.messages(task), task) for task in (lost, other)]
    for retries in (0, 2):
        sampler = Losing(pipeline.parser)
        made = converse(pipeline, sampler, requests, conditions=cw.Conditions(limits=TurnLimits()), retries=retries)
        assert [(group[0].stop, group[0].masked) for group in made] == [("machinery", "503"), ("answered", None)]
        asked = [request.task.id for requests in sampler.requests for request in requests]
        assert asked.count(lost.id) == 1 + retries
        assert asked.count(other.id) == 3


def test_the_copies_of_a_lost_group_are_asked_for_one_by_one(pipeline: Pipeline) -> None:
    class Losing(Stepwise):
        left = 1

        def sample(self, requests: Sequence[SamplingRequest], **options: Any) -> list[list[Completion]]:
            made = super().sample(requests, **options)
            if self.left:
                self.left -= 1
                return [[Completion("", masked="503")] * len(group) for group in made]
            return made

    task = pipeline.tasks("evaluation")[0]
    sampler = Losing(pipeline.parser)
    (made,) = converse(
        pipeline,
        sampler,
        [SamplingRequest(pipeline.messages(task), task)],
        conditions=cw.Conditions(seed=4),
        n=2,
        retries=1,
    )
    assert [(one.masked, one.retried) for one in made] == [(None, 1)] * 2
    assert sampler.seeds == [4, turn_seed(4, 0, 0), turn_seed(4, 0, 1)], "copies that begin again differ"


def test_an_engine_of_texts_drives_conversations(make_task: Callable[..., cw.Task], list_parser: Any) -> None:
    """``drive`` is the same for messages as for token ids."""
    conditions = cw.Conditions(limits=TurnLimits())
    told: list[list[str]] = []
    episodes = [
        Conversation(make_task(4, id=name), list_parser, (cw.Message.user(name),), conditions)
        for name in ("a", "b", "c")
    ]

    def ask(live: list[Conversation]) -> list[Any]:
        told.append([one.task.id for one in live])
        if len(told) == 1:
            raise cw.InfrastructureFailure("all of them")
        answers: list[Any] = [Completion('[["double", {"number": 2}]]' if not one.turns else "[]") for one in live]
        if len(told) == 3:
            answers[0] = cw.InfrastructureFailure("this one")
        return answers

    drive(episodes, ask, retries=1)
    assert told == [["a", "b", "c"]] * 3
    assert [(one.stop, one.masked, one.retried) for one in episodes] == [
        ("machinery", "this one", 1),
        ("answered", None, 1),
        ("answered", None, 1),
    ]
    assert [len(one.attempt.turns) for one in episodes] == [1, 2, 2]
    with pytest.raises(ComponentError, match="0 completions for 1 contexts"):
        drive([Conversation(make_task(4), list_parser, (), conditions)], lambda live: [])


def test_engines_are_asked_once_and_calls_run_here_unless_somebody_says_otherwise(
    make_task: Callable[..., cw.Task], list_parser: Any
) -> None:
    threads: list[int] = []

    @cw.tool
    def here() -> int:
        """Where it runs."""
        threads.append(threading.get_ident())
        return 4

    environment = FunctionEnvironment("here", [here])
    task = make_task(4, environment=environment, tools=environment.tools)
    pipeline = Pipeline("toolworld-mini-v1", "tier", list_parser)
    text = '[["here", {}]]'

    def episode() -> Any:
        codec = PlainCodec(_Bytes(), lambda task: task.query)
        return pipeline.token_episode(task, codec, conditions=cw.Conditions(time_limit=float("inf")))

    async def engine(context: Any, room: int) -> EngineOutput:
        return EngineOutput((*text.encode(), 0))

    one = episode()
    asyncio.run(drive_one(one, engine))
    assert threads == [threading.get_ident()]
    one = episode()
    asyncio.run(drive_one(one, engine, threads=True))
    assert threads[1] != threading.get_ident()

    asked = 0

    def down(contexts: Any, rooms: Any) -> Any:
        nonlocal asked
        asked += 1
        raise cw.InfrastructureFailure("down")

    one = episode()
    drive_batch([one], down)
    assert (asked, one.attempt.stop) == (1, "machinery")


def test_a_next_that_finds_nothing_ends_what_drives_in_threads(
    make_task: Callable[..., cw.Task], list_parser: Any
) -> None:
    class Nowhere(FunctionEnvironment):
        def open(self, scenario: str, seed: int) -> Any:
            return next(one for one in () if one == scenario)

    @cw.tool
    def here() -> int:
        """Nothing."""
        return 4

    environment = Nowhere("nowhere", [here])
    task = make_task(4, environment=environment, tools=environment.tools)
    pipeline = Pipeline("toolworld-mini-v1", "tier", list_parser)
    codec = PlainCodec(_Bytes(), lambda task: task.query)
    conditions = cw.Conditions(time_limit=float("inf"))

    async def engine(context: Any, room: int) -> EngineOutput:
        return EngineOutput((*b'[["here", {}]]', 0))

    async def drives() -> None:
        one = pipeline.token_episode(task, codec, conditions=conditions)
        await asyncio.wait_for(drive_one(one, engine, threads=True), 60)

    with pytest.raises(RuntimeError, match="raised StopIteration"):
        asyncio.run(drives())
