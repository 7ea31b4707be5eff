"""Syntheses: how many were planned and what became of them, and why each of the others was rejected."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, Final

from callwright_plugins.viewer.sources.entries import number_of, table, text_of
from callwright_plugins.viewer.sources.finding import Source

_MOST: Final = 200


def funnel(source: Source) -> dict[str, Any]:
    """The yields of the manifest, rejections by stage and reason, and the first of the rejected themselves."""
    manifest = table(source.json("manifest.json"))
    rejected: list[dict[str, Any]] = []
    reasons: Counter[tuple[str, str]] = Counter()
    if source.folder is not None:
        try:
            lines = (source.folder / "rejected.jsonl").read_bytes().splitlines()
        except OSError:
            lines = []
        for line in lines:
            try:
                row = table(json.loads(line))
            except ValueError:
                continue
            reasons[text_of(row.get("stage")), text_of(row.get("reason"))[:160]] += 1
            if len(rejected) < _MOST:
                rejected.append(dict(row))
    return {
        "name": manifest.get("name"),
        "yields": manifest.get("yields"),
        "mixture": manifest.get("mixture"),
        "seconds": number_of(manifest.get("seconds")),
        "cost": manifest.get("cost"),
        "difficulty": manifest.get("difficulty"),
        "reasons": [
            {"stage": stage, "reason": reason, "count": count} for (stage, reason), count in reasons.most_common(40)
        ],
        "rejected": rejected,
    }
