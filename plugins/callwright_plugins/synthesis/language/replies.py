"""Replies: what the assistant says in the end, or asks, or regrets, and what the user tells it; all read back.

A reply is a few sentences of the same words and values as queries. What it states is data: facts of results, the name
of an argument that is missing, the code of a failure. Reading it gives that data again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any, Final, Literal

from attrs import frozen

from callwright.errors import DataError
from callwright_plugins.synthesis.exploration.names import singular
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
#: Of a list so many are told, none of them longer than this.
_SEVERAL: Final = 5
_SHORT: Final = 60
#: The last words of members by which people tell things apart; where there is none of them, the first text does.
_NAMING: Final = ("name", "title", "subject", "label", "nickname")
#: How a list is told: by a member of each of its objects, or as it is; all of it, or how it begins.
_TELLS: Final[Mapping[tuple[bool, bool], tuple[str, str]]] = {
    (True, True): ("by", "they are"),
    (True, False): ("by", "the first are"),
    (False, True): ("the", "are"),
    (False, False): ("the first", "are"),
}
#: Members that no result schema names are said as they are, in these letters and without words of such sentences.
_SNAKE: Final = re.compile(r"[a-z]+(?:_[a-z]+)*")
_OF_SENTENCES: Final = frozenset({"is", "are", "the", "by", "they", "first", "and"})
#: Members of results that are about the result.
_UNTOLD: Final = frozenset({"next_cursor", "cursor", "has_more"})
_CENTS: Final = Hint(types=frozenset({"integer"}), cents=True)


@frozen
class Several:
    """What is told of a list: a member ``of_each`` of its objects, or its values; ``whole`` where these are all."""

    values: tuple[Any, ...]
    of_each: bool = True
    whole: bool = True


@frozen
class Reply:
    """A reply as data. ``facts`` of an answer are members of a result and their values, in the order in which they are
    said, and :class:`Several` for those of a list; ``titles`` are what a question asks for; ``code`` and ``reason`` are
    those of a failure.
    """

    kind: Kind
    facts: tuple[tuple[str, Any], ...] = ()
    titles: tuple[str, ...] = ()
    code: str = ""
    reason: str = ""


def stated(value: Any, most: int = _FACTS) -> tuple[tuple[str, Any], ...]:
    """What an answer tells of a result: its scalar members, outermost first, and then what a list in it holds.

    Of a list of one object that object is told; of the first longer one the names of what it lists. What is not there
    is not told, nor where a page goes on.
    """
    found: dict[str, Any] = {}
    listed: tuple[tuple[str, Any], ...] = ()
    waiting: list[tuple[str, Any]] = [("results", value)]
    while waiting and len(found) < most:
        name, one = waiting.pop(0)
        if isinstance(one, Mapping):
            for key, inner in one.items():
                if isinstance(inner, Mapping | list):
                    waiting.append((key, inner))
                elif len(found) < most and inner not in (None, "") and key not in _UNTOLD:
                    found.setdefault(key, inner)
        elif isinstance(one, list) and len(one) == 1 and isinstance(one[0], Mapping):
            waiting.append((name, one[0]))
        elif isinstance(one, list) and one and not listed:
            told = _of_each(one) if isinstance(one[0], Mapping) else _of_values(name, one)
            listed = () if told is None else (told,)
        elif not isinstance(one, list) and one is value:
            found["result"] = one
    return (*found.items(), *listed)


def _of_each(objects: Sequence[Any]) -> tuple[str, Several] | None:
    """The member by which objects are told apart, and what the first of them have there."""
    shown = objects[:_SEVERAL]
    if not all(isinstance(one, Mapping) for one in shown):
        return None
    apart = [key for key in shown[0] if key not in _UNTOLD and _told_apart([one.get(key) for one in shown])]
    if not apart:
        return None
    key = next((one for one in apart if _last_word(one) in _NAMING), apart[0])
    return key, Several(tuple(one[key] for one in shown), whole=len(shown) == len(objects))


def _of_values(name: str, values: Sequence[Any]) -> tuple[str, Any] | None:
    """The texts of a list whose name says that it is one, as ``cities`` does."""
    shown = values[:_SEVERAL]
    if not _is_plural(name) or not _told_apart(shown):
        return None
    if len(shown) == 1:
        last = _last_word(name)
        return name.removesuffix(last) + singular(last), shown[0]
    return name, Several(tuple(shown), of_each=False, whole=len(shown) == len(values))


def _is(title: str) -> str:
    return "are" if _is_plural(title) else "is"


def _last_word(name: str) -> str:
    return (name.replace("_", " ").split() or [""])[-1]


def _is_plural(name: str) -> bool:
    last = _last_word(name)
    return singular(last) != last


def _told_apart(values: Sequence[Any]) -> bool:
    """Whether values are short texts, each another one."""
    return all(isinstance(one, str) and 0 < len(one) <= _SHORT for one in values) and len(set(values)) == len(values)


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
            said = [self._fact(key, value, random) for key, value in reply.facts]
            return _sentence(f"{random.choice(_ANSWERS)} {_listed(said)}.")
        if reply.kind == "question":
            if not reply.titles or any(not self._known(title) for title in reply.titles):
                raise DataError(f"a question is for parameters by their titles, not for {reply.titles!r:.120}")
            openings = list(_QUESTIONS)
            one = len(reply.titles) == 1 and not _is_plural(reply.titles[0])
            opening = random.choice(openings[:_FOR_ONE] if one else openings[_FOR_ONE:])
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
            said.append(_sentence(f"{opening} {one.title} {_is(one.title)} {value}."))
        return " ".join(said)

    def told(self, text: str, withheld: Sequence[Withheld], tools: Sequence[str]) -> tuple[Any, ...] | None:
        """The values that a text tells of some arguments, in their order; ``None`` for any other text."""
        found = tokens(text)
        ends: dict[int, tuple[Any, ...]] = {0: ()}
        for number, one in enumerate(withheld):
            going: dict[int, tuple[Any, ...]] = {}
            for start, values in ends.items():
                for opening in _TOLD if not number else ("the",):
                    words = words_of(f"{opening} {one.title} {_is(one.title)}")
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

    def _fact(self, key: str, value: Any, random: Random) -> str:
        if key in self._money and type(value) is int:
            return f"the {self._money[key]} is {self.grammar.speaker.say(value, _CENTS, 0, PLAINLY, random)}"
        member = self._member(key)
        if type(value) in (int, float) and _is_plural(key):
            return f"the {member} are {self._value(value, random)}"
        if isinstance(value, Several):
            before, behind = _TELLS[value.of_each, value.whole]
            return f"{before} {member} {behind} {_listed([self._value(one, random) for one in value.values])}"
        return f"the {member} is {self._value(value, random)}"

    def _member(self, key: str) -> str:
        """A member in words: those of the result schemas, else its own, and quoted where these could be misread."""
        if key not in self.grammar.speaker.members.words and _SNAKE.fullmatch(key):
            words = tuple(key.split("_"))
            if not self._has_other_meaning(words):
                return " ".join(words)
        return self.grammar.speaker.members.say(key)

    def _members(self, found: tuple[Token, ...], at: int) -> Iterator[tuple[int, str]]:
        """The members that may stand at a token, and where each ends."""
        yield from self.grammar.speaker.members.read(found, at)
        end = at
        while end < len(found) and found[end].kind == "word" and found[end].word not in _OF_SENTENCES:
            end += 1
        words = tuple(one.word for one in found[at:end])
        if words and not self._has_other_meaning(words) and _SNAKE.fullmatch("_".join(words)):
            yield end, "_".join(words)

    def _has_other_meaning(self, words: tuple[str, ...]) -> bool:
        """Whether words of a member are those of another one, or of such sentences."""
        said = tokens(" ".join(words))
        known = (*self.grammar.speaker.members.read(said, 0), *self._amounts.match(said, 0))
        return bool(_OF_SENTENCES & set(words)) or any(end == len(words) for end, _ in known)

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
        while states:
            facts, start = states.pop()
            for fact, end in (*self._scalar(found, start), *self._several(found, start)):
                longer = (*facts, fact)
                yield longer, end
                if end < len(found) and found[end].word in (",", "and") and len(facts) < 40:
                    states.append((longer, end + 1))

    def _scalar(self, found: tuple[Token, ...], at: int) -> Iterator[tuple[tuple[str, Any], int]]:
        """The facts of one value that may stand at a token, and where each ends."""
        if at >= len(found) or found[at].word != "the":
            return
        plain = [(is_at, key, ANYTHING) for is_at, key in self._members(found, at + 1)]
        amounts = [(is_at, key, _CENTS) for is_at, key in self._amounts.match(found, at + 1)]
        for is_at, key, hint in (*plain, *amounts):
            verb = found[is_at].word if is_at < len(found) else ""
            if verb == "is" or (verb == "are" and hint is ANYTHING):
                for end, value in self.grammar.speaker.read(found, is_at + 1, hint, 0):
                    if (verb == "are") == (hint is ANYTHING and type(value) in (int, float) and _is_plural(key)):
                        yield (key, value), end

    def _several(self, found: tuple[Token, ...], at: int) -> Iterator[tuple[tuple[str, Any], int]]:
        """The facts of several values that may stand at a token, and where each ends."""
        for (of_each, whole), (before, behind) in _TELLS.items():
            if not (begin := _begins(found[at:], before)):
                continue
            for member_ends, key in self._members(found, at + begin):
                if not (rest := _begins(found[member_ends:], behind)):
                    continue
                waiting: list[tuple[tuple[Any, ...], int]] = [((), member_ends + rest)]
                while waiting:
                    values, start = waiting.pop()
                    for end, value in self.grammar.speaker.read(found, start, ANYTHING, 0):
                        more = (*values, value)
                        if of_each or len(more) > 1:
                            yield (key, Several(more, of_each, whole)), end
                        if end < len(found) and found[end].word in (",", "and") and len(more) < _SEVERAL:
                            waiting.append((more, end + 1))


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
        "tells": {
            name: given.get(name, f"The {one.title} {_is(one.title)} {{{name}}}.") for name, one in names.items()
        },
    }
