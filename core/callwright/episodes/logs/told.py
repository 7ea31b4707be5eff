"""Building blocks of log formats: what a result that stands in a message says of its call, and a log of both.

A format states what its file states. Whether a call failed is stated by few of them; where it is not, and the text of
the result is not our own (:func:`callwright.environments.telling.tell`), the outcome is ``unknown``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from attrs import define, field

from callwright.environments.protocol import Outcome
from callwright.environments.telling import read_told
from callwright.episodes.logs.files import parse
from callwright.episodes.logs.log import Log
from callwright.episodes.logs.logged import ORIGIN, Logged
from callwright.episodes.logs.unstated import UNSTATED_ANSWER, UNSTATED_TOOLS
from callwright.episodes.logs.world import UnknownWorld
from callwright.errors import DataError
from callwright.language.messages import Message, ToolCall
from callwright.language.strict_json import kind as json_kind
from callwright.tools.spec import ToolSpec
from callwright.walk.task_rows.plain_json import survives_json
from callwright.walk.tasks import Task

_LONGEST: Final = 500
UNKNOWN: Final = Outcome("unknown", None, "", "the log does not say whether this call executed")


def outcome_of(text: str, failed: bool | None = None, code: str = "", value: Any = None) -> Outcome:
    """What a result says of its call. ``failed`` is what the file says of that, ``None`` where it says nothing.

    A text that we told says so itself. Else the value of a call that executed is ``value``, or what the text holds:
    JSON, or the text itself. What JSON has no way to write (NaN, infinities) is a text, so that logs can be written.
    """
    own = read_told(text)
    if own is not None:
        return own
    if failed is None:
        return UNKNOWN
    if failed:
        return Outcome("execution_error", None, code or "error", text[:_LONGEST])
    return Outcome("ok", value if value is not None and is_json(value) else value_of(text))


def value_of(text: str) -> Any:
    """What a text holds: the value of JSON, else the text."""
    if text[:1] in _JSON and text.strip():
        try:
            value = parse(text.encode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError):
            return text
        return value if is_json(value) else text
    return text


def is_json(value: Any) -> bool:
    """Whether JSON can hold a value that was read: most readers, ours included, take ``NaN`` and ``1e999`` as well."""
    try:
        return survives_json(value)
    except (ValueError, RecursionError):
        return False


_JSON: Final = frozenset('{["-0123456789tfn \n')


@define
class Failing:
    """What users say of the results of failed calls, where their format says nothing: a regular expression.

    A result in which it is found is a failure, and every other one is none. Without one nothing is said.
    Raises :class:`callwright.errors.DataError` for what is no expression.
    """

    expression: str = ""
    _compiled: re.Pattern[str] | None = field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        if self.expression:
            try:
                self._compiled = re.compile(self.expression)
            except re.error as error:
                raise DataError(f"failed={self.expression!r:.80} is no regular expression: {error}") from error

    def __call__(self, text: str) -> bool | None:
        """Whether a result is that of a failed call; ``None`` if nobody said."""
        return None if self._compiled is None else self._compiled.search(text) is not None


def told_calls(messages: Sequence[Message], outcome: Callable[[Message], Outcome], findings: list[str]) -> list[Logged]:
    """The calls of a conversation that have a result, in the order in which they were written.

    ``outcome`` says what a message of the role ``tool`` means. Results belong to calls by their ids; one without an id
    belongs to the first call before it that has none yet. What belongs to no call is among the ``findings``.
    """
    made: list[tuple[int, Logged]] = []
    waiting: list[tuple[int, ToolCall]] = []
    written = 0
    for message in messages:
        for call in message.tool_calls:
            waiting.append((written, call))
            written += 1
        if message.role != "tool":
            continue
        place = next((at for at, (_, call) in enumerate(waiting) if _answers(message, call)), None)
        if place is None:
            findings.append(f"a result ({message.text[:60]!r}) belongs to no call")
            continue
        number, call = waiting.pop(place)
        arguments = arguments_of(call.arguments)
        if arguments is not None:
            made.append((number, Logged(number, call.name, arguments, outcome(message), call.id)))
    return [one for _, one in sorted(made, key=lambda pair: pair[0])]


def _answers(message: Message, call: ToolCall) -> bool:
    if message.tool_call_id and call.id:
        return message.tool_call_id == call.id
    return not message.name or message.name == call.name


def arguments_of(text: str) -> dict[str, Any] | None:
    """The arguments of a call; ``None`` where they are no JSON object."""
    if not text.strip():
        return {}
    try:
        value = parse(text.encode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and is_json(value) else None


class Shelf:
    """The tools of a file's logs: equal definitions are one specification, and equal lists one world."""

    def __init__(self, given: Mapping[str, ToolSpec]) -> None:
        self._given = dict(given)
        self._specs: dict[str, ToolSpec] = {}
        self._worlds: dict[tuple[str, ...], UnknownWorld] = {}

    def world(self, definitions: Any, where: str) -> UnknownWorld | None:
        """The world of the tools that a row defines, and those that were given; ``None`` where nobody names any.

        Definitions are those of OpenAI's chat completions and Responses, of MCP, or with ``input_schema``. Raises
        :class:`callwright.errors.DataError`.
        """
        if definitions is None:
            return self._world((), self._given) if self._given else None
        if not isinstance(definitions, list | tuple):
            raise DataError(f"{where}: the tools are {json_kind(definitions)}, expected a list of definitions")
        keys = tuple(map(repr, definitions))
        if keys not in self._worlds:
            found = {}
            for key, one in zip(keys, definitions, strict=True):
                spec = self._specs.get(key)
                if spec is None:
                    spec = self._specs[key] = read_tool(one, where)
                found[spec.name] = spec
            return self._world(keys, {**found, **self._given})
        return self._worlds[keys]

    def _world(self, keys: tuple[str, ...], tools: dict[str, ToolSpec]) -> UnknownWorld:
        made = self._worlds.get(keys)
        if made is None:
            if len(self._worlds) >= 1024:
                self._worlds.clear()
            made = self._worlds[keys] = UnknownWorld(tools)
        return made


