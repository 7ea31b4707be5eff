"""Tools as functions: a prompt without a form, calls that score as texts do, and what the options send."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from structlog.testing import capture_logs

import callwright as cw
from callwright.errors import CannotExpress
from callwright.language.program import plain
from callwright.training.evaluation import evaluate
from callwright.walk.limits import TurnLimits
from callwright.walk.prompt import draw_shots

openai_types = pytest.importorskip("openai.types.chat", reason="needs the client: pip install 'callwright[openai]'")
pytest.importorskip("aiolimiter", reason="needs the client: pip install 'callwright[openai]'")

sys.path.append(str(Path(__file__).parents[2] / "core" / "support"))
from stand_in_server import Asked, StandIn, chat  # noqa: E402


def native_calls(program: cw.Program) -> list[tuple[str, str]]:
    """The calls of a program as a server hands them over; references are the texts that forms write for them."""
    return [(call.tool, json.dumps(plain(call.arguments), ensure_ascii=False)) for call in program.calls]


def tasks_of(corpus: str, parser: Any, count: int) -> list[cw.Task]:
    """Tasks of every shape that the form can write."""
    made = cw.corpus(corpus)
    found: list[cw.Task] = []
    for split in made.splits:
        for task in made[split][:: max(1, len(made[split]) // count)]:
            try:
                parser.render(task.program)
            except (CannotExpress, AttributeError):
                continue
            found.append(task)
    return found


# What is read ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("corpus", ["toolworld-mini-v1", "depthbench-v1"])
@pytest.mark.parametrize("form", ["json", "xml", "direct", "hermes", "toolrl"])
def test_a_reference_that_is_served_natively_scores_as_its_text(corpus: str, form: str) -> None:
    parser = cw.parser(form)
    tasks = tasks_of(corpus, parser, 60)
    pipeline = cw.Pipeline(corpus, parser=parser)
    gold = {task.query: task.program for task in tasks}
    assert len(tasks) > 20
    shapes = {program.structure for program in gold.values() if program is not None}
    assert {"single", "parallel"} <= shapes
    if form in ("json", "xml", "direct"):
        assert {"linear", "funnel"} & shapes, "some calls need another's result"

    def script(asked: Asked) -> Any:
        program = gold[asked.body["messages"][-1]["content"]]
        assert program is not None
        if not program.calls:
            return chat("Nothing that I have can do this.", thought="why")
        return chat(None, calls=native_calls(program), thought="why")

    rewards, verdicts = [], []
    with StandIn(script) as server:
        sampler = cw.sampler("openai", model="m", tools="native", base_url=server.url)
        verdicts = evaluate(
            pipeline, tasks, sampler, keep=lambda attempt, verdict: rewards.append(pipeline.score(attempt).total)
        )
    assert [verdict.answer for verdict in verdicts] == [True] * len(tasks)
    for task, reward in zip(tasks, rewards, strict=True):
        assert task.program is not None
        written = parser.render(cw.Program(task.program.calls, task.program.returns, "why"))
        assert pipeline.score(pipeline.attempt(task, written)).total == reward, task.id


@pytest.mark.parametrize("form", ["json", "xml", "direct", "toolrl"])
def test_words_are_the_way_to_call_nothing(form: str) -> None:
    """In a form that has no place for words they are its program without calls, thought and words in its thought."""
    task = cw.corpus("toolworld-mini-v1").task("train-3")
    request = cw.SamplingRequest((cw.Message.user("q"),), task, (), cw.parser(form))
    broken = '<tool_call>\n{"name": "f", "arg'
    said = iter([chat("No tool does that.", thought="hm"), chat(""), chat(None), chat(broken)])
    with StandIn(lambda asked: next(said)) as server:
        sampler = cw.sampler("openai", model="m", tools="native", base_url=server.url)
        read = [cw.parser(form).parse(sampler.sample([request])[0][0].text) for _ in range(4)]
    assert isinstance(read[0], cw.Program)
    assert (read[0].calls, read[0].thought) == ((), "hm\n\nNo tool does that.")
    assert all(isinstance(one, cw.ParseFailure) for one in read[1:]), "nothing said, or a call that the server left"


@pytest.mark.parametrize(
    ("arguments", "failure"),
    [
        ('{"a": 1', ("syntax", "invalid_json")),
        ("not JSON at all", ("syntax", "invalid_json")),
        ('{"a": 1, "a": 2}', ("arguments", "duplicate_key")),
        ('{"a": NaN}', ("syntax", "invalid_json")),
        ('{"a": Infinity}', ("syntax", "invalid_json")),
        ('"{}"', ("arguments", "arguments_not_object")),
    ],
)
@pytest.mark.parametrize("strict", [False, True])
def test_arguments_reach_the_parser_as_they_were_sampled(arguments: str, failure: Any, strict: bool) -> None:
    """The answer is one of OpenAI's own types: what its client takes for a message is what is read here."""
    answer = chat(None, calls=[("f", arguments)])
    theirs = openai_types.ChatCompletion.model_validate(answer)
    task = cw.corpus("toolworld-mini-v1").task("train-3")
    with StandIn(lambda asked: theirs.model_dump(mode="json")) as server:
        sampler = cw.sampler("openai", model="m", tools="native", base_url=server.url, strict=strict)
        (((one,),)) = sampler.sample([cw.SamplingRequest((cw.Message.user("q"),), task)])
    assert theirs.choices[0].message.tool_calls[0].function.arguments == arguments
    assert arguments in one.text
    read = cw.parser("hermes").parse(one.text)
    assert isinstance(read, cw.ParseFailure)
    assert (read.stage, read.code) == failure


