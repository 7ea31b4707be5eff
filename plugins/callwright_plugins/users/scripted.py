"""A user that follows a script: it holds back what it knows until it is asked, and insists until its goal is reached.

What it is asked for is recognised by words, so that it answers any text of any model, in the same way on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, ClassVar, Final

from callwright.errors import DataError
from callwright.language.messages import Message
from callwright.language.program import Call
from callwright.walk.tasks import Task
from callwright.walk.users.said import Said
from callwright.walk.users.user import Looks
from callwright_plugins.users.mistaken import mistaken
from callwright_plugins.users.script import (
    Phrases,
    filled,
    in_words,
    normal,
    questions,
    read_changes,
    read_favours,
    read_goal,
    read_mapping,
    read_names,
    read_object,
    read_probability,
    read_requests,
    read_text,
    read_texts,
    wrong,
)

_CONFIRMS: Final = {"words": ["shall i", "should i", "do you want me to", "confirm"], "say": "Yes, please."}
#: By these words the agent says that something did not work.
_FAILED: Final = Phrases(
    "fail failed failure wrong incorrect invalid error declined denied rejected refused unable cannot can't couldn't "
    "didn't doesn't not".split()
)


class Scripted:
    """A user with a goal, who knows something, tells it when asked, and may be mistaken or change its mind.

    ``knows``: values by name; ``{"knowledge": NAME, "of": ENTITY}`` is looked up in the world. ``opening``: the names
    that the query tells already. ``asked``: for a name, the words by which a question for it is recognised (the name
    itself, ``_`` read as a space, if left out). ``tells``: for a name, the sentence that tells it; ``{name}`` in any
    sentence stands for what is known by that name. ``then``: later requests, texts or objects with ``say``, ``when`` (a
    goal: where it does not hold, the request is passed over), ``calls``, and the ``knows`` and ``tells`` that it has
    from then on; one each time the agent ends its turn without asking. ``satisfied``: the goal at which the user says
    ``thanks`` and is done; without one it is done when ``then`` is used up. ``patience``: how often it says
    ``insists``, or the same again, before it gives up. ``confirms``: ``words`` of a request for confirmation, and what
    to ``say``. ``does``: ``words`` of a request to do something, the ``calls`` of the user's own tools that do it, and
    what to ``say``. ``mistakes``: the probability that a value is told wrong at first; it is put right when the agent
    asks again or says that something failed. ``changes``: of mind, each with a probability ``p``, what to ``say``, and
    the ``knows`` and the goal ``satisfied`` from then on.

    Raises :class:`callwright.UsageError` for options that are something else.
    """

    name: ClassVar[str] = "scripted"

    def __init__(
        self,
        knows: Mapping[str, Any] | None = None,
        opening: Sequence[str] = (),
        asked: Mapping[str, Any] | None = None,
        tells: Mapping[str, str] | None = None,
        then: Sequence[Any] = (),
        satisfied: Mapping[str, Any] | None = None,
        patience: int = 3,
        confirms: Mapping[str, Any] | None = None,
        does: Sequence[Any] = (),
        mistakes: float = 0.0,
        changes: Sequence[Any] = (),
        insists: str = "That is not done yet.",
        thanks: str = "Thank you, that is all.",
        gives_up: str = "Never mind, I give up.",
    ) -> None:
        self.knows = dict(read_mapping("knows", knows or {}))
        self.changes = read_changes(changes)
        self.then = read_requests(then)
        later = [*(change.knows for change in self.changes), *(request.knows for request in self.then)]
        known = {**self.knows, **{name: value for knows in later for name, value in knows.items()}}
        if isinstance(opening, str):
            raise wrong("opening", "a list of names", opening)
        read_names("opening", opening, known)
        self.opening = frozenset(opening)
        words = read_mapping("asked", asked or {})
        read_names("asked", words, known)
        self.asked = {
            name: Phrases(read_texts(f"asked.{name}", words[name]) if name in words else (name.replace("_", " "),))
            for name in known
        }
        sentences = read_mapping("tells", tells or {})
        read_names("tells", sentences, known)
        self.tells = {name: read_text(f"tells.{name}", sentence) for name, sentence in sentences.items()}
        self.satisfied = read_goal("satisfied", satisfied)
        if type(patience) is not int or patience < 0:
            raise wrong("patience", "a whole number from 0", patience)
        self.patience = patience
        agreed = read_object("confirms", {**_CONFIRMS, **(confirms or {})}, {"words", "say"}, set())
        self.confirms = Phrases(read_texts("confirms.words", agreed["words"]))
        self.agrees = read_text("confirms.say", agreed["say"])
        self.does = read_favours(does)
        self.mistakes = read_probability("mistakes", mistakes)
        self.insists, self.thanks = read_text("insists", insists), read_text("thanks", thanks)
        self.gives_up = read_text("gives_up", gives_up)

    def begin(self, task: Task, seed: int) -> Following:
        """A user at the beginning of the script; which changes and mistakes it makes is drawn now."""
        return Following(self, seed)


class Following:
    """A user in one episode, who follows a script."""

    def __init__(self, script: Scripted, seed: int) -> None:
        self._script, self._seed = script, seed
        self._knows = dict(script.knows)
        self._satisfied = script.satisfied
        self._told = set(script.opening)
        self._wrong: set[str] = set()
        self._then = list(script.then)
        self._tells = dict(script.tells)
        self._changes = [
            change
            for number, change in enumerate(script.changes)
            if Random(f"{seed}/change/{number}").random() < change.p
        ]
        self._insisted = 0
        self._last = ""

    def reply(self, messages: Sequence[Message], session: Looks) -> Said:
        """What the script says to the agent's last words."""
        words = messages[-1].text
        text, asking = normal(words), questions(words)
        script = self._script
        sentences = [self._tell(name, session) for name in self._asked_for(text, asking)]
        calls: tuple[Call, ...] = ()
        for favour in script.does:
            if favour.words.in_text(text):
                sentences.append(self._filled(favour.say, session))
                calls += favour.calls
        if script.confirms.in_text(text):
            sentences.append(self._filled(script.agrees, session))
        if not sentences:
            return self._go_on(session)
        answer, before = " ".join(sentences), self._last
        if answer == before:  # asked the same again and again, it loses its patience, too
            if self._insisted >= script.patience:
                return Said(script.gives_up, done=True)
            self._insisted += 1
        self._last = answer
        return Said(answer, calls)

    def _asked_for(self, text: str, asking: str) -> list[str]:
        """What is to be told: what was asked for and not told, or asked again; and what was told wrong and failed."""
        failed = bool(self._wrong) and _FAILED.in_text(text)
        found = []
        for name in self._knows:
            phrases = self._script.asked[name]
            wrong_and_failed = name in self._wrong and (failed or phrases.in_text(text))
            if wrong_and_failed or phrases.in_text(asking if name in self._told else text):
                found.append(name)
        return found

    def _tell(self, name: str, session: Looks) -> str:
        value = self._value(name, session)
        sentence = self._tells.get(name)
        random = Random(f"{self._seed}/mistake/{name}")
        slips = name not in self._told and random.random() < self._script.mistakes
        if slips:
            other = mistaken(value, random)
            slips = other != value
            value = other
        corrected = name in self._wrong
        self._told.add(name)
        (self._wrong.add if slips else self._wrong.discard)(name)
        if sentence is None:
            told = f"{name}: {in_words(value)}."
        else:  # what is known as 'name' or 'value' goes before the meaning that these have without
            told = filled(sentence, {"name": name, "value": value, **self._values(sentence, session), name: value})
        return f"Sorry, I was wrong. {told}" if corrected else told

    def _go_on(self, session: Looks) -> Said:
        """The agent has ended its turn and asked for nothing."""
        script = self._script
        if self._changes:
            change = self._changes.pop(0)
            self._knows.update(change.knows)
            self._told -= change.knows.keys()
            self._satisfied = change.satisfied or self._satisfied
            return Said(self._filled(change.say, session))
        while self._then:
            request = self._then.pop(0)
            if request.when is None or session.check_goal(request.when).equal:
                self._knows.update(request.knows)
                self._tells.update(request.tells)
                self._told -= request.knows.keys()
                return Said(self._filled(request.say, session), request.calls)
        if self._satisfied is None or session.check_goal(self._satisfied).equal:
            return Said(script.thanks, done=True)
        if self._insisted >= script.patience:
            return Said(script.gives_up, done=True)
        self._insisted += 1
        return Said(self._filled(script.insists, session))

    def _filled(self, sentence: str, session: Looks) -> str:
        return filled(sentence, self._values(sentence, session))

    def _values(self, sentence: str, session: Looks) -> dict[str, Any]:
        """What the sentence names."""
        return {name: self._value(name, session) for name in self._knows if f"{{{name}}}" in sentence}

    def _value(self, name: str, session: Looks) -> Any:
        stated = self._knows[name]
        if not isinstance(stated, Mapping) or "knowledge" not in stated:
            return stated
        entity, entry = stated.get("of", "me"), stated["knowledge"]
        known = session.knowledge(entity)
        if entry not in known:
            raise DataError(
                f"the user 'scripted' knows {name!r} as {entry!r} of {entity!r}, but the world tells only "
                f"{', '.join(known) or 'nothing'} of it"
            )
        return known[entry]
