"""Thoughts: how one that a server hands over apart comes into the text of a form, and where a text holds its own.

The rule: a completion has one thought. Whether a server took it out of the text (``reasoning_content``), the model
wrote it into the text, or the prompt already opened it, the completion is the same text in the same form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile
from typing import Final, NamedTuple

from callwright.language.parser import ParseFailure, Parser
from callwright.language.program import Call, Program

_THINK: Final = re.compile(r"<think(?![\w.:\-])")
_LEADING: Final = re.compile(r"\s*+<think(?![\w.:\-])")
_THINK_END: Final = "</think>"


class Block(NamedTuple):
    """What stands before and after a thought."""

    opening: str
    closing: str

    def inside(self, thought: str) -> str:
        """A thought that cannot end its own block."""
        end = self.closing.strip()
        return thought.strip().replace(end, f"{end[0]}\\{end[1:]}") if end else thought.strip()

    def around(self, thought: str, text: str) -> str:
        """The text with a thought before it."""
        return f"{self.opening}{self.inside(thought)}{self.closing}{text}"

    def holds(self, thought: str, read: Program | ParseFailure | None) -> bool:
        """Whether a form read this thought of what :meth:`around` wrote."""
        return isinstance(read, Program) and read.thought == self.inside(thought)


#: How nearly all models and forms write a thought.
THINK: Final = Block("<think>\n", f"\n{_THINK_END}\n\n")


def with_thought(thought: str, text: str, parser: Parser | None = None) -> str:
    """The completion of a text and of the thought that stood beside it, in the form of ``parser``.

    A text that holds its own thought stays as it is: there are never two. Forms that do not read ``<think>`` are asked
    by what they render where a thought belongs, and a text that a form reads only without the thought keeps to itself.
    Without a parser the thought goes into a ``<think>`` block. Total on all texts of a model.
    """
    if not thought.strip() or _LEADING.match(text):
        return text
    if parser is None:
        return THINK.around(thought, text)
    block = THINK
    for block in _blocks(parser):
        written = block.around(thought, text)
        if block.holds(thought, _read(parser, written)):
            return written
    return text if isinstance(_read(parser, text), Program) else block.around(thought, text)


def cut_thought(thought: str, parser: Parser | None = None) -> str:
    """The completion of a model that was cut while it thought: a block that is never closed."""
    own = _rendered_block(parser) if parser is not None else None
    block = own or THINK
    return block.opening + block.inside(thought)


def begins_inside(text: str) -> bool:
    """Whether a text begins inside of a thought that its prompt opened: ``</think>`` before any ``<think>``."""
    end = text.find(_THINK_END)
    return end >= 0 and _THINK.search(text, 0, end) is None


def begun(text: str, parser: Parser | None = None) -> str:
    """A text with the ``<think>`` that its prompt opened, if it begins inside of a thought.

    For texts whose prompt is not known, as those of servers: some templates (DeepSeek-R1, Qwen3-Thinking) end a prompt
    with ``<think>``, and the completion only closes it. A text in which ``parser`` reads calls that would be lost by it
    stays as it is: there ``</think>`` is a part of an argument.
    """
    if not begins_inside(text):
        return text
    whole = THINK.opening + text
    if parser is None:
        return whole
    alone = _read(parser, text)
    if isinstance(alone, Program) and alone.calls:
        read = _read(parser, whole)
        if not (isinstance(read, Program) and read.calls == alone.calls):
            return text
    return whole


def _blocks(parser: Parser) -> Iterator[Block]:
    """The block of nearly all forms, then this one's own if it renders another."""
    yield THINK
    own = _rendered_block(parser)
    if own is not None and "<think" not in own.opening:
        yield own


_SAMPLES: Final = (
    ((), "one"),
    ((Call(0, "f", {}),), "one"),
    ((Call(0, "g", {"a": 1}), Call(1, "f", {})), "all"),
)


def _rendered_block(parser: Parser) -> Block | None:
    """What a form writes around a thought, whatever the calls after it; ``None`` for one that leaves it out."""
    openings, rests = set(), []
    for calls, returns in _SAMPLES:
        try:
            before, found, rest = parser.render(Program(calls, returns, _MARK)).partition(_MARK)  # type: ignore[arg-type]
        except Exception:  # what a form cannot write says nothing, and its bugs are named where it is used
            continue
        if not found:
            return None
        openings.add(before)
        rests.append(rest)
    if len(openings) != 1 or len(rests) < 2:
        return None
    common = "".join(found[0] for found in takewhile(lambda found: len(set(found)) == 1, zip(*rests, strict=False)))
    line = common.rfind("\n") + 1  # what follows on the last line belongs to the calls, and only begins alike
    closing = common[:line] if common[:line].strip() else common
    return Block(openings.pop(), closing)


_MARK: Final = "a thought that is only here to be found"


def _read(parser: Parser, text: str) -> Program | ParseFailure | None:
    try:
        return parser.parse(text)
    except Exception:  # a bug of the parser, which is named where the completion is read
        return None
