"""An English dictionary of a few dozen words."""

from __future__ import annotations

from typing import Final

from typing_extensions import TypedDict

from callwright_plugins.depthbench.toolkit import Domain, fail

DOMAIN: Final = Domain("dictionary")

#: word | definition | synonym | antonym | origin | syllables | example
_ENTRIES: Final = """
abundant|present in great quantity|plentiful|scarce|Latin abundare|3|Apples were abundant that autumn.
ambiguous|open to more than one reading|unclear|explicit|Latin ambiguus|4|His answer was ambiguous.
ancient|belonging to the distant past|antique|modern|Latin ante|2|They crossed an ancient bridge.
brave|ready to face danger|courageous|timid|Italian bravo|1|A brave crew put to sea.
brisk|quick and active|lively|sluggish|French brusque|1|We took a brisk walk.
candid|open and honest|frank|evasive|Latin candidus|2|She gave a candid account.
cautious|careful to avoid risk|wary|reckless|Latin cautio|2|He is a cautious driver.
diligent|showing steady effort|industrious|lazy|Latin diligere|3|A diligent clerk kept the books.
eager|wanting very much to do something|keen|reluctant|Latin acer|2|The eager pupil raised a hand.
elegant|pleasing in a graceful way|stylish|clumsy|Latin elegans|3|It was an elegant proof.
feeble|lacking strength|weak|robust|Latin flebilis|2|A feeble light shone.
fragile|easily broken|delicate|sturdy|Latin fragilis|2|Mind the fragile vase.
frugal|sparing with money|thrifty|wasteful|Latin frugalis|2|They led a frugal life.
generous|willing to give|liberal|stingy|Latin generosus|3|A generous neighbour lent the ladder.
gloomy|dark and cheerless|dismal|bright|Middle English gloumen|2|The hall was gloomy.
hasty|done with too much speed|hurried|deliberate|Old French haste|2|It was a hasty decision.
humble|not thinking too highly of oneself|modest|arrogant|Latin humilis|2|She stayed humble in success.
jovial|full of good humour|cheerful|morose|Latin Iovialis|3|Our jovial host told stories.
lucid|easy to understand|clear|confused|Latin lucidus|2|He wrote lucid prose.
meager|small in amount|scanty|ample|Latin macer|2|They shared a meager supper.
nimble|quick and light in movement|agile|awkward|Old English numol|2|Her nimble fingers tied the knot.
obscure|not well known|unknown|famous|Latin obscurus|2|He quoted an obscure poet.
obstinate|refusing to change one's mind|stubborn|yielding|Latin obstinare|3|The mule was obstinate.
placid|not easily upset|calm|restless|Latin placidus|2|The lake lay placid.
prudent|acting with thought for the future|sensible|rash|Latin prudens|2|It was prudent to wait.
rigid|unable to bend|stiff|flexible|Latin rigidus|2|The frame is rigid.
serene|peaceful and untroubled|tranquil|agitated|Latin serenus|2|A serene morning followed.
solemn|formal and dignified|grave|frivolous|Latin sollemnis|2|They made a solemn promise.
sparse|thinly spread|thin|dense|Latin sparsus|1|The audience was sparse.
tedious|long and tiresome|boring|gripping|Latin taedium|3|The speech was tedious.
vivid|producing strong clear images|striking|dull|Latin vividus|2|I had a vivid dream.
zealous|full of great energy for a cause|fervent|indifferent|Greek zelos|2|A zealous reader wrote in.
""".strip()
WORDS: Final = {line.split("|")[0]: line.split("|")[1:] for line in _ENTRIES.splitlines()}


class Definition(TypedDict):
    """What a word means."""

    word: str
    definition: str


class Synonym(TypedDict):
    """A word of the same meaning."""

    word: str
    synonym: str


class Antonym(TypedDict):
    """A word of the opposite meaning."""

    word: str
    antonym: str


class Origin(TypedDict):
    """Where a word comes from."""

    word: str
    origin: str


class Syllables(TypedDict):
    """How many syllables a word has."""

    word: str
    syllables: int


class Example(TypedDict):
    """A sentence with a word."""

    word: str
    sentence: str


def _entry(word: str) -> list[str]:
    entry = WORDS.get(word.lower())
    if entry is None:
        fail("unknown_word", f"{word[:40]!r} is not in the dictionary")
    return entry


@DOMAIN.tool("information")
def define_word(word: str) -> Definition:
    """The definition of an English word."""
    return {"word": word.lower(), "definition": _entry(word)[0]}


@DOMAIN.tool("information", "synonym")
def get_synonym(word: str) -> Synonym:
    """A synonym of an English word."""
    return {"word": word.lower(), "synonym": _entry(word)[1]}


@DOMAIN.tool("information", "antonym")
def get_antonym(word: str) -> Antonym:
    """An antonym of an English word."""
    return {"word": word.lower(), "antonym": _entry(word)[2]}


@DOMAIN.tool("information")
def get_word_origin(word: str) -> Origin:
    """The origin of an English word."""
    return {"word": word.lower(), "origin": _entry(word)[3]}


@DOMAIN.tool("information")
def count_syllables(word: str) -> Syllables:
    """The number of syllables of an English word."""
    return {"word": word.lower(), "syllables": int(_entry(word)[4])}


@DOMAIN.tool("information")
def get_example_sentence(word: str) -> Example:
    """A sentence that uses an English word."""
    return {"word": word.lower(), "sentence": _entry(word)[5]}
