"""Secrets, kept out of what leaves the process: messages, logs, settings, manifests and the recipes of run folders.

What counts as one: the user and password of a URL, values of its query whose names speak of keys, what stands after
``Bearer`` or ``Basic``, keys of the common forms (``sk-…``, ``hf_…``, ``ghp_…``), and the values of options and
variables that are named for a secret. A key of a form of its own in the middle of a text is not seen, so whoever knows
a secret names it (``secrets``). Linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

#: Stands in place of a secret. No secret itself, so that a redacted text stays as it is.
REDACTED: Final = "REDACTED"

_WORD: Final = (
    r"(?:api[_-]?key|apikey|access[_-]?key|key|(?:[a-z]+[_-])?token|secret|passwd|password|pwd|sig|signature)"
)
_TEXTS: Final = (
    (re.compile(rf"([?&;]{_WORD}=)[^\s&;#\"'<>]{{1,4000}}", re.IGNORECASE), rf"\g<1>{REDACTED}"),
    (re.compile(r"\b(Bearer|Basic)(\s+)(?!REDACTED)[A-Za-z0-9._~+/=-]{6,4000}", re.IGNORECASE), rf"\1\2{REDACTED}"),
    (re.compile(r"(?<![A-Za-z0-9])(?:sk|pk|rk)-[A-Za-z0-9_-]{8,400}"), REDACTED),
    (re.compile(r"(?<![A-Za-z0-9])(?:hf|gh[pousr]|github_pat|xox[abpr]|glpat)[_-][A-Za-z0-9_-]{16,400}"), REDACTED),
    # http://user:password@host: user and password cannot hold '/', '@' or spaces unescaped. Last, since what stands
    # there may become one only when a value of a query is gone.
    (re.compile(r"(?<=://)[^\s/@\"'<>]{1,1000}(?=@)"), REDACTED),
)
#: Names of options: the whole name, or what stands after its last underscore for the names of variables.
_OPTION: Final = re.compile(
    r"api[_-]?key|apikey|x-api-key|access[_-]?key|private[_-]?key|(?:auth|access|api|bearer|refresh|hf|github)[_-]token"
    r"|token|secret|client[_-]secret|passwd|password|pwd|authorization|proxy-authorization|cookie",
    re.IGNORECASE,
)
_VARIABLE: Final = re.compile(r"[A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PWD|CREDENTIALS?)")
#: Shorter values of a variable say too little to be looked for in a text: they would be found everywhere.
_SHORTEST: Final = 6


def redacted(text: str, secrets: Iterable[str] = ()) -> str:
    """A text without the secrets in it. ``secrets`` are values that are known to be some."""
    for secret in secrets:
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, REDACTED)
    for pattern, substitute in _TEXTS:
        text = pattern.sub(substitute, text)
    return text


def redacted_value(value: Any) -> Any:
    """JSON or TOML data without the secrets in it: texts as above, and texts under names that speak of secrets."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, Mapping):
        return {
            key: REDACTED if isinstance(inner, str) and inner and is_secret(str(key)) else redacted_value(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [redacted_value(inner) for inner in value]
    return value


def is_secret(name: str) -> bool:
    """Whether an option, header or variable of this name holds a secret (``api_key_env`` names one, and holds none)."""
    return bool(_OPTION.fullmatch(name) or _VARIABLE.fullmatch(name))


def redacted_words(words: Iterable[str]) -> list[str]:
    """The words of a command line without the secrets in them: also ``name=value`` where the name speaks of one."""
    return [_redacted_word(word) for word in words]


def _redacted_word(word: str) -> str:
    parts = word.split("=")  # --set=sampler.key=value
    for place, part in enumerate(parts[:-1], 1):
        if is_secret(part.rpartition(".")[2].lstrip("-")) and any(parts[place:]):
            return "=".join([*parts[:place], REDACTED])
    return redacted(word)


def holds_marks(value: Any) -> bool:
    """Whether a secret was taken out of this data."""
    if isinstance(value, str):
        return REDACTED in value
    if isinstance(value, Mapping):
        return any(holds_marks(inner) for inner in value.values())
    return isinstance(value, list | tuple) and any(holds_marks(inner) for inner in value)
