"""The versions of BFCL: categories in the order of the official table, sizes, and where their files come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from attrs import frozen

from callwright.measuring.sources.source import Source
from callwright_plugins.bfcl.multi_turn.package import FOLDER

#: What a category asks: calls of one function, of one among several, several calls, no call, any call, several turns.
Kind = Literal["simple", "multiple", "parallel", "irrelevance", "relevance", "multi_turn"]


@frozen
class Version:
    """A version: its name in file names (``v3``), the release of ``bfcl-eval`` that has it, sizes of its categories."""

    name: str
    release: str
    source: Source
    sizes: Mapping[str, int]


_SHARED: Final[Mapping[str, int]] = {
    "multiple": 200,
    "parallel": 200,
    "parallel_multiple": 200,
    "irrelevance": 240,
    "live_simple": 258,
    "live_multiple": 1053,
    "live_parallel": 16,
    "live_parallel_multiple": 24,
}
_TURNS: Final = dict.fromkeys(
    ("multi_turn_base", "multi_turn_miss_func", "multi_turn_miss_param", "multi_turn_long_context"), 200
)


def _source(release: str, sha256: str, size: int) -> Source:
    file = f"bfcl_eval-{release}-py3-none-any.whl"
    take = {"bfcl_eval/data/": "", f"{FOLDER}/": FOLDER}  # the files, and the classes of several turns
    return Source("bfcl-eval", file, sha256, size, take, "Apache-2.0")


V3: Final = Version(
    "v3",
    "2025.8.6.2",
    _source("2025.8.6.2", "fdb996ac963ed1c6fce1eb4884053aae4a6de282fb931665a46dbeed204a228d", 1_746_683),
    {
        "simple": 400, "java": 100, "javascript": 50, **_SHARED, "live_irrelevance": 882, "live_relevance": 18, **_TURNS
    },
)  # fmt: skip
V4: Final = Version(
    "v4",
    "2026.3.23",
    _source("2026.3.23", "3bb6dfa5f0c68ad403c9ec50b00db2bb3b4cc9b38ab1ff33f48fe30d853d3a0a", 1_925_664),
    {
        "simple_python": 400, "simple_java": 100, "simple_javascript": 50, **_SHARED, "live_irrelevance": 884,
        "live_relevance": 16, **_TURNS
    },
)  # fmt: skip
VERSIONS: Final[Mapping[str, Version]] = {one.name: one for one in (V3, V4)}


def kind_of(category: str) -> Kind:
    """What a category asks, as the official program tells it from the name."""
    if category.startswith("multi_turn"):
        return "multi_turn"
    if "irrelevance" in category:
        return "irrelevance"
    if "relevance" in category:
        return "relevance"
    if "parallel" in category:
        return "parallel"
    return "multiple" if "multiple" in category else "simple"


def category_of_id(task_id: str) -> str:
    """The category that an id names: ``live_multiple`` of ``live_multiple_12-3-0``."""
    return task_id.rpartition("_")[0]
