"""Thoughts of servers: the same model scores the same, whether its server hands the thought over apart or not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, frozen

import callwright as cw
from callwright.errors import CannotExpress
from callwright.language.envelope import split_thought
from callwright.training.evaluation import evaluate
from callwright.walk.turn import Turn

pytest.importorskip("openai", reason="needs the client: pip install 'callwright[openai]'")
pytest.importorskip("aiolimiter", reason="needs the client: pip install 'callwright[openai]'")

sys.path.append(str(Path(__file__).parents[2] / "core" / "support"))
from stand_in_server import Asked, Reply, StandIn, chat

FORMS = ("json", "xml", "direct", "toolrl", "hermes", "why")
FIELDS = ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks", "parts", "opened")
WHY = "The request names the tool; </think> or <tool_call> in passing mean nothing."


JSON: Any = cw.parser("json")


@frozen
class WhyParser:
    """A form of somebody else's, which writes its thoughts in a way of its own."""

    name = "why"
    inner: Any = JSON

    def parse(self, text: str) -> Any:
        if not text.startswith("[why] "):
            return cw.ParseFailure("envelope", "missing_why", "there is no [why]", (0, 0))
        return self.inner.parse(text.replace("[why] ", "<think>", 1).replace(" [/why]\n", "</think>\n", 1))

    def render(self, program: cw.Program) -> str:
        text: str = self.inner.render(program)
        return text.replace("<think>\n", "[why] ", 1).replace("\n</think>\n", " [/why]\n", 1)

    def instructions(self) -> str:
        return "Write [why] … [/why], then the calls."


def parser_of(form: str) -> Any:
    return WhyParser() if form == "why" else cw.parser(form)


def expressible(parser: Any, count: int = 40) -> list[tuple[cw.Task, str, str]]:
    """Tasks with thought and rest of their reference as it is written in a form."""
    found = []
    for task in cw.corpus("toolworld-mini-v1")["train"]:
        if task.program is None or not task.program.calls:
            continue
        try:
            text = parser.render(evolve(task.program, thought="MARK"))
        except CannotExpress:
            continue
        rest = text[text.index("MARK") + len("MARK") :].split("</think>" if "</think>" in text else "[/why]", 1)[1]
        found.append((task, WHY, rest.strip()))
        if len(found) == count:
            return found
    raise AssertionError("there are not as many tasks")


def answer(field: str, thought: str, text: str) -> dict[str, Any]:
    """How servers hand over a thought."""
    if field == "opened":  # the template ended the prompt with <think>
        return chat(f"{thought.replace('</think>', 'it')}\n</think>\n\n{text}")
    if field == "reasoning_details":
        return chat(text, thought=[{"type": "reasoning.text", "text": thought}], thought_field=field)  # type: ignore[arg-type]
    if field == "thinking_blocks":
        return chat(text, thought=[{"type": "thinking", "thinking": thought, "signature": "s"}], thought_field=field)  # type: ignore[arg-type]
    if field == "parts":
        parts = [{"type": "thinking", "thinking": [{"type": "text", "text": thought}]}, {"type": "text", "text": text}]
        return chat(parts)  # type: ignore[arg-type]
    return chat(text, thought=thought, thought_field=field)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("field", FIELDS)
def test_who_answers_rightly_scores_rightly_with_every_way_to_hand_over_a_thought(form: str, field: str) -> None:
    """Before, none of the forms that must hold a thought was read: 0 of 40, ``format:missing_think``."""
    if (form, field) == ("why", "opened"):
        pytest.skip("a template that opens <think> does not know this form")
    parser = parser_of(form)
    asked = expressible(parser, 40 if field == "reasoning_content" else 6)
    answers = {task.query: answer(field, thought, rest) for task, thought, rest in asked}
    pipeline = cw.Pipeline("toolworld-mini-v1", parser=parser)

    def script(request: Asked) -> Any:
        return answers[request.body["messages"][-1]["content"]]

    rewards = []
    with StandIn(script) as server:
        sampler = cw.sampler("openai", model="m", base_url=server.url)
        verdicts = evaluate(
            pipeline,
            [task for task, _, _ in asked],
            sampler,
            keep=lambda attempt, verdict: rewards.append(pipeline.score(attempt).total),
        )
    assert sum(verdict.answer for verdict in verdicts) == len(asked), [verdict.failure for verdict in verdicts]
    assert all(verdict.thought_words and verdict.thought_words > 5 for verdict in verdicts)
    for (task, *_), reward in zip(asked, rewards, strict=True):
        assert task.program is not None
        written = parser.render(evolve(task.program, thought="why"))
        assert pipeline.score(pipeline.attempt(task, written)).total == reward


