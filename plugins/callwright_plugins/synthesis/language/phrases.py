"""Phrases: what a tool is asked for with, made from its name and description, or given by its environment.

A phrase is a text with places for arguments: ``transfer {amount_cents} from account {from_account_id}``. It is an
order (``list the accounts``) or a thing (``the accounts``). Arguments without a place in it follow by their slots.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from callwright.errors import DataError
from callwright.tools.reading import json_types
from callwright.tools.spec import ToolSpec
from callwright_plugins.synthesis.language.values.hints import snake, thing
from callwright_plugins.synthesis.language.wordlists.frames import Mood
from callwright_plugins.synthesis.language.wordlists.verbs import LOOKING, SAID, article, is_verb

_PLACE: Final = re.compile(r"\{([^{}]+)\}")
_HEAD: Final = re.compile(r"[^.;:,(\n]+")
#: Where what is said of a thing begins to be too much of it.
_CUT: Final = re.compile(
    r" (?:from|to|into|in|on|at|of|with|within|for|by|under|up|down|so|such|that|which|whose|whom|where|when|and|or|"
    r"about|above|below|after|before|until|unless|if|as|how|what|around|between|over|out|off|back)\b.*"
)
#: Words that a user would not say: they speak of the user, or are no words.
_FOREIGN: Final = re.compile(r"\b(?:user|customer|signed|you|your|yours|ids?|they|them|one's)\b|[A-Z_0-9\"'`{}]")
#: Verbs that say nothing without what stands behind their object: "take a label off a message".
_OPEN: Final = frozenset("take let put give have bring make dissolve end move set keep".split())
#: Words before which a noun has no article.
_BARE: Final = frozenset("on off to in out for from at as up my now all of with me".split())
#: What stands behind a noun that is no part of another one: "a route", not "a route matrix".
_NOT_NOUN: Final = (
    r"(?:of|to|into|in|on|for|from|with|within|so|up|off|and|or|before|between|that|by|at|as|under|holds|sells|again|"
    r"now|once|over|no)\b"
)
_STARTS: Final = ("the ", "a ", "an ", "everything ")


@frozen
class Phrase:
    """A phrase of a tool. ``parts`` are texts and, in between, the names of arguments (at odd places).

    A name behind ``=`` is that of an argument of which the thing itself is said: ``pull up {=account_id}`` is "pull up
    the first of these accounts".
    """

    tool: str
    mood: Mood
    parts: tuple[str, ...]

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments that have a place in it."""
        return tuple(part.removeprefix("=") for part in self.parts[1::2])

    @property
    def things(self) -> frozenset[str]:
        """Those of them that stand for the thing itself."""
        return frozenset(part[1:] for part in self.parts[1::2] if part.startswith("="))


def phrase(tool: str, text: str, mood: Mood = "order") -> Phrase:
    """A phrase from its text."""
    return Phrase(tool, mood, tuple(part.strip() for part in _PLACE.split(text)))


