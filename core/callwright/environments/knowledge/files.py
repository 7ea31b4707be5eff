"""Knowledge from a file, for servers that are not ours: a JSON object of what each of their users knows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from callwright.errors import DataError


def read_knowledge(path: str | Path) -> dict[str, dict[str, Any]]:
    """What everybody knows, from a file such as ``{"me": {"pin": "4711"}, "K00012": {"passcode": "81"}}``.

    Raises :class:`callwright.errors.DataError`, naming the file and the place, for anything else.
    """
    path = Path(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_number)
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: {error}") from error
    if not isinstance(content, dict):
        raise DataError(f'{path}: it holds no object such as {{"me": {{"pin": "4711"}}}}')
    for entity, known in content.items():
        if not isinstance(known, Mapping) or not entity:
            raise DataError(f"{path}: what {entity!r} knows is not an object of values by name")
        if "" in known:
            raise DataError(f"{path}: {entity!r} knows something without a name")
    return content


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is not JSON")
