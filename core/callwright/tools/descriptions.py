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
_CHECKED_ANYWAY: Final = frozenset({"additionalProperties", "minLength", "maxLength", "maxItems", "uniqueItems"})

#: What need not be said twice of a parameter that means the same in two tools.
_SAID_BEFORE: Final = ("default", "minimum", "maximum")
#: Bounds that nobody who means a call well goes over.
_FAR: Final = 10_000

#: A code such as NOT_FOUND, and texts that are about nothing else.
_CODE_NAME: Final = r"(?:[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[A-Z]{5,})"
_ABOUT_FAILURES: Final = re.compile(rf"(?:It )?[Ff]ails\b|Warns\b|{_CODE_NAME}\b")
_ABOUT_WARNINGS: Final = re.compile(rf"\(partial(?:, {_CODE_NAME})?\)[.;]$")
_BESIDE_A_RULE: Final = re.compile(rf" \({_CODE_NAME}(?:(?:, | or | and ){_CODE_NAME})*\)")
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

    Bounds of lengths, those of numbers that are 0, 1 or ten thousand and above, ``additionalProperties``, and defaults
    that say "nothing" (null, false, an empty text) are left out, and ``null`` as a way to leave an optional parameter
    out. Calls are still checked against the whole schema; whatever fits this one and not that one is told by the
    ``schema_error``.
    """
    small: dict[str, Any] = _mapped(schema, _compact_one, named=False)
    return small


def without_nothing(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of results that leave out members which hold nothing: ``null``, an empty text, an empty list.

    Members that can be so are not required any more, and no member is null.
    """
    smaller: dict[str, Any] = _mapped(schema, _without_nothing_one, named=False)
    return smaller


def shape_of(result: Any, tool: str, before: dict[str, str]) -> str:
    """What a tool returns, as names alone: ``{id, copies}``, ``page of {id, copies}``; ``""`` if nothing is said.

    What an earlier tool of the listing returns is told by its name: ``as get_book``, ``page of what get_book returns``.
    ``before`` are names for what was returned before, and takes what this tool returns.
    """
    properties = result.get("properties") if isinstance(result, Mapping) else None
    paged = isinstance(properties, Mapping) and set(properties) == {"items", "total", "next_cursor"}
    one = properties["items"].get("items") if paged and properties else result
    whole = _shape(one, {})
    if not whole:
        return ""
    same = before.setdefault(f"page of {whole}" if paged else f"just {whole}", tool)
    if same != tool:
        return f"as {same}"
    told = _shape(one, before)
    before.setdefault(whole, f"an item of {tool}" if paged else f"what {tool} returns")
    return f"page of {told}" if paged else told


def _shape(schema: Any, before: Mapping[str, str]) -> str:
    """The names of the members of a value: ``{id, lines: [{text}]}``; of one that may be several things, of the first
    that has any.
    """
    if not isinstance(schema, Mapping):
        return ""
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and properties:
        if before and (known := before.get(_shape(schema, {}))):
            return known
        parts = [f"{name}: {inner}" if (inner := _shape(one, before)) else name for name, one in properties.items()]
        return f"{{{', '.join(parts)}}}"
    inside = _shape(schema.get("items"), before)
    if inside:
        return f"[{inside}]"
    branches = [_shape(one, before) for key in ("anyOf", "oneOf") for one in schema.get(key) or ()]
    return next((one for one in branches if one), "")


def without_codes(description: str) -> str:
    """The description of a tool without what it says of failures and warnings, which outcomes tell when they come.

    Sentences that begin with a code, "Fails" or "Warns" are left out, those that end with "(partial)", and codes in
    brackets behind a rule; rules stay.
    """
    kept = []
    for paragraph in description.split("\n\n"):
        said = [
            one
            for one in _SENTENCES.split(paragraph)
            if not (_ABOUT_FAILURES.match(one) or _ABOUT_WARNINGS.search(one))
        ]
        if said:
            text = _BESIDE_A_RULE.sub("", " ".join(said))
            kept.append(f"{text[:-1]}." if text.endswith(";") else text)
    return "\n\n".join(kept) or description


def said_once(functions: list[dict[str, Any]], heard: dict[str, dict[str, Any]] | None = None) -> list[dict[str, Any]]:
    """A listing whose parameters are described where they first come: what is said in the same words is not said again,
    and of one of the same name neither are bounds and a default that are as they were when they were last said.
    ``heard`` is what was said before, and takes what is said.
    """
    heard = {} if heard is None else heard
    small = []
    for one in functions:
        parameters = dict(one["parameters"])
        shorter = {}
        for name, schema in (parameters.get("properties") or {}).items():
            words = schema.get("description")
            if not isinstance(words, str):
                shorter[name] = schema
                continue
            said = heard.setdefault(f"{name}: {words}", {})
            shorter[name] = {
                key: value
                for key, value in schema.items()
                if not (key == "description" and words in heard)
                and not (key in _SAID_BEFORE and key in said and said[key] == value)
            }
            heard.setdefault(words, {})
            said |= {key: schema[key] for key in _SAID_BEFORE if key in schema}
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


def _is_far(bound: Any) -> bool:
    return isinstance(bound, int | float) and bound >= _FAR


def _without_nothing_one(schema: dict[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return schema
    certain = [name for name in schema.get("required", ()) if not _can_be_nothing(properties.get(name, {}))]
    slim = {name: _not_null(one) if isinstance(one, Mapping) else one for name, one in properties.items()}
    smaller = {key: value for key, value in schema.items() if key != "required"}
    return {**smaller, "properties": slim, **({"required": certain} if certain else {})}


def _can_be_nothing(schema: Any) -> bool:
    """Whether a value may be ``null``, an empty text or an empty list. An enum says its values."""
    if not isinstance(schema, Mapping):
        return True
    branches = schema.get("anyOf") or schema.get("oneOf")
    if branches:
        return any(_can_be_nothing(branch) for branch in branches)
    if "const" in schema or "enum" in schema:
        return any(value in (None, "", []) for value in schema.get("enum") or [schema.get("const")])
    kinds = schema.get("type")
    several = kinds if isinstance(kinds, list) else [kinds]
    return bool({None, "null", "string", "array"} & set(several))


def _not_null(schema: Mapping[str, Any]) -> dict[str, Any]:
    branches = schema.get("anyOf")
    if not isinstance(branches, list):
        return dict(schema)
    kept = [branch for branch in branches if branch != {"type": "null"}]
    if len(kept) == 1 and isinstance(kept[0], Mapping):
        return {**kept[0], **{key: value for key, value in schema.items() if key != "anyOf"}}
    return {**schema, "anyOf": kept} if kept else dict(schema)


def _compact_one(schema: dict[str, Any]) -> dict[str, Any]:
    small = {key: value for key, value in schema.items() if key not in _CHECKED_ANYWAY}
    default = small.get("default", 0)
    if default is False or default in (None, "") or (_is_far(default) and default == small.get("maximum")):
        del small["default"]
    if small.get("minimum") in (0, 1):
        del small["minimum"]
    if _is_far(small.get("maximum")):
        del small["maximum"]
    if small.get("minItems") == 1:
        del small["minItems"]
    branches = small.get("anyOf")
    if isinstance(branches, list):
        kept = [branch for branch in branches if branch != {"type": "null"}]
        if len(kept) == 1 and len(branches) == 2 and isinstance(kept[0], dict):
            del small["anyOf"]
            small = {**kept[0], **small}
    return small
