"""Programs: the syntax tree that every intermediate representation parses to.

A program is an ordered tuple of calls. An argument is a JSON value that may hold :class:`Reference` leaves, which
stand for the result of an earlier call (TIER, section 2.2 and appendix A).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, Generic, Literal, TypeVar

from attrs import field, frozen

from callwright.errors import UsageError
from callwright.pickling import fields_of

Returns = Literal["one", "all"]
Structure = Literal["none", "single", "parallel", "linear", "funnel", "tree", "conjunctive", "mixed"]

PREFIX = "API_RESPONSE_"
#: The ``call`` of a reference that is spelt so that it names no call.
NO_CALL: Final = -1
#: In a turn, references from here on are to results of earlier turns, numbered over all of them: no id is as large.
EARLIER: Final = 10**9
#: ``API_RESPONSE_3``, ``API_RESPONSE_3.field``, ``API_RESPONSE_3.items[0].sku``
_REFERENCE = re.compile(r"API_RESPONSE_([0-9]{1,9})((?:\.[^.\[\]]+|\[[0-9]{1,9}\])*)", re.DOTALL)
#: Characters of a reference that is remembered once it was read.
SHORT: Final = 80
_SEGMENT = re.compile(r"\.([^.\[\]]+)|\[([0-9]{1,9})\]")


T = TypeVar("T")
#: Where a value stands inside another: keys of objects and indices of lists, from the outside in.
Path = tuple[str | int, ...]


class cached(Generic[T]):
    """``functools.cached_property`` without the lock that Python 3.11 takes; programs are made by the million."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute, self.name, self.__doc__ = compute, compute.__name__, compute.__doc__

    def __get__(self, instance: Any, owner: Any) -> T:
        if instance is None:
            return self  # type: ignore[return-value]
        value = instance.__dict__[self.name] = self.compute(instance)
        return value


@frozen
class Reference:
    """The result of an earlier call, or a part of it.

    ``call`` is the id of the call; ``path`` the keys (``str``) and indices (``int``) to follow inside its result. An
    empty path is a *bare* reference, which stands for the tool's ``result_field`` where it declares one.

    A misspelt reference names no call: its ``call`` is :data:`NO_CALL`, and ``path`` holds the text after the prefix.
    """

    call: int
    path: Path = ()

    @classmethod
    def parse(cls, text: str) -> Reference | None:
        """Read ``API_RESPONSE_<id>[.key | [index]]*``; ``None`` for a text that does not begin with ``API_RESPONSE_``.

        A text that begins so is meant as a reference. If it is not of the form (an id of more than nine digits, a word
        for an id, ``..``), it is a misspelt one, which names no call: no tool is given the text.
        """
        if not text.startswith(PREFIX):
            return None
        return short_reference(text) if len(text) <= SHORT else _read(text)

    def __str__(self) -> str:
        if self.call == NO_CALL:
            return PREFIX + "".join(map(str, self.path))
        if not self.path and self.call < EARLIER:  # nearly all
            return f"{PREFIX}{self.call}"
        tail = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.path)
        return f"{PREFIX}{self.call}{tail}" if self.call < EARLIER else f"{handle_of(self.call - EARLIER)}{tail}"


def _read(text: str) -> Reference:
    match = _REFERENCE.fullmatch(text)
    if match is None:
        return Reference(NO_CALL, (text[len(PREFIX) :],))
    path = tuple(key if key else int(index) for key, index in _SEGMENT.findall(match[2])) if match[2] else ()
    return Reference(int(match[1]), path)


#: Of a text of at most :data:`SHORT` characters that begins like a reference, what :meth:`Reference.parse` says: read
#: once, because the same few are met again and again.
short_reference = lru_cache(maxsize=2048)(_read)


def handle_of(number: int) -> str:
    """The handle of a result, by its number over all turns."""
    return f"result_{number}"


#: A reference and the path at which it stands.
Located = tuple[Path, Reference]


@frozen(slots=False, unsafe_hash=False)
class Call:
    """One tool call: its id inside the program, the tool's name and the arguments (JSON with references).

    Raises :class:`callwright.UsageError` for an id, a name or arguments that are none.
    """

    id: int
    tool: str
    arguments: Mapping[str, Any] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        if type(self.id) is int and type(self.tool) is str and type(self.arguments) is dict:  # nearly all
            return
        if not isinstance(self.id, int) or not isinstance(self.tool, str) or not isinstance(self.arguments, Mapping):
            raise UsageError(
                "a call has an id in its program, the name of a tool, and arguments by name: "
                f"callwright.Call(0, 'add', {{'a': 1}}), not "
                f"({self.id!r:.40}, {self.tool!r:.40}, {self.arguments!r:.80})"
            )

    def __getstate__(self) -> dict[str, Any]:
        return fields_of(self)

    @classmethod
    def read(
        cls, number: int, tool: str, arguments: dict[str, Any], located: tuple[Located, ...] | None = None
    ) -> Call:
        """A call as a parser has read it, which is not looked at again. ``located``: every reference, as it would be
        found, where the parser has met them already.
        """
        call = object.__new__(cls)  # and filled here: programs are made by the million
        fields = call.__dict__
        fields["id"], fields["tool"], fields["arguments"] = number, tool, arguments
        if located is not None:
            fields["located"] = located
        return call

    @cached
    def located(self) -> tuple[Located, ...]:
        """Every reference in the arguments with the path at which it stands, in reading order."""
        found: list[tuple[Path, Reference]] = []
        _locate(dict(self.arguments), (), found)
        return tuple(found)


