"""Saying: a plan as a query, in pieces of which each is either grammar or a value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any, Final

from attrs import field, frozen

from callwright.language.program import Call, Reference
from callwright_plugins.synthesis.language.lexicon import SAME, Lexicon
from callwright_plugins.synthesis.language.phrases import Phrase
from callwright_plugins.synthesis.language.plan import Condition, Plan
from callwright_plugins.synthesis.language.slots import Slot
from callwright_plugins.synthesis.language.styles import Style
from callwright_plugins.synthesis.language.values.hints import ANYTHING
from callwright_plugins.synthesis.language.values.sameness import told_by
from callwright_plugins.synthesis.language.values.speaker import PLAINLY, Speaker, Wording, is_member, say_same
from callwright_plugins.synthesis.language.wordlists import frames, personas
from callwright_plugins.synthesis.language.wordlists.frames import Frame, Mood, frame
from callwright_plugins.synthesis.language.wordlists.typos import slipped

_PLAIN_FRAMES: Final[Mapping[Mood, Frame]] = {"order": frame("please {f}."), "thing": frame("I need {f}.", "thing")}
_THINGS: Final = 0.35
_JOINED: Final = 0.45
_SAME: Final = 0.8
#: How often a phrase with places for what is told is rather taken than one without.
_PLACED: Final = 0.92


@frozen
class Piece:
    """A piece of a query; what is no ``value`` is grammar, which may be mistyped and begins sentences in capitals."""

    text: str
    value: bool = False


@frozen
class Draft:
    """A query before it is text."""

    pieces: list[Piece] = field(factory=list)
    frames: list[str] = field(factory=list)

    def grammar(self, text: str) -> None:
        """Add words of the grammar."""
        if text.strip():
            self.pieces.append(Piece(text.strip()))

    def said(self, text: str) -> None:
        """Add a value."""
        self.pieces.append(Piece(text, value=True))


class Writer:
    """Writes one query. ``plainly``: without any liberty, for what a livelier wording cannot say."""

    def __init__(
        self,
        lexicon: Lexicon,
        speaker: Speaker,
        style: Style,
        random: Random,
        plainly: bool,
        earlier: Sequence[Call] = (),
    ) -> None:
        self.lexicon, self.speaker, self.style, self.random = lexicon, speaker, style, random
        self.earlier = earlier
        #: By number: the tools of the calls.
        self.calls: dict[int, str] = {}
        #: Calls and arguments that are said as the same thing that was told of last.
        self.same: set[tuple[int, str]] = set()
        self.plainly = plainly
        self.wording: Wording = PLAINLY if plainly else style.wording

    def write(self, plan: Plan, wrong: tuple[int, str, Any] | None = None) -> Draft:
        """The draft of a plan; ``wrong`` is a call, an argument of it, and what is said there at first."""
        draft = Draft()
        register = self.style.persona.register
        if not self.plainly:
            if self.style.greets:
                draft.grammar(self.random.choice(personas.GREETINGS[register]))
            if self.style.background:
                draft.grammar(self.random.choice(personas.BACKGROUND))
        calls = list(plan.calls)
        if wrong is not None:
            place, name, value = wrong
            calls[place] = Call(place, calls[place].tool, {**calls[place].arguments, name: value})
        conditions = {one.call: one for one in plan.conditions}
        self.calls = {call.id: call.tool for call in calls}
        self._find_the_same(calls)
        self._sentences(draft, calls, conditions)
        if wrong is not None:
            self._correct(draft, calls[wrong[0]], plan.calls[wrong[0]], wrong[1])
        if self.style.thanks and not self.plainly:
            draft.grammar(self.random.choice(personas.THANKS[register]))
        return draft

    def _find_the_same(self, calls: Sequence[Call]) -> None:
        told = told_by(self.earlier, {name: words.hints for name, words in self.lexicon.tools.items()})
        for call in calls:
            hints = self.lexicon.tools[call.tool].hints
            self.same |= {
                (call.id, name)
                for name, value in call.arguments.items()
                if told.is_last(value, hints[name].kind)
                and not _is_of_the_last(value, call)
                and not self.plainly
                and self.random.random() < _SAME
            }
            told.take(call, hints)

    def _thing(self, call: Call, name: str) -> str:
        """An id in the words of the thing itself; empty for any other value."""
        hint = self.lexicon.tools[call.tool].hints[name]
        if (call.id, name) in self.same:
            return say_same(hint.kind)
        value = call.arguments[name]
        if name not in self.lexicon.tools[call.tool].things:
            return ""
        told_by = self.calls.get(value.call, "") if isinstance(value, Reference) else ""
        listed = not told_by or self.lexicon.tools[told_by].lists(self.lexicon.members.id_of(hint.kind))
        return self.speaker.say_thing(value, hint, call.id, listed=listed)

    def _sentences(self, draft: Draft, calls: list[Call], conditions: Mapping[int, Condition]) -> None:
        place = 0
        while place < len(calls):
            mood = self._mood(calls[place], place, conditions)
            chosen = self._frame(mood, place, self._is_about_me(calls[place], mood))
            draft.frames.append(chosen.text)
            before, _, behind = chosen.text.partition("{f}")
            draft.grammar(before)
            self._request(draft, calls, place, chosen, conditions)
            place += 1
            while place < len(calls) and mood == "order" and not self.plainly and self.random.random() < _JOINED:
                if chosen.own and self._is_about_me(calls[place], mood):
                    break
                draft.grammar(self.random.choice(frames.JOINS))
                self._request(draft, calls, place, chosen, conditions)
                place += 1
            draft.grammar(behind)

    def _frame(self, mood: Mood, place: int, about_me: bool) -> Frame:
        """A frame for a request; one that is ``about_me`` is for others to do."""
        if self.plainly:
            return _PLAIN_FRAMES[mood] if not place else frames.FOLLOWING_FRAMES[0]
        fitting = frames.FOLLOWING_FRAMES if place else frames.fitting(mood, self.style.persona.register)
        return self.random.choice([one for one in fitting if not one.own] if about_me else fitting)

    def _is_about_me(self, call: Call, mood: Mood) -> bool:
        """Whether all that a call can be asked for with is done for the speaker: "show me the accounts"."""
        lively = _lively(self._phrases(call, mood), mood)
        return bool(lively) and all(map(_is_about_me, lively))

    def _mood(self, call: Call, place: int, conditions: Mapping[int, Condition]) -> Mood:
        if place or place in conditions:
            return "order"
        if not self._phrases(call, "order"):
            return "thing"
        return (
            "thing" if self._phrases(call, "thing") and self.random.random() < _THINGS and not self.plainly else "order"
        )

    def _phrases(self, call: Call, mood: Mood) -> list[Phrase]:
        things = {name for name in call.arguments if not self.plainly and self._thing(call, name)}
        fitting = [
            one
            for one in self.lexicon.own(call.tool, mood)
            if all(name in call.arguments and not _is_awkward(call.arguments[name]) for name in one.arguments)
            and one.things == things.intersection(one.arguments)
        ]
        if direct := [one for one in fitting if one.things]:
            return [*direct, *fitting[-1:]] if mood == "order" else direct
        if fitting or mood == "thing":
            return fitting
        return [one for one in self.lexicon.tools[call.tool].phrases if not one.arguments and one.mood == mood][-1:]

    def _request(
        self, draft: Draft, calls: list[Call], place: int, around: Frame, conditions: Mapping[int, Condition]
    ) -> None:
        call = calls[place]
        condition = conditions.get(place)
        if condition is not None and self.plainly:
            draft.grammar("if")
            self._condition(draft, condition)
            draft.grammar(",")
        elif (
            condition is None
            and place
            and self.style.ellipsis
            and not self.plainly
            and (differs := _differs(calls[place - 1], call))
        ):
            draft.grammar(self.random.choice(SAME))
            self._slots(draft, call, differs, place)
            return
        phrases = self._phrases(call, around.mood)
        lively = _lively(phrases, around.mood)
        if around.own:
            lively = [one for one in lively if not _is_about_me(one)] or lively
        if (placed := [one for one in lively if one.arguments]) and self.random.random() < _PLACED:
            lively = placed
        words = self.lexicon.tools[call.tool]
        lively = [one for one in lively if not words.names_again(one, call.arguments)] or lively
        chosen = phrases[-1] if self.plainly or not lively else self.random.choice(lively)
        for number, part in enumerate(chosen.parts):
            if number % 2:
                self._value(draft, call, part.removeprefix("="), place, thing=part.startswith("="))
            else:
                draft.grammar(part)
        self._slots(draft, call, [name for name in call.arguments if name not in chosen.arguments], place)
        if condition is not None and not self.plainly:
            draft.grammar(", but only if")
            self._condition(draft, condition)

    def _condition(self, draft: Draft, condition: Condition) -> None:
        place = condition.call
        draft.said(self.speaker.say(condition.reference, ANYTHING, place, self.wording, self.random))
        draft.grammar(condition.relation)
        draft.said(self.speaker.say(condition.value, ANYTHING, place, self.wording, self.random))

    def _slots(self, draft: Draft, call: Call, names: Iterable[str], place: int) -> None:
        order = list(self.lexicon.tools[call.tool].hints)
        left = sorted(names, key=lambda name: order.index(name) if name in order else len(order))
        for number, name in enumerate(left):
            slot = self._slot(call, name)
            if number and (self.plainly or self.random.random() < 0.35):
                draft.grammar(",")
            elif number and number == len(left) - 1 and not slot.constant and not slot.before.startswith("and"):
                draft.grammar("and")
            draft.grammar(slot.before)
            if not slot.constant:
                self._value(draft, call, name, place, thing=slot.thing)
                draft.grammar(slot.behind)

    def _slot(self, call: Call, name: str) -> Slot:
        slots = self.lexicon.tools[call.tool].slots[name]
        value = call.arguments[name]
        constant = [
            one for one in slots if one.constant and type(one.constant[0]) is type(value) and one.constant[0] == value
        ]
        if constant:
            return constant[0]
        if self.plainly or _is_awkward(value):
            return slots[-1]
        if self._thing(call, name) and (fitting := [one for one in slots if one.thing]):
            return self.random.choice(fitting)
        if is_member(value) and (fitting := [one for one in slots if one.member]):
            return self.random.choice(fitting)
        alone = isinstance(value, int) and value == 1
        said = [one for one in slots if not (one.constant or one.thing or one.member)]
        open_ones = [one for one in said if one.many in (None, not alone)]
        return self.random.choice(open_ones[:-1] or open_ones)

    def _value(self, draft: Draft, call: Call, name: str, place: int, thing: bool = False) -> None:
        hint = self.lexicon.tools[call.tool].hints[name]
        if thing:
            draft.said(self._thing(call, name))
            return
        draft.said(self.speaker.say(call.arguments[name], hint, place, self.wording, self.random))

    def _correct(self, draft: Draft, wrong: Call, right: Call, name: str) -> None:
        before, between, end = self.random.choice(frames.CORRECTIONS)
        draft.grammar(f"{before} {self.lexicon.tools[right.tool].titles[name]}")
        self._value(draft, right, name, right.id)
        draft.grammar(between.replace("{new}", ""))
        self._value(draft, wrong, name, right.id)
        draft.grammar(end)

    def text(self, draft: Draft) -> str:
        """The text of a draft, with one slip of the keyboard where the style has one."""
        pieces = list(draft.pieces)
        if self.style.typo and not self.plainly:
            places = [place for place, piece in enumerate(pieces) if not piece.value]
            self.random.shuffle(places)
            for place in places:
                changed = slipped(pieces[place].text, self.lexicon.mends, self.random)
                if changed is not None:
                    pieces[place] = Piece(changed)
                    break
        return _joined(pieces, capitals=not self.style.persona.lower)


def _joined(pieces: Iterable[Piece], capitals: bool) -> str:
    text, ended = "", True
    for piece in pieces:
        said = piece.text
        if not piece.value:
            if not capitals:
                said = said.lower()
            elif ended:
                said = said[:1].upper() + said[1:]
            if said[0] in ",.;:?!":
                text = text.rstrip(" ")
        text += f"{said} "
        ended = not piece.value and said[-1] in ".?!"
    return text.rstrip(" ")


def _lively(phrases: list[Phrase], mood: Mood) -> list[Phrase]:
    """Phrases but for the last order, which is the tool's bare name, for want of anything better."""
    return phrases[:-1] if mood == "order" else phrases


def _is_about_me(phrase: Phrase) -> bool:
    return any(not {"me", "i"}.isdisjoint(part.lower().split()) for part in phrase.parts[::2])


def _is_of_the_last(value: Any, call: Call) -> bool:
    """Whether a value is what the call before has told, which is "that account" or "its account id"."""
    return isinstance(value, Reference) and value.call == call.id - 1


def _is_awkward(value: Any) -> bool:
    """Whether only a phrase can say a value, which then stands behind the parameter's name."""
    return value is None or (isinstance(value, str | list | dict) and not value)


def _differs(before: Call, call: Call) -> list[str]:
    """The arguments that a call has in another way than the one before, where that is all that differs."""
    if before.tool != call.tool or not set(before.arguments) <= set(call.arguments):
        return []
    changed = [name for name, value in call.arguments.items() if not _same(before.arguments, name, value)]
    return changed if len(changed) < len(call.arguments) else []


def _same(arguments: Mapping[str, Any], name: str, value: Any) -> bool:
    return name in arguments and repr(arguments[name]) == repr(value)
