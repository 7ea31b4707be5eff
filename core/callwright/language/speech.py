"""Speech: what a completion without calls says to the user, whatever form wraps it.

The rule: what the model thinks is nobody's but its own, and tags of a form are no words. A form says in
``Program.text`` what it reads as words to the user; of one that does not, the whole text counts, its thought taken out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from callwright.capability import has
from callwright.language.envelope import split_thought
from callwright.language.parser import SpeaksToUsers
from callwright.language.program import Program
from callwright.language.thoughts import begins_inside

if TYPE_CHECKING:
    from callwright.language.parser import Parser
    from callwright.walk.completion import Completion


def spoken(program: Program | None, completion: Completion) -> str:
    """The words to the user of a completion that was read as ``program``, without white space around them.

    Of an answer of a server it is the content, whatever the form made of it; of a text that is no program (``None``)
    all but the thought. May be empty.
    """
    message = completion.message
    if message is not None and (program is None or not message.tool_calls):
        return _without_thought(message.text)
    if program is not None and program.text is not None:
        return program.text.strip()
    return _without_thought(completion.text)


#: What a form that says nothing of it is taken to do with words to the user.
_USUAL: Final = "What you write in an answer without a call, your thought aside, is read by the user, who answers."


def speaking(parser: Parser) -> str:
    """How a model talks with the user of its task in a form."""
    return parser.speaking if has(parser, SpeaksToUsers) else _USUAL


def _without_thought(text: str) -> str:
    own = split_thought(text)
    if own is not None:
        return own[1]
    if begins_inside(text):  # of a thought that the prompt opened
        text = text.partition("</think>")[2]
    return text.strip()
