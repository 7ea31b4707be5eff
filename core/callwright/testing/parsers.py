"""Conformance checks for parsers: total, linear and pure on any text, and the inverse of their own rendering."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator
from typing import Any, Final, get_args

import attrs

from callwright.capability import has
from callwright.errors import CannotExpress
from callwright.language.parser import DEFAULT_LIMITS, FailureStage, HasLimits, ParseFailure, Parser
from callwright.language.program import Call, Program, Reference, plain
from callwright.testing.expectations import expect, expect_members, expect_name, never_raises, shown
from callwright.testing.pickling import elsewhere
from callwright.testing.programs import NO_CALL, PLAIN, programs
from callwright.testing.texts import NASTY, PIECES, for_texts_of_hypothesis, mutated

_CODE: Final = re.compile(r"[a-z][a-z0-9_]*")
_NO_CALL: Final = re.compile(
    r"\b(no|without( a| any)?|not|never) ?-?((tool|function)s? ?-?)?(make )?(a )?call|empty list", re.I
)
_THOUGHT: Final = re.compile(r"<think>.*?</think>", re.DOTALL)
_TAGGED: Final = re.compile(r"<[^<>]{1,200}>")
_PROGRAMS: Final = 150
_MUTATIONS: Final = 400
_MARKED: Final = Program((Call(0, "t", {"a": "MARK"}),))


def check_attributes(parser: Parser) -> None:
    """It has the members of :class:`callwright.Parser` and a name."""
    expect_members(parser, Parser)
    expect_name(parser)


def check_total(parser: Parser) -> None:
    """No text raises: every one is a program or a failure."""

    def examine(text: str) -> None:
        with never_raises(f"parse({shown(text)})"):
            found = parser.parse(text)
        expect(
            isinstance(found, Program | ParseFailure),
            f"parse({shown(text)}) gave {type(found).__name__}; it must give a Program or a ParseFailure",
        )

    for text in _texts(parser):
        examine(text)
    for_texts_of_hypothesis(examine, 60)


def check_failures(parser: Parser) -> None:
    """A failure has a known stage, a stable code, a sentence and a span inside of the text."""
    for text in _texts(parser):
        failure = parser.parse(text)
        if not isinstance(failure, ParseFailure):
            continue
        about = f"the failure {shown(failure)} of the text {shown(text)}"
        expect(failure.stage in get_args(FailureStage), f"{about}: {failure.stage!r} is no stage of a ParseFailure")
        expect(_CODE.fullmatch(failure.code) is not None, f"{about}: a code is lower-case words joined by _")
        expect(isinstance(failure.message, str) and failure.message != "", f"{about} says nothing")
        start, end = failure.span
        expect(
            0 <= start <= end <= len(text),
            f"{about}: the span {failure.span} is not within the {len(text)} characters; is it counted from the start "
            "of the whole completion, and in characters?",
        )


def check_programs(parser: Parser) -> None:
    """What is parsed can be stored and checked: distinct ids, arguments of finite JSON and references, in UTF-8."""
    for text in _texts(parser):
        program = parser.parse(text)
        if not isinstance(program, Program):
            continue
        about = f"the program of the text {shown(text)}"
        ids = [call.id for call in program.calls]
        expect(len(set(ids)) == len(ids), f"{about} has two calls with one id: {ids}; references to it are ambiguous")
        expect(program.returns in ("one", "all"), f"{about} returns {program.returns!r}; it must be 'one' or 'all'")
        for call in program.calls:
            expect(type(call.id) is int and isinstance(call.tool, str), f"{about}: call {call!r} has an odd id or name")
            wrong = _first_oddity(call.arguments)
            expect(wrong is None, f"{about} holds {wrong} in the arguments of call {call.id}")
        with never_raises(f"writing {about} as JSON in UTF-8"):
            json.dumps([[call.tool, plain(call.arguments)] for call in program.calls], ensure_ascii=False).encode(
                "utf-8"
            )


def check_purity(parser: Parser) -> None:
    """The same text gives the same result, whatever was parsed in between."""
    texts = list(_texts(parser))
    first = [parser.parse(text) for text in texts]
    for text, before in zip(reversed(texts), reversed(first), strict=True):
        after = parser.parse(text)
        expect(
            after == before, f"parse({shown(text)}) gave {shown(before)} and later {shown(after)}: does it hold state?"
        )


def check_round_trip(parser: Parser) -> None:
    """What ``render`` accepts, ``parse`` reads back."""
    accepted = 0
    for program in programs(_PROGRAMS, seed=1):
        text = _rendered(parser, program)
        if text is None:
            continue
        accepted += 1
        found = parser.parse(text)
        expect(
            found == program,
            "parse(render(program)) is not the program; what a form cannot express, render must refuse by "
            f"CannotExpress.\n  program: {shown(program, 300)}\n  text: {shown(text, 300)}"
            f"\n  found: {shown(found, 300)}",
        )
    expect(_rendered(parser, PLAIN) is not None, f"render refuses even a single call with a text and a number: {PLAIN}")
    expect(accepted >= _PROGRAMS // 10, f"render accepted only {accepted} of {_PROGRAMS} generated programs")


def check_normal_form(parser: Parser) -> None:
    """What was parsed from any text and can be rendered is the same program when it is read again."""
    for text in _texts(parser):
        program = parser.parse(text)
        if isinstance(program, Program):
            again = _rendered(parser, program)
            if again is not None:
                found = parser.parse(again)
                expect(
                    found == program,
                    f"the text {shown(text)} was read as {shown(program)}, written as {shown(again)} and read again as "
                    f"{shown(found)}",
                )


def check_no_call(parser: Parser) -> None:
    """A program without calls is written and read back as one."""
    text = _rendered(parser, NO_CALL)
    expect(
        text is not None, "render refuses the program without calls; a model must be able to say that it calls nothing"
    )
    found = parser.parse(text or "")
    expect(
        isinstance(found, Program) and found.calls == (),
        f"the rendered program without calls, {shown(text)}, is read as {shown(found)}",
    )


def check_thought(parser: Parser) -> None:
    """The thought is rendered and read back."""
    text = _rendered(parser, PLAIN) or ""
    expect(PLAIN.thought in text, f"the thought {PLAIN.thought!r} is not in the rendered text {shown(text)}")
    found = parser.parse(text)
    thought = found.thought if isinstance(found, Program) else None
    expect(thought == PLAIN.thought, f"the thought {PLAIN.thought!r} is read back as {thought!r} from {shown(text)}")


def check_limits(parser: Parser) -> None:
    """Beyond the limits on characters, calls and nesting the result is a failure, and ``render`` writes nothing."""
    limits = parser.limits if has(parser, HasLimits) else DEFAULT_LIMITS
    text = _rendered(parser, PLAIN) or ""
    _expect_limit(parser, text + " " * limits.characters, f"a text of more than {limits.characters} characters")
    many = Program(tuple(Call(number, "t") for number in range(limits.calls + 1)))
    _expect_refused(parser, many, f"{limits.calls + 1} calls")
    _expect_refused(
        parser, Program((Call(0, "t", {"a": _nested(limits.nesting + 1)}),)), f"{limits.nesting + 2} levels"
    )
    if not (attrs.has(type(parser)) and has(parser, HasLimits)):
        return
    lenient: Any = parser
    wide, narrow = Program(tuple(Call(n, "t") for n in range(4))), attrs.evolve(limits, calls=3)
    deep, shallow = Program((Call(0, "t", {"a": _nested(6)}),)), attrs.evolve(limits, nesting=4)
    for program, strict, what in ((wide, narrow, "more calls"), (deep, shallow, "deeper nesting")):
        beyond = _rendered(parser, program)
        if beyond is not None:
            _expect_limit(attrs.evolve(lenient, limits=strict), beyond, f"{what} than its limits allow")


def check_linear(parser: Parser) -> None:
    """Twice the text takes about twice the processor's time, not four times."""
    marked = _rendered(parser, _MARKED) or "MARK"
    head, _, tail = marked.partition("MARK")
    for piece in _REPEATED:
        for before, after in (("", ""), (head, tail), (head, "")):
            _expect_linear(parser, before, piece, after)