# What is sent ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("corpus", ["toolworld-mini-v1", "depthbench-v1"])
@pytest.mark.parametrize("form", ["json", "xml", "direct", "hermes", "toolrl"])
def test_a_native_prompt_holds_neither_a_form_nor_a_list_of_tools(corpus: str, form: str) -> None:
    pipeline = cw.Pipeline(corpus, parser=form)
    task = next(iter(pipeline.corpus[next(iter(pipeline.corpus.splits))]))
    system, query = pipeline.messages(task, native=True, limits=TurnLimits())
    once = pipeline.messages(task, native=True)[0].text
    assert query.text == task.query
    for strange in ("<think", "<tool_call", "API_RESPONSE", "return=", "JSON", "XML", '"name"', *task.tools):
        assert strange not in system.text
        assert strange not in once
    assert len(system.text) < 1200
    assert len(pipeline.messages(task)[0].text) > 2500
    for needed in ("no call", "words", "one answer", "result of another", "required argument"):
        assert needed in system.text
        assert (needed in once) == (needed != "result of another")
    assert "You answer once" in once


def test_the_form_of_a_native_recipe_is_only_how_calls_are_read() -> None:
    """A form of somebody else's is neither asked for instructions nor to write anything for a prompt."""

    class Silent:
        name = "silent"

        def parse(self, text: str) -> Any:
            return cw.parser("hermes").parse(text)

        def render(self, program: cw.Program) -> str:
            raise AssertionError("nothing is written in this form")

        def instructions(self) -> str:
            raise AssertionError("nobody is taught this form")

    pipeline = cw.Pipeline("toolworld-mini-v1", parser=Silent())
    task = cw.corpus("toolworld-mini-v1").task("train-3")
    shots = [one for one in cw.corpus("toolworld-mini-v1")["train"][4:30] if one.program is not None][:3]
    assert pipeline.messages(task, shots, native=True)


def test_worked_examples_are_calls_with_their_results() -> None:
    corpus = cw.corpus("toolworld-mini-v1")
    task = corpus.task("evaluation-1")
    pipeline = cw.Pipeline(corpus)
    shots = [
        next(one for one in corpus["train"] if one.program is not None and one.program.structure == shape)
        for shape in ("linear", "parallel", "none")
    ]
    with StandIn(lambda asked: chat("ok")) as server:
        sampler = cw.sampler("openai", model="m", tools="native", base_url=server.url)
        sampler.sample([cw.SamplingRequest(pipeline.messages(task, shots, native=True), task)])
        sent = server.asked[0].body["messages"]
    waiting: list[str] = []
    called: list[list[str]] = []
    for message in sent:
        assert (message["role"] == "tool") == bool(waiting), "every call is followed by its result"
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            assert "error" not in json.loads(message["content"])
        calls = message.get("tool_calls") or []
        waiting = waiting or [call["id"] for call in calls]
        called += [[call["function"]["name"] for call in calls]] if calls else []
        assert "API_RESPONSE" not in json.dumps(calls)
    linear, parallel, _ = (shot.program for shot in shots)
    assert linear is not None
    assert parallel is not None
    assert called == [*[[call.tool] for call in linear.calls], [call.tool for call in parallel.calls]]
    assert len({call["id"] for message in sent for call in message.get("tool_calls") or []}) == sum(map(len, called))


