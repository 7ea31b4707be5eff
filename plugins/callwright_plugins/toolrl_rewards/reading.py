"""Reading completions in ToolRL's form with a value for every defect, so that one bad line costs one call.

    <think> any text </think>
    <tool_call>
    {"name": …, "parameters": {…}}
    </tool_call>
    <response> any text </response>

The first thought ends at the first ``</think>`` that is followed by another block or by the end of the text, so a
thought may mention every tag. A thought that is never closed holds the rest of the text. Every block of calls counts.
A call is an object on a line of its own, or one that is spread over several lines. Reading is linear in the length of
the text.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from callwright.language.parser import DEFAULT_LIMITS
from callwright.language.program import Program
from callwright.walk.attempt import Attempt
from callwright_plugins.toolrl_rewards.differences import RawCall
from callwright_plugins.toolrl_rewards.truth import FACT, plain_arguments

_OPENING: Final = re.compile(r"<(?:think|tool_call|response)>")
_JOINT: Final = re.compile(r"</think>\s*+(?:<tool_call>|<response>|\Z)")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _no_number(text: str) -> None:
    raise ValueError(text)


#: JSON as it is defined: without NaN and Infinity, and without numbers that would become one.
_DECODER: Final = json.JSONDecoder(parse_float=_finite, parse_constant=_no_number)
#: How many objects over several lines are looked for in one block before the rest is taken line by line.
_SPREAD_OUT: Final = 32


class Defect(NamedTuple):
    """Something that stands where a call should, or outside of the blocks."""

    code: str
    reason: str


class Reading(NamedTuple):
    """What a completion holds.

    ``blocks`` names them in order: T(hought), C(alls), R(esponse). ``stray`` is why they are not all that there is.
    ``calls`` are those that can be read, ``defects`` what stands in place of others.
    """

    blocks: str
    thought: str | None
    calls: list[RawCall]
    defects: list[Defect]
    stray: Defect | None = None

    @property
    def attempted(self) -> int:
        """How many calls were meant: those that can be read and those that cannot."""
        return len(self.calls) + len(self.defects)


def read_text(
    text: str, known: Mapping[str, RawCall] | None = None, learned: dict[str, RawCall] | None = None
) -> Reading:
    """Read a completion. ``known`` holds lines whose call was read before; ``learned`` takes those of this text."""
    if len(text) > DEFAULT_LIMITS.characters:
        too_long = Defect("too_long", f"{len(text)} characters are more than {DEFAULT_LIMITS.characters}")
        return Reading("", None, [], [too_long], too_long)
    known = {} if known is None else known
    blocks, thought, stray = "", None, None
    calls: list[RawCall] = []
    defects: list[Defect] = []
    at, length = 0, len(text)
    while True:
        opening = _OPENING.search(text, at)
        start = opening.start() if opening is not None else length
        if stray is None and start > at and not text[at:start].isspace():
            stray = Defect("stray_text", f"there is text outside of the blocks: {text[at:start].strip()[:60]!r}")
        if opening is None:
            return Reading(blocks, thought, calls, defects, stray)
        tag, inside = opening[0], opening.end()
        if tag == "<think>":
            close = _end_of_thought(text, inside, first=thought is None)
            blocks += "T"
            thought = text[inside : close if close >= 0 else length]
        elif tag == "<tool_call>":
            close = text.find("</tool_call>", inside)
            blocks += "C"
            end = close
            if close < 0:
                response = text.find("<response>", inside)
                end = response if response >= 0 else length
            _read_block(text[inside:end], known, calls, defects, learned)
        else:
            close = text.find("</response>", inside)
            blocks += "R"
        if close >= 0:
            at = close + len(tag) + 1
        else:
            stray = stray or Defect("unclosed_block", f"{tag} is never closed")
            at = end if tag == "<tool_call>" else length


def _end_of_thought(text: str, start: int, *, first: bool) -> int:
    close = nearest = text.find("</think>", start)
    while first and close >= 0:
        if _JOINT.match(text, close):
            return close
        close = text.find("</think>", close + 8)
    return nearest


def _read_block(
    block: str,
    known: Mapping[str, RawCall],
    calls: list[RawCall],
    defects: list[Defect],
    learned: dict[str, RawCall] | None,
) -> None:
    """Add what stands in a block. Neighbouring lines that make no call are one defect."""
    tries, broken, resume, at = _SPREAD_OUT, False, 0, 0
    most = DEFAULT_LIMITS.calls
    for line in block.split("\n"):
        start, at = at, at + len(line) + 1
        if start < resume:
            continue
        call: RawCall | Defect | None = known.get(line)
        if call is None:
            stripped = line.strip()
            if not stripped:
                continue
            call = _read_line(stripped)
            if learned is not None and type(call) is RawCall:
                learned[line] = call
            if type(call) is Defect and call.code == "not_json" and stripped[0] == "{" and tries:
                tries -= 1
                spread = _read_spread(block, start + block[start:at].index("{"))
                if spread is not None:
                    call, resume = spread
        if type(call) is RawCall:
            broken = False
            calls.append(call)
        elif not broken:
            broken = True
            defects.append(call)  # type: ignore[arg-type]
        if len(calls) + len(defects) >= most:
            defects.append(Defect("too_many_calls", f"what follows the first {most} calls is not read"))
            return


def _read_line(line: str) -> RawCall | Defect:
    try:
        value = _DECODER.decode(line)
    except (ValueError, RecursionError):
        return Defect("not_json", f"this is not JSON: {line[:60]!r}")
    return as_call(value) or Defect("not_a_call", f"this is not an object with a name and parameters: {line[:60]!r}")


def _read_spread(block: str, start: int) -> tuple[RawCall, int] | None:
    """An object over several lines, and where the line after it begins; nothing else may stand on its last line."""
    try:
        value, end = _DECODER.raw_decode(block, start)
    except (ValueError, RecursionError):
        return None
    following = block.find("\n", end)
    following = len(block) if following < 0 else following + 1
    call = as_call(value)
    return (call, following) if call is not None and not block[end:following].strip() else None


def as_call(value: Any) -> RawCall | None:
    """The call that a JSON value is, if it is one. Other keys than the name and the parameters are passed over."""
    if type(value) is dict:
        name, parameters = value.get("name"), value.get("parameters")
        if type(name) is str and type(parameters) is dict:
            return RawCall(name, parameters)
    return None


def read_program(attempt: Attempt) -> Reading:
    """The reading of a completion in another form: what its parser made of it."""
    program = attempt.program
    if program is None:
        failure = attempt.failure
        defect = Defect(failure.code, failure.message) if failure is not None else Defect("no_program", "no program")
        return Reading("", None, [], [defect], defect)
    return Reading("TC" if program.calls else "TR", program.thought, calls_of(program), [])


def calls_of(program: Program) -> list[RawCall]:
    """The calls of a program, with references as text."""
    return [RawCall(call.tool, plain_arguments(program, call)) for call in program.calls]


_LAST: tuple[Attempt, Reading] | None = None


def reading_of(attempt: Attempt, known: Mapping[str, RawCall]) -> Reading:
    """The reading of an attempt; that of the last one is kept, since several components ask for it in turn."""
    global _LAST
    last = _LAST
    if last is not None and last[0] is attempt:
        return last[1]
    # Of several turns the program of all of them counts, and in a log calls need not stand in texts at all.
    of_text = attempt.parser.name == "toolrl" or (type(attempt.task.facts.get(FACT)) is str and not attempt.is_told)
    if of_text and len(attempt.completions) == 1:
        reading = read_text(attempt.completion.text, known)
    else:
        reading = read_program(attempt)
    _LAST = attempt, reading
    return reading
