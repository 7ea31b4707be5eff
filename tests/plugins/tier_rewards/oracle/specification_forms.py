"""Slow readers of the forms json, xml, direct and toolrl for the oracle: from a text to the facts of the specification.

They share nothing with Callwright's parsers: the envelope is found by plain searches, JSON by ``json.loads`` with a
hook that keeps every member, XML by a tree of minidom, and the direct form by Python's own ``ast``. What the paper
leaves open about reading is in ``docs/intermediate-representations.md``; here a comment names each of those choices.
"""

from __future__ import annotations

import re

from specification_direct import read_direct
from specification_json import read_json, read_toolrl
from specification_oracle import Facts
from specification_text import CALLS, CHARACTERS, Malformed
from specification_xml import read_xml


def read(text: str, form: str) -> Facts:
    """The facts of a completion in a form."""
    if form == "toolrl":
        return read_toolrl(text)
    found = envelope(text, needs_return=form != "direct")
    if found is None:
        return Facts(envelope=False)
    body, returns, blocks, stray = found
    try:
        calls = {"json": read_json, "xml": read_xml, "direct": read_direct}[form](body)
    except (Malformed, RecursionError):
        return Facts(tree=False, blocks=blocks, stray=stray)
    if len(calls) > CALLS:
        return Facts(tree=False, blocks=blocks, stray=stray)
    return Facts(tuple(calls), returns, True, blocks, stray, True)


# The envelope ----------------------------------------------------------------------------------------------------

_ATTRIBUTES = r"""(?:\s+[A-Za-z_][\w.:\-]*\s*=\s*(?:"[^"<]*"|'[^'<]*'))*\s*"""
_OPENING = re.compile(rf"<tool_call({_ATTRIBUTES})>")
_THINK = re.compile(rf"<think{_ATTRIBUTES}>")


def envelope(text: str, needs_return: bool) -> tuple[str, str | None, int, bool] | None:
    """(body, return, complete blocks, stray text) or ``None`` (C, "Response Format": <think>, then <tool_call>)."""
    if len(text) > CHARACTERS:
        return None
    think = _THINK.search(text)
    if think is None:
        return None
    # Ours: the thought ends at the first </think> that a tool-call tag follows, so that it may hold anything else.
    at = think.end()
    while True:
        at = text.find("</think>", at)
        if at < 0:
            return None
        after = at + len("</think>")
        opening = _OPENING.match(text, len(text) - len(text[after:].lstrip()))
        if opening is not None:
            break
        at = after
    end = text.find("</tool_call>", opening.end())
    if end < 0:
        return None
    body, trailing = text[opening.end() : end], text[end + len("</tool_call>") :]
    pairs = re.findall(r"""([A-Za-z_][\w.:\-]*)\s*=\s*("[^"<]*"|'[^'<]*')""", opening[1])
    if len({name for name, _ in pairs}) != len(pairs):  # XML: no attribute twice
        return None
    returns = dict(pairs).get("return", '""')[1:-1] if "return" in dict(pairs) else None
    if returns not in ("one", "all") and not (returns is None and not needs_return):  # C, rule 2
        return None
    # Ours: the first block is read, and whoever writes another one, wherever it stands, answers twice.
    return body, returns, complete_blocks(text), bool(text[: think.start()].strip() or trailing.strip())


def complete_blocks(text: str) -> int:
    """How many tags of a block are followed by the one that closes it, from left to right, without overlapping.

    Ours: a tag that is only mentioned begins no block of its own, a completion that is quoted in the thought is one.
    """
    count, at = 0, 0
    while (opening := _OPENING.search(text, at)) is not None:
        end = text.find("</tool_call>", opening.end())
        if end < 0:
            break
        count, at = count + 1, end + len("</tool_call>")
    return count
