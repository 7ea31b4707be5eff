"""The options of the user ``scripted``, read and checked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from attrs import field, frozen

from callwright.environments.goals import Goal
from callwright.errors import DataError, UnknownName, UsageError
from callwright.language.program import Call
from callwright_plugins.users.calls import read_calls

_PLACE: Final = re.compile(r"\{(\w+)\}")


@frozen
class Request:
    """A later request: what is said and done, where ``when`` holds (``None``: always).

    ``knows`` and ``tells`` are what the user knows, and how it tells it, from then on.
    """

    say: str
    when: Mapping[str, Any] | None = None
    calls: tuple[Call, ...] = ()
    knows: Mapping[str, Any] = field(factory=dict)
    tells: Mapping[str, str] = field(factory=dict)


@frozen
class Favour:
    """What the user does when it is asked to, by words, and what it says then."""

    words: Phrases
    say: str
    calls: tuple[Call, ...]


@frozen
class Change:
    """A change of mind: its probability, what is said, and what holds from then on."""

    p: float
    say: str
    knows: Mapping[str, Any]
    satisfied: Mapping[str, Any] | None = None


class Phrases:
    """Words that are looked for in a text as whole words, whatever their case and the white space between them."""

    def __init__(self, phrases: Iterable[str]) -> None:
        self.phrases = tuple(phrases)
        found = "|".join(re.escape(_plain(phrase)) for phrase in self.phrases)
        self._found = re.compile(rf"(?<!\w)(?:{found})(?!\w)") if found else None

    def in_text(self, text: str) -> bool:
        """Whether one of them stands in a text that :func:`normal` made."""
        return self._found is not None and self._found.search(text) is not None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Phrases) and self.phrases == other.phrases

    def __hash__(self) -> int:
        return hash(self.phrases)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def normal(text: str) -> str:
    """A text as phrases are looked for in it."""
    return _plain(text)


def questions(text: str) -> str:
    """The sentences of a text that end with a question mark, as :func:`normal` makes them."""
    pieces = re.split(r"([.!?\n])", text)
    asked = (said for said, end in zip(pieces[::2], pieces[1::2], strict=False) if end == "?")
    return normal(" \n ".join(asked))


def filled(text: str, values: Mapping[str, Any]) -> str:
    """A text with what is known in place of ``{name}``; other braces stay."""
    return _PLACE.sub(lambda match: in_words(values[match[1]]) if match[1] in values else match[0], text)


def in_words(value: Any) -> str:
    """A value as somebody says it."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return ", ".join(map(in_words, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return json.dumps(value, ensure_ascii=False)


# Reading --------------------------------------------------------------------------------------------------------------


def wrong(option: str, expected: str, found: Any) -> UsageError:
    """The error for an option of this user."""
    return UsageError(f"the option {option!r} of the user 'scripted' is {expected}, not {found!r:.80}")


def read_text(option: str, given: Any) -> str:
    """A text that is not empty."""
    if not isinstance(given, str) or not given.strip():
        raise wrong(option, "a text", given)
    return given


def read_texts(option: str, given: Any) -> tuple[str, ...]:
    """A list of such texts; a text is a list of one."""
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, list | tuple) or not listed:
        raise wrong(option, "a list of texts", given)
    return tuple(read_text(option, one) for one in listed)


def read_mapping(option: str, given: Any) -> Mapping[str, Any]:
    """An object."""
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise wrong(option, "an object", given)
    return given


def read_names(option: str, given: Iterable[Any], known: Mapping[str, Any]) -> None:
    """Names that must be known."""
    for name in given:
        if not isinstance(name, str) or name not in known:
            raise UnknownName(f"name under 'knows' (option {option!r})", str(name), known)


def read_probability(option: str, given: Any) -> float:
    """A probability."""
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 1:
        raise wrong(option, "a probability from 0 to 1", given)
    return float(given)


def read_goal(option: str, given: Any) -> Mapping[str, Any] | None:
    """A goal as JSON, or nothing."""
    if given is None:
        return None
    try:
        Goal.from_json(given)
    except DataError as error:
        raise UsageError(f"the option {option!r} of the user 'scripted': {error}") from error
    goal: Mapping[str, Any] = given
    return goal


def read_object(option: str, given: Any, needed: set[str], also: set[str]) -> Mapping[str, Any]:
    """An object with these keys."""
    made = read_mapping(option, given)
    for key in made:
        if key not in needed | also:
            raise UnknownName(f"key of {option!r} of the user 'scripted'", key, needed | also)
    for key in sorted(needed - made.keys()):
        raise UsageError(f"{option!r} of the user 'scripted' needs the key {key!r}")
    return made


def read_listed(option: str, given: Any) -> list[Any]:
    """A list."""
    if not isinstance(given, list | tuple):
        raise wrong(option, "a list", given)
    return list(given)


def read_requests(given: Any) -> tuple[Request, ...]:
    """The option ``then``."""
    made = []
    for number, one in enumerate(read_listed("then", given)):
        where = f"then[{number}]"
        if isinstance(one, str):
            made.append(Request(read_text(where, one)))
            continue
        stated = read_object(where, one, {"say"}, {"when", "calls", "knows", "tells"})
        calls = read_calls(stated.get("calls", ()), f"{where}.calls")
        knows = dict(read_mapping(f"{where}.knows", stated.get("knows", {})))
        tells = read_mapping(f"{where}.tells", stated.get("tells", {}))
        read_names(f"{where}.tells", tells, knows)
        told = {name: read_text(f"{where}.tells.{name}", sentence) for name, sentence in tells.items()}
        made.append(Request(read_text(where, stated["say"]), read_goal(where, stated.get("when")), calls, knows, told))
    return tuple(made)


def read_favours(given: Any) -> tuple[Favour, ...]:
    """The option ``does``."""
    made = []
    for number, one in enumerate(read_listed("does", given)):
        where = f"does[{number}]"
        stated = read_object(where, one, {"words", "calls"}, {"say"})
        calls = read_calls(stated["calls"], f"{where}.calls")
        words = Phrases(read_texts(where, stated["words"]))
        made.append(Favour(words, read_text(where, stated.get("say", "Done.")), calls))
    return tuple(made)


def read_changes(given: Any) -> tuple[Change, ...]:
    """The option ``changes``."""
    made = []
    for number, one in enumerate(read_listed("changes", given)):
        where = f"changes[{number}]"
        stated = read_object(where, one, {"say"}, {"p", "knows", "satisfied"})
        made.append(
            Change(
                read_probability(where, stated.get("p", 1.0)),
                read_text(where, stated["say"]),
                read_mapping(where, stated.get("knows", {})),
                read_goal(where, stated.get("satisfied")),
            )
        )
    return tuple(made)
