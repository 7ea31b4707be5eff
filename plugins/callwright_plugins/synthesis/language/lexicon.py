"""The lexicon of a set of tools: every phrase, slot and frame, arranged so that it is found by its first words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from callwright.tools.spec import ToolSpec
from callwright_plugins.synthesis.language.phrases import Phrase, phrases_of
from callwright_plugins.synthesis.language.slots import Slot, slots_of
from callwright_plugins.synthesis.language.values import numbers, speaker
from callwright_plugins.synthesis.language.values.hints import Hint, hint_of, snake
from callwright_plugins.synthesis.language.values.references import Members, plural
from callwright_plugins.synthesis.language.values.titles import title_of
from callwright_plugins.synthesis.language.values.tokens import Trie, words_of
from callwright_plugins.synthesis.language.wordlists import frames, personas
from callwright_plugins.synthesis.language.wordlists.frames import Frame, Mood
from callwright_plugins.synthesis.language.wordlists.typos import mended

#: Asks for the call before once more, with what is different.
SAME: Final = ("do the same", "do the same again", "do that again")
#: Words of the grammar that stand in no table of their own.
_GLUE: Final = (
    "if", "is", "not", "at", "least", "most", "result", "of", "these", "its", "what", "that", "gives", "one",
    "left", "blank", "nothing", "all", "an", "empty", "list", "object", "exactly", "yes", "no", "and", "the", "with",
    "instead", "make", "am", "pm", "utc", "sharp", "but", "those", "earlier", "ones", "same",
    "only", "alone",
)  # fmt: skip


class ToolWords:
    """A tool's phrases by mood, its slots, and the hints of its parameters."""

    def __init__(self, spec: ToolSpec, given: Sequence[str] = ()) -> None:
        self.name = spec.name
        properties: Mapping[str, object] = spec.parameters.get("properties", {})
        self.hints: dict[str, Hint] = {key: hint_of(key, schema) for key, schema in properties.items()}
        self.required = frozenset(spec.parameters.get("required", ()))
        self.phrases = phrases_of(spec, given)
        self.slots = slots_of(self.hints)
        self.by_words: Trie[Slot] = Trie(
            (words_of(slot.before), slot) for found in self.slots.values() for slot in found
        )
        self.titles: dict[str, str] = {}
        titles = {key: title_of(key, hint) for key, hint in self.hints.items()}
        counts = Counter(titles.values())
        for key, title in titles.items():
            self.titles[key] = title if counts[title] == 1 else key.replace("_", " ")
        #: The arguments whose things a phrase or a slot has a place for.
        self.things = frozenset(slot.argument for found in self.slots.values() for slot in found if slot.thing).union(
            *(phrase.things for phrase in self.phrases)
        )
        self._listed = _listed(spec.result)
        self._again = {one: self._named_again(one) for one in self.phrases}

    def lists(self, key: str) -> bool:
        """Whether its result is a list of things with such an id: the first in each, as the result schema has it."""
        return self._listed in ("", key)

    def names_again(self, phrase: Phrase, arguments: Iterable[str]) -> bool:
        """Whether a phrase speaks of a thing that one of these arguments names behind it: a message, for message 7."""
        return not self._again[phrase].isdisjoint(arguments)

    def _named_again(self, phrase: Phrase) -> frozenset[str]:
        said = words_of(" ".join(phrase.parts[::2]))
        kinds = {key: hint.kind for key, hint in self.hints.items() if hint.kind and key not in phrase.arguments}
        nouns = {key: words_of(kind.replace("_", " ").lower()) for key, kind in kinds.items()}
        return frozenset(
            key
            for key, noun in nouns.items()
            if any(_holds(said, one) for one in (noun, words_of(plural(" ".join(noun)))))
        )


def _listed(result: Any) -> str:
    """The first id in each item of a result that is a list; empty where its schema tells of none."""
    schema: Any = result
    for key in ("properties", "items", "items", "properties"):
        schema = schema.get(key) if isinstance(schema, Mapping) else None
    ids = (key for key in schema or () if f"_{snake(key)}".endswith(("_id", "_key")))
    return next(ids, "") if isinstance(schema, Mapping) else ""


def _holds(words: tuple[str, ...], some: tuple[str, ...]) -> bool:
    return any(words[at : at + len(some)] == some for at in range(len(words) - len(some) + 1))


