"""What a user holds back: names, the words by which a question for them is known, and what it tells; and who hears."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import define, field, frozen

from callwright.plugins import Registry
from callwright_plugins.synthesis.language.plan import Plan
from callwright_plugins.synthesis.language.replies import Replies
from callwright_plugins.synthesis.language.withholding import Withheld

_NO_WORD: Final = re.compile(r"\W+")


@frozen
class HeldBack:
    """What the user of a stage knows beside its words: options of the user ``scripted``."""

    knows: Mapping[str, Any] = field(factory=dict)
    asked: Mapping[str, list[str]] = field(factory=dict)
    tells: Mapping[str, str] = field(factory=dict)

    @property
    def titles(self) -> tuple[str, ...]:
        """What a question for it names."""
        return tuple(title for titles in self.asked.values() for title in titles)


def held_back(withheld: Sequence[Withheld], asked: Plan, replies: Replies, seed: int) -> HeldBack:
    """What a stage holds back. Arguments of one title are one thing to ask for, told in the order of their calls."""
    tools = [one.tool for one in asked.calls]
    groups: dict[str, list[Withheld]] = {}
    for one in withheld:
        groups.setdefault(one.title, []).append(one)
    names = {title: _NO_WORD.sub("_", title.lower()).strip("_") or f"value_{at}" for at, title in enumerate(groups)}
    return HeldBack(
        {
            names[title]: held[0].value if len(held) == 1 else [one.value for one in held]
            for title, held in groups.items()
        },
        {name: [title] for title, name in names.items()},
        {names[title]: replies.tell(held, tools, seed) for title, held in groups.items()},
    )


@define
class Listener:
    """The user, as far as it recognises what it is asked for: by the code of the user ``scripted`` itself."""

    registry: Registry
    _knows: dict[str, Any] = field(factory=dict)
    _asked: dict[str, list[str]] = field(factory=dict)
    _told: set[str] = field(factory=set)
    _user: Any = None

    def learn(self, held: HeldBack) -> None:
        """What it knows from now on, too."""
        self._knows |= held.knows
        self._asked |= held.asked
        self._told -= held.knows.keys()
        self._user = self.registry.create("user", "scripted", knows=self._knows, asked=self._asked)

    def tell(self, held: HeldBack) -> None:
        """It has told this, and tells it again only where a question asks for it."""
        self._told |= held.knows.keys()

    def hears(self, text: str) -> frozenset[str]:
        """The names that a text asks for; ``""`` stands for a wish that something be confirmed."""
        plain = " ".join(text.casefold().split())
        pieces = re.split(r"([.!?\n])", text.casefold())
        asking = "\n".join(
            " ".join(one.split()) for one, end in zip(pieces[::2], pieces[1::2], strict=False) if end == "?"
        )
        found = {
            name for name in self._knows if self._user.asked[name].in_text(asking if name in self._told else plain)
        }
        return frozenset({*found, ""} if self._user.confirms.in_text(plain) else found)
