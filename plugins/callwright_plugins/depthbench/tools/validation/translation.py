"""A phrase book: common English words in five languages."""

from __future__ import annotations

from typing import Final

from typing_extensions import TypedDict

from callwright_plugins.depthbench.toolkit import Domain, fail

DOMAIN: Final = Domain("translation")

#: English | French | German | Italian | Spanish | Portuguese
_BOOK: Final = """
apple|pomme|Apfel|mela|manzana|maçã
bird|oiseau|Vogel|uccello|pájaro|pássaro
book|livre|Buch|libro|libro|livro
bread|pain|Brot|pane|pan|pão
bridge|pont|Brücke|ponte|puente|ponte
candle|bougie|Kerze|candela|vela|vela
chair|chaise|Stuhl|sedia|silla|cadeira
cheese|fromage|Käse|formaggio|queso|queijo
church|église|Kirche|chiesa|iglesia|igreja
cloud|nuage|Wolke|nuvola|nube|nuvem
door|porte|Tür|porta|puerta|porta
flower|fleur|Blume|fiore|flor|flor
forest|forêt|Wald|foresta|bosque|floresta
glass|verre|Glas|vetro|vidrio|vidro
hammer|marteau|Hammer|martello|martillo|martelo
house|maison|Haus|casa|casa|casa
key|clé|Schlüssel|chiave|llave|chave
kitchen|cuisine|Küche|cucina|cocina|cozinha
knife|couteau|Messer|coltello|cuchillo|faca
moon|lune|Mond|luna|luna|lua
mountain|montagne|Berg|montagna|montaña|montanha
mouse|souris|Maus|topo|ratón|rato
night|nuit|Nacht|notte|noche|noite
river|rivière|Fluss|fiume|río|rio
salt|sel|Salz|sale|sal|sal
ship|navire|Schiff|nave|barco|navio
snow|neige|Schnee|neve|nieve|neve
spoon|cuillère|Löffel|cucchiaio|cuchara|colher
squirrel|écureuil|Eichhörnchen|scoiattolo|ardilla|esquilo
street|rue|Straße|strada|calle|rua
tree|arbre|Baum|albero|árbol|árvore
umbrella|parapluie|Regenschirm|ombrello|paraguas|guarda-chuva
water|eau|Wasser|acqua|agua|água
window|fenêtre|Fenster|finestra|ventana|janela
""".strip()
WORDS: Final = {line.split("|")[0]: line.split("|") for line in _BOOK.splitlines()}


class Translation(TypedDict):
    """A word in another language."""

    word: str
    language: str
    translation: str


def _translate(word: str, column: int, language: str) -> Translation:
    row = WORDS.get(word.lower())
    if row is None:
        fail("unknown_word", f"{word[:40]!r} is not in the phrase book")
    return {"word": word.lower(), "language": language, "translation": row[column]}


@DOMAIN.tool("information", "translation")
def translate_to_french(word: str) -> Translation:
    """An English word in French."""
    return _translate(word, 1, "French")


@DOMAIN.tool("information", "translation")
def translate_to_german(word: str) -> Translation:
    """An English word in German."""
    return _translate(word, 2, "German")


@DOMAIN.tool("information", "translation")
def translate_to_italian(word: str) -> Translation:
    """An English word in Italian."""
    return _translate(word, 3, "Italian")


@DOMAIN.tool("information", "translation")
def translate_to_spanish(word: str) -> Translation:
    """An English word in Spanish."""
    return _translate(word, 4, "Spanish")


@DOMAIN.tool("information", "translation")
def translate_to_portuguese(word: str) -> Translation:
    """An English word in Portuguese."""
    return _translate(word, 5, "Portuguese")
