"""The envelope of TIER's forms: what is found, what is ignored, and which text a failure points at."""

from __future__ import annotations

from typing import Any

import pytest

from callwright.errors import CannotExpress
from callwright.language.envelope import Envelope, read_envelope, second_block, stray_text, write_envelope
from callwright.language.parser import DEFAULT_LIMITS, ParseFailure, ParseLimits
from callwright.language.program import Program

THINK = "<think>why</think>\n"
CALL = '<tool_call return="one">'
END = "</tool_call>"


def read(text: str, **options: bool) -> Envelope | ParseFailure:
    return read_envelope(text, DEFAULT_LIMITS, **options)


@pytest.mark.parametrize(
    ("text", "thought", "returns", "body"),
    [
        (f"{THINK}{CALL}BODY{END}", "why", "one", "BODY"),
        (f"<think>why</think>{CALL}BODY{END}", "why", "one", "BODY"),
        (f"{THINK}<tool_call return='all'>BODY{END}", "why", "all", "BODY"),
        (f'{THINK}<tool_call  x="1"\n return = "all" >BODY{END}', "why", "all", "BODY"),
        (f'<think a="b">\n why \n</think>{CALL}\nBODY\n{END}', "why", "one", "\nBODY\n"),
        (f"<think></think>{CALL}{END}", "", "one", ""),
        (f"Sure.\n{THINK}{CALL}BODY{END}\nDone <think>{CALL}", "why", "one", "BODY"),
        (f"{THINK}{CALL}BODY{END}{CALL}OTHER{END}", "why", "one", "BODY"),
        (f"<think>a < b && <tool_call> x </tool_call> </think> in passing</think>\n{CALL}B{END}",
         "a < b && <tool_call> x </tool_call> </think> in passing", "one", "B"),
        (f"<think><think>a</think>{CALL}B{END}", "<think>a", "one", "B"),
        (f'<think>x</think> <tool_call return="oops>{THINK}{CALL}B{END}',
         'x</think> <tool_call return="oops><think>why', "one", "B"),
        (f"{THINK}{CALL}a & b < c{END}", "why", "one", "a & b < c"),
        (f"\ud800<think>\x00\ud800</think>{CALL}\udfff{END}", "\x00\ud800", "one", "\udfff"),
    ],
)  # fmt: skip
def test_blocks_that_are_found(text: str, thought: str, returns: str, body: str) -> None:
    found = read(text)
    assert isinstance(found, Envelope)
    assert (found.thought, found.returns, found.body) == (thought, returns, body)
    assert text[found.start : found.start + len(body)] == body


@pytest.mark.parametrize(
    ("marked", "code"),
    [
        ("«»", "missing_think"),
        ("«»no tags at all", "missing_think"),
        (f"prose «»{CALL}BODY{END}", "missing_think"),
        (f"<thinking>x</thinking>«»{CALL}B{END}", "missing_think"),
        (f"«<think>»why {CALL}BODY{END}", "unclosed_think"),
        ("<think>why</think>« and no more»", "missing_tool_call"),
        ("<think>why</think>«»", "missing_tool_call"),
        ("<think>why</think>«<tool_calls>[]</tool_calls>»", "missing_tool_call"),
        (f"<think>why</think>\n«Here it is:»\n{CALL}BODY{END}", "text_between"),
        (f"<think>a</think> b </think>\n«c» {CALL}BODY{END}", "text_between"),
        (f"<think>why</think>\n«<tool_call return=one>»BODY{END}", "malformed_tag"),
        ("<think>why</think>\n«<tool_call return=\"one\"»", "malformed_tag"),
        ("<think>why</think>\n«<tool_call»", "malformed_tag"),
        (f"<think>why</think>\n«<tool_call/>»{END}", "malformed_tag"),
        (f'<think>why</think><tool_call return="one" «return="one"»>BODY{END}', "malformed_tag"),
        (f"<think>why</think>«{CALL}»BODY", "unclosed_tool_call"),
        (f"<think>why</think>«<tool_call>»BODY{END}", "missing_return"),
        (f'<think>why</think><tool_call «return="two"»>BODY{END}', "invalid_return"),
        (f'<think>why</think><tool_call «return="One"»>BODY{END}', "invalid_return"),
        (f'<think>why</think><tool_call x="" «return=""»>BODY{END}', "invalid_return"),
    ],
)  # fmt: skip
def test_failures_and_where_they_point(marked: str, code: str) -> None:
    text = marked.replace("«", "").replace("»", "")
    failure = read(text)
    assert isinstance(failure, ParseFailure)
    assert (failure.stage, failure.code) == ("envelope", code)
    start, end = marked.index("«"), marked.index("»") - 1
    assert failure.span == (start, end), text[slice(*failure.span)]


