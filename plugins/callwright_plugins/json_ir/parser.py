"""``{"0": {"TOOL": {"parameter": value}}, "1": {"TOOL": {"parameter": "API_RESPONSE_0"}}}`` (TIER, appendix A.2)."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from attrs import field, frozen

from callwright.language.envelope import Enveloped, read_envelope, said_after, write_envelope
from callwright.language.parser import DEFAULT_LIMITS, FailureStage, ParseFailure, ParseLimits
from callwright.language.program import PREFIX, SHORT, Call, Located, Path, Program, Reference, short_reference
from callwright.language.shortening import excerpt
from callwright.language.strict_json import Duplicated, decode, encode, kind, locate
from callwright.language.teaching import Taught, allowed_instructions, check_taught
from callwright.language.wording import tier_instructions
from callwright.language.writable import check_program

_ID_DIGITS: Final = 9
_USUAL_IDS: Final = {str(number): number for number in range(100)}


@frozen
class JsonParser(Enveloped):
    """TIER's JSON form.

    Calls run in the order of their ids, whatever the order of the members; ids may start anywhere and leave gaps.
    A string that begins with ``API_RESPONSE_`` is a reference, at any depth of the arguments.

    Cannot be expressed: ids that do not ascend from call to call; a literal string that begins like a reference;
    references with a path of keys that hold ``.``, ``[`` or ``]``; numbers that are not finite; halves of surrogate
    pairs; a thought with ``</think>`` directly before a tool-call tag; anything beyond the limits.
    """

    limits: ParseLimits = DEFAULT_LIMITS
    teaches: Taught = field(default="allowed", alias="instructions", validator=check_taught, kw_only=True)
    name: ClassVar[str] = "json"

    def parse(self, text: str) -> Program | ParseFailure:
        """Read a completion. Failures of the envelope and of JSON, and then:

        ``not_an_object``, ``invalid_id``, ``duplicate_id``, ``call_not_object``, ``empty_call``, ``several_tools``
        (``structure``), ``too_many_calls`` (``limit``), ``arguments_not_object``, ``duplicate_key`` (``arguments``).
        """
        envelope = read_envelope(text, self.limits)
        if isinstance(envelope, ParseFailure):
            return envelope
        body, start = envelope.body, envelope.start
        tree = decode(body, start, self.limits.nesting + 2)  # brackets of the ids and of the tool names
        unusable: ParseFailure | None = None  # reported only if everything around the arguments is well formed
        if isinstance(tree, ParseFailure):
            return tree
        if isinstance(tree, Duplicated):
            tree, unusable = tree.value, _duplicate(tree)
            if unusable.stage == "structure" and isinstance(tree, dict):
                return unusable
        if not isinstance(tree, dict):
            message = f"the body is {kind(tree)}; it must be an object of numbered calls"
            return _failure(body, start, (), "not_an_object", message)
        if len(tree) > self.limits.calls:
            message = f"{len(tree)} calls are more than the limit of {self.limits.calls}"
            return _failure(body, start, (self.limits.calls,), "too_many_calls", message, stage="limit")
        refers = PREFIX in body or "\\u" in body  # an escape can spell any part of a reference
        calls: list[Call] = []
        previous, ascending = -1, True
        for position, (key, call) in enumerate(tree.items()):
            located: tuple[Located, ...] = ()
            number = _USUAL_IDS.get(key)
            if number is None:
                if not (key.isascii() and key.isdigit() and len(key) <= _ID_DIGITS):
                    message = f"the id {excerpt(key)} is not a number of at most {_ID_DIGITS} digits"
                    return _failure(body, start, (position,), "invalid_id", message, of_key=True)
                number = int(key)
            if type(call) is not dict:
                message = f"call {key} is {kind(call)}; it must be an object with the tool's name as its only key"
                return _failure(body, start, (position,), "call_not_object", message)
            if len(call) != 1:
                code = "several_tools" if call else "empty_call"
                message = f"call {key} names {len(call)} tools; it must name one"
                return _failure(body, start, (position,), code, message)
            ((tool, arguments),) = call.items()
            if not tool:
                return _failure(body, start, (position,), "empty_call", f"the name of the tool of call {key} is empty")
            if type(arguments) is not dict:
                if unusable is None:
                    message = f"the arguments of {excerpt(tool)} are {kind(arguments)}; they must be an object"
                    unusable = _failure(body, start, (position, 0), "arguments_not_object", message, stage="arguments")
                arguments = {}
            elif refers:
                try:
                    found: list[Located] = []
                    _refer(arguments, (), found)
                    located = tuple(found)
                except RecursionError:  # only with a limit on nesting far beyond the default
                    return _failure(body, start, (position, 0), "too_deep", "values are nested too deep", stage="limit")
            if number <= previous:
                ascending = False
            previous = number
            calls.append(Call.read(number, tool, arguments, located))
        if not ascending:
            repeated = _repeated_id(calls, body, start)
            if repeated is not None:
                return repeated
            calls.sort(key=lambda call: call.id)
        if not calls and unusable is None:
            return Program((), envelope.returns or "one", envelope.thought, said_after(text, envelope))
        return unusable or Program(tuple(calls), envelope.returns or "one", envelope.thought)

    def render(self, program: Program) -> str:
        """Write a completion with one line of JSON. Raises :class:`callwright.errors.CannotExpress`."""
        check_program(program, self.limits, "ascending", "strings")
        body = encode({str(call.id): {call.tool: call.arguments} for call in program.calls})
        return write_envelope(program, body, self.limits)

    def instructions(self) -> str:
        """The part of the system prompt that teaches this form."""
        return self.instructions_within(steps=True, requests=True)

    def instructions_within(self, *, steps: bool, requests: bool) -> str:
        """The same for what is allowed: answers after results of calls, and further requests of the user."""
        if self.teaches == "paper":
            return tier_instructions(self, _RULES)
        return allowed_instructions(self, _ALLOWED, steps=steps, requests=requests)


def _refer(values: Any, at: Path, found: list[Located]) -> None:
    """Replace strings that begin like a reference by references, in an object or list that nobody else holds yet.

    ``found`` gets them with the paths at which they stand, in reading order.
    """
    for key, value in values.items() if type(values) is dict else enumerate(values):
        kind = type(value)
        if kind is str:
            if value.startswith(PREFIX):
                reference = short_reference(value) if len(value) <= SHORT else Reference.parse(value)
                if reference is not None:
                    values[key] = reference  # a present key: the iteration stays valid
                    found.append(((*at, key), reference))
        elif kind is dict or kind is list:
            _refer(value, (*at, key), found)


def _repeated_id(calls: list[Call], body: str, start: int) -> ParseFailure | None:
    """Keys of one object differ, so two ids can only be the same number through leading zeros."""
    seen: set[int] = set()
    for position, call in enumerate(calls):
        if call.id in seen:
            message = f"the id {call.id} is used twice, with different leading zeros"
            return _failure(body, start, (position,), "duplicate_id", message, of_key=True)
        seen.add(call.id)
    return None


def _duplicate(tree: Duplicated) -> ParseFailure:
    if tree.depth == 1:
        return ParseFailure("structure", "duplicate_id", f"the id {excerpt(tree.key)} is used twice", tree.span)
    if tree.depth == 2:
        message = f"one call names the tool {excerpt(tree.key)} twice"
        return ParseFailure("structure", "several_tools", message, tree.span)
    return ParseFailure("arguments", "duplicate_key", f"duplicate argument key {excerpt(tree.key)}", tree.span)


def _failure(
    body: str,
    start: int,
    path: tuple[int, ...],
    code: str,
    message: str,
    *,
    stage: FailureStage = "structure",
    of_key: bool = False,
) -> ParseFailure:
    key, value = locate(body, path)
    first, last = key if of_key else value
    return ParseFailure(stage, code, message, (start + first, start + last))


_RULES = (
    "The body is one JSON object and nothing else: double quotes, no comments, no trailing commas, no code fence.",
    'Its keys number the calls: "0", "1", "2" and so on, each once, in the order in which the calls must run.',
    "The value of each is an object with one key, the exact name of a tool, whose value is the object of its "
    "arguments; a tool without arguments gets {}.",
    "Arguments are JSON values of the types that the tool's schema asks for: text, numbers, true, false, null, lists "
    "and objects. Numbers and true or false stand without quotes.",
    'The text "API_RESPONSE_0" as a value, also inside lists and objects, stands for the result of call 0; '
    '"API_RESPONSE_0.field" for one field of it. Refer only to earlier calls of the same block.',
    "If no call is to be made, the object is empty: {}.",
)
_PATHS = (
    'A path goes on into it: "API_RESPONSE_0.field[0]" is the first item of a list, "API_RESPONSE_0.field.inner" a '
    "field of an object."
)
#: The rules with paths into results, which the paper's do not explain.
_ALLOWED = tuple(f"{rule} {_PATHS}" if "earlier call" in rule else rule for rule in _RULES)
