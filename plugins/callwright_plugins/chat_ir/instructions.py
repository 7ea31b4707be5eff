"""Prompt instructions of the chat forms: situations of TIER's appendix C, for forms without references.

All five can occur where there are several turns and the user comes back; then ``allowed`` and ``paper`` are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from callwright.language.parser import Parser
from callwright.language.program import Call, Program
from callwright.language.teaching import Taught, numbered

_SITUATIONS: Final = (
    "# Using tools",
    "You answer the user's requests with the tools that are listed after these instructions. Think first; then call "
    "tools, or answer without a call.",
    "## Five situations",
    "1. Single call: one call of one tool settles the request.\n"
    "2. Parallel calls: several calls are needed, none of which needs the result of another. Write them all in one "
    "answer; you get all of their results.\n"
    "3. Chained calls: a call needs the result of an earlier one. An answer cannot refer to results that are not there "
    "yet: write the first call, wait for its result, and put the value that it returned into the next call.\n"
    "4. Multi-step: the next call can only be chosen after the last result has been seen. Write one call at a time. "
    "Correct and repeat a call that failed. When the results have settled the request, answer without a call.\n"
    "5. Multi-turn: the user comes back with further requests, which may build on earlier ones. Use what the "
    "conversation has already established; each request may take several steps and ends with an answer without a call.",
    "Make no call when no listed tool can serve the request, or when the request is already settled: then answer the "
    "user in words.",
    "## What to write",
)
_EXAMPLES: Final = (
    (
        "Single call, or one step of a chain or of several steps",
        Program((Call(0, "TOOL_NAME", {"ARGUMENT_1": "some text", "ARGUMENT_2": 3}),), "one", "(why this call)"),
    ),
    (
        "Parallel calls",
        Program(
            (Call(0, "TOOL_NAME_0", {"ARGUMENT": "some text"}), Call(1, "TOOL_NAME_1", {"ARGUMENT": True})),
            "all",
            "(which calls, and why they are independent)",
        ),
    ),
    ("No call", Program((), "one", "(that no tool serves the request, or that it is settled)")),
)
_RULES: Final = (
    "Use only the tools that are listed, under their exact names.",
    "Give every required argument, optional ones where they serve the request, and no others. Values are JSON of the "
    "types that the tool's schema asks for.",
    "Do not ask a tool again for what a result has already told you.",
)


_ONCE: Final = (
    "# Using tools",
    "You answer the user's request with the tools that are listed after these instructions. You answer once: no result "
    "comes back to you, and nothing is read after that. Think first; then call all that the request needs, or answer "
    "without a call.",
    "## Situations",
    "1. Single call: one call of one tool settles the request.\n"
    "2. Parallel calls: several calls are needed, none of which needs the result of another. Write them all.",
    "Make no call when no listed tool can serve the request, or when it lacks a value that a tool needs: then answer "
    "the user in words.",
    "## What to write",
)
#: Where the user does not come back.
_ONE_REQUEST: Final = (
    "# Using tools",
    "You answer the user's request with the tools that are listed after these instructions. Think first; then call "
    "tools, or answer without a call.",
    "## Situations",
    _SITUATIONS[3].partition("\n5. ")[0],
    *_SITUATIONS[4:],
)


def chat_instructions(parser: Parser, rules: Sequence[str], taught: Taught, *, steps: bool, requests: bool) -> str:
    """The situations, an example for each shape, written by the form itself, and the rules.

    The situations are those that can occur, or with ``taught="paper"`` all five.
    """
    situations: Sequence[str] = _SITUATIONS
    examples: Sequence[tuple[str, Program]] = _EXAMPLES
    own: Sequence[str] = _RULES
    if taught == "allowed" and not steps:
        single, *others = _EXAMPLES
        situations, examples, own = _ONCE, (("Single call", single[1]), *others), _RULES[:-1]
    elif taught == "allowed" and not requests:
        situations = _ONE_REQUEST
    written = [f"### {title}\n\n{parser.render(example)}" for title, example in examples]
    return "\n\n".join((*situations, *written, "## Rules", numbered((*rules, *own))))