def check_instructions(parser: Parser) -> None:
    """The instructions for a model are there, always the same, and say how to call nothing."""
    text = parser.instructions()
    expect(isinstance(text, str) and text.strip() != "", "instructions() is empty: a model would not know the form")
    expect(parser.instructions() == text, "instructions() gave two different texts")
    none = _rendered(parser, Program((), "one")) or _rendered(parser, NO_CALL)
    written = "" if none is None else " ".join(_TAGGED.sub(" ", _THOUGHT.sub(" ", none)).split())
    expect(
        _NO_CALL.search(text) is not None or (written != "" and written in " ".join(text.split())),
        "instructions() does not say what to write when no call is to be made; a model would call something always. "
        f"What render() writes then ({shown(written)}) has to stand there",
    )


def check_pickles_before_use(parser: Parser) -> None:
    """It can be pickled as it was made, and another process reads texts with it in the same way."""
    copy = elsewhere(parser, "the parser")
    _expect_same(parser, copy, _texts(parser))


def check_pickles_after_use(parser: Parser) -> None:
    """It can be pickled after it has read texts, and so can all that it made of them."""
    texts = list(_texts(parser))
    found = [parser.parse(text) for text in texts]
    copy = elsewhere(parser, "the parser, after it was used,")
    _expect_same(parser, copy, texts)
    for program in found:
        if isinstance(program, Program):
            _ = program.structure, program.dangling  # both are remembered
        expect(
            elsewhere(program, f"{shown(program)}") == program,
            f"{shown(program)} is something else after it was pickled",
        )