def sampled(content: str | None, *, ir: str | None = "json", finish: str = "stop", **more: Any) -> cw.Completion:
    task = cw.corpus("toolworld-mini-v1").task("train-3")
    request = cw.SamplingRequest((cw.Message.user("q"),), task, (), None if ir is None else cw.parser(ir))
    with StandIn(lambda asked: chat(content, finish=finish, **more)) as server:
        (((one,),)) = cw.sampler("openai", model="m", base_url=server.url).sample([request])
    completion: cw.Completion = one
    return completion


@pytest.mark.parametrize("form", ["json", "hermes", "toolrl", None])
def test_never_two_thoughts(form: str | None) -> None:
    own = cw.parser(form or "json").render(cw.Program((cw.Call(0, "f", {}),), "one", "my own"))
    assert sampled(own, ir=form, thought="the server's").text == own
    assert sampled("<think>never closed", ir=form, thought="the server's").text == "<think>never closed"


def test_what_is_wrong_with_a_text_is_said_and_not_that_its_thought_is_missing() -> None:
    one = sampled('<tool_call return="one">\n{"0": \n</tool_call>', thought="hm")
    failure = cw.parser("json").parse(one.text)
    assert isinstance(failure, cw.ParseFailure)
    assert (failure.stage, failure.code) == ("syntax", "invalid_json")


@pytest.mark.parametrize("form", ["json", "hermes", "toolrl", None])
def test_who_is_cut_while_thinking_never_ended_the_thought(form: str | None) -> None:
    one = sampled(None, ir=form, finish="length", thought="and so I")
    assert (one.text, one.truncated) == ("<think>\nand so I", True)
    if form is not None:
        failure = cw.parser(form).parse(one.text)
        assert isinstance(failure, cw.ParseFailure)
        assert failure.code in ("unclosed_think", "missing_tool_call")


def test_a_closing_tag_inside_of_an_argument_opens_no_thought() -> None:
    text = '<tool_call>\n{"name": "f", "arguments": {"a": "</think>"}}\n</tool_call>'
    assert sampled(text, ir="hermes").text == text
    assert sampled("plain words", ir="hermes").text == "plain words"


# What later turns are sent --------------------------------------------------------------------------------------------


def conversation(policy: str | None, native: bool, field: str = "reasoning") -> list[dict[str, Any]]:
    """The messages of the second request of an episode."""
    parser = cw.parser("hermes")
    pipeline = cw.Pipeline("toolworld-mini-v1", parser="hermes")
    task = cw.corpus("toolworld-mini-v1").task("train-3")
    wanted = '<tool_call>\n{"name": "NoSuchTool", "arguments": {}}\n</tool_call>'
    details = [{"type": "reasoning.encrypted", "data": "SECRET"}]

    def script(asked: Asked) -> Any:
        if len([one for one in asked.body["messages"] if one["role"] == "assistant"]):
            return chat("Done.", thought="over", thought_field=field)
        if native:
            more = {"reasoning_details": details}
            return chat(None, calls=[("NoSuchTool", "")], thought="my why", thought_field=field, **more)
        return chat(wanted, thought="my why", thought_field=field, reasoning_details=details)

    options: dict[str, Any] = {} if policy is None else {"earlier_thoughts": policy}
    with StandIn(script) as server:
        sampler = cw.sampler(
            "openai", model="m", base_url=server.url, tools="native" if native else "prompt", **options
        )
        from callwright.episodes import converse
        from callwright.walk.sampling import offers_tools

        request = cw.SamplingRequest(pipeline.messages(task, native=offers_tools(sampler)), task)
        conditions = cw.Conditions(limits=cw.TurnLimits(assistant_turns=3))
        ((episode,),) = converse(pipeline, sampler, [request], conditions=conditions)
        assert len(episode.attempt.turns) == 2
        assert "my why" in episode.attempt.turns[0].completion.text
        assert parser.parse(episode.attempt.turns[0].completion.text).thought == "my why"  # type: ignore[union-attr]
        sent: list[dict[str, Any]] = server.asked[-1].body["messages"]
    return sent


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_a_thought_goes_back_as_it_came(native: bool, field: str) -> None:
    for policy in (None, "keep"):
        earlier = next(one for one in conversation(policy, native, field) if one["role"] == "assistant")
        assert earlier[field] == "my why"
        assert earlier["reasoning_details"] == [{"type": "reasoning.encrypted", "data": "SECRET"}]
        assert "my why" not in (earlier["content"] or "")
        assert ("tool_calls" in earlier) == native
        if native:
            assert earlier["tool_calls"][0]["function"] == {"name": "NoSuchTool", "arguments": ""}


