"""Where a thought goes: into the form's own block, never twice, and never in the way of what is read without it."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import frozen
from hypothesis import given
from hypothesis import strategies as st

import callwright as cw
from callwright.language.envelope import split_thought
from callwright.language.thoughts import begins_inside, begun, cut_thought, with_thought

FORMS = ("json", "xml", "direct", "toolrl", "hermes")
WORDS = st.lists(
    st.sampled_from(["<think>", "</think>", "<tool_call>", "</tool_call>", "why", " ", "\n", '{"name": "f"}']),
    max_size=6,
).map("".join)


@pytest.mark.parametrize("form", FORMS)
@given(thought=WORDS)
def test_a_thought_may_hold_anything(form: str, thought: str) -> None:
    """Whatever a model thought, the calls beside it are read as they are, and the thought is one."""
    parser = cw.parser(form)
    program = cw.Program((cw.Call(0, "f", {"a": 1}),))
    split = split_thought(parser.render(cw.Program(program.calls, "one", "MARK")))
    assert split is not None
    text = with_thought(thought, split[1], parser)
    read = parser.parse(text)
    if not thought.strip():
        assert text == split[1]
        return
    assert isinstance(read, cw.Program), text
    assert read == program
    assert read.thought == thought.strip().replace("</think>", r"<\/think>")


@given(thought=WORDS, text=WORDS, form=st.sampled_from([*FORMS, None]))
def test_no_text_of_a_model_raises(thought: str, text: str, form: str | None) -> None:
    parser = None if form is None else cw.parser(form)
    made = with_thought(thought, text, parser)
    assert text in made
    assert begun(text, parser).endswith(text)
    cut_thought(thought, parser)


@frozen
class NoPlace:
    """A form without a place for thoughts."""

    name = "bare"

    def parse(self, text: str) -> Any:
        return cw.Program((cw.Call(0, "f", {}),)) if text == "!f" else cw.ParseFailure("syntax", "no", "no", (0, 0))

    def render(self, program: cw.Program) -> str:
        return "!f"

    def instructions(self) -> str:
        return ""


@frozen
class Raising(NoPlace):
    """A form with a bug."""

    def parse(self, text: str) -> Any:
        raise ValueError("a bug")


def test_a_form_without_a_place_for_thoughts_reads_what_it_reads_without() -> None:
    assert with_thought("hm", "!f", NoPlace()) == "!f"
    assert with_thought("hm", "!g", NoPlace()).endswith("!g")
    assert with_thought("hm", "!f", Raising()) == "<think>\nhm\n</think>\n\n!f", "its bug is named where it is used"


def test_what_begins_inside_of_a_thought() -> None:
    for text in ("hm</think>\nx", "</think>", "a <thinking> b </think>"):
        assert begins_inside(text)
        assert begun(text) == f"<think>\n{text}"
    for text in ("", "x", "<think>hm</think>x", "a <think> b </think>", "<think>"):
        assert not begins_inside(text)
        assert begun(text) == text


@pytest.mark.parametrize("form", FORMS)
def test_a_closing_tag_among_arguments_opens_nothing(form: str) -> None:
    parser = cw.parser(form)
    whole = parser.render(cw.Program((cw.Call(0, "f", {"a": "</think>"}),), "one", "why"))
    assert begun(whole, parser) == whole
    opened = whole.removeprefix("<think>\n")
    assert begun(opened, parser) == whole


def test_splitting_keeps_what_is_no_leading_thought() -> None:
    assert split_thought(" <think>\na\n</think>\n\nb ") == ("a", "b")
    assert split_thought("x <think>a</think>b") is None
    assert split_thought("<think>a") is None
    text = '<think>a </think> b </think>\n<tool_call return="one">\n{}\n</tool_call>'
    assert split_thought(text) == ("a </think> b", '<tool_call return="one">\n{}\n</tool_call>')


def test_writing_a_thought_is_linear(minute_of_work: Any) -> None:
    hostile = "</think>" * 20_000 + "<tool_call " * 10_000
    for form in (*FORMS, None):
        parser = None if form is None else cw.parser(form)
        with minute_of_work():
            with_thought(hostile, hostile, parser)
            begun(hostile, parser)
