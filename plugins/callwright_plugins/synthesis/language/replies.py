"""Replies: what the assistant says in the end, or asks, or regrets, and what the user tells it; all read back.

A reply is a few sentences of the same words and values as queries. What it states is data: facts of results, the name
of an argument that is missing, the code of a failure. Reading it gives that data again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any, Final, Literal

from attrs import frozen

from callwright.errors import DataError
from callwright_plugins.synthesis.language.grammar import Grammar
from callwright_plugins.synthesis.language.values.hints import ANYTHING, Hint
from callwright_plugins.synthesis.language.values.speaker import PLAINLY, Wording
from callwright_plugins.synthesis.language.values.tokens import Token, Trie, quoted, tokens, words_of
from callwright_plugins.synthesis.language.withholding import Withheld

Kind = Literal["answer", "question", "failure", "refusal"]

_ANSWERS: Final = (
    "done:",
    "here is what I found:",
    "that is done:",
    "here you are:",
    "this is what there is:",
    "all set:",
)
_EMPTY_ANSWERS: Final = ("that is done.", "done.", "it is done.", "all set.", "everything is done as you asked.")
#: What stands before and behind that which is asked for.
_QUESTIONS: Final = {
    "what is the": "?",
    "could you tell me the": "?",
    "I still need to know the": ": what is it?",
    "which is the": "?",
    "please tell me the": ": what is it?",
    "what are the": "?",
    "could you give me the": "?",
    "I still need the": ": what are they?",
    "which are the": "?",
    "please let me know the": ": what are they?",
}
#: How many of these ask for one thing; the others ask for several.
_FOR_ONE: Final = 5
_FAILURES: Final = (
    "I am sorry, that did not work:",
    "unfortunately, I could not do that:",
    "I had to give up:",
    "that cannot be done:",
    "I regret that this failed:",
)
_REFUSALS: Final = (
    "I am sorry, none of my tools can do that.",
    "that is nothing that I can help with here.",
    "I have no tool for that, so I have done nothing.",
    "I cannot do that with what I have at hand.",
    "this is beyond what my tools can do.",
)
_TOLD: Final = ("the", "sure, the", "of course, the", "sorry, the", "ah, the", "right, the", "yes, the", "okay, the")
_FACTS: Final = 8
#: Members of results that are about the result.
_UNTOLD: Final = frozenset({"next_cursor", "cursor", "has_more"})
_CENTS: Final = Hint(types=frozenset({"integer"}), cents=True)


@frozen
class Reply:
    """A reply as data. ``facts`` of an answer are members of a result and their values, in the order in which they are
    said; ``titles`` are what a question asks for; ``code`` and ``reason`` are those of a failure.
    """

    kind: Kind
    facts: tuple[tuple[str, Any], ...] = ()
    titles: tuple[str, ...] = ()
    code: str = ""
    reason: str = ""


def stated(value: Any, most: int = _FACTS) -> tuple[tuple[str, Any], ...]:
    """What an answer tells of a result: its scalar members, or those of the first item of a list, outermost first.

    What is not there is not told, nor where a page goes on.
    """
    found: dict[str, Any] = {}
    waiting: list[Any] = [value]
    while waiting and len(found) < most:
        one = waiting.pop(0)
        if isinstance(one, Mapping):
            for key, inner in one.items():
                if isinstance(inner, Mapping | list):
                    waiting.append(inner)
                elif len(found) < most and inner is not None and key not in _UNTOLD:
                    found.setdefault(key, inner)
        elif isinstance(one, list) and one:
            waiting.append(one[0])
        elif not isinstance(one, list) and one is value:
            found["result"] = one
    return tuple(found.items())


class Replies:
    """Says and reads replies with the words of a grammar."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self._titles: Trie[str] = Trie(
            (words_of(title), title)
            for title in dict.fromkeys(
                title for tool in grammar.lexicon.tools.values() for title in tool.titles.values()
            )
        )
        members = grammar.speaker.members.words
        amounts = {key: said.removesuffix(" cents") for key, said in members.items() if said.endswith(" cents")}
        taken = {words_of(said) for said in members.values()}
        #: Members that are amounts of money, and what they are called without the cents.
        self._money = {key: said for key, said in amounts.items() if words_of(said) not in taken}
        self._amounts: Trie[str] = Trie((words_of(said), key) for key, said in self._money.items())

    def say(self, reply: Reply, seed: int = 0) -> str:
        """The text of a reply: the same for the same reply and seed.

        Raises :class:`callwright.errors.DataError` for a question for nothing, or for what is no parameter's title.
        """
        random = Random(f"reply/{seed}/{reply}")
        if reply.kind == "answer":
            if not reply.facts:
                return _sentence(random.choice(_EMPTY_ANSWERS))
            said = [
                f"the {self._money[key]} is {self.grammar.speaker.say(value, _CENTS, 0, PLAINLY, random)}"
                if key in self._money and type(value) is int
                else f"the {self.grammar.speaker.members.say(key)} is {self._value(value, random)}"
                for key, value in reply.facts
            ]
            return _sentence(f"{random.choice(_ANSWERS)} {_listed(said)}.")
        if reply.kind == "question":
            if not reply.titles or any(not self._known(title) for title in reply.titles):
                raise DataError(f"a question is for parameters by their titles, not for {reply.titles!r:.120}")
            openings = list(_QUESTIONS)
            opening = random.choice(openings[:_FOR_ONE] if len(reply.titles) == 1 else openings[_FOR_ONE:])
            return _sentence(f"{opening} {_listed([*reply.titles], ' and the ', ', the ')}{_QUESTIONS[opening]}")
        if reply.kind == "failure":
            return _sentence(f"{random.choice(_FAILURES)} {quoted(reply.reason)} ({quoted(reply.code)}).")
        return _sentence(random.choice(_REFUSALS))

    def read(self, text: str) -> Reply | None:
        """The reply that a text is; ``None`` for any other text."""
        found = tokens(text)
        if any(found == tokens(one) for one in map(_sentence, _REFUSALS)):
            return Reply("refusal")
        if any(found == tokens(one) for one in map(_sentence, _EMPTY_ANSWERS)):
            return Reply("answer")
        for opening in _FAILURES:
            end = _begins(found, opening)
            if end and [one.kind for one in found[end:]] == ["quoted", "mark", "quoted", "mark", "mark"]:
                return Reply("failure", code=found[end + 2].text, reason=found[end].text)
        for opening in _QUESTIONS:
            if end := _begins(found, opening):
                for titles, behind in self._asked(found, end):
                    if found[behind:] == tokens(_QUESTIONS[opening]):
                        return Reply("question", titles=titles)
        for opening in _ANSWERS:
            if end := _begins(found, opening):
                for facts, behind in self._facts(found, end):
                    if [one.word for one in found[behind:]] == ["."]:
                        return Reply("answer", facts=facts)
        return None

    def tell(
        self, withheld: Sequence[Withheld], tools: Sequence[str], seed: int = 0, wording: Wording = PLAINLY
    ) -> str:
        """What the user answers to a question for some arguments; ``tools`` are the tools of the plan's calls."""
        random = Random(f"told/{seed}/{withheld!r}")
        said: list[str] = []
        for one in withheld:
            hint = self._hint(tools[one.call], one.argument)
            value = self.grammar.speaker.say(one.value, hint, one.call, wording, random)
            opening = random.choice(_TOLD) if not said else "the"
            said.append(_sentence(f"{opening} {one.title} is {value}."))
        return " ".join(said)

    def told(self, text: str, withheld: Sequence[Withheld], tools: Sequence[str]) -> tuple[Any, ...] | None:
        """The values that a text tells of some arguments, in their order; ``None`` for any other text."""
        found = tokens(text)
        ends: dict[int, tuple[Any, ...]] = {0: ()}
        for number, one in enumerate(withheld):
            going: dict[int, tuple[Any, ...]] = {}
            for start, values in ends.items():
                for opening in _TOLD if not number else ("the",):
                    words = words_of(f"{opening} {one.title} is")
                    if tuple(token.word for token in found[start : start + len(words)]) != words:
                        continue
                    hint = self._hint(tools[one.call], one.argument)
                    for end, value in self.grammar.speaker.read(found, start + len(words), hint, one.call):
                        if end < len(found) and found[end].word == ".":
                            going.setdefault(end + 1, (*values, value))
            ends = going
        return ends.get(len(found))

    def _hint(self, tool: str, argument: str) -> Hint:
        return self.grammar.lexicon.tools[tool].hints[argument]

    def _known(self, title: str) -> bool:
        return any(end == len(words_of(title)) for end, _ in self._titles.match(tokens(title), 0))

    def _value(self, value: Any, random: Random) -> str:
        return self.grammar.speaker.say(value, ANYTHING, 0, PLAINLY, random)

    def _asked(self, found: tuple[Token, ...], at: int) -> Iterator[tuple[tuple[str, ...], int]]:
        states: list[tuple[tuple[str, ...], int]] = [((), at)]
        while states:
            titles, start = states.pop()
            for end, title in self._titles.match(found, start):
                yield (*titles, title), end
                for join in (("and", "the"), (",", "the")):
                    if tuple(one.word for one in found[end : end + 2]) == join and len(titles) < 20:
                        states.append(((*titles, title), end + 2))

    def _facts(self, found: tuple[Token, ...], at: int) -> Iterator[tuple[tuple[tuple[str, Any], ...], int]]:
        states: list[tuple[tuple[tuple[str, Any], ...], int]] = [((), at)]
        members = self.grammar.speaker.members
        while states:
            facts, start = states.pop()
            if start >= len(found) or found[start].word != "the":
                continue
            plain = [(is_at, key, ANYTHING) for is_at, key in members.read(found, start + 1)]
            amounts = [(is_at, key, _CENTS) for is_at, key in self._amounts.match(found, start + 1)]
            for is_at, key, hint in (*plain, *amounts):
                if is_at >= len(found) or found[is_at].word != "is":
                    continue
                for end, value in self.grammar.speaker.read(found, is_at + 1, hint, 0):
                    longer = (*facts, (key, value))
                    yield longer, end
                    if end < len(found) and found[end].word in (",", "and") and len(facts) < 40:
                        states.append((longer, end + 1))


def _listed(said: Sequence[str], last: str = " and ", between: str = ", ") -> str:
    return said[0] if len(said) == 1 else f"{between.join(said[:-1])}{last}{said[-1]}"


def _begins(found: tuple[Token, ...], opening: str) -> int:
    words = words_of(opening)
    return len(words) if tuple(one.word for one in found[: len(words)]) == words else 0


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def user_options(withheld: Sequence[Withheld], sentences: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What a scripted user is given so that it tells what a query withheld: ``knows``, ``asked`` and ``tells``.

    Names are ``argument`` or, where calls share it, ``argument_of_call``. ``sentences`` replaces what is told by name.
    """
    names: dict[str, Withheld] = {}
    for one in withheld:
        shared = sum(one.argument == other.argument for other in withheld) > 1
        names[f"{one.argument}_of_{one.call}" if shared else one.argument] = one
    given = sentences or {}
    return {
        "knows": {name: one.value for name, one in names.items()},
        "asked": {name: [one.title] for name, one in names.items()},
        "tells": {name: given.get(name, f"The {one.title} is {{{name}}}.") for name, one in names.items()},
    }
