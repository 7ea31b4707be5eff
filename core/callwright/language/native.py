"""Between a server's own tool calls and the text of a form, in which the rest of Callwright reads them.

The rule in both directions: the same act of the same model earns the same reward, whoever took its text apart. Nothing
is repaired, nothing is lost, and what stands in a thought or in an argument never becomes a call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from attrs import evolve

from callwright.errors import CannotExpress
from callwright.language.envelope import split_thought
from callwright.language.messages import Message, ToolCall
from callwright.language.parser import DEFAULT_LIMITS, ParseFailure, Parser
from callwright.language.program import PREFIX, Call, Program, Reference, Returns, plain
from callwright.language.strict_json import decode
from callwright.language.thoughts import THINK, begun, cut_thought, with_thought

#: The form that calls of a server are read in where no other is asked for: it takes text without calls as an answer.
NATIVE_FORM: Final = "hermes"
_THINK_END, _CALL, _CALL_END = "</think>", "<tool_call", "</tool_call>"
_MARKS: Final = re.compile("ARGUMENTS(_*+)")
_NO_ARGUMENTS: Final = "{}"

# From calls to text ---------------------------------------------------------------------------------------------------


def turn_text(message: Message, parser: Parser, *, native: bool = False, truncated: bool = False) -> str:
    """The text in the form of ``parser`` that an assistant's message stands for: thought, content and calls.

    Without calls it is the content, with the thought that stood beside it where the form has one
    (:func:`callwright.language.thoughts.with_thought`). Calls are written so that the parser reads these and no
    others, with the sampled text of their arguments wherever the form allows it. Empty arguments are ``{}``. Arguments
    that are no JSON object, or use a key twice, reach the parser as they are and fail there. A text that spells a
    reference is one in forms that have references. Several
    calls of which all others lead to the last, by references, return the ``one`` result of that, other ones ``all``.

    A content that begins inside of a thought (``</think>`` without ``<think>``) began in its prompt. A ``</think>``
    inside the thought is written ``<\\/think>``. Where the form has no place for text between thought and calls, the
    text goes into the thought. What it cannot write at all becomes a text that it does not read.

    ``native``: the model was given the tools as functions and no form, so that words without a call are its way to make
    none; a form that has no place for them gets its program without calls, with the words in the thought. A content
    that holds the tag of a call is not taken for words. ``truncated``: the completion was cut, so that a thought that
    nothing follows was never ended.
    """
    thought, content = message.thought, message.text
    if not thought.strip():
        content = begun(content, parser)
    if not message.tool_calls:
        if truncated and thought.strip() and not content.strip():
            return cut_thought(thought, parser)
        text = with_thought(thought, content, parser)
        return _in_words(text, thought, content, parser) if native else text
    own = split_thought(content)
    if own is not None:  # never two
        thought, content = own[0] or thought, own[1]
    thought, content = THINK.inside(thought), content.strip()
    program = _program(message.tool_calls)
    written = _written(message.tool_calls, thought, content, program, parser)
    if written is not None:
        return written
    # A block that is never closed: no form reads calls from it, nor an answer without calls.
    unread = f"{_CALL}>\n" + "\n".join(f"{call.name} {call.arguments}" for call in message.tool_calls)
    if isinstance(parser.parse(unread), ParseFailure):
        return unread
    return f"{_CALL}>\n" + unread[len(_CALL) + 2 :].replace("<", r"\u003c")  # what was sampled holds other blocks


def _in_words(text: str, thought: str, content: str, parser: Parser) -> str:
    """An answer in words as the form's program without calls, unless the form reads it, or it is no answer in words."""
    if not content.strip() or _CALL in content or isinstance(parser.parse(text), Program):
        return text
    try:
        made = parser.render(Program((), "one", THINK.inside(f"{thought.strip()}\n\n{content}")))
    except CannotExpress:
        return text
    read = parser.parse(made)
    return made if isinstance(read, Program) and not read.calls else text


def _written(
    calls: Sequence[ToolCall],
    thought: str,
    content: str,
    program: Program | None,
    parser: Parser,
    returns: Returns | None = None,
) -> str | None:
    """The first text of which the parser reads what was meant; ``None`` if there is none."""
    returns = returns or _returns(calls)
    try:
        for text in _writings(calls, thought, content, program, parser, returns):
            read = parser.parse(text)
            if program is None:
                if isinstance(read, ParseFailure):
                    return text
            elif isinstance(read, Program) and _calls(read) == _calls(program):
                if returns == "all" and len({used for used, _ in read.edges}) == len(calls) - 1:  # all lead to the last
                    return _written(calls, thought, content, program, parser, "one") or text
                return text
    except CannotExpress:
        pass
    return None


def _program(calls: Sequence[ToolCall]) -> Program | None:
    """What the calls mean; ``None`` if the arguments of any are not an object, or not one of a single meaning."""
    made = []
    for number, call in enumerate(calls):
        arguments = decode(call.arguments.strip() or _NO_ARGUMENTS, 0, DEFAULT_LIMITS.nesting)
        if not isinstance(arguments, dict):  # a failure, a value with a key used twice, or no object at all
            return None
        made.append(Call(number, call.name, arguments))
    return Program(tuple(made))


def _returns(calls: Sequence[ToolCall]) -> Returns:
    """Every call's result goes back to the model: ``all`` of several, the ``one`` of one."""
    return "all" if len(calls) > 1 else "one"