@frozen(slots=False, unsafe_hash=False)
class Program:
    """Ordered calls; ``returns`` says whether the answer is the last result or all of them.

    ``thought`` is the text that came before the calls. ``text`` is what a program without calls says to the user;
    ``None`` where a form does not tell. Neither takes part in equality.
    """

    calls: tuple[Call, ...] = ()
    returns: Returns = "one"
    thought: str = field(default="", eq=False)
    text: str | None = field(default=None, eq=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return fields_of(self)

    @cached
    def edges(self) -> tuple[tuple[int, int], ...]:
        """``(earlier, later)`` positions in ``calls``, sorted: the later call uses the earlier one's result."""
        position = {call.id: index for index, call in enumerate(self.calls)}
        found = set()
        for later, call in enumerate(self.calls):
            for _, reference in call.located:
                earlier = position.get(reference.call)
                if earlier is not None and earlier < later:
                    found.add((earlier, later))
        return tuple(sorted(found))

    @property
    def depth(self) -> int:
        """The number of calls, by which DepthBench is stratified."""
        return len(self.calls)

    @cached
    def chain(self) -> int:
        """Calls on the longest dependency chain (the paper's wording of depth)."""
        longest = [1] * len(self.calls)
        for earlier, later in self.edges:  # sorted by the earlier end, so each prefix is final when it is used
            longest[later] = max(longest[later], longest[earlier] + 1)
        return max(longest, default=0)

    @cached
    def waves(self) -> tuple[tuple[Call, ...], ...]:
        """The calls by the length of the longest chain that leads to each: none needs another one of its wave."""
        depth = [0] * len(self.calls)
        for earlier, later in self.edges:
            depth[later] = max(depth[later], depth[earlier] + 1)
        return tuple(
            tuple(call for call, one in zip(self.calls, depth, strict=True) if one == wave)
            for wave in range(max(depth, default=-1) + 1)
        )

    @cached
    def dangling(self) -> tuple[tuple[int, str, Reference], ...]:
        """References that no earlier call satisfies: ``(position, path, reference)``."""
        seen: set[int] = set()
        found = []
        for index, call in enumerate(self.calls):
            for path, reference in call.located:
                if reference.call not in seen:
                    found.append((index, join_path(path), reference))
            seen.add(call.id)
        return tuple(found)

    @cached
    def structure(self) -> Structure:
        """Shape of the dependency graph (TIER, section 3.2 and appendix B).

        ``linear`` is one chain; ``funnel`` has one call that joins several independent results and nothing else;
        ``tree`` grows from one call, some result in it is used by several, and no call joins two; ``parallel`` has no
        edges. ``conjunctive`` is the annotation of chains whose inner steps commute; it depends on what the tools
        mean, so it comes from the task (:attr:`callwright.Task.structure`) and never from the graph. Everything else
        is ``mixed``.
        """
        count = len(self.calls)
        if count < 2:
            return "single" if count else "none"
        if not self.edges:
            return "parallel"
        ins, outs = [0] * count, [0] * count
        for earlier, later in self.edges:
            outs[earlier] += 1
            ins[later] += 1
        if len(self.edges) == count - 1:
            joins, forks = max(ins) > 1, max(outs) > 1
            if not joins:  # every call but one uses one result: connected
                return "tree" if forks else "linear"
            if ins[count - 1] == count - 1:
                return "funnel"
        return "mixed"


def _locate(value: Any, path: Path, found: list[tuple[Path, Reference]]) -> None:
    kind = type(value)
    if kind is Reference:
        found.append((path, value))
    elif kind is dict or kind is list:
        for key, inner in value.items() if kind is dict else enumerate(value):
            if type(inner) in _HOLDERS:
                _locate(inner, (*path, key), found)


_HOLDERS = frozenset({Reference, dict, list})


def revive(value: Any) -> Any:
    """A copy of a JSON value in which strings that begin as a reference have become :class:`Reference` leaves."""
    if isinstance(value, str):
        return (Reference.parse(value) or value) if value.startswith(PREFIX) else value
    if isinstance(value, dict):
        return {key: revive(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [revive(inner) for inner in value]
    return value


def plain(value: Any) -> Any:
    """The inverse of :func:`revive`: references become their text, so that the value is JSON again."""
    kind = type(value)
    if kind is str or kind is int:
        return value
    if kind is Reference:
        return str(value)
    if kind is dict or isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value


def join_path(path: Iterable[str | int]) -> str:
    """``("items", 0, "sku")`` as ``items[0].sku``, for people."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else (f".{part}" if text else part)
    return text