def _expect_same(parser: Parser, copy: Parser, texts: Iterable[str]) -> None:
    expect(copy.name == parser.name, f"in another process its name is {copy.name!r}")
    expect(copy.instructions() == parser.instructions(), "in another process it has other instructions")
    for text in texts:
        ours, theirs = parser.parse(text), copy.parse(text)
        expect(ours == theirs, f"another process makes {shown(theirs)} of {shown(text)}, and this one {shown(ours)}")


PARSER_CHECKS: Final = (
    check_attributes,
    check_total,
    check_failures,
    check_programs,
    check_purity,
    check_round_trip,
    check_normal_form,
    check_no_call,
    check_thought,
    check_limits,
    check_linear,
    check_instructions,
    check_pickles_before_use,
    check_pickles_after_use,
)


def _rendered(parser: Parser, program: Program) -> str | None:
    """The rendered program; ``None`` if the form cannot express it."""
    try:
        text = parser.render(program)
    except CannotExpress:
        return None
    except Exception as error:
        message = (
            f"render({shown(program)}) raised {type(error).__name__}: {error}; what it cannot write is CannotExpress"
        )
        raise AssertionError(message) from error
    expect(isinstance(text, str), f"render gave {type(text).__name__}; it must give text")
    return text


def _texts(parser: Parser) -> Iterator[str]:
    """Good texts, nasty ones, nasty ones inside of good ones, and mutations."""
    rendered = (_rendered(parser, program) for program in programs(40, seed=2))
    good = [text for text in rendered if text is not None] or ["[]"]
    yield from good
    yield from NASTY
    marked = _rendered(parser, _MARKED) or "MARK"
    yield from (marked.replace("MARK", piece) for piece in PIECES)
    yield from (marked.replace('"MARK"', piece).replace("'MARK'", piece) for piece in PIECES)
    yield from mutated(good, _MUTATIONS, seed=3)


def _first_oddity(value: Any) -> str | None:
    match value:
        case None | bool() | str() | Reference():
            return None
        case int():
            return None
        case float():
            return None if value - value == 0 else f"the number {value}, which JSON does not know,"
        case dict():
            if not all(isinstance(key, str) for key in value):
                return f"a key that is not text in {shown(value)}"
            return next((found for found in map(_first_oddity, value.values()) if found), None)
        case list():
            return next((found for found in map(_first_oddity, value) if found), None)
    return f"a {type(value).__name__}, which is not JSON,"


def _nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def _expect_limit(parser: Parser, text: str, what: str) -> None:
    with never_raises(f"parse of {what}"):
        found = parser.parse(text)
    expect(
        isinstance(found, ParseFailure) and found.stage == "limit",
        f"{what} gave {shown(found)}; it must be a failure of the stage 'limit'",
    )


def _expect_refused(parser: Parser, program: Program, what: str) -> None:
    text = _rendered(parser, program)
    if text is not None:
        found = parser.parse(text)
        expect(isinstance(found, ParseFailure), f"{what} are beyond the limits, but are written and read")


#: What a pattern may stumble over if there is much of it.
_REPEATED: Final = (
    *"<>\"'\\{[(,:=-0a \né",
    *("API_RESPONSE_0", ".a", "<think>", "</think>", "<tool_call>", "</tool_call>", '<tool_call return="one">', "<a>"),
    *('{"a":', "[]", '"a", ', "f(a=", ' a="b"'),
)
_SMALLEST: Final = 64
_LARGEST: Final = 32_768
#: In seconds; what takes less is not looked at, because the clock and the neighbours disturb it too much.
_NOTICEABLE: Final = 0.02
_STEEP: Final = 3.0


def _expect_linear(parser: Parser, before: str, piece: str, after: str) -> None:
    """Twice the text must take less than three times the processor's time, wherever the time can be noticed at all."""
    count = max(1, _SMALLEST // len(piece))
    shorter, last = before + piece * count + after, _seconds(parser, before + piece * count + after)
    while len(shorter) < _LARGEST:
        count *= 2
        text = before + piece * count + after
        taken = _seconds(parser, text)
        if taken > _NOTICEABLE:  # linear parsers are nowhere near: measure again, where quiet is more likely
            last = min(last, *(_seconds(parser, shorter) for _ in range(3)))
            taken = min(taken, *(_seconds(parser, text) for _ in range(3)))
            expect(
                taken < _NOTICEABLE or taken < _STEEP * last,
                f"parsing {shown(text, 60)} takes {taken:.3f} s, and {last:.3f} s for half of it: does a pattern "
                f"backtrack over {piece!r}, or is a text copied in a loop?",
            )
        shorter, last = text, taken


def _seconds(parser: Parser, text: str) -> float:
    started = time.process_time()
    parser.parse(text)
    return time.process_time() - started