def read_tool(definition: Any, where: str = "tools") -> ToolSpec:
    """A tool of any of the dialects in which lists of tools are written. Raises ``DataError`` for anything else."""
    if isinstance(definition, ToolSpec):
        return definition
    if not isinstance(definition, Mapping):
        raise DataError(f"{where}: a tool is an object with a name and a schema, not {json_kind(definition)}")
    try:
        if "inputSchema" in definition:
            spec = ToolSpec.from_mcp(definition)
        elif "input_schema" in definition:
            spec = ToolSpec.from_openai({**definition, "parameters": definition["input_schema"]})
        else:
            spec = ToolSpec.from_openai(definition)
        spec.compiled  # noqa: B018  # so that what is wrong with a schema is said with its place
        return spec
    except DataError as error:
        raise DataError(f"{where}: {error}") from error


def told_log(
    task_id: str,
    messages: Sequence[Message],
    calls: Iterable[Logged],
    world: UnknownWorld | None,
    *,
    origin: Mapping[str, Any],
    findings: Iterable[str] = (),
    scenario: str = "",
    seed: int = 0,
    truncated: bool = False,
) -> Log:
    """A log of a conversation. ``world`` has the tools; without it nobody knows which were offered."""
    query = next((message.text for message in messages if message.role == "user"), "")
    task = Task(
        task_id,
        query,
        UNSTATED_TOOLS if world is None else world.tools,
        UNSTATED_ANSWER,
        world or UnknownWorld({}),
        scenario,
        seed,
        facts={ORIGIN: dict(origin)},
    )
    return Log.recorded(task, calls, messages, findings=findings, truncated=truncated)


def read_messages(given: Any, where: str) -> list[Message]:
    """Messages of the wire format. Raises :class:`callwright.errors.DataError` that says where and which one."""
    if not isinstance(given, list | tuple):
        raise DataError(f"{where}: the messages are {json_kind(given)}, expected a list")
    made = []
    for number, one in enumerate(given):
        try:
            made.append(Message.from_openai(one))
        except DataError as error:
            raise DataError(f"{where}: message {number}: {error}") from error
    return made