def _writings(
    calls: Sequence[ToolCall], thought: str, content: str, program: Program | None, parser: Parser, returns: Returns
) -> Iterator[str]:
    """Ways to write a message, the most faithful first. Raises :class:`callwright.errors.CannotExpress`."""
    held = "\n".join((thought, content, *(f"{call.name} {call.arguments}" for call in calls)))
    longest = max((len(found[1]) for found in _MARKS.finditer(held)), default=-1)
    mark = f"ARGUMENTS{'_' * (longest + 1)}"  # which stands nowhere in what the model wrote
    marked = Program(
        tuple(Call(number, call.name, {f"{mark}{number}": 0}) for number, call in enumerate(calls)), returns
    )
    layouts = [(thought, content)]
    if content:
        layouts.append((f"{thought}\n\n{THINK.inside(content)}".strip(), ""))
    meant: tuple[Program, ...] = () if program is None else (evolve(program, returns=returns),)
    if program is not None and PREFIX in held:  # in forms that write references otherwise than as texts
        referring = tuple(Call(call.id, call.tool, _referring(call.arguments)) for call in program.calls)
        meant = (Program(referring, returns), *meant)
    for thinking, between in layouts:
        skeleton = _laid_out(marked, thinking, between, parser)
        if between and not (between in skeleton and _same(parser.parse(skeleton), marked)):
            continue
        sampled = _filled(skeleton, calls, mark)
        if sampled is not None:
            yield sampled
        for one in meant:
            with suppress(CannotExpress):
                yield _laid_out(one, thinking, between, parser)


def _referring(value: Any) -> Any:
    """Arguments in which a text that spells a reference is one."""
    if isinstance(value, str):
        return (Reference.parse(value) if value.startswith(PREFIX) else None) or value
    if isinstance(value, dict):
        return {key: _referring(inner) for key, inner in value.items()}
    return [_referring(inner) for inner in value] if isinstance(value, list) else value


def _laid_out(program: Program, thought: str, between: str, parser: Parser) -> str:
    """The program as the parser writes it, with a text between its thought and its calls if there is a place for it."""
    text = parser.render(evolve(program, thought=thought))
    if not between:
        return text
    at = text.find(_CALL, max(text.find(_THINK_END), 0) if thought else 0)
    return f"{text[:at]}{between}\n{text[at:]}" if at >= 0 else text


def _filled(skeleton: str, calls: Sequence[ToolCall], mark: str) -> str | None:
    """The text with the sampled arguments in place of the marks; ``None`` for a form that writes them otherwise."""
    for number, call in enumerate(calls):
        place = f'{{"{mark}{number}": 0}}'
        if skeleton.count(place) != 1:
            return None
        skeleton = skeleton.replace(place, call.arguments.strip() or _NO_ARGUMENTS)
    return skeleton


def _same(read: Program | ParseFailure, meant: Program) -> bool:
    """Whether the parser reads the calls that were meant. A reference is what its text means in that form."""
    return isinstance(read, Program) and _calls(read) == _calls(meant)


def _calls(program: Program) -> list[tuple[str, Any]]:
    return [(call.tool, plain(call.arguments)) for call in program.calls]


# From text to calls ---------------------------------------------------------------------------------------------------


def native_messages(messages: Sequence[Message], parser: Parser, *, thoughts: bool = False) -> tuple[Message, ...]:
    """Messages in a server's own protocol: what an assistant wrote in the form of ``parser`` as tool calls with ids.

    A call without an id gets one by its place, ``call_0`` and on. Results without one are matched to the calls before
    them in their order. A text that the parser does not read stays a text, and results that belong to no call become
    messages of the user. Thoughts inside of a text that is read are left out, or with ``thoughts`` become the
    message's reasoning.
    """
    made: list[Message] = []
    waiting: list[str] = []
    number = 0
    for message in messages:
        if message.role == "assistant":
            message = message if message.tool_calls else _taken_apart(message, parser, thoughts)
            calls = tuple(
                call if call.id else evolve(call, id=f"call_{number + place}")
                for place, call in enumerate(message.tool_calls)
            )
            number += len(calls)
            waiting = [call.id for call in calls]
            message = evolve(message, tool_calls=calls)
        elif message.role == "tool":
            if message.tool_call_id in waiting:
                waiting.remove(message.tool_call_id)
            elif waiting and not message.tool_call_id:
                message = evolve(message, tool_call_id=waiting.pop(0))
            else:
                message = Message.user(message.content)
        made.append(message)
    return tuple(made)


def _taken_apart(message: Message, parser: Parser, thoughts: bool) -> Message:
    text = message.text
    read = parser.parse(text)
    if isinstance(read, ParseFailure):
        return message
    split = split_thought(text)
    spoken = text if split is None else split[1]
    if thoughts and split is not None and not message.reasoning:
        message = evolve(message, reasoning=split[0])
    if not read.calls:
        return evolve(message, content=spoken.strip() or text)
    calls = tuple(ToolCall("", call.tool, json.dumps(plain(call.arguments), ensure_ascii=False)) for call in read.calls)
    return evolve(message, content=_outside(spoken), tool_calls=calls)


def _outside(text: str) -> str:
    """What stands around the blocks of calls."""
    parts = []
    at = 0
    while (opened := text.find(_CALL, at)) >= 0 and (closed := text.find(_CALL_END, opened)) >= 0:
        parts.append(text[at:opened])
        at = closed + len(_CALL_END)
    return "".join((*parts, text[at:])).strip()
