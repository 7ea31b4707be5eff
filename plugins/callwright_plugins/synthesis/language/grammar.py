"""The grammar of some tools: plans to queries, and queries back to the plans that they may mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

from attrs import field, frozen

from callwright.errors import DataError
from callwright.language.program import Call, Reference
from callwright.tools.spec import ToolSpec
from callwright_plugins.synthesis.language.lexicon import Lexicon
from callwright_plugins.synthesis.language.plan import Plan
from callwright_plugins.synthesis.language.reading import Reader
from callwright_plugins.synthesis.language.saying import Writer
from callwright_plugins.synthesis.language.styles import Style
from callwright_plugins.synthesis.language.values.names import Names
from callwright_plugins.synthesis.language.values.speaker import Speaker
from callwright_plugins.synthesis.language.withholding import Withheld, corrupted, withheld

#: Texts of which the readings are remembered.
_REMEMBERED: Final = 64
#: How often a query is worded anew before it is worded plainly.
_ATTEMPTS: Final = 6


class Unsayable(DataError):
    """A plan that no words of the grammar determine."""


class Unclear(DataError):
    """A text that is no query of the grammar, or means several plans. ``plans`` are those."""

    def __init__(self, message: str, plans: tuple[Plan, ...] = ()) -> None:
        super().__init__(message)
        self.plans = plans

    def __reduce__(self) -> Any:
        return type(self), (str(self), self.plans)


@frozen
class Query:
    """A query. ``said`` is what it states of the plan, ``withheld`` what it does not.

    ``frames`` are the frames of its sentences, ``attempts`` how many wordings were tried before this one was read back
    to ``said`` and to nothing else.
    """

    text: str
    plan: Plan = field(repr=False)
    said: Plan = field(repr=False)
    withheld: tuple[Withheld, ...] = ()
    frames: tuple[str, ...] = ()
    persona: str = ""
    attempts: int = 0


class Grammar:
    """What can be said of some tools.

    ``names`` are the names of things; ``phrases`` maps tools to phrases of their environment, which take the place of
    those that are made of names and descriptions (:mod:`.overrides`). A query is to be read with the tools and names
    that it was said with: other tools may have the same words.
    """

    def __init__(
        self,
        tools: Mapping[str, ToolSpec] | Lexicon,
        names: Names | None = None,
        phrases: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.lexicon = tools if isinstance(tools, Lexicon) else Lexicon(tools, phrases)
        self.names = names or Names()
        self.speaker = Speaker(self.lexicon.members, self.names)
        self._read: dict[tuple[str, str], tuple[Plan, ...]] = {}

    def render(self, plan: Plan, style: Style | None = None, seed: int = 0, *, earlier: Sequence[Call] = ()) -> Query:
        """A query for a plan: the same one for the same plan, style, seed and ``earlier`` calls.

        ``earlier`` are calls that the user has asked for in turns before: what these were told of may be "the same".

        It is read back before it is handed out: :meth:`readings` of its text gives what it says of the plan, and
        nothing else unless the style names things by names that others share. Raises :class:`Unsayable` where no
        wording does, and :class:`callwright.errors.DataError` for a tool or an argument that is not there.
        """
        self._check(plan)
        style = style or Style()
        left_out = withheld(plan, style.information, self.lexicon, Random(f"withheld/{seed}/{plan.key}"))
        said = plan.without((one.call, one.argument) for one in left_out)
        for attempt in range(_ATTEMPTS + 1):
            random = Random(f"query/{seed}/{attempt}/{said.key}")
            writer = Writer(self.lexicon, self.speaker, style, random, attempt == _ATTEMPTS, earlier)
            wrong = corrupted(said, self.lexicon, random) if style.correction and attempt < 2 else None
            draft = writer.write(said, wrong)
            text = writer.text(draft)
            if self._means(text, said, earlier, shared=style.names == "always"):
                return Query(text, plan, said, left_out, tuple(draft.frames), style.persona.name, attempt)
        raise Unsayable(f"no words say just this: {said.key[:300]}; the plainest are read otherwise: {text[:300]!r}")

    def _means(self, text: str, said: Plan, earlier: Sequence[Call], shared: bool) -> bool:
        keys = [one.key for one in self.readings(text, earlier)]
        return said.key in keys if shared else keys == [said.key]

    def readings(self, text: str, earlier: Sequence[Call] = ()) -> tuple[Plan, ...]:
        """Every plan that a text may mean after ``earlier`` calls: none for what is no query of the grammar. Never
        raises.

        What was read last is remembered: who words a query reads it, and so does who checks it.
        """
        key = text, repr([(call.id, call.tool, call.arguments) for call in earlier])
        known = self._read.get(key)
        if known is None:
            read = Reader(self.lexicon, self.speaker, text, earlier).plans()
            known = tuple(sorted(read, key=lambda one: one.key))
            if len(self._read) >= _REMEMBERED:
                self._read.clear()
            self._read[key] = known
        return known

    def parse(self, text: str, earlier: Sequence[Call] = ()) -> Plan:
        """The plan of a query. Raises :class:`Unclear` where it has none, or more than one."""
        found = self.readings(text, earlier)
        if len(found) == 1:
            return found[0]
        if not found:
            raise Unclear(f"this is no query of the grammar: {text[:200]!r}")
        raise Unclear(f"this may mean {len(found)} plans: {_difference(found[0], found[1])} in {text[:200]!r}", found)

    def _check(self, plan: Plan) -> None:
        for call in plan.calls:
            words = self.lexicon.tools.get(call.tool)
            if words is None:
                raise DataError(f"call {call.id} of the plan is of {call.tool!r:.80}, which is none of the tools")
            for name in call.arguments:
                if name not in words.hints:
                    raise DataError(f"call {call.id} of the plan: {call.tool} has no parameter {name!r:.80}")


def _difference(one: Plan, other: Plan) -> str:
    """What two readings differ in, for people."""
    for mine, theirs in zip(one.calls, other.calls, strict=False):
        if mine.tool != theirs.tool:
            return f"{mine.tool} or {theirs.tool}"
        for name in {**mine.arguments, **theirs.arguments}:
            here, there = mine.arguments.get(name), theirs.arguments.get(name)
            if repr(here) != repr(there):
                return f"{mine.tool}.{name} is {_shown(here)} or {_shown(there)}"
    return "they have other calls or conditions"


def _shown(value: Any) -> str:
    return f"{value if isinstance(value, Reference) else repr(value)!s:.60}"
