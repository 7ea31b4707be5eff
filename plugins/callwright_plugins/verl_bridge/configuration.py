"""The two configuration files in which verl looks for tools and agent loops. JSON is YAML, so no library is needed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from callwright.environments.protocol import Environment
from callwright.errors import DataError, UnknownName, UsageError
from callwright.plugins import Registry, default_registry
from callwright.training.run_folder import write_atomically

TOOL = "callwright_plugins.verl_bridge.tools.EnvironmentTool"
AGENT_LOOP = "callwright_plugins.verl_bridge.agent_loop.CallwrightAgentLoop"


def write_tools(
    environment: str | Environment,
    path: Path,
    *,
    tools: Iterable[str] | None,
    options: Mapping[str, Any] | None = None,
    registry: Registry | None,
) -> Path:
    """A line for each tool of a registered environment; verl's workers make the tools by these names and options."""
    registry = registry or default_registry()
    name = environment if isinstance(environment, str) else environment.name
    if not registry.knows("environment", name):
        if isinstance(environment, str):
            raise UnknownName("environment", name, registry.names("environment"))
        raise UsageError(
            f"environment {name!r} is not registered, so that verl's workers could not make it by its name"
        )
    if options and not isinstance(environment, str):
        raise UsageError(f"options are for an environment by its name; {name!r} is made already, with its own")
    given = dict(options or {})
    made: Environment = registry.create("environment", name, **given)
    known = [tool for tool, spec in made.tools.items() if not spec.hidden]
    chosen = known if tools is None else list(tools)
    for tool in chosen:
        if tool not in known:
            raise UnknownName(f"tool of {name}", tool, known)
    config = {"type": "native", "environment": name, **({"options": given} if given else {})}
    lines = [{"class_name": TOOL, "config": {**config, "tool": tool}} for tool in chosen]
    return _write(path, {"tools": lines})


def write_agent_loop(path: Path, name: str, options: Mapping[str, Any]) -> Path:
    """One agent loop with its options."""
    return _write(path, [{"name": name, "_target_": AGENT_LOOP, **options}])


def _write(path: Path, value: Any) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(value, indent=1) + "\n")
    except (OSError, TypeError) as error:
        raise DataError(f"{path} cannot be written: {error}") from error
    return path