def test_return_may_be_absent_where_the_form_says_so_but_not_wrong() -> None:
    found = read(f"{THINK}<tool_call>BODY{END}", return_required=False)
    assert isinstance(found, Envelope)
    assert found.returns is None
    failure = read(f'{THINK}<tool_call return="1">BODY{END}', return_required=False)
    assert isinstance(failure, ParseFailure)
    assert failure.code == "invalid_return"


def test_length_limit() -> None:
    text = f"{THINK}{CALL}BODY{END}"
    assert isinstance(read_envelope(text, ParseLimits(characters=len(text))), Envelope)
    failure = read_envelope(text, ParseLimits(characters=len(text) - 1))
    assert isinstance(failure, ParseFailure)
    assert (failure.stage, failure.code, failure.span) == ("limit", "too_long", (len(text) - 1, len(text)))
    with pytest.raises(CannotExpress, match="characters"):
        write_envelope(Program(thought="why"), "BODY", ParseLimits(characters=20))


@pytest.mark.parametrize(
    "thought", ["", "plain", "a </think> b", "it ends </think>", "<tool_call> </tool_call>", "cut off </think", "é\n\n"]
)
def test_thoughts_survive(thought: str) -> None:
    found = read(write_envelope(Program(returns="all", thought=thought), "BODY", DEFAULT_LIMITS))
    assert isinstance(found, Envelope)
    assert (found.thought, found.returns, found.body.strip()) == (thought.strip(), "all", "BODY")


def test_what_cannot_be_enclosed() -> None:
    with pytest.raises(CannotExpress, match="thought"):
        write_envelope(Program(thought=f"then </think> {CALL}"), "BODY", DEFAULT_LIMITS)
    with pytest.raises(CannotExpress, match="body"):
        write_envelope(Program(), f"BODY{END}", DEFAULT_LIMITS)


DIRECT = "<tool_call>[]</tool_call>"


@pytest.mark.parametrize(
    "marked",
    [
        f"{THINK}{CALL}BODY{END}«{CALL}OTHER{END}»",
        f"{THINK}{CALL}BODY{END} and then «{DIRECT}»",
        f"{THINK}{CALL}BODY{END}«<tool_call>{CALL}x{END}»",
        f"{CALL}BODY{END}{THINK}«{CALL}BODY{END}»{CALL}BODY{END}",
        f"<think><think>a</think>{CALL}A{END}</think>«{CALL}B{END}»",
        f"<think>I write <tool_call> and {END} after</think>\n«{CALL}BODY{END}»",
        f"<think>I write <tool_call></think>\n{CALL}BODY{END}«<tool_call>{CALL}B{END}»",
        f"{THINK}{CALL}BODY{END}</tool_call>«{CALL}{END}»{END}",
    ],
)
def test_a_second_complete_block_is_found_wherever_it_stands(marked: str) -> None:
    text = marked.replace("«", "").replace("»", "")
    assert second_block(text) == (marked.index("«"), marked.index("»") - 1)


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"{THINK}{CALL}BODY{END}",
        f"<think>in a <tool_call> block</think>{CALL}BODY{END}",
        f"<think>as <tool_call return='one'> says, after {END[:-1]}</think>{CALL}BODY{END}",
        f"{THINK}{CALL}BODY{END}{CALL}OTHER",
        f"{THINK}{CALL}BODY{END}{END}{END}",
        f"{THINK}{CALL}BODY{END} <tool_call return=one>no well-formed tag{END}",
        f"{THINK}{CALL}BODY{END} <tool_calls>[]{END} <tool_call/>{END}",
        f"{END}{END}",
        f"{CALL}{CALL}{CALL}{END}",
    ],
)
def test_a_tag_that_is_mentioned_is_no_second_block(text: str) -> None:
    assert second_block(text) is None


@pytest.mark.parametrize(
    ("marked", "stray"),
    [
        (f" \n{THINK}{CALL}BODY{END}\n ", False),
        (f"«Sure.»\n{THINK}{CALL}BODY{END}", True),
        (f"{THINK}{CALL}BODY{END}\n«Done <think>{CALL}»", True),
        (f"{THINK}{CALL}BODY{END} «{END}»", True),
        ("no blocks", False),
        (f"x {CALL}BODY{END}", False),
        ("<think></think> x", False),
        (f"x <think></think>{CALL}", False),
    ],
)
def test_what_stands_around_the_blocks(marked: str, stray: bool) -> None:
    text = marked.replace("«", "").replace("»", "")
    assert stray_text(text) == ((marked.index("«"), marked.index("»") - 1) if stray else None)


@pytest.mark.parametrize(
    "piece",
    ["<tool_call ", "<tool_call>", END, CALL + END, "<tool_call a='", "<tool_call\n\n", "</think><tool_call ",
     "<think>", "<think></think>" + CALL, "</think> "],
)  # fmt: skip
def test_what_else_a_text_holds_is_found_in_linear_time(piece: str, minute_of_work: Any) -> None:
    text = f"{piece * (1_000_000 // len(piece))}{END}{END}"
    with minute_of_work():
        second_block(text)
        stray_text(text)