class Lexicon:
    """The words for some tools. ``given`` maps names of tools to phrases that take the place of those made here."""

    def __init__(self, tools: Mapping[str, ToolSpec], given: Mapping[str, Sequence[str]] | None = None) -> None:
        known = given or {}
        shown = [spec for spec in tools.values() if not spec.hidden]
        self.tools = {spec.name: ToolWords(spec, known.get(spec.name, ())) for spec in shown}
        self.members = Members(
            (spec.result for spec in tools.values() if spec.result is not None),
            (name for spec in shown for name in spec.parameters.get("properties", {})),
        )
        phrases = [phrase for words in self.tools.values() for phrase in words.phrases]
        self.openings: Trie[Phrase] = Trie((words_of(phrase.parts[0]), phrase) for phrase in phrases)
        self._counts = Counter(map(_pattern, phrases))
        self._own: dict[tuple[str, Mood], tuple[Phrase, ...]] = {}
        self.frames = _by_beginning(frames.FRAMES)
        self.following = _by_beginning(frames.FOLLOWING_FRAMES)
        self.joins: Trie[str] = Trie((words_of(join), join) for join in frames.JOINS)
        self.same: Trie[str] = Trie((words_of(same), same) for same in SAME)
        said = [text for register in personas.GREETINGS.values() for text in register] + list(personas.BACKGROUND)
        self.before: Trie[str] = Trie((words_of(text), text) for text in dict.fromkeys(said))
        thanks = [text for register in personas.THANKS.values() for text in register]
        self.behind: Trie[str] = Trie((words_of(text), text) for text in dict.fromkeys(thanks))
        self.corrections: Trie[tuple[str, str]] = Trie(
            (words_of(before), (between, end)) for before, between, end in frames.CORRECTIONS
        )
        self.mends = mended(self._vocabulary())

    def own(self, tool: str, mood: Mood) -> tuple[Phrase, ...]:
        """The phrases of a tool that no other tool has."""
        known = self._own.get((tool, mood))
        if known is None:
            found = self.tools[tool].phrases
            known = tuple(one for one in found if one.mood == mood and self._counts[_pattern(one)] == 1)
            self._own[tool, mood] = known
        return known

    def _vocabulary(self) -> Iterator[str]:
        texts = [*_GLUE, *numbers.WORDS, *numbers.ORDINALS, *numbers.MONTHS, *numbers.DAYS, *frames.JOINS, *SAME]
        texts += [frame.text.replace("{f}", " ") for frame in (*frames.FRAMES, *frames.FOLLOWING_FRAMES)]
        texts += [text for one in (personas.GREETINGS, personas.THANKS) for text in sum(one.values(), ())]
        texts += [*personas.BACKGROUND, *(" ".join(one).replace("{new}", "") for one in frames.CORRECTIONS)]
        texts += self.members.words.values()
        for words in self.tools.values():
            texts += [" ".join(phrase.parts[::2]) for phrase in words.phrases]
            texts += [f"{slot.before} {slot.behind}" for found in words.slots.values() for slot in found]
            texts += words.titles.values()
            for hint in words.hints.values():
                texts += _options(hint)
        for text in texts:
            yield from words_of(text)


def _by_beginning(given: Iterable[Frame]) -> Trie[tuple[Mood, tuple[tuple[str, ...], ...]]]:
    """Moods and endings of frames by their first words: frames that begin alike are read at once."""
    endings: dict[tuple[tuple[str, ...], Mood], dict[tuple[str, ...], None]] = {}
    for one in given:
        endings.setdefault((one.before, one.mood), {})[one.behind] = None
    return Trie((before, (mood, tuple(found))) for (before, mood), found in endings.items())


def _options(hint: Hint) -> Iterator[str]:
    yield from filter(None, (speaker.option_words(one, hint) for one in hint.options))
    for key, inner in hint.members.items():
        yield speaker.member_words(key)
        yield from _options(inner)
    if hint.items is not None:
        yield from _options(hint.items)


def _pattern(phrase: Phrase) -> tuple[Mood, tuple[tuple[str, ...], ...]]:
    # Things are told apart by what they are: "pull up that account" is of another tool than "pull up that card".
    texts = [part for place, part in enumerate(phrase.parts) if not place % 2 or part.startswith("=")]
    return phrase.mood, tuple(map(words_of, texts))
