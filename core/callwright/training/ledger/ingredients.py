"""Ingredients: digests of all that decides what a folder's rows say. Equal ones in every process and on every machine.

They are the recipe, the tasks of the splits in use, the files that options name, the plugins, and the versions of
Python and of the packages that compute. A plugin of an installed distribution is known by its version; one that was
added as a module, or that is installed to be edited, by the source of its module and of those that its components are
in.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import json
import platform
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from callwright.capability import has
from callwright.digests import digest_of
from callwright.tools.costing import in_words
from callwright.training.ledger.named_files import file_digests
from callwright.walk.corpora.capabilities import HasFingerprint

if TYPE_CHECKING:
    from callwright.pipeline import Pipeline
    from callwright.plugins import PluginInfo, Registry
    from callwright.walk.tasks import Task

#: Hex digits of a digest that is compared with one other: 64 bits.
_SHORT: Final = 16
#: Tasks that are looked at where a corpus says what fixes them.
_FIRST: Final = 16
#: Hooks by which a plugin changes what is sampled and executed, though no recipe names it.
_MEDDLING: Final = frozenset({"callwright_prompt", "callwright_tool_call"})
_COMPUTING: Final = ("callwright", "torch", "transformers", "tokenizers", "jsonschema-rs")


@frozen
class Ingredients:
    """What rows are made of. ``tasks`` has a digest of each task of each split, ``stated`` everything else as JSON."""

    stated: Mapping[str, Any]
    tasks: Mapping[str, Mapping[str, str]]

    @classmethod
    def of(
        cls,
        pipeline: Pipeline,
        splits: Mapping[str, Sequence[Task]],
        recipe_text: str = "",
        weights: Mapping[str, Mapping[str, str]] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Ingredients:
        """Those of a pipeline, of tasks by the name of their split, of models' files, and of those that options name.

        Of a corpus that says what fixes its tasks (``HasFingerprint``) only the first are looked at.
        """
        source = pipeline.corpus
        corpus, digests = {}, {}
        for split, tasks in splits.items():
            told = source.fingerprint(split) if has(source, HasFingerprint) else None
            found = digests[split] = task_digests(tasks if told is None else tasks[:_FIRST])
            whole = sorted(found.items()) if told is None else [told, sorted(found.items())]
            corpus[split] = {"tasks": len(tasks), "digest": _digest(whole)}
        return cls(
            {
                "recipe": _short(hashlib.sha256(recipe_text.encode()).hexdigest()) if recipe_text else "",
                "corpus": {"name": pipeline.corpus.name, "splits": corpus},
                "plugins": plugin_digests(pipeline.registry),
                "versions": versions(),
                "files": file_digests(options or {}),
                **({"weights": {name: dict(files) for name, files in weights.items()}} if weights else {}),
            },
            digests,
        )


def versions() -> dict[str, str]:
    """Of Python, and of the installed packages that compute."""
    found = {"python": platform.python_version()}
    for name in _COMPUTING:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


# Tasks ----------------------------------------------------------------------------------------------------------------


def task_digests(tasks: Iterable[Task]) -> dict[str, str]:
    """A digest of each task by its id: query, tools, answer, scenario, seed, program, facts, and what else it states:
    clock, hazards, user, opening, what is shown and from when on.
    """
    tools: dict[int, tuple[Any, str]] = {}  # with the tool, so that no other one can get its id

    def tool(spec: Any) -> str:
        known = tools.get(id(spec))
        if known is None:
            told = [spec.name, spec.description, spec.parameters, spec.result, spec.result_field]
            told += ["brief"] if spec.brief else []
            known = tools[id(spec)] = (spec, _digest(told))
        return known[1]

    return {
        task.id: _digest(
            [
                task.query,
                [[name, tool(spec)] for name, spec in task.tools.items()],
                _or_none(list(task.answer.values)),
                *(["or", _or_none(list(values))] for values in task.answer.others),
                task.scenario,
                task.seed,
                task.returns,
                None if task.program is None else [_or_none(call) for call in task.program.calls],
                {name: _or_none(value) for name, value in task.facts.items()},
                *([] if not task.answer.open else [["open", *task.answer.open]]),
                *([] if task.clock is None else [task.clock.to_json()]),
                *([] if task.shown is None else [["shown", *task.shown]]),
                *(["instances", one.scenario, one.seed, _or_none(list(one.answer.values))] for one in task.instances),
                *([] if task.hazards is None else [{"hazards": task.hazards.to_json()}]),
                *([] if task.user is None else [{"user": task.user.to_json()}]),
                *([] if task.opening is None else [{"opening": task.opening.to_json()}]),
                *([] if not task.appear else [{"appear": dict(task.appear)}]),
                *([["costs", *map(in_words, task.offered.values())]] if task.tells_costs else []),
            ]
        )
        for task in tasks
    }


def _digest(value: Any) -> str:
    return _short(digest_of(value))


def _or_none(value: Any) -> str | None:
    """The digest of a value; ``None`` for one that has none, such as a function."""
    try:
        return digest_of(value)
    except (TypeError, ValueError, RecursionError):
        return None


def _short(digest: str) -> str:
    return digest[:_SHORT]


# Plugins --------------------------------------------------------------------------------------------------------------


def plugin_digests(registry: Registry, only: Collection[str] | None = None) -> dict[str, dict[str, Any]]:
    """Every loaded plugin by name, or ``only`` some: its distribution and version, or its module, and the digest of its
    source where no version stands for it: of a module, and of a distribution that is installed to be edited."""
    targets: dict[str, list[Any]] = {}
    for _, lazy in registry.components():
        targets.setdefault(lazy.plugin, []).append(lazy.target)
    return {
        info.name: _plugin(info, targets.get(info.name, ()))
        for info in sorted(registry.plugins, key=lambda one: one.name)
        if not info.blocked and not info.error and (only is None or info.name in only)
    }


def _plugin(info: PluginInfo, targets: Sequence[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"meddles": True} if _MEDDLING & set(info.hooks) else {}
    if info.distribution:
        found = {"distribution": info.distribution, "version": info.version, **found}
        if not _is_edited(info.distribution):
            return found
    else:
        found = {"module": info.module, **found}
    source = source_digest([info.module.partition(":")[0], *(_module_of(target) for target in targets)])
    return found if source is None else {**found, "source": source}


@cache
def _is_edited(distribution: str) -> bool:
    """Whether a distribution is installed from a folder in which it is edited (``pip install -e``). Ours is taken at
    its version."""
    if distribution == "callwright":
        return False
    try:
        said = json.loads(metadata.distribution(distribution).read_text("direct_url.json") or "{}")
        return bool(said["dir_info"]["editable"])
    except (metadata.PackageNotFoundError, ValueError, KeyError, TypeError):
        return False


def source_digest(modules: Iterable[str]) -> str | None:
    """Of the sources of some modules; ``None`` if none of them has any."""
    files = {path for name in modules for path in source_files(name)}
    told = sorted([path.name, hashlib.sha256(path.read_bytes()).hexdigest()] for path in files)
    return _digest(told) if told else None


def _module_of(target: Any) -> str:
    return target.partition(":")[0] if isinstance(target, str) else str(getattr(target, "__module__", ""))


def source_files(module: str) -> list[Path]:
    """The file of a module, or those of a package; none for modules that have no source or belong to Python."""
    if not module or module.partition(".")[0] in sys.stdlib_module_names:
        return []
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError, AttributeError):
        return []
    origin = spec.origin if spec is not None else None
    if origin is None or not inspect.getmodulename(origin) or not Path(origin).is_file():
        return []
    path = Path(origin)
    if path.name != "__init__.py":
        return [path]
    return sorted(one for one in path.parent.rglob("*.py") if one.is_file())
