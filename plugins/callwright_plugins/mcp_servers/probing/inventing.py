"""Arguments for tools that nobody here has seen, from their schemas, the names of parameters and what servers said."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

from attrs import define, field

from callwright.tools.spec import ToolSpec

_TRIES: Final = 12
_DEEPEST: Final = 5
_HEARD: Final = 120
_GHOST_NUMBER: Final = 987_654_321
_PATH: Final = re.compile(r"path|file|dir|folder|repo|source|destination|root|cwd|location", re.IGNORECASE)
#: Parameters by name (or part of it) and texts that such ones often take.
_KNOWN: Final[Sequence[tuple[str, Sequence[str]]]] = (
    ("timezone|time_zone|tz$", ("UTC", "Europe/Oslo")),
    ("datetime|timestamp", ("2026-03-01T10:30:00Z",)),
    ("date|day", ("2026-03-01",)),
    ("time", ("10:30",)),
    ("email", ("canary@example.org",)),
    ("url|uri|link", ("http://127.0.0.1:9/canary",)),
    ("currency", ("EUR", "USD")),
    ("country", ("NO",)),
    ("language|lang$|locale", ("en",)),
    ("city", ("Oslo",)),
    ("branch|ref$|revision|commit|base|target", ("main", "master", "HEAD", "canary")),
)
#: For parameters of SQL, with the word that a tool which takes the statement has in its name or description.
_SQL: Final = (
    ("create", "CREATE TABLE canary (name TEXT)"),
    ("insert", "INSERT INTO canary VALUES ('canary')"),
    ("select", "SELECT * FROM canary"),
)
_FORMATS: Final[Mapping[str, str]] = {
    "date": "2026-03-01",
    "time": "10:30:00Z",
    "date-time": "2026-03-01T10:30:00Z",
    "email": "canary@example.org",
    "uri": "http://127.0.0.1:9/canary",
    "uuid": "6f1c1a52-9a55-4a3e-8f0b-2f9d1c3f7a10",
}


@define
class Inventor:
    """Draws arguments. ``folder`` is the workspace as calls name it, ``places`` are files in it; ``heard`` are texts of
    earlier answers: ids and names that only the server knew.
    """

    rng: Random
    folder: str
    places: list[str] = field(factory=list)
    heard: dict[str, None] = field(factory=dict)
    _about: str = ""
    _reads: bool = False
    #: A text that no server has heard of, while arguments name what is not there.
    _ghost: str = ""

    def arguments(self, spec: ToolSpec, *, plain: bool, reads: bool) -> dict[str, Any] | None:
        """Arguments that the tool's schema takes, only the required ones if ``plain``; ``None`` if none are found.

        A tool that ``reads`` is given files that may be there, another one new ones.
        """
        self._about, self._reads = f"{spec.name} {spec.description[:200]}".lower(), reads
        for _ in range(_TRIES):
            drawn = self._value({"type": "object", **spec.parameters}, "", 0, optional=not plain)
            if isinstance(drawn, dict) and spec.compiled.literal.validator.is_valid(drawn):
                return drawn
        return None

    def ghostly(self, spec: ToolSpec) -> dict[str, Any] | None:
        """Arguments whose texts and numbers name what is not there; ``None`` if the schema takes none such.

        What deletes or changes something should say that it found nothing, and many servers say that they did it.
        """
        self._ghost = f"ghost-{self.rng.randrange(16**8):08x}"
        try:
            drawn = self.arguments(spec, plain=True, reads=False)
        finally:
            ghost, self._ghost = self._ghost, ""
        return drawn if drawn is not None and (ghost in str(drawn) or str(_GHOST_NUMBER) in str(drawn)) else None

    def listen(self, value: Any) -> None:
        """Remember the short texts of an answer."""
        left = [value]
        while left and len(self.heard) < _HEARD:
            found = left.pop()
            if isinstance(found, str):
                if 0 < len(found) <= 60 and "\n" not in found:
                    self.heard[found] = None
                else:  # lines of a listing: their words
                    self.heard.update(dict.fromkeys(re.findall(r"[\w./-]{3,60}", found)[:10]))
            elif isinstance(found, Mapping):
                left.extend(found.values())
            elif isinstance(found, list):
                left.extend(found[:5])

    def _value(self, schema: Any, name: str, depth: int, *, optional: bool) -> Any:
        rng = self.rng
        if not isinstance(schema, Mapping) or depth > _DEEPEST:
            return "canary"
        if "const" in schema:
            return schema["const"]
        if isinstance(schema.get("enum"), list) and schema["enum"]:
            return rng.choice(schema["enum"])
        if "default" in schema and schema["default"] is not None and rng.random() < 0.5:
            return schema["default"]
        examples = schema.get("examples")
        if isinstance(examples, list) and examples and not self._ghost and rng.random() < 0.7:
            return rng.choice(examples)
        for key in ("anyOf", "oneOf"):
            if isinstance(schema.get(key), list) and schema[key]:
                return self._value(rng.choice(schema[key]), name, depth, optional=optional)
        stated = schema.get("type", "object" if "properties" in schema else "string")
        match rng.choice(stated) if isinstance(stated, list) and stated else stated:
            case "null":
                return None
            case "boolean":
                return rng.random() < 0.5
            case "integer" if self._ghost:
                return int(min(_GHOST_NUMBER, self._number(schema, _GHOST_NUMBER)))
            case "integer":
                return int(self._number(schema, rng.randint(1, 5)))
            case "number":
                return self._number(schema, rng.choice([rng.randint(1, 5), rng.randint(2, 40) / 4]))
            case "array":
                least = schema.get("minItems", 0)
                count = max(least, min(rng.randint(1, 2), schema.get("maxItems", 2)))
                return [self._value(schema.get("items"), name, depth + 1, optional=optional) for _ in range(count)]
            case "object":
                listed = schema.get("properties")
                required = schema.get("required", ())
                return {
                    key: self._value(inner, key, depth + 1, optional=optional)
                    for key, inner in (listed.items() if isinstance(listed, Mapping) else ())
                    if key in required or (optional and rng.random() < 0.5)
                }
        return self._text(schema, name)

    def _path(self) -> str:
        rng = self.rng
        if self._ghost:
            return f"{self.folder}/{self._ghost}"
        directory = "directory" in self._about or "folder" in self._about
        new = f"{self.folder}/canary{rng.randint(1, 3)}" + ("" if directory and rng.random() < 0.7 else ".txt")
        there = [self.folder, new] if directory or not self.places else [*self.places[:3], new, self.folder]
        return rng.choice(there if self._reads else [new, new, new, *there])

    def _number(self, schema: Mapping[str, Any], drawn: float) -> float:
        low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
        high = schema.get("maximum", schema.get("exclusiveMaximum", 10**9))
        if not isinstance(low, int | float) or not isinstance(high, int | float):
            return drawn
        return min(low + drawn, high)

    def _text(self, schema: Mapping[str, Any], name: str) -> str:
        rng = self.rng
        if schema.get("format") in _FORMATS:
            return _FORMATS[schema["format"]]
        for pattern, texts in () if self._ghost else _KNOWN:
            if re.search(pattern, name, re.IGNORECASE) and rng.random() < 0.8:
                return rng.choice(texts)
        if re.search("sql|query|statement", name, re.IGNORECASE) and ("sql" in self._about or "table" in self._about):
            fitting = [text for word, text in _SQL if word in self._about]
            if fitting:
                return rng.choice(fitting)
        if _PATH.search(name) or "path" in str(schema.get("description", "")).lower():
            return self._path()
        if self._ghost:
            return self._ghost
        if self.heard and rng.random() < 0.5:
            return rng.choice(list(self.heard))
        return f"canary{rng.randint(1, 3)}"
