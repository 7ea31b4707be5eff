"""Messages: who said what in a conversation, with tool calls as they were sampled and thoughts.

    Message.user("How late is it?")
    Message.from_openai({"role": "assistant", "content": None, "tool_calls": [...]}).tool_calls[0].arguments

The wire format of OpenAI's chat completions is the one that servers, chat templates and stored rows share;
``to_openai`` and ``from_openai`` are the way out and in. What a message means in a textual form says
:mod:`callwright.language.native`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, cast, get_args

from attrs import field, fields, frozen

from callwright.errors import DataError
from callwright.language.strict_json import kind

Role = Literal["system", "developer", "user", "assistant", "tool"]
#: A piece of a content: a text, or an object as it came (an image, a file, a text with marks of its own).
Part = str | Mapping[str, Any]

_ROLES: Final[tuple[str, ...]] = get_args(Role)
#: The keys under which servers and trainers hand over a thought. The first that holds text is read.
_THOUGHTS: Final = ("reasoning_content", "reasoning", "thinking")
_THINKING: Final = ("thinking", "reasoning", "redacted_thinking")
#: Keys that hold a thought in pieces, which their provider wants back as they were (OpenRouter, LiteLLM).
PIECES: Final = ("reasoning_details", "thinking_blocks")
_OF_MESSAGE: Final = frozenset(
    {"role", "content", "tool_calls", "tool_call_id", "name", "refusal", "function_call", *_THOUGHTS}
)
_OF_CALL: Final = frozenset({"id", "type", "function"})


def _further(known: frozenset[str]) -> Any:
    """The field for keys that have no attribute of their own."""

    def take(given: Mapping[str, Any]) -> Mapping[str, Any]:
        taken = {key: _copy(value) for key, value in given.items() if value is not None}
        if not known.isdisjoint(taken):
            raise DataError(f"'extra' holds {min(known & taken.keys())!r}, which has a place of its own")
        return taken

    return field(factory=dict, converter=take, hash=False, kw_only=True)


class _Compact:
    """A representation without the fields that are empty."""

    __slots__ = ()

    def __repr__(self) -> str:
        shown = ((one.name, getattr(self, one.name)) for one in fields(cast(Any, type(self))))
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in shown if value)})"


@frozen(repr=False)
class ToolCall(_Compact):
    """A call in the protocol of a server.

    ``arguments`` is the text that was sampled, whether or not it is JSON; empty is what servers send for a call without
    arguments. ``id`` is empty where nobody gave one. ``extra`` holds further keys, such as a provider's signature.
    """

    id: str
    name: str
    arguments: str = ""
    extra: Mapping[str, Any] = _further(_OF_CALL)

    def to_openai(self) -> dict[str, Any]:
        """The wire format; without an ``id`` where there is none."""
        function = {"name": self.name, "arguments": self.arguments}
        return {**({"id": self.id} if self.id else {}), "type": "function", "function": function, **_copy(self.extra)}


def _parts(given: Any) -> str | tuple[Part, ...]:
    if isinstance(given, str):
        return given
    if not isinstance(given, list | tuple):
        raise DataError(f"'content' is {kind(given)}, expected text or a list of parts")
    for place, part in enumerate(given):
        if not isinstance(part, str | Mapping):
            raise DataError(f"'content[{place}]' is {kind(part)}, expected a part: text or an object")
    return tuple(_part(part) for part in given) or ""


def _part(part: Part) -> Part:
    if isinstance(part, str):
        return part
    plain = part.keys() == {"type", "text"} and part["type"] == "text" and isinstance(part["text"], str)
    return cast(Part, part["text"] if plain else _copy(part))


def _listed(calls: Iterable[ToolCall]) -> tuple[ToolCall, ...]:
    return tuple(calls)


def _role(instance: object, attribute: object, value: object) -> None:
    if value not in _ROLES:
        raise DataError(f"'role' is {value!r:.60}, expected one of {', '.join(_ROLES)}")


@frozen(repr=False)
class Message(_Compact):
    """One message of a conversation. Equal messages say the same; one made only of texts can be hashed.

    ``content`` is a text, or parts: a ``str`` for each text and an object, as it came, for anything else. ``reasoning``
    is the thought that stood beside the content; ``thought`` also finds the one that is a part of it or came in pieces
    (``reasoning_details``, ``thinking_blocks``). ``tool_call_id`` is the call whose result a message of the role
    ``tool`` is, ``name`` that of a tool or a speaker. ``extra`` holds the keys of the wire format that have no
    attribute here. What is not there is empty, never ``None``.

    Raises :class:`callwright.errors.DataError` for an unknown role and for a content of another type.
    """

    role: Role = field(validator=_role)
    content: str | tuple[Part, ...] = field(default="", converter=_parts)
    tool_calls: tuple[ToolCall, ...] = field(default=(), converter=_listed, kw_only=True)
    tool_call_id: str = field(default="", kw_only=True)
    name: str = field(default="", kw_only=True)
    reasoning: str = field(default="", kw_only=True)
    extra: Mapping[str, Any] = _further(_OF_MESSAGE)

    # In words --------------------------------------------------------------------------------------------------------

    @classmethod
    def system(cls, content: str | Iterable[Part]) -> Message:
        """Instructions."""
        return cls("system", content if isinstance(content, str) else tuple(content))

    @classmethod
    def user(cls, content: str | Iterable[Part]) -> Message:
        """What the user says."""
        return cls("user", content if isinstance(content, str) else tuple(content))

    @classmethod
    def assistant(
        cls, content: str | Iterable[Part] = "", tool_calls: Iterable[ToolCall] = (), *, reasoning: str = ""
    ) -> Message:
        """What a model says, calls and thinks."""
        said = content if isinstance(content, str) else tuple(content)
        return cls("assistant", said, tool_calls=tool_calls, reasoning=reasoning)

    @classmethod
    def tool(cls, content: str | Iterable[Part], tool_call_id: str = "", *, name: str = "") -> Message:
        """What a call came to."""
        said = content if isinstance(content, str) else tuple(content)
        return cls("tool", said, tool_call_id=tool_call_id, name=name)

    @property
    def text(self) -> str:
        """The content as one text: texts and refusals in their order, ``[image_url]`` for a part that is none.

        Thoughts are left out.
        """
        return self.content if isinstance(self.content, str) else "".join(map(_text_of_part, self.content))

    @property
    def is_text(self) -> bool:
        """Whether ``text`` and ``thought`` are all that the content holds: no picture, no file."""
        return isinstance(self.content, str) or all(_said(part) is not None for part in self.content)

    @property
    def thought(self) -> str:
        """The reasoning; without one the text of the content's thinking parts, else that of a provider's pieces."""
        if self.reasoning:
            return self.reasoning
        if not isinstance(self.content, str):
            found = "\n".join(_thought_of_part(part) for part in self.content if _thinks(part))
            if found:
                return found
        for key in PIECES if self.extra else ():
            pieces = self.extra.get(key)
            if isinstance(pieces, list | tuple):
                found = "\n".join(filter(None, (_thought_of_part(one) for one in pieces if isinstance(one, Mapping))))
                if found:
                    return found
        return ""

    # The wire format -------------------------------------------------------------------------------------------------

    @classmethod
    def from_openai(cls, message: object) -> Message:
        """Read a message of the wire format; one that is read already is returned.

        ``None`` is as good as an absent key. A thought is read from ``reasoning_content``, ``reasoning`` or
        ``thinking``, a ``refusal`` becomes a part of the content, and calls may come without the wrapper ``function``.
        Name and arguments of a call are a model's: where they are no text, they become their JSON. Unknown keys go to
        ``extra``, but for those inside ``function``.

        Raises :class:`callwright.errors.DataError`, which names the field, for everything that is no message.
        """
        if isinstance(message, cls):
            return message
        if not isinstance(message, Mapping):
            raise DataError(f"a message is an object with 'role' and 'content', not {kind(message)}")
        given = {key: value for key, value in message.items() if value is not None}
        for key in given:
            if not isinstance(key, str):
                raise DataError(f"a message has the key {key!r:.60}, which is no text")
        if "role" not in given:
            raise DataError(f"the message has no 'role'; expected one of {', '.join(_ROLES)}")
        if "function_call" in given:
            raise DataError("the message has a 'function_call', which 'tool_calls' has replaced; convert it first")
        try:
            return cls(
                given["role"],
                _content_of(given),
                tool_calls=_calls_of(given.get("tool_calls", ())),
                tool_call_id=_text(given, "tool_call_id"),
                name=_text(given, "name"),
                reasoning=next(filter(None, (_text(given, key) for key in _THOUGHTS)), ""),
                extra={key: value for key, value in given.items() if key not in _OF_MESSAGE},
            )
        except RecursionError:
            raise DataError("the message is nested too deeply to be read") from None

    def to_openai(self) -> dict[str, Any]:
        """The wire format, as a plain ``dict`` of the receiver's own; no key without a value.

        ``content`` is ``None`` where a message holds nothing but calls. Thoughts stand under ``reasoning_content``.
        """
        content: Any = self.content
        if not isinstance(content, str):
            content = [{"type": "text", "text": part} if isinstance(part, str) else _copy(part) for part in content]
        made: dict[str, Any] = {"role": self.role, "content": None if self.tool_calls and not content else content}
        if self.name:
            made["name"] = self.name
        if self.reasoning:
            made["reasoning_content"] = self.reasoning
        if self.tool_calls:
            made["tool_calls"] = [call.to_openai() for call in self.tool_calls]
        if self.tool_call_id:
            made["tool_call_id"] = self.tool_call_id
        return made | _copy(self.extra) if self.extra else made


def _copy(value: Any) -> Any:
    """A copy of a JSON value that shares nothing that could be changed."""
    if isinstance(value, Mapping):
        return {key: _copy(inner) for key, inner in value.items()}
    return [_copy(inner) for inner in value] if isinstance(value, list | tuple) else value


def _text(given: Mapping[str, Any], key: str) -> str:
    value = given.get(key, "")
    if not isinstance(value, str):
        raise DataError(f"{key!r} is {kind(value)}, expected text")
    return value


def _content_of(given: Mapping[str, Any]) -> str | tuple[Part, ...]:
    content, refusal = _parts(given.get("content", "")), _text(given, "refusal")
    if not refusal:
        return content
    before = ((content,) if content else ()) if isinstance(content, str) else content
    return (*before, {"type": "refusal", "refusal": refusal})


def _calls_of(given: Any) -> list[ToolCall]:
    if not isinstance(given, list | tuple):
        raise DataError(f"'tool_calls' is {kind(given)}, expected a list")
    return [_call_of(call, f"tool_calls[{place}]") for place, call in enumerate(given)]


def _call_of(given: Any, where: str) -> ToolCall:
    if isinstance(given, ToolCall):
        return given
    if not isinstance(given, Mapping):
        raise DataError(f"{where!r} is {kind(given)}, expected an object with 'function'")
    if given.get("type") not in (None, "function"):
        raise DataError(f"{where!r} is of the type {given['type']!r:.60}; only calls of functions are read")
    flat = "function" not in given
    function = given if flat else given["function"]
    if not isinstance(function, Mapping):
        raise DataError(f"'{where}.function' is {kind(function)}, expected an object")
    identifier = given.get("id")
    if not isinstance(identifier, str | None):
        raise DataError(f"'{where}.id' is {kind(identifier)}, expected text")
    known = _OF_CALL | {"name", "arguments"} if flat else _OF_CALL
    return ToolCall(
        identifier or "",
        _json_or_text(function.get("name"), f"{where}.function.name"),
        _json_or_text(function.get("arguments"), f"{where}.function.arguments"),
        extra={str(key): value for key, value in given.items() if key not in known},
    )


def _json_or_text(value: Any, where: str) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise DataError(f"{where!r} is neither text nor JSON: {error}") from error


def _thinks(part: Part) -> bool:
    return not isinstance(part, str) and part.get("type") in _THINKING


def _said(part: Part) -> str | None:
    """What a part says in words, thoughts apart; ``None`` for one that is no text."""
    if isinstance(part, str):
        return part
    if _thinks(part):
        return ""
    said = part.get("refusal" if part.get("type") == "refusal" else "text")
    return said if isinstance(said, str) else None


def _text_of_part(part: Part) -> str:
    said = _said(part)
    return f"[{part.get('type') or 'part'}]" if said is None and not isinstance(part, str) else said or ""


def _thought_of_part(part: Part) -> str:
    """Anthropic's parts hold the thought as text, Mistral's as text parts of its own, OpenRouter's as a summary too."""
    assert not isinstance(part, str)
    thought = next((part[key] for key in ("thinking", "reasoning", "text", "summary") if part.get(key)), "")
    if isinstance(thought, list | tuple):
        return "".join(_text_of_part(one) for one in thought if isinstance(one, str | Mapping))
    return thought if isinstance(thought, str) else ""
