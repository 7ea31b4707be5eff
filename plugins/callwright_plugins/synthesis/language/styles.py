"""Styles: who speaks, how much is said at first, and which liberties are taken."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from types import MappingProxyType
from typing import Final, Literal, get_args

from attrs import frozen

from callwright.errors import UsageError
from callwright_plugins.synthesis.language.values.speaker import Wording
from callwright_plugins.synthesis.language.wordlists.personas import PERSONAS, Persona

#: How much a query tells (Prove, section 3.2): all of it, all but one required argument, or what it is about.
Information = Literal["complete", "missing", "minimal"]
#: The paper's shares of them.
SHARES: Final[Mapping[Information, float]] = MappingProxyType({"complete": 0.6, "missing": 0.2, "minimal": 0.2})


@frozen
class Style:
    """How a query is worded. ``names`` is as in :class:`.values.speaker.Wording`.

    ``ellipsis``: a repeated request is "the same" with what differs. ``correction``: a value is said wrong and put
    right. ``typo``: one word of the grammar is mistyped. ``greets``, ``thanks``, ``background``: whether a sentence of
    each stands around the request.
    """

    persona: Persona = PERSONAS[7]
    information: Information = "complete"
    ellipsis: bool = True
    correction: bool = False
    typo: bool = False
    greets: bool = False
    thanks: bool = False
    background: bool = False
    names: str = "some"

    def __attrs_post_init__(self) -> None:
        if self.information not in get_args(Information):
            raise UsageError(
                f"a query is {', '.join(get_args(Information))}; {self.information!r:.40} is no level of information"
            )

    @property
    def wording(self) -> Wording:
        """How values are said."""
        persona = self.persona
        return Wording(days=persona.says_days >= 0.5, counts=persona.counts, names=self.names)


def drawn(random: Random, shares: Mapping[Information, float] = SHARES) -> Style:
    """A style as chance has it: a persona with its habits, and a level of information by these shares."""
    persona = random.choice(PERSONAS)
    levels: tuple[Information, ...] = get_args(Information)
    level = random.choices(levels, [shares.get(one, 0.0) for one in levels])[0]
    return Style(
        persona,
        level,
        ellipsis=random.random() < 0.7,
        correction=random.random() < persona.corrects,
        typo=random.random() < persona.typos,
        greets=random.random() < persona.greets,
        thanks=random.random() < persona.thanks,
        background=random.random() < persona.background,
    )
