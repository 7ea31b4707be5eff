"""Conversing: any sampler over several turns, and evaluations of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import callwright as cw
from callwright.environments import FunctionEnvironment
from callwright.episodes.codec import PlainCodec
from callwright.episodes.conversation import Conversation
from callwright.episodes.driving import Conversing, Start, converse, drive_batch, turn_seed
from callwright.episodes.token_episode import EngineOutput
from callwright.errors import ComponentError, RecipeError
from callwright.pipeline import Pipeline, build_pipeline
from callwright.recipe_file import parse_recipe
from callwright.training import judge
from callwright.walk.limits import SINGLE_TURN, TurnLimits
from callwright.walk.sampling import Completion, SamplingRequest

RECIPE = 'seed = 3\n[corpus]\nname = "toolworld-mini-v1"\n[turns]\nassistant_turns = 3\ntotal_tokens = 900\n'


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return build_pipeline(parse_recipe(RECIPE), cw.default_registry())


@pytest.fixture(scope="module")
def single() -> Pipeline:
    return build_pipeline(parse_recipe(RECIPE.partition("[turns]")[0]), cw.default_registry())


def test_the_recipe_says_how_long_an_episode_may_become(pipeline: Pipeline, single: Pipeline) -> None:
    assert pipeline.limits == TurnLimits(assistant_turns=3, total_tokens=900)
    assert single.limits is None
    prove = parse_recipe(RECIPE.partition("assistant")[0])
    assert prove.recipe.turns is not None
    assert TurnLimits(**prove.recipe.turns.model_dump()) == TurnLimits()
    codec = PlainCodec(_Bytes(), lambda task: task.query)
    task = pipeline.tasks("evaluation")[0]
    rollout = pipeline.rollout(task, codec)
    assert (rollout.limits, rollout.attempt.seed) == (pipeline.limits, 3)
    assert rollout.messages == pipeline.messages(task)
    assert single.rollout(task, codec).limits == SINGLE_TURN


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
    turns = [len(attempt.turns) for attempt in kept if isinstance(attempt, cw.Episode)]
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
            said = message["content"]
            if message["role"] == "user":
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
    roles = {message["role"] for request in sampler.requests[-1] for message in request.messages}
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
    (made,) = converse(pipeline, sampler, [request], TurnLimits(), n=3, seed=1)
    assert [len(one.episode.turns) for one in made] == [1, 3, 3]
    assert [one.stop for one in made] == ["answered"] * 3
    assert sampler.seeds == [1, turn_seed(1, 1, 1), turn_seed(1, 1, 2), turn_seed(1, 2, 1), turn_seed(1, 2, 2)]
    again = Uneven(pipeline.parser)
    (same,) = converse(pipeline, again, [request], TurnLimits(), n=3, seed=1)
    assert [one.messages for one in same] == [one.messages for one in made]


def test_a_call_put_right_in_a_later_turn_is_an_answer_but_not_valid(
    make_task: Callable[..., cw.Task], list_parser: Any
) -> None:
    task = make_task(4)
    wrong, right = '[["double", {"number": "x"}]]', '[["double", {"number": 2}]]'
    assert judge(cw.Episode(task, list_parser, [right])).valid
    put_right = judge(cw.Episode(task, list_parser, ['[["shout", {"text": ""}]]', right, "[]"]))
    assert (put_right.answer, put_right.valid, put_right.failure) == (True, False, "")
    spoiled = judge(cw.Episode(task, list_parser, [right, wrong, "[]"]))
    assert not spoiled.answer
    assert judge(cw.Episode(task, list_parser, [right, "no list"])).failure == "format:not_a_list"


def test_a_sampler_of_token_ids_drives_rollouts_itself(pipeline: Pipeline) -> None:
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
            groups = [[start(request, codec) for _ in range(options["n"])] for request in requests]
            drive_batch([one for group in groups for one in group], self.generate, retries=options["retries"])
            return groups

        def generate(self, contexts: Sequence[tuple[int, ...]], rooms: Any) -> list[EngineOutput]:
            return [EngineOutput((*codec.tokenizer.encode(texts[min(one.count(0), 1)]), 0)) for one in contexts]

    sampler = Tokens()
    assert isinstance(sampler, Conversing)
    assert not isinstance(cw.sampler("gold"), Conversing)
    limits = TurnLimits(assistant_turns=4)
    request = SamplingRequest(pipeline.messages(task), task)
    (made,) = converse(pipeline, sampler, [request], limits, n=2, seed=9, temperature=0.5, retries=1)
    assert sampler.asked == {"n": 2, "seed": 9, "temperature": 0.5, "retries": 1}
    assert [(one.stop, one.retried, one.masked) for one in made] == [("answered", 0, None)] * 2
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
    conversation = Conversation(task, list_parser, ({"role": "user", "content": "q"},))
    assert conversation.take(Completion('[["double", {"number": 2}]]')) == ()
    assert conversation.over
    assert "no server" in str(conversation.masked)
    conversation.retry()
    assert not conversation.over
    assert (conversation.masked, conversation.retried) == (None, 1)
    assert [message["role"] for message in conversation.messages] == ["user", "assistant", "tool"]


def test_a_lost_completion_is_asked_for_again_then_masked(pipeline: Pipeline) -> None:
    class Losing(Stepwise):
        lost = 0

        def sample(self, requests: Sequence[SamplingRequest], **options: Any) -> list[list[Completion]]:
            made = super().sample(requests, **options)
            if requests[0].turns and self.lost:
                self.lost -= 1
                made[0] = [Completion("", lost="503")]
            return made

    task = next(task for task in pipeline.tasks("evaluation") if task.depth == 2 and task.returns == "one")
    for lost, retries, masked in ((2, 2, False), (9, 2, True), (1, 0, True)):
        sampler = Losing(pipeline.parser)
        sampler.lost = lost
        (verdict,) = cw.evaluate(pipeline, [task], sampler, retries=retries)
        assert (verdict.masked, verdict.answer) == (masked, not masked)
        assert sum(not requests[0].turns for requests in sampler.requests) == 1  # what was not lost is kept
        (made,) = converse(pipeline, sampler, [SamplingRequest(pipeline.messages(task), task)], TurnLimits())
        sampler.lost = 0
        (again,) = converse(pipeline, sampler, [SamplingRequest(pipeline.messages(task), task)], TurnLimits())
        if masked and lost > 1:
            assert (made[0].masked, made[0].stop) == ("503", "machinery")
            assert cw.reward("tier").score_attempt(made[0].episode).total is None
        assert again[0].masked is None


def test_a_sampler_that_gives_too_few_is_named(pipeline: Pipeline) -> None:
    class Few:
        name = "few"

        def sample(self, requests: Any, **options: Any) -> Any:
            return [[]]

    task = pipeline.tasks("evaluation")[0]
    with pytest.raises(ComponentError, match="'few' did not give 1"):
        converse(pipeline, Few(), [SamplingRequest((), task)], TurnLimits())
