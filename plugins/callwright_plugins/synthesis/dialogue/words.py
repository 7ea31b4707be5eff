"""The words of a conversation: queries, questions, answers, regrets, and what a user tells when it is asked."""

from __future__ import annotations

from random import Random
from typing import Any, Final, Protocol

from attrs import evolve, field, frozen

from callwright.environments.protocol import Environment
from callwright_plugins.synthesis.blueprints.blueprint import Stage
from callwright_plugins.synthesis.language.grammar import Grammar
from callwright_plugins.synthesis.language.replies import Replies, Reply, stated
from callwright_plugins.synthesis.language.styles import Style, drawn
from callwright_plugins.synthesis.language.withholding import Withheld
from callwright_plugins.synthesis.language.wordlists.personas import PERSONAS, Persona

_PERSONAS: Final = {one.name: one for one in PERSONAS}
_KEPT: Final = 64
_replies: dict[int, tuple[Environment, Replies]] = {}


@frozen
class Asked:
    """A query, what it leaves out, and what the user says when it is asked for that: a sentence for each."""

    text: str
    withheld: tuple[Withheld, ...] = ()
    told: tuple[str, ...] = ()
    frames: tuple[str, ...] = ()


class Words(Protocol):
    """Who has the words. Raises :class:`callwright.errors.DataError` where there are none that say just this."""

    def query(self, stage: Stage, environment: Environment, persona: str, seed: int) -> Asked:
        """What the user says, and what it leaves out."""

    def question(self, withheld: tuple[Withheld, ...], environment: Environment, seed: int) -> str:
        """How the assistant asks for what was left out."""

    def answer(self, value: Any, environment: Environment, seed: int) -> str:
        """What the assistant says of the last result."""

    def failure(self, code: str, reason: str, environment: Environment, seed: int) -> str:
        """How the assistant says that something cannot be done, and why."""

    def refusal(self, environment: Environment, seed: int) -> str:
        """How the assistant says that none of its tools fits."""


@frozen
class ScriptedWords:
    """The words of the grammar: what they say is read back from them, and from nothing else."""

    name: str = field(default="scripted", init=False)

    def query(self, stage: Stage, environment: Environment, persona: str, seed: int) -> Asked:
        """A query in the manner of a persona, with as much as the stage's level of information says."""
        replies = replies_of(environment)
        style = _style(persona, stage, seed)
        made = replies.grammar.render(stage.asked, style, seed)
        tools = [call.tool for call in stage.asked.calls]
        told = tuple(replies.tell([one], tools, seed, style.wording) for one in made.withheld)
        return Asked(made.text, made.withheld, told, made.frames)

    def question(self, withheld: tuple[Withheld, ...], environment: Environment, seed: int) -> str:
        """A question for everything that was left out."""
        titles = tuple(dict.fromkeys(one.title for one in withheld))
        return replies_of(environment).say(Reply("question", titles=titles), seed)

    def answer(self, value: Any, environment: Environment, seed: int) -> str:
        """The outermost facts of a result."""
        return replies_of(environment).say(Reply("answer", facts=stated(value)), seed)

    def failure(self, code: str, reason: str, environment: Environment, seed: int) -> str:
        """The reason as the tool gave it, and its code."""
        return replies_of(environment).say(Reply("failure", code=code, reason=reason), seed)

    def refusal(self, environment: Environment, seed: int) -> str:
        """Regrets."""
        return replies_of(environment).say(Reply("refusal"), seed)


def replies_of(environment: Environment) -> Replies:
    """The grammar of an environment's tools, made once for each environment of a process."""
    known = _replies.get(id(environment))
    if known is not None and known[0] is environment:
        return known[1]
    if len(_replies) >= _KEPT:
        _replies.clear()
    made = Replies(Grammar(environment.tools))
    _replies[id(environment)] = environment, made
    return made


def _style(persona: str, stage: Stage, seed: int) -> Style:
    style = drawn(Random(f"style/{seed}"))
    speaker: Persona = _PERSONAS.get(persona, style.persona)
    return evolve(style, persona=speaker, information=stage.information)
