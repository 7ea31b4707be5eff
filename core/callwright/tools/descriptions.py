"""Descriptions as models read them: without the line breaks of source code, and where chat templates look for them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from callwright.tools.schema_dialects import SUBSCHEMA_MAPS

_PARAGRAPHS: Final = re.compile(r"\n\s*\n")
#: Marks of reStructuredText that docstrings are written with; to a model they are noise.
_CODE: Final = re.compile(r"``(.+?)``")
#: What a compact schema leaves out: it says what is checked, and nothing of what a call means.
_CHECKED_ANYWAY: Final = frozenset({"additionalProperties", "minLength", "maxLength", "uniqueItems"})

#: A code such as NOT_FOUND, and texts that are about nothing else.
_CODE_NAME: Final = r"(?:[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[A-Z]{5,})"
_ABOUT_FAILURES: Final = re.compile(rf"(?:It )?[Ff]ails\b|{_CODE_NAME}\b")
_BESIDE_A_RULE: Final = re.compile(rf" \({_CODE_NAME}\)")
_SENTENCES: Final = re.compile(r"(?<=[.;])\s+(?=[A-Z])")


def flowing(text: str) -> str:
    """A docstring as running text: single spaces, no line breaks but an empty line between paragraphs."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in _PARAGRAPHS.split(_CODE.sub(r"\1", text.strip())))


def tidied(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema whose descriptions are running text and stand outside of ``anyOf``.

    ``{"anyOf": [{"type": "string", "description": "Where."}, {"type": "null"}]}`` says what it means in a branch,
    where many chat templates do not look. The description of the only branch that has one moves out.
    """
    tidy: dict[str, Any] = _mapped(schema, _tidy_one, named=False)
    return tidy


def compact(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of parameters for a model that has little room: what a valid call needs to know, and no more.

    Bounds of lengths, ``additionalProperties``, and defaults that say "nothing" (null, an empty text) are left out, and
    ``null`` as a way to leave an optional parameter out. Calls are still checked against the whole schema; whatever
    fits this one and not that one is told by the ``schema_error``.
    """
    small: dict[str, Any] = _mapped(schema, _compact_one, named=False)
    return small


def without_codes(description: str) -> str:
    """The description of a tool without what it says of codes of failures, which outcomes tell when they come.

    Sentences that begin with a code or with "Fails" are left out, and codes in brackets behind a rule; rules stay.
    """
    kept = []
    for paragraph in description.split("\n\n"):
        said = [one for one in _SENTENCES.split(paragraph) if not _ABOUT_FAILURES.match(one)]
        if said:
            text = _BESIDE_A_RULE.sub("", " ".join(said))
            kept.append(f"{text[:-1]}." if text.endswith(";") else text)
    return "\n\n".join(kept) or description


def said_once(functions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A listing whose parameters are described where they first come: one of the same name, described in the same
    words, is not described again in the tools behind it.
    """
    heard: set[tuple[str, str]] = set()
    small = []
    for one in functions:
        parameters = dict(one["parameters"])
        shorter = {}
        for name, schema in (parameters.get("properties") or {}).items():
            words = (name, str(schema.get("description")))
            if "description" in schema and words in heard:
                schema = {key: value for key, value in schema.items() if key != "description"}
            heard.add(words)
            shorter[name] = schema
        if shorter:
            parameters["properties"] = shorter
        small.append({**one, "parameters": parameters})
    return small


def _mapped(node: Any, change: Any, *, named: bool) -> Any:
    if isinstance(node, list):
        return [_mapped(inner, change, named=False) for inner in node]
    if not isinstance(node, Mapping):
        return node
    inner = {
        key: value
        if key in ("enum", "const", "default", "examples") and not named
        else _mapped(value, change, named=key in SUBSCHEMA_MAPS and not named)
        for key, value in node.items()
    }
    return inner if named else change(inner)


def _tidy_one(schema: dict[str, Any]) -> dict[str, Any]:
    if isinstance(schema.get("description"), str):
        schema["description"] = flowing(schema["description"])
    branches = schema.get("anyOf")
    if not isinstance(branches, list) or "description" in schema:
        return schema
    said = [branch["description"] for branch in branches if isinstance(branch, dict) and "description" in branch]
    if len(said) != 1:
        return schema
    bare = [
        {key: value for key, value in branch.items() if key != "description"} if isinstance(branch, dict) else branch
        for branch in branches
    ]
    return {**schema, "anyOf": bare, "description": said[0]}


def _compact_one(schema: dict[str, Any]) -> dict[str, Any]:
    small = {key: value for key, value in schema.items() if key not in _CHECKED_ANYWAY}
    if small.get("default", 0) in (None, ""):
        del small["default"]
    branches = small.get("anyOf")
    if isinstance(branches, list):
        kept = [branch for branch in branches if branch != {"type": "null"}]
        if len(kept) == 1 and len(branches) == 2 and isinstance(kept[0], dict):
            del small["anyOf"]
            small = {**kept[0], **small}
    return small