@pytest.mark.parametrize("native", [False, True])
def test_a_thought_goes_back_inside_of_the_text_for_the_template_to_decide(native: bool) -> None:
    earlier = next(one for one in conversation("template", native) if one["role"] == "assistant")
    assert earlier["content"].startswith("<think>\nmy why\n</think>\n\n")
    assert not earlier.keys() & {"reasoning", "reasoning_content", "reasoning_details"}
    assert ("tool_calls" in earlier) == native


@pytest.mark.parametrize("native", [False, True])
def test_a_thought_does_not_go_back(native: bool) -> None:
    sent = conversation("drop", native)
    assert "my why" not in str(sent)
    assert "SECRET" not in str(sent)
    assert "NoSuchTool" in str(sent)


def two_turns(first: Any, policy: str = "keep", second: Any = None) -> list[dict[str, Any]]:
    """The messages of a native request that follows this answer."""
    task = cw.corpus("toolworld-mini-v1").task("train-3")
    query = cw.Message.user("q")
    answers = iter([first, second or chat("ok")])
    with StandIn(lambda asked: next(answers)) as server:
        sampler = cw.sampler("openai", model="m", tools="native", base_url=server.url, earlier_thoughts=policy)
        (((one,),)) = sampler.sample([cw.SamplingRequest((query,), task)])
        said = (query, cw.Message.assistant(one.text), cw.Message.tool("42"))
        sampler.sample([cw.SamplingRequest(said, task, (Turn(one, cw.Program()),))])
        sent: list[dict[str, Any]] = server.asked[-1].body["messages"]
    return sent


def test_an_empty_thought_goes_back_where_the_server_gave_one() -> None:
    """DeepSeek refuses a turn of calls that comes back without the field."""
    sent = two_turns(chat(None, calls=[("f", "{}")], thought=""))
    assert sent[1]["reasoning_content"] == ""
    assert sent[1]["tool_calls"][0]["id"] == sent[2]["tool_call_id"]
    assert "reasoning_content" not in two_turns(chat(None, calls=[("f", "{}")]))[1]
    assert "empty_thought" not in str(sent)


def test_what_a_provider_signed_goes_back_as_it_came() -> None:
    """Gemini refuses a turn of calls that comes back without its signatures."""
    signed = {"google": {"thought_signature": "SIGNED"}}
    answer = chat(None, calls=[("f", "{}")])
    answer["choices"][0]["message"]["tool_calls"][0] |= {"extra_content": signed, "index": 0}
    answer["choices"][0]["message"] |= {"annotations": [], "provider": "x"}
    call = two_turns(answer)[1]["tool_calls"][0]
    assert call["extra_content"] == signed
    assert not {"index"} & call.keys()
    assert not {"annotations", "provider"} & two_turns(answer)[1].keys()


def test_a_server_that_does_not_take_thoughts_back_is_said_to() -> None:
    message = "messages.1.assistant.reasoning: Extra inputs are not permitted"
    refused = Reply({"error": {"message": message}}, 422)
    with pytest.raises(cw.UsageError, match=r'Extra inputs.* set earlier_thoughts = "template" or "drop"'):
        two_turns(chat(None, calls=[("f", "{}")], thought="hm", thought_field="reasoning"), second=refused)


def test_what_the_model_wrote_into_its_text_stays_there() -> None:
    """Without a thought apart nothing changes, whatever server it is."""
    text = cw.parser("json").render(cw.Program((cw.Call(0, "NoSuchTool", {}),), "one", "my why"))
    task = cw.corpus("toolworld-mini-v1").task("train-3")
    turn = Turn(cw.Completion(text, message=cw.Message.assistant(text)), cw.Program())
    request = cw.SamplingRequest(
        (cw.Message.user("q"), cw.Message.assistant(text), cw.Message.user("r")), task, (turn,)
    )
    for policy, content in (("keep", text), ("template", text), ("drop", split_thought(text)[1])):  # type: ignore[index]
        with StandIn(lambda asked: chat("ok")) as server:
            cw.sampler("openai", model="m", base_url=server.url, earlier_thoughts=policy).sample([request])
            assert server.asked[0].body["messages"][1] == {"role": "assistant", "content": content}
