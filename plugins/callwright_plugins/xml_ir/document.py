"""From text to elements, and from an element back to its place in the text.

Expat does the reading (through :mod:`xml.etree.ElementTree`, which builds the tree in C). It cannot be made to expand
or fetch anything: the body is placed inside an element of ours, where no DTD can stand, and a body with ``<!`` or
``<?`` outside of comments and CDATA sections is refused before the parser sees it. In well-formed XML those characters
only ever begin a declaration or a processing instruction there, neither of which this form has. What is left are
elements, attributes, text (CDATA sections included), comments, which are skipped, the five entities that XML
predefines and character references.
"""

from __future__ import annotations

import re
from typing import Final
from xml.etree import ElementTree
from xml.etree.ElementTree import Element
from xml.parsers import expat

from callwright.language.parser import ParseFailure
from callwright.language.shortening import excerpt
from callwright.language.writable import SURROGATE

#: White space of XML; other spaces are text.
WHITE_SPACE: Final = " \t\r\n"
#: Characters that no XML document may hold, not even as a character reference.
NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_PASSED: Final = r"<!--(?s:.*?)-->|<!\[CDATA\[(?s:.*?)\]\]>"
# One that is never closed is the last match, so that the rest of the text is looked through once.
_MARKUP: Final = re.compile(_PASSED + r"|(<!--|<!\[CDATA\[|<[!?][A-Za-z]*+)")
_START_TAG: Final = re.compile(_PASSED + r"""|(<[^/"'<>](?:[^"'<>]++|"[^"]*+"|'[^']*+')*+>)""")


def read_document(body: str, start: int) -> Element | ParseFailure:
    """The root element, ours, whose children are the elements of the body.

    Failures, of stage ``syntax``: ``forbidden_markup``, ``lone_surrogate`` and ``invalid_xml``.
    """
    if "<!" in body or "<?" in body:
        found = next((markup for markup in _MARKUP.finditer(body) if markup[1]), None)
        if found is not None:
            message = f"{excerpt(found[0])} is not allowed: no declarations or processing instructions"
            if found[0] in ("<!--", "<![CDATA["):
                message = f"{found[0]} begins what is never closed"
            return ParseFailure("syntax", "forbidden_markup", message, (start + found.start(), start + found.end()))
    if not body.isascii():
        half = SURROGATE.search(body)
        if half is not None:
            message = "the body holds half of a surrogate pair, which is not a character"
            return ParseFailure("syntax", "lone_surrogate", message, (start + half.start(), start + half.end()))
    parser = ElementTree.XMLParser()
    try:
        parser.feed(f"<body>{body}</body>")
        return parser.close()
    except ElementTree.ParseError:
        return _locate_error(body, start)


def find_start_tag(body: str, number: int) -> tuple[int, int]:
    """The span of the start tag with this number, counted from 0 in document order, of a body that was read."""
    for position, tag in enumerate(tag for tag in _START_TAG.finditer(body) if tag[1]):
        if position == number:
            return tag.span()
    return 0, len(body)


def _locate_error(body: str, start: int) -> ParseFailure:
    """Read once more with the bare parser, which knows the byte at which it stopped."""
    opening = "<body>"
    data = f"{opening}{body}</body>".encode()
    parser = expat.ParserCreate("utf-8")
    message = "the body is not well-formed XML"
    try:
        parser.Parse(data, True)
        at = len(body)
    except expat.ExpatError as error:
        at = len(data[: parser.ErrorByteIndex].decode(errors="ignore")) - len(opening)
        message += f": {expat.errors.messages[error.code]}; & and < inside a value are written &amp; and &lt;"
    at = min(max(at, 0), len(body))
    if body[at - 1 : at] in ("&", "<"):  # the reader stops after the character that is wrong
        at -= 1
    return ParseFailure("syntax", "invalid_xml", message, (start + at, start + min(at + 1, len(body))))
