"""Words: those of the grammar, or a teacher's for the same plan, which have to be read back to it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, Final, Protocol, TypeAlias

from attrs import evolve, frozen

from callwright.environments.protocol import Environment
from callwright.errors import DataError, InfrastructureFailure
from callwright.language.messages import Message
from callwright.plugins import Registry
from callwright.tools.spec import ToolSpec
from callwright.training.teaching.teacher import Role, Teacher, TeacherFailure, TeacherReply, TeacherRequest
from callwright_plugins.synthesis.blueprints.blueprint import Blueprint, Stage, told_before
from callwright_plugins.synthesis.dialogue.back_translation import translated_back
from callwright_plugins.synthesis.dialogue.worlds import environment_of
from callwright_plugins.synthesis.language.environments import grammar_for
from callwright_plugins.synthesis.language.grammar import Grammar, Query, Unsayable
from callwright_plugins.synthesis.language.replies import Replies, Reply
from callwright_plugins.synthesis.language.styles import Information, Style
from callwright_plugins.synthesis.language.withholding import Withheld
from callwright_plugins.synthesis.language.wordlists.personas import PERSONAS, Persona

SCRIPTED: Final = "scripted"
#: How often a teacher words a query that is not read back, or a turn that is not valid, before it is given up on.
TRIES: Final = 3


@frozen(eq=False)
class Voice:
    """The tools of an environment and the words for them."""

    tools: Mapping[str, ToolSpec]
    grammar: Grammar
    replies: Replies


_PERSONAS: Final = {one.name: one for one in PERSONAS}
#: Voices that are kept, each with what it was made of.
_KEPT: Final = 64
_voices: Final[dict[int, tuple[Environment, Voice]]] = {}


def voice_of(environment: Environment, registry: Registry) -> Voice:
    """The voice of an environment, with the phrases that it ships: made once in a process."""
    known = _voices.get(id(environment))
    if known is None:
        if len(_voices) >= _KEPT:
            _voices.clear()
        tools = {name: spec for name, spec in environment.tools.items() if not spec.hidden}
        grammar = grammar_for(environment, registry)
        known = _voices[id(environment)] = environment, Voice(tools, grammar, Replies(grammar))
    return known[1]


def voice_for(stage: Stage, environment: Environment, registry: Registry) -> Voice:
    """The voice that a stage is said with: that of the environment whose tools it asks for."""
    if not stage.elsewhere or stage.elsewhere == environment.name:
        return voice_of(environment, registry)
    return voice_of(environment_of(registry, stage.elsewhere), registry)


def persona_of(blueprint: Blueprint) -> Persona:
    """Who speaks. Raises :class:`callwright.errors.DataError` for a name of nobody."""
    if blueprint.persona and blueprint.persona not in _PERSONAS:
        raise DataError(f"nobody is called {blueprint.persona!r:.60}; personas are {', '.join(_PERSONAS)}")
    return _PERSONAS.get(blueprint.persona, PERSONAS[7])


#: What the world shows of things, by their ids.
Around: TypeAlias = Callable[[], Mapping[str, Mapping[str, Any]]]


def nothing_around() -> Mapping[str, Mapping[str, Any]]:
    """Nothing is shown."""
    return {}


class Words(Protocol):
    """Who has the words of a conversation."""

    @property
    def name(self) -> str:
        """Who that is."""

    def query(
        self,
        stage: Stage,
        voice: Voice,
        persona: Persona,
        seed: int,
        earlier: Sequence[Stage] = (),
        around: Around = nothing_around,
    ) -> Query:
        """What the user says after ``earlier`` turns. ``around``, if asked, is what the world shows of the things that
        the stage is about (:mod:`.surroundings`).

        Raises :class:`callwright.errors.DataError` where no words say just that.
        """

    def say(self, reply: Reply, replies: Replies, said: Sequence[Message], seed: int, attempt: int) -> str:
        """What the assistant says; ``attempt`` counts those that were not valid."""


def style_of(persona: Persona, information: Information, seed: int, *, first: bool) -> Style:
    """How somebody words a query. Greetings, and what one says of oneself, come once: in the ``first`` turn."""
    rng = Random(f"style/{seed}")
    return Style(
        persona,
        information,
        ellipsis=rng.random() < 0.7,
        correction=rng.random() < persona.corrects,
        typo=rng.random() < persona.typos,
        greets=rng.random() < persona.greets and first,
        thanks=rng.random() < persona.thanks,
        background=rng.random() < persona.background and first,
    )


class ScriptedWords:
    """The words of the grammar."""

    name: Final = SCRIPTED

    def query(
        self,
        stage: Stage,
        voice: Voice,
        persona: Persona,
        seed: int,
        earlier: Sequence[Stage] = (),
        around: Around = nothing_around,
    ) -> Query:
        """As :meth:`Words.query`."""
        style = style_of(persona, stage.information, seed, first=not earlier)
        return voice.grammar.render(stage.asked, style, seed, earlier=told_before(earlier))

    def say(self, reply: Reply, replies: Replies, said: Sequence[Message], seed: int, attempt: int) -> str:
        """As :meth:`Words.say`: each attempt states less, since what is stated is what cannot be said."""
        left = reply.facts[: max(0, len(reply.facts) - 2 * attempt)] if attempt < TRIES else ()
        reason = reply.reason if attempt < TRIES else reply.code
        return replies.say(evolve(reply, facts=left, reason=reason), seed + attempt)


class TaughtWords:
    """A teacher's words for what the grammar says. A query is read back, by a request that has not seen the plan."""

    def __init__(self, teacher: Teacher) -> None:
        self.teacher, self.name = teacher, teacher.name
        self._scripted = ScriptedWords()

    def query(
        self,
        stage: Stage,
        voice: Voice,
        persona: Persona,
        seed: int,
        earlier: Sequence[Stage] = (),
        around: Around = nothing_around,
    ) -> Query:
        """As :meth:`Words.query`. Raises :class:`callwright.InfrastructureFailure` where the teacher is not there."""
        style = style_of(persona, stage.information, seed, first=not earlier)
        plain = voice.grammar.render(stage.asked, style, seed)  # said in full: who reads it has not heard the others
        shown = Message.system(_user(persona) + _shown(around()))
        for attempt in range(TRIES):
            text = self._ask("user", [shown, Message.user(plain.text)], seed + attempt).text
            text = text.strip()
            read = translated_back(self.teacher, text, voice.tools, seed) if text else None
            if read is not None and read.key == plain.said.key:
                return evolve(plain, text=text, attempts=attempt, frames=())
        raise Unsayable(f"after {TRIES} tries the teacher's words are read otherwise than {plain.text[:200]!r}")

    def say(self, reply: Reply, replies: Replies, said: Sequence[Message], seed: int, attempt: int) -> str:
        """As :meth:`Words.say`; after some tries the grammar's words take the place of the teacher's."""
        plain = self._scripted.say(reply, replies, said, seed, max(0, attempt - TRIES + 1))
        if attempt >= TRIES - 1:
            return plain
        asked = [Message.system(_ASSISTANT), *said, Message.system(f"Now say this in your own words: {plain}")]
        found = self._ask("assistant", asked, seed + attempt)
        return "" if found.calls or found.truncated else found.text.strip()

    def _ask(self, role: Role, messages: Sequence[Message], seed: int) -> TeacherReply:
        (found,) = self.teacher.ask([TeacherRequest(role, tuple(messages), seed=seed)])
        if isinstance(found, TeacherFailure):
            raise InfrastructureFailure(f"the teacher {self.name!r} did not reply: {found.reason}")
        return found


def words_of(teacher: Teacher | None) -> Words:
    """The words of a teacher; without one those of the grammar."""
    return ScriptedWords() if teacher is None else TaughtWords(teacher)


def withheld_json(withheld: Sequence[Withheld]) -> list[dict[str, Any]]:
    """What a query left out, as JSON."""
    return [{"call": one.call, "argument": one.argument, "value": one.value, "title": one.title} for one in withheld]


def _user(persona: Persona) -> str:
    return (
        f"You play a person who writes to an assistant. {persona.about} You are given a request in stiff words. Write "
        "the message in which this person asks for the same. Keep every value as it is, add none and leave none out; "
        "what the request leaves open stays open. Write the message and nothing else."
    )


def _shown(around: Mapping[str, Mapping[str, Any]]) -> str:
    if not around:
        return ""
    lines = [f"- {name}: {json.dumps(told, ensure_ascii=False)}" for name, told in around.items()]
    return (
        "\n\nWhat there is, so that you know what the person is talking about (do not add any of it to the message):\n"
        + "\n".join(lines)
    )


_ASSISTANT: Final = (
    "You are an assistant with tools. Say what you are told to say in your own words, briefly. Keep every value, ask "
    "for everything that is to be asked for by its name, and for nothing else. Call no tool."
)
