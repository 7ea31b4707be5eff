"""A session of an OpenEnv environment in this process: an instance of its class, spoken to as its server would."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import json
import typing
from collections.abc import Callable, Mapping
from typing import Any

from callwright.errors import InfrastructureFailure, UsageError
from callwright.language.shortening import shortened
from callwright.machines.awaiting import finished
from callwright_plugins.openenv_bridge.channels import StepError
from callwright_plugins.openenv_bridge.wire import BAD_ACTION, STEP_RAISED

_INSTALL = (
    "pip install openenv (0.10.0 is 477 MB with what it asks for, and wants mcp below 2: "
    "give it an environment of its own, apart from callwright[mcp])"
)


class LocalKind:
    """An environment's class and the class of its actions, by ``"package.module:Name"``.

    ``action`` is found by the annotation of ``step`` where it is not given, and is ``CallToolAction`` for environments
    of MCP tools. Raises :class:`callwright.UsageError` without the package ``openenv``, for a name that leads nowhere,
    and where no action is found.
    """

    def __init__(self, environment: str, action: str | None) -> None:
        try:
            from openenv.core.env_server import interfaces, mcp_environment, mcp_types, types
        except ModuleNotFoundError as error:
            raise UsageError(
                f"environment={environment!r} runs here, which needs the package openenv: {_INSTALL}"
            ) from (error)
        self.name = environment
        self.made: Callable[[], Any] = _found(environment, "environment")
        self._base = interfaces.Environment
        is_class = inspect.isclass(self.made)
        if action is not None:
            self.action: Any = _found(action, "action")
        elif is_class and issubclass(self.made, mcp_environment.MCPEnvironment):
            self.action = mcp_types.CallToolAction
        else:
            self.action = _annotated(self.made) if is_class else None
        if not (inspect.isclass(self.action) and issubclass(self.action, types.Action)):
            raise UsageError(
                f"{environment}: the class of its actions is not known from the annotation of step(); name it with "
                'action="package.module:Class"'
            )

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its actions, as ``GET /schema`` gives it."""
        found: dict[str, Any] = self.action.model_json_schema()
        return found

    def metadata(self) -> dict[str, Any]:
        """What the environment says of itself, as ``GET /metadata`` gives it."""
        made = self.made()
        try:
            found: dict[str, Any] = made.get_metadata().model_dump()
            return found
        finally:
            made.close()

    def is_async(self, made: Any, method: str) -> bool:
        """Whether an instance has an async form of a method of its own."""
        return getattr(type(made), method) is not getattr(self._base, method)


class LocalChannel:
    """A session: one instance. What it raises is what its server would answer with."""

    def __init__(self, kind: LocalKind) -> None:
        self._kind = kind
        try:
            self._made: Any = kind.made()
        except Exception as error:
            raise InfrastructureFailure(f"{kind.name} cannot be made: {type(error).__name__}: {error}") from error

    def reset(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Begin an episode with those of ``given`` that the environment takes, as its server does."""
        method = "reset_async" if self._kind.is_async(self._made, "reset_async") else "reset"
        taken = inspect.signature(getattr(self._made, method)).parameters
        anything = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in taken.values())
        return self._observed(method, **{name: value for name, value in given.items() if anything or name in taken})

    def step(self, action: Mapping[str, Any]) -> dict[str, Any]:
        """Act. Raises :class:`.channels.StepError` for what the environment's action refuses, and what it raises."""
        from openenv.core.env_server.serialization import deserialize_action
        from pydantic import ValidationError

        try:
            read = deserialize_action(dict(action), self._kind.action)
        except ValidationError as error:
            raise StepError(BAD_ACTION, _mistakes(error)) from error
        return self._observed("step_async" if self._kind.is_async(self._made, "step_async") else "step", read)

    def state(self) -> dict[str, Any]:
        """What it tells of its state, as JSON."""
        from openenv.core.env_server.types import WSStateResponse

        state = self._made.state
        data = state.model_dump() if hasattr(state, "model_dump") else dict(state or {})
        return _plain(WSStateResponse(data=data))

    def close(self) -> None:
        """Give the instance back."""
        self._made.close()

    def _observed(self, method: str, *given: Any, **named: Any) -> dict[str, Any]:
        from openenv.core.env_server.serialization import serialize_observation
        from openenv.core.env_server.types import WSObservationResponse

        try:
            observation = finished(getattr(self._made, method)(*given, **named))
        except Exception as error:
            raise StepError(STEP_RAISED, shortened(f"{type(error).__name__}: {error}", 1000)) from error
        return _plain(WSObservationResponse(data=serialize_observation(observation)))


def _plain(message: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(message.model_dump_json())["data"]
    return found


def _found(target: str, option: str) -> Any:
    module, separator, name = target.partition(":")
    if not separator or not module or not name:
        raise UsageError(f"{option}={target!r} is not of the form 'package.module:Class'")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"{option}={target!r} leads nowhere: {error}") from error
    return found


def _annotated(made: Any) -> Any:
    """The class of the first parameter of ``step``; ``None`` where it says none."""
    try:
        hints = typing.get_type_hints(made.step)
    except (NameError, TypeError):  # an annotation that only its own module can read
        return None
    names = [name for name in inspect.signature(made.step).parameters if name != "self"]
    return hints.get(names[0]) if names else None


def _mistakes(error: Any) -> str:
    return "; ".join(f"{'.'.join(map(str, one['loc'])) or 'the action'}: {one['msg']}" for one in error.errors())
