"""Reading: every plan that a query may mean.

A query is read by recursive descent over its tokens, following every alternative, so that what comes back is not the
first plan that fits but all of them. The number of steps is bounded: a text that takes more has no reading.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from attrs import evolve, field, frozen

from callwright.errors import DataError
from callwright.language.program import Call, Reference
from callwright_plugins.synthesis.language.lexicon import Lexicon, ToolWords
from callwright_plugins.synthesis.language.phrases import Phrase
from callwright_plugins.synthesis.language.plan import Condition, Plan, Relation
from callwright_plugins.synthesis.language.slots import Slot
from callwright_plugins.synthesis.language.values.hints import ANYTHING
from callwright_plugins.synthesis.language.values.sameness import told_by
from callwright_plugins.synthesis.language.values.speaker import Speaker, is_member
from callwright_plugins.synthesis.language.values.tokens import tokens, words_of
from callwright_plugins.synthesis.language.wordlists.frames import Mood

#: How many steps the reading of one text may take, and how many plans are kept.
STEPS: Final = 60_000
READINGS: Final = 16
#: Before a condition that stands behind its request.
ONLY_IF: Final = (",", "but", "only", "if")
_MOST_CALLS: Final = 12
_MOST_CORRECTIONS: Final = 3


@frozen
class Clause:
    """A request as it was read: ``tool`` is empty where the call before is asked for again."""

    tool: str
    arguments: dict[str, Any] = field(factory=dict)
    condition: tuple[Reference, Relation, Any] | None = None


class _Spent(Exception):
    """The text takes too many steps."""


class Reader:
    """One reading of one text."""

    def __init__(self, lexicon: Lexicon, speaker: Speaker, text: str, earlier: Sequence[Call] = ()) -> None:
        self.lexicon, self.speaker, self.earlier = lexicon, speaker, earlier
        self.tokens = tokens(text, lexicon.mends)
        #: Their words; what is quoted is none of the grammar's.
        self.words = tuple(None if one.kind == "quoted" else one.word for one in self.tokens)
        self.left = STEPS
        self.clauses: dict[tuple[int, int], list[tuple[int, Clause]]] = {}

    def plans(self) -> list[Plan]:
        """Every plan, in no order that means anything; empty where there is none or the text takes too long."""
        found: dict[str, Plan] = {}
        try:
            for clauses, at in self._requests():
                for plan in self._made(clauses, at):
                    found.setdefault(plan.key, plan)
                    if len(found) >= READINGS:
                        return list(found.values())
        except _Spent:
            return []
        return list(found.values())

    def _step(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise _Spent

    def _is(self, at: int, words: tuple[str, ...]) -> bool:
        return self.words[at : at + len(words)] == words

    def _requests(self) -> Iterator[tuple[tuple[Clause, ...], int]]:
        """All requests of the query, and the token behind the last one."""
        starts = [0]
        for _ in range(2):  # a greeting and a sentence about oneself
            starts += [
                end for at in starts for end, _ in self.lexicon.before.match(self.tokens, at) if end not in starts
            ]
        for start in starts:
            for at, (mood, endings) in self.lexicon.frames.match(self.tokens, start):
                yield from self._sentences(at, mood, endings, ())

    def _sentences(
        self, at: int, mood: Mood, endings: tuple[tuple[str, ...], ...], before: tuple[Clause, ...]
    ) -> Iterator[tuple[tuple[Clause, ...], int]]:
        self._step()
        for last, clauses in self._joined(at, mood, before):
            for ending in endings:
                if not self._is(last, ending):
                    continue
                end = last + len(ending)
                yield clauses, end
                for behind, (going, others) in self.lexicon.following.match(self.tokens, end):
                    yield from self._sentences(behind, going, others, clauses)

    def _joined(self, at: int, mood: Mood, before: tuple[Clause, ...]) -> Iterator[tuple[int, tuple[Clause, ...]]]:
        self._step()
        if len(before) >= _MOST_CALLS:
            return
        previous = before[-1].tool.removeprefix("=") if before else ""
        for end, clause in self._conditional(at, len(before), mood, previous):
            clauses = (*before, clause)
            yield end, clauses
            for behind, _ in self.lexicon.joins.match(self.tokens, end):
                yield from self._joined(behind, "order", clauses)

    def _conditional(self, at: int, place: int, mood: Mood, previous: str) -> Iterator[tuple[int, Clause]]:
        if self._is(at, ("if",)):
            for end, condition in self._condition(at + 1, place):
                if self._is(end, (",",)):
                    for behind, clause in self._clauses(end + 1, place, "order"):
                        yield behind, evolve(clause, condition=condition)
        for end, clause in self._clauses(at, place, mood):
            yield end, clause
            if self._is(end, ONLY_IF):
                for behind, condition in self._condition(end + len(ONLY_IF), place):
                    yield behind, evolve(clause, condition=condition)
        if previous and mood == "order":
            for end, _ in self.lexicon.same.match(self.tokens, at):
                for last, arguments in self._slots(end, self.lexicon.tools[previous], {}, place):
                    if arguments:
                        yield last, Clause(f"={previous}", arguments)

    def _condition(self, at: int, place: int) -> Iterator[tuple[int, tuple[Reference, Relation, Any]]]:
        for end, said in self.speaker.read(self.tokens, at, ANYTHING, place):
            if not isinstance(said, Reference) or not self._is(end, ("is",)):
                continue
            for words, relation in _RELATIONS:
                if self._is(end + 1, words):
                    for behind, value in self.speaker.read(self.tokens, end + 1 + len(words), ANYTHING, place):
                        yield behind, (said, relation, value)

    def _clauses(self, at: int, place: int, mood: Mood) -> list[tuple[int, Clause]]:
        key = (at, place * 2 + (mood == "thing"))
        known = self.clauses.get(key)
        if known is None:
            known = self.clauses[key] = list(self._read_clauses(at, place, mood))
        return known

    def _read_clauses(self, at: int, place: int, mood: Mood) -> Iterator[tuple[int, Clause]]:
        for end, phrase in self.lexicon.openings.match(self.tokens, at):
            if phrase.mood == mood:
                words = self.lexicon.tools[phrase.tool]
                for behind, arguments in self._places(end, phrase, 1, words, {}, place):
                    for last, all_of_them in self._slots(behind, words, arguments, place):
                        yield last, Clause(phrase.tool, all_of_them)

    def _places(
        self, at: int, phrase: Phrase, part: int, words: ToolWords, held: dict[str, Any], place: int
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """The arguments in the places of a phrase, and the words between these."""
        self._step()
        if part >= len(phrase.parts):
            yield at, held
            return
        name, text = phrase.parts[part], words_of(phrase.parts[part + 1])
        read = self.speaker.read_thing if name.startswith("=") else self.speaker.read
        name = name.removeprefix("=")
        for end, value in read(self.tokens, at, words.hints[name], place):
            if self._is(end, text):
                yield from self._places(end + len(text), phrase, part + 2, words, {**held, name: value}, place)

    def _slots(
        self, at: int, words: ToolWords, held: dict[str, Any], place: int
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """The arguments behind a phrase: any number of slots, with or without a comma or ``and`` before each."""
        self._step()
        yield at, held
        starts = [at]
        if self._is(at, (",",)):
            starts.append(at + 1)
        starts += [start + 1 for start in starts if self._is(start, ("and",))]
        for start in starts:
            for end, slot in words.by_words.match(self.tokens, start):
                if slot.argument in held:
                    continue
                for behind, value in self._value(end, slot, words, place):
                    yield from self._slots(behind, words, {**held, slot.argument: value}, place)

    def _value(self, at: int, slot: Slot, words: ToolWords, place: int) -> Iterator[tuple[int, Any]]:
        if slot.constant:
            yield at, slot.constant[0]
            return
        text = words_of(slot.behind)
        read = self.speaker.read_thing if slot.thing else self.speaker.read
        for end, value in read(self.tokens, at, words.hints[slot.argument], place):
            if self._is(end, text) and (not slot.member or is_member(value)):
                yield end + len(text), value

    def _made(self, clauses: tuple[Clause, ...], at: int) -> Iterator[Plan]:
        """The plans that requests come to, with what stands behind these: corrections and thanks."""
        conditions = [Condition(place, *one.condition) for place, one in enumerate(clauses) if one.condition]
        calls = self._calls(clauses)
        for corrected, end in self._corrected(calls, at, _MOST_CORRECTIONS) if calls is not None else ():
            ends = {end, *(behind for behind, _ in self.lexicon.behind.match(self.tokens, end))}
            if len(self.tokens) in ends:
                with suppress(DataError):  # it refers to what is not there
                    yield Plan(tuple(corrected), tuple(conditions))

    def _calls(self, clauses: tuple[Clause, ...]) -> list[Call] | None:
        """The calls of some requests; one that asks for the same again has the arguments of the one before. ``None``
        where something is the same as nothing.
        """
        hints = {name: words.hints for name, words in self.lexicon.tools.items()}
        told = told_by(self.earlier, hints)
        calls: list[Call] = []
        for place, clause in enumerate(clauses):
            arguments = told.resolved(clause.arguments)
            if arguments is None:
                return None
            if clause.tool.startswith("="):
                arguments = {**calls[-1].arguments, **arguments}
            calls.append(Call(place, clause.tool if clause.tool[0] != "=" else calls[-1].tool, arguments))
            told.take(calls[-1], hints[calls[-1].tool])
        return calls

    def _corrected(self, calls: list[Call], at: int, left: int) -> Iterator[tuple[list[Call], int]]:
        self._step()
        yield calls, at
        if not left:
            return
        for end, (between, last) in self.lexicon.corrections.match(self.tokens, at):
            middle, ending = words_of(between.replace("{new}", "")), words_of(last)
            for place, call in enumerate(calls):
                for name, title in self.lexicon.tools[call.tool].titles.items():
                    said = words_of(title)
                    if name in call.arguments and self._is(end, said):
                        for new, behind in self._correction(call, name, end + len(said), middle):
                            if self._is(behind, ending):
                                changed = Call(place, call.tool, {**call.arguments, name: new})
                                others = [*calls[:place], changed, *calls[place + 1 :]]
                                yield from self._corrected(others, behind + len(ending), left - 1)

    def _correction(self, call: Call, name: str, at: int, middle: tuple[str, ...]) -> Iterator[tuple[Any, int]]:
        """The new values of an argument, where its old one stands behind them."""
        hint = self.lexicon.tools[call.tool].hints[name]
        held = call.arguments[name]
        for end, new in self.speaker.read(self.tokens, at, hint, call.id):
            if self._is(end, middle):
                for behind, old in self.speaker.read(self.tokens, end + len(middle), hint, call.id):
                    if type(old) is type(held) and old == held:
                        yield new, behind


_RELATIONS: Final[tuple[tuple[tuple[str, ...], Relation], ...]] = (
    ((), "is"),
    (("not",), "is not"),
    (("at", "least"), "is at least"),
    (("at", "most"), "is at most"),
)