def phrases_of(spec: ToolSpec, given: Sequence[str] = ()) -> tuple[Phrase, ...]:
    """Every phrase of a tool: the ones that its environment gives first, the plainest (its very name) last."""
    properties: Mapping[str, Any] = spec.parameters.get("properties", {})
    things = {key: noun for key in properties if (noun := _thing_of(snake(key)))}
    texts: list[tuple[str, Mood]] = [
        _given(one) for text in given for placed in _placed(text, things) for one in _of_things(placed, things)
    ]
    words = [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+|[^\W_]+", spec.name)]
    name = " ".join(words) or spec.name
    if not given:
        texts.extend(_from_name(words, properties))
        texts.extend(_fused(_from_description(spec.description), things))
    texts.append((name if words and is_verb(words[0]) else f"use {name}", "order"))
    found = [phrase(spec.name, text, mood) for text, mood in dict.fromkeys(texts)]
    for one in found:
        if unknown := [argument for argument in one.arguments if argument not in properties]:
            raise DataError(f"a phrase of {spec.name} has a place for {unknown[0]!r:.60}, which is no parameter of it")
    return tuple(found)


def _thing_of(name: str) -> str:
    """The noun of what an argument is the id of; empty for others."""
    stem = name.removesuffix("_id").removesuffix("_key")
    return thing(stem).replace("_", " ") if stem != name else ""


def _of_things(text: str, things: Mapping[str, str]) -> Iterable[str]:
    """A given phrase, and the one in which ``account {account_id}`` is the thing itself."""
    yield text
    for key, noun in things.items():
        changed = re.sub(rf"(?:(?:the|my) )?\b{re.escape(noun)} \{{{re.escape(key)}\}}", f"{{={key}}}", text)
        if changed != text:
            yield changed


def _placed(text: str, things: Mapping[str, str]) -> Iterable[str]:
    """A given phrase, and the one in which ``a basket`` is the one that is asked about: ``basket {basket_id}``."""
    yield text
    keys = [] if "{" in text else [key for key, noun in things.items() if _is_of_one(text, noun)]
    if len(keys) == 1:
        yield _fused_with(text, things[keys[0]], f"{things[keys[0]]} {{{keys[0]}}}")


def _is_of_one(text: str, noun: str) -> bool:
    return re.search(rf"\b(?:an?|one|the) {re.escape(noun)}(?: {_NOT_NOUN}|$)", text) is not None


def _fused_with(text: str, noun: str, place: str) -> str:
    return re.sub(rf"\b(?:an?|one|the) {re.escape(noun)}\b", place, text, count=1)


def _fused(texts: Iterable[tuple[str, Mood]], things: Mapping[str, str]) -> Iterable[tuple[str, Mood]]:
    """Phrases of a description in which ``a message`` is the one that is asked about: ``message {message_id}``, or the
    thing itself. Else a message would be named twice.
    """
    for text, mood in texts:
        keys = [key for key, noun in things.items() if _is_of_one(text, noun)]
        if not keys:
            yield text, mood
        elif len(keys) == 1:
            for place in (f"{things[keys[0]]} {{{keys[0]}}}", f"{{={keys[0]}}}"):
                yield _fused_with(text, things[keys[0]], place), mood


def _given(text: str) -> tuple[str, Mood]:
    clean = " ".join(text.split())
    return clean, "thing" if clean.startswith(_STARTS) else "order"


def _from_name(words: list[str], properties: Mapping[str, Any]) -> Iterable[tuple[str, Mood]]:
    if len(words) < 2 or not is_verb(words[0]):
        return
    verb, noun = words[0], " ".join(words[1:])
    keys = {snake(key): key for key in properties}
    named = (keys.get(name, "") for name in (f"{'_'.join(words[1:])}_id", "_".join(words[1:])))
    fused = next((key for key in named if key and not _is_a_switch(properties[key])), "")
    for said in SAID.get(verb, (verb,)):
        if fused:
            yield f"{said} {noun} {{{fused}}}", "order"
            yield f"{said} the {noun} {{{fused}}}", "order"
            yield f"{said} {{={fused}}}", "order"
        yield f"{said} {_definite(noun, verb)}", "order"
    if verb in LOOKING and _definite(noun, verb) != noun:
        if fused:
            yield f"the details of {noun} {{{fused}}}", "thing"
        else:
            yield f"the {noun}", "thing"


def _is_a_switch(schema: Any) -> bool:
    return isinstance(schema, Mapping) and json_types(schema) == frozenset({"boolean"})


def _definite(noun: str, verb: str) -> str:
    first = noun.split(" ")[0]
    if first in _BARE:
        return noun
    return f"{article(noun, verb)}{noun}"


def _from_description(description: str) -> Iterable[tuple[str, Mood]]:
    match = _HEAD.match(description)
    head = match[0].strip() if match else ""
    lower = head[:1].lower() + head[1:]
    if head.endswith((" e", " such")) or not lower:
        return
    first = lower.split(" ")[0]
    if is_verb(first):
        for text in dict.fromkeys((lower if first in _OPEN else _CUT.sub("", lower), lower)):
            if 2 <= len(text.split()) <= 7 and not _FOREIGN.search(text) and not text.endswith((" a", " the", " an")):
                yield text, "order"
    elif lower.startswith(_STARTS):
        text = _CUT.sub("", lower)
        if 2 <= len(text.split()) <= 7 and not _FOREIGN.search(text):
            yield text, "thing"
