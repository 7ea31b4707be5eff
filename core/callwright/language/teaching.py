"""What a prompt teaches: the situations that an evaluation allows, or all five of TIER's appendix C.

The appendix tells a model that has one completion to "wait for the tool's response", keeps ``return="all"`` to calls
that are independent of one another, and explains no path into a result. Instructions that follow what is allowed differ
in these three points. The wording is ours; the examples are written by the form's own ``render``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, Protocol, runtime_checkable

from attrs import Attribute

from callwright.errors import UsageError
from callwright.language.parser import Parser
from callwright.language.program import Call, Program, Reference

#: ``allowed``: what the limits of turns allow. ``paper``: the five situations, whatever they are.
Taught = Literal["allowed", "paper"]


@runtime_checkable
class TeachesWhatIsAllowed(Protocol):
    """What a parser adds whose instructions follow the turns that an attempt may have."""

    @property
    def teaches(self) -> Taught:
        """``paper`` for instructions that are the same whatever is allowed."""

    def instructions_within(self, *, steps: bool, requests: bool) -> str:
        """The instructions where answers may follow the results of calls (``steps``), and the user may come back with
        further ``requests``.
        """


def check_taught(instance: Any, attribute: Attribute[Any], value: object) -> None:
    """Validates the option ``instructions`` of a parser. Raises :class:`callwright.UsageError`."""
    if value not in ("allowed", "paper"):
        raise UsageError(f"the instructions of a form are 'allowed' or 'paper', not {value!r:.60}")


_ONCE: Final = (
    "You answer the user's request with the tools that are listed after these instructions. You answer once: no result "
    "comes back to you, and nothing is read after that. So first think it through; then either call all that the "
    "request needs, or state that no call is to be made."
)
_OFTEN: Final = (
    "You answer the user's requests with the tools that are listed after these instructions. Before every answer you "
    "think it through; then you either call tools or state that no call is to be made."
)
_SITUATIONS: Final = (
    'Single call: one call of one tool settles the request, and its result goes to the user, return="one".',
    "Several results: the user asks for the results of several calls, whether or not some of these calls take what "
    'others return. The results of all calls go to the user, return="all"; so nothing else is called.',
    "Chained calls: some calls take what earlier calls return, and the user asks for the result of the last one only. "
    "All of them are written in one answer, with references to the earlier results, and only the last result goes to "
    'the user, return="one".',
)
_STEPS: Final = (
    "Multi-step: the next call can only be chosen after the last result has been seen. Write one call, wait for the "
    "tool's response, and write the next one in your next answer. Correct and repeat a call that failed. When the "
    "responses have settled the request, answer without a call."
)
_REQUESTS: Final = (
    "Multi-turn: the user comes back with further requests, which may build on earlier ones. Use what the "
    "conversation has already established. Each request ends with an answer without a call."
)
_NO_CALL: Final = (
    "Make no call when no listed tool can serve the request, or when it lacks a value that a tool needs and no tool "
    "can find."
)
_NO_CALL_AFTER_STEPS: Final = (
    "Make no call when no listed tool can serve the request, when it lacks a value that a tool needs and no tool can "
    "find, or when it is already settled."
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
        "Several results",
        Program(
            (
                Call(0, "TOOL_NAME_0", {"PARAMETER": "some text"}),
                Call(1, "TOOL_NAME_1", {"PARAMETER": True}),
                Call(2, "TOOL_NAME_2", {"PARAMETER": Reference(0)}),
            ),
            "all",
            "(which calls, and that the user asks for the result of each)",
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
            "(which calls in which order, what is handed on, and that only the last result is asked for)",
        ),
    ),
)
_ONE_STEP: Final = (
    "One step of several",
    Program(
        (Call(0, "TOOL_NAME", {"PARAMETER": 2.5}),),
        "one",
        "(what the earlier responses showed, and why this is the next step)",
    ),
)
_NOTHING: Final = (
    "No call",
    Program((), "one", "(that no tool serves the request, or which value is missing)"),
)
_RULES: Final = (
    "Write exactly one <think> block and directly after it one <tool_call> block, with nothing between the two.",
    'The <tool_call> tag says return="all" where the user asks for the results of all its calls, and return="one" '
    "otherwise: only the last result goes to the user.",
    "Use only the tools that are listed, under their exact names.",
    "Give every required argument. Give an optional one where the request asks for it or is better served with it, and "
    "no argument that the tool does not have.",
)
_STEP_RULES: Final = (
    "Where you go on after a response, write one call in each answer, and wait for the response before you go on.",
    "Keep to what the conversation has established; do not ask a tool again for what a response has already told you.",
)


def allowed_instructions(parser: Parser, rules: Sequence[str], *, steps: bool, requests: bool) -> str:
    """The situations that can occur, an example for each and the rules; ``rules`` are those of the form's body."""
    situations = [*_SITUATIONS, *([_STEPS] if steps else []), *([_REQUESTS] if steps and requests else [])]
    shown = [*_EXAMPLES, *([_ONE_STEP] if steps else []), _NOTHING]
    examples = [f"### {title}\n\n{parser.render(example)}" for title, example in shown]
    return "\n\n".join(
        (
            "# Using tools",
            _OFTEN if steps else _ONCE,
            "## Situations",
            numbered(situations),
            _NO_CALL_AFTER_STEPS if steps else _NO_CALL,
            "## What to write",
            "Answer in one of these shapes, with names and values that fit the request.",
            *examples,
            "## Rules",
            numbered((*_RULES, *rules, *(_STEP_RULES if steps else ()))),
        )
    )


def numbered(lines: Sequence[str]) -> str:
    """The lines with their numbers from 1."""
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))
