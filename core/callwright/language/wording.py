"""What the prompt instructions of all of TIER's forms share (after TIER, appendix C; the wording is ours).

The examples in them are written by the form's own ``render``, so that a form cannot teach what it does not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from callwright.language.parser import Parser
from callwright.language.program import Call, Program, Reference

_SITUATIONS: Final = (
    "# Using tools",
    "You answer the user's requests with the tools that are listed after these instructions. Before every answer you "
    "think it through; then you either call tools or state that no call is to be made.",
    "## Five situations",
    '1. Single call: one call of one tool settles the request, and its result goes to the user, return="one".\n'
    "2. Parallel calls: several calls are needed, none of which needs the result of another, and the results of all of "
    'them go to the user, return="all".\n'
    "3. Chained calls: some calls take what earlier calls return. All of them are written in one answer, with "
    'references to the earlier results, and only the result of the last goes to the user, return="one".\n'
    "4. Multi-step: the next call can only be chosen after the last result has been seen. Write one call, wait for the "
    "tool's response, and write the next one in your next answer. Correct and repeat a call that failed. When the "
    "responses have settled the request, answer without a call.\n"
    "5. Multi-turn: the user comes back with further requests, which may build on earlier ones. Use what the "
    "conversation has already established. Each request may take several steps, as in situation 4, and ends with an "
    "answer without a call.",
    "Make no call when no listed tool can serve the request, or when the request is already settled.",
    "## What to write",
    "Answer in one of these shapes, with names and values that fit the request.",
)
_EXAMPLES: Final = (
    (
        "Single call",
        Program(
            (Call(0, "TOOL_NAME", {"PARAMETER_1": "some text", "PARAMETER_2": 3}),),
            "one",
            "(why this tool, and where its arguments come from)",
        ),
    ),
    (
        "Parallel calls",
        Program(
            (Call(0, "TOOL_NAME_0", {"PARAMETER": "some text"}), Call(1, "TOOL_NAME_1", {"PARAMETER": True})),
            "all",
            "(which calls, and why they are independent)",
        ),
    ),
    (
        "Chained calls",
        Program(
            (
                Call(0, "TOOL_NAME_0", {}),
                Call(1, "TOOL_NAME_1", {"PARAMETER_1": Reference(0), "PARAMETER_2": ["a", "b"]}),
            ),
            "one",
            "(which calls in which order, and what is handed on)",
        ),
    ),
    (
        "One step of several",
        Program(
            (Call(0, "TOOL_NAME", {"PARAMETER": 2.5}),),
            "one",
            "(what the earlier responses showed, and why this is the next step)",
        ),
    ),
    (
        "No call",
        Program((), "one", "(that no tool serves the request, or that the responses have settled it)"),
    ),
)

_RULES: Final = (
    "Write exactly one <think> block and directly after it one <tool_call> block, with nothing between the two.",
    'The <tool_call> tag says return="all" for parallel calls whose results all go to the user, and return="one" '
    "otherwise: only the last result goes to the user.",
    "Use only the tools that are listed, under their exact names.",
    "Give every required argument. Give an optional one where the request asks for it or is better served with it, and "
    "no argument that the tool does not have.",
)
_LAST_RULES: Final = (
    "In situations 4 and 5 write one call in each answer, and wait for the response before you go on.",
    "Keep to what the conversation has established; do not ask a tool again for what a response has already told you.",
)


def tier_instructions(parser: Parser, rules: Sequence[str]) -> str:
    """The five situations, one example for each and the rules; ``rules`` are those of the form's body."""
    examples = [f"### {title}\n\n{parser.render(example)}" for title, example in _EXAMPLES]
    numbered = "\n".join(f"{number}. {rule}" for number, rule in enumerate((*_RULES, *rules, *_LAST_RULES), 1))
    return "\n\n".join((*_SITUATIONS, *examples, "## Rules", numbered))


_NATIVE: Final = (
    "You settle the user's requests with the functions that you are given.",
    "Call what the request needs, and nothing else. Calls that need nothing of one another go into one answer. A call "
    "that needs the result of another one waits until that result is there, and takes the value from it. A call that "
    "failed is corrected and repeated. What a result or the conversation has already told you is not asked for again.",
    "Give every required argument, and an optional one where the request asks for it or is better served with it.",
    "When no function can serve the request, or when it is settled, make no call: answer the user in words.",
)
#: The answer of a worked example in which nothing is called, and what is said once its calls were made.
NOTHING_TO_CALL: Final = "None of my functions can serve this request."
SETTLED: Final = "That settles the request."


_NATIVE_ONCE: Final = (
    "You settle the user's request with the functions that you are given. You answer once: no result comes back to "
    "you.",
    "Call all that the request needs, in one answer, and nothing else.",
    _NATIVE[2],
    "When no function can serve the request, or when it lacks a value that a function needs, make no call: answer the "
    "user in words.",
)


def native_instructions(*, steps: bool = True) -> str:
    """What a model is told that gets its tools as functions: when to call and when not. No form, no list of tools.

    Without ``steps`` its first answer is its last.
    """
    return "\n\n".join(_NATIVE if steps else _NATIVE_ONCE)
