"""The envelope of TIER's forms: a think block, then one tool-call block (TIER, section 2.2 and appendix C).

    <think> any text </think>
    <tool_call return="one"> body of the form </tool_call>

The rules, each decided by a scan from left to right, so that reading is linear in the length of the text:

* The think block starts at the first ``<think>`` tag. What stands before it is ignored.
* It ends at the first ``</think>`` that is followed by nothing but white space and a well-formed ``<tool_call …>`` tag.
  So a thought may hold anything else: ``<``, ``&``, the words ``<tool_call>`` or ``</think>`` in passing.
* The body is raw text, not XML, up to the first ``</tool_call>``. What stands after that is ignored, but for a body
  without calls: there it is what the model says to the user.
* Tags may carry XML attributes in quotes. Of those of ``<tool_call>`` only ``return`` means something.

Reading takes the first block. :func:`second_block` and :func:`stray_text` say what else a completion holds, for rewards
that mind. A *complete block* is a well-formed ``<tool_call …>`` tag and the first ``</tool_call>`` after it, wherever
they stand, the thought included; blocks are counted from left to right and do not overlap. So a tag that is only
mentioned begins no block of its own, and a completion that is quoted in a thought is one.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from callwright.errors import CannotExpress
from callwright.language.parser import FailureStage, ParseFailure, ParseLimits, Span
from callwright.language.program import Program, Returns
from callwright.language.shortening import excerpt

# Quantifiers are possessive and attribute values cannot hold "<": no character is looked at twice for one tag, and
# attempts at two tags never overlap.
_ATTRIBUTES: Final = r"""((?:\s++[A-Za-z_][\w.:\-]*+\s*+=\s*+(?:"[^"<]*+"|'[^'<]*+'))*+)\s*+>"""
_ATTRIBUTE: Final = re.compile(r"""([A-Za-z_][\w.:\-]*+)\s*+=\s*+(?:"([^"<]*+)"|'([^'<]*+)')""")
_THINK: Final = re.compile("<think" + _ATTRIBUTES)
_JOINT: Final = re.compile(r"</think>\s*+(<tool_call" + _ATTRIBUTES + ")")
_TOOL_CALL: Final = re.compile("<tool_call" + _ATTRIBUTES)
_TOOL_CALL_START: Final = re.compile(r"<tool_call(?![\w.:\-])")
_new_tuple: Final = tuple.__new__
_USUAL_THINK: Final = "<think>"
_THINK_END: Final = "</think>"
_TOOL_CALL_END: Final = "</tool_call>"
_RETURNS: Final[dict[str, Returns]] = {"one": "one", "all": "all"}
_USUAL_RETURNS: Final[dict[str, Returns]] = {' return="one"': "one", ' return="all"': "all"}


class Envelope(NamedTuple):
    """What the two blocks hold.

    ``thought`` is stripped; ``returns`` is ``None`` where the tag has no ``return``; ``start`` is the position of
    ``body`` in the completion.
    """

    thought: str
    returns: Returns | None
    body: str
    start: int


def read_envelope(text: str, limits: ParseLimits, *, return_required: bool = True) -> Envelope | ParseFailure:
    """Find the two blocks of a completion.

    Failures, all of stage ``envelope`` but the first: ``too_long`` (``limit``), ``missing_think``, ``unclosed_think``,
    ``missing_tool_call``, ``text_between``, ``malformed_tag``, ``unclosed_tool_call``, ``missing_return``,
    ``invalid_return``.
    """
    if len(text) > limits.characters:
        return too_long(text, limits)
    if text.startswith(_USUAL_THINK):  # nearly all
        thought = len(_USUAL_THINK)
    else:
        opened = _THINK.search(text)
        if opened is None:
            return _diagnose(text)
        thought = opened.end()
    joint = _find_joint(text, thought)
    if joint is None:
        return _diagnose(text)
    start = joint.end()
    end = text.find(_TOOL_CALL_END, start)
    if end < 0:
        return _failure("unclosed_tool_call", "the <tool_call> block is never closed", joint.span(1))
    returns = _USUAL_RETURNS.get(joint[2])
    if returns is None:
        read = _read_return(joint)
        if isinstance(read, ParseFailure):
            return read
        if read is None and return_required:
            return _failure("missing_return", 'the <tool_call> tag needs return="one" or return="all"', joint.span(1))
        returns = read
    # What Envelope(…) does, without the call that it makes of it.
    return _new_tuple(Envelope, (text[thought : joint.start()].strip(), returns, text[start:end], start))


def said_after(text: str, envelope: Envelope) -> str:
    """What stands after the blocks: in an answer without calls the words to the user."""
    return text[envelope.start + len(envelope.body) + len(_TOOL_CALL_END) :].strip()


def second_block(text: str) -> Span | None:
    """The second complete block of a text, from its opening to its closing tag; ``None`` if it holds one or none."""
    if text.count(_TOOL_CALL_END) < 2:  # nearly all
        return None
    first = _block(text, 0)
    return first and _block(text, first[1])


def stray_text(text: str) -> Span | None:
    """What stands before the think block or after the tool-call block that is read, without white space around it.

    ``None`` if there is nothing, or if the two blocks are not there to begin with.
    """
    opened = _THINK.search(text)
    joint = _find_joint(text, opened.end()) if opened is not None else None
    end = text.find(_TOOL_CALL_END, joint.end()) if joint is not None else -1
    if opened is None or end < 0:
        return None
    for first, last in ((0, opened.start()), (end + len(_TOOL_CALL_END), len(text))):
        stray = text[first:last].strip()
        if stray:
            at = text.index(stray, first)
            return at, at + len(stray)
    return None


class Enveloped:
    """What the parsers of these forms share: the answers of :class:`callwright.language.parser.OneBlock`."""

    __slots__ = ()

    #: How a model talks with the user of its task, for prompts.
    speaking: Final = (
        "There is a user, who answers you. To ask or tell it something, make no call: write the <tool_call> block that "
        "makes none, and after it what you say. The user reads nothing else."
    )
    second_block = staticmethod(second_block)
    stray_text = staticmethod(stray_text)


def write_envelope(program: Program, body: str, limits: ParseLimits) -> str:
    """The completion with this body, the program's thought and its words to the user; the inverse of
    :func:`read_envelope`.

    Raises :class:`callwright.errors.CannotExpress` for a thought or a body that would be read as the end of its block.
    """
    head = f"<think>\n{program.thought}\n"
    text = f'{head}</think>\n<tool_call return="{program.returns}">\n{body}\n</tool_call>'
    joint = _find_joint(text, len("<think>"))
    if joint is None or joint.start() != len(head):
        raise CannotExpress("the thought holds </think> directly before a <tool_call> tag, which would end it")
    if _TOOL_CALL_END in body:
        raise CannotExpress("the body of the calls holds </tool_call>, which would end it")
    if program.text and not program.calls:
        text = f"{text}\n{program.text}"
    check_length(text, limits)
    return text


def read_thought(text: str) -> str | None:
    """What the think block of a completion holds, stripped, whatever comes after it; ``None`` without a closed block.

    For a text that is no program. The block ends where :func:`read_envelope` says; where nothing that it could read
    follows, it ends at the first ``</think>``.
    """
    block = _thought_block(text)
    return None if block is None else text[slice(*block)].strip()


def split_thought(text: str) -> tuple[str, str] | None:
    """The thought that a text begins with, and what follows its block, both stripped; ``None`` for any other text.

    The block ends where :func:`read_thought` says.
    """
    opened = _THINK.search(text)
    if opened is None or text[: opened.start()].strip():
        return None
    block = _thought_block(text)
    return None if block is None else (text[slice(*block)].strip(), text[block[1] + len(_THINK_END) :].strip())


def _thought_block(text: str) -> Span | None:
    """Where the inside of the first think block is."""
    opened = _THINK.search(text)
    if opened is None:
        return None
    joint = _find_joint(text, opened.end())
    end = joint.start() if joint is not None else text.find(_THINK_END, opened.end())
    return (opened.end(), end) if end >= 0 else None


def too_long(text: str, limits: ParseLimits) -> ParseFailure:
    """The failure for a completion beyond ``limits.characters``."""
    message = f"{len(text)} characters are more than the limit of {limits.characters}"
    return ParseFailure("limit", "too_long", message, (limits.characters, len(text)))


def check_length(text: str, limits: ParseLimits) -> None:
    """Raise :class:`callwright.errors.CannotExpress` for a rendered text that the parser would refuse as too long."""
    if len(text) > limits.characters:
        raise CannotExpress(f"the program takes {len(text)} characters, more than the limit of {limits.characters}")


def _find_joint(text: str, start: int) -> re.Match[str] | None:
    at = text.find(_THINK_END, start)  # str.find skips a long thought many times faster than a pattern does
    while at >= 0:
        joint = _JOINT.match(text, at)
        if joint is not None:
            return joint
        at = text.find(_THINK_END, at + len(_THINK_END))
    return None


def _block(text: str, start: int) -> Span | None:
    """The first complete block at or after a position."""
    opened = _TOOL_CALL.search(text, start)
    end = text.find(_TOOL_CALL_END, opened.end()) if opened is not None else -1
    return (opened.start(), end + len(_TOOL_CALL_END)) if opened is not None and end >= 0 else None


def _read_return(joint: re.Match[str]) -> Returns | ParseFailure | None:
    seen: set[str] = set()
    returns: Returns | None = None
    for attribute in _ATTRIBUTE.finditer(joint.string, joint.start(2), joint.end(2)):
        name = attribute[1]
        if name in seen:
            return _failure("malformed_tag", f"the <tool_call> tag gives {excerpt(name)} twice", attribute.span())
        seen.add(name)
        if name == "return":
            value: str = attribute[2] if attribute[2] is not None else attribute[3]
            returns = _RETURNS.get(value)
            if returns is None:
                message = f"return is {excerpt(value)}; it must be 'one' or 'all'"
                return _failure("invalid_return", message, attribute.span())
    return returns


def _diagnose(text: str) -> ParseFailure:
    """Why there is no think block directly followed by a tool-call tag."""
    opened = _THINK.search(text)
    if opened is None:
        at = max(text.find("<tool_call"), 0)
        return _failure("missing_think", "there is no <think> tag", (at, at))
    first = text.find(_THINK_END, opened.end())
    if first < 0:
        return _failure("unclosed_think", "the <think> block is never closed", opened.span())
    tag = _TOOL_CALL_START.search(text, first)
    if tag is None:
        at = text.rfind(_THINK_END) + len(_THINK_END)
        return _failure("missing_tool_call", "no <tool_call> block follows the <think> block", (at, len(text)))
    between = text.rfind(_THINK_END, first, tag.start()) + len(_THINK_END)
    stray = text[between : tag.start()].strip()
    if stray:
        at = text.index(stray, between)
        message = f"there is text between the <think> block and the <tool_call> block: {excerpt(stray)}"
        return _failure("text_between", message, (at, at + len(stray)))
    end = text.find(">", tag.end())
    end = len(text) if end < 0 else end + 1
    message = 'the <tool_call> tag is not well formed; attributes are written name="value"'
    return _failure("malformed_tag", message, (tag.start(), end))


def _failure(code: str, message: str, span: tuple[int, int], stage: FailureStage = "envelope") -> ParseFailure:
    return ParseFailure(stage, code, message, span)