def test_examples_of_the_corpus_are_drawn_for_native_prompts_too() -> None:
    corpus = cw.corpus("depthbench-v1")
    task = corpus["validation"][0]
    messages = cw.Pipeline(corpus).messages(task, draw_shots(corpus, task, 3), native=True)
    assert sum(message.role == "user" for message in messages) == 4
    assert all(json.loads(call.arguments) is not None for message in messages for call in message.tool_calls)


def sent_with(**options: Any) -> dict[str, Any]:
    task = cw.corpus("toolworld-mini-v1").task("train-3")
    with StandIn(lambda asked: chat("ok")) as server:
        sampler = cw.sampler("openai", model="m", tools="native", base_url=server.url, **options)
        sampler.sample([cw.SamplingRequest((cw.Message.user("q"),), task)])
        body: dict[str, Any] = server.asked[0].body
    return body


def test_which_calls_may_be_made_is_sent() -> None:
    assert not sent_with().keys() & {"tool_choice", "parallel_tool_calls"}
    assert sent_with(parallel_tool_calls=False)["parallel_tool_calls"] is False
    for choice in ("auto", "required", "none"):
        assert sent_with(tool_choice=choice)["tool_choice"] == choice
    name = next(iter(cw.corpus("toolworld-mini-v1").task("train-3").tools))
    assert sent_with(tool_choice=name)["tool_choice"] == {"type": "function", "function": {"name": name}}
    with pytest.raises(cw.UsageError, match="'tool_choice' is 'NoSuchTool', but task 'train-3' offers no such tool"):
        sent_with(tool_choice="NoSuchTool")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tool_choice": "auto"}, "goes with tools = \"native\""),
        ({"strict": True}, "goes with tools = \"native\""),
        ({"parallel_tool_calls": True}, "goes with tools = \"native\""),
        ({"tools": "native", "parallel_tool_calls": "no"}, "'parallel_tool_calls' must be true or false"),
        ({"earlier_thoughts": "some"}, "'earlier_thoughts' must be 'keep' or 'template' or 'drop'"),
        ({"api": "completions"}, "'api' must be 'chat' or 'responses'"),
    ],
)  # fmt: skip
def test_wrong_options_are_said(options: dict[str, Any], said: str) -> None:
    with pytest.raises(cw.UsageError, match=said):
        cw.sampler("openai", model="m", **options)


@cw.tool
def book(city: str, nights: int = 1, note: str | None = None) -> str:
    """Book a room."""
    return f"{city} {nights} {note}"


@cw.tool
def anything(values: dict[str, int]) -> int:
    """Add what is given."""
    return sum(values.values())


@cw.tool
def whatever(values: dict[str, str]) -> int:
    """Count what is given."""
    return len(values)


def test_strict_schemas_are_sent_and_their_nulls_undone() -> None:
    environment: Any = cw.environment("hotel", tools=[book, anything, whatever])
    task = evolve(cw.corpus("toolworld-mini-v1").task("train-3"), environment=environment, tools=environment.tools)
    sampled = '{"city": "Oslo", "nights": null, "note": null}'
    with (
        StandIn(lambda asked: chat(None, calls=[("book", sampled)])) as server,
        capture_logs() as logs,
    ):
        sampler = cw.sampler("openai", model="m", tools="native", base_url=server.url, strict=True)
        for _ in range(2):
            (((one,),)) = sampler.sample([cw.SamplingRequest((cw.Message.user("q"),), task)])
        definitions = {tool["function"]["name"]: tool["function"] for tool in server.asked[0].body["tools"]}
    assert definitions["book"]["strict"] is True
    assert definitions["book"]["parameters"]["required"] == ["city", "nights", "note"]
    assert definitions["anything"]["strict"] is False
    (entry,) = logs
    assert entry["event"].startswith(
        "2 of 3 tools of task 'train-3' cannot be offered with a strict schema, and are sent as they are: "
        "'anything' (values may have keys"
    )
    assert "; 'whatever' (" in entry["event"]
    program = cw.parser("hermes").parse(one.text)
    assert isinstance(program, cw.Program)
    assert program.calls[0].arguments == {"city": "Oslo", "note": None}
    assert cw.Attempt(task, one, cw.parser("hermes")).trace.records[0].outcome.value == "Oslo 1 None"  # type: ignore[union-attr]
