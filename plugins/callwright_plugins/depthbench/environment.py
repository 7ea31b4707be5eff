"""The environment: sessions that open in a microsecond and answer calls from data that never change."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import frozen

from callwright.environments.protocol import Environment, Outcome, Session
from callwright.errors import UsageError
from callwright.pickling import made_by
from callwright.tools.spec import ToolError, ToolSpec
from callwright.tools.validation import TABLE
from callwright_plugins.depthbench import NAME
from callwright_plugins.depthbench.specifications import specifications
from callwright_plugins.depthbench.world import CONTEXTS, Context, context


@frozen
class _Ready:
    """What a call of a tool needs: its function, whether that takes the context, tables, and the check of the rest."""

    function: Callable[..., Any]
    takes_context: bool
    tables: tuple[tuple[str, type], ...]
    is_valid: Callable[[Any], bool]
    validator: Any


_ready: dict[str, _Ready] = {}
_TAKEN: Final = frozenset({"context"})


def _prepare(tool: str) -> _Ready | None:
    """What a tool's calls need, made at its first; the tools are imported then, so that reading the corpus is quick."""
    import jsonschema_rs

    from callwright_plugins.depthbench.tools import TOOLS

    described = TOOLS.get(tool)
    if described is None:
        return None
    schema = specifications()[tool].parameters
    properties = schema["properties"]
    tables = [
        (name, list if inner["type"] == "array" else dict) for name, inner in properties.items() if inner.get(TABLE)
    ]
    names = frozenset(name for name, _ in tables)
    literal = {
        **schema,
        "properties": {name: inner for name, inner in properties.items() if name not in names},
        "required": [name for name in schema.get("required", ()) if name not in names],
    }
    validator = jsonschema_rs.Draft202012Validator(literal)
    code = described.function.__code__
    takes_context = code.co_posonlyargcount == 1 and code.co_varnames[0] in _TAKEN
    ready = _ready[tool] = _Ready(described.function, takes_context, tuple(tables), validator.is_valid, validator)
    return ready


class DepthBenchSession:
    """One user's view of the world. No tool changes anything, so the state is the context."""

    __slots__ = ("_context",)

    def __init__(self, context: Context) -> None:
        self._context = context

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """Run one tool.

        ``unknown_tool``; ``schema_error`` (``missing``, ``unexpected``, ``invalid``) for arguments that do not fit;
        ``execution_error`` with one of :data:`.toolkit.CODES`; ``empty`` for a table without rows.
        """
        ready = _ready.get(tool) or _prepare(tool)
        if ready is None:
            return Outcome("unknown_tool", None, "unknown_tool", f"there is no tool called {tool[:40]!r}")
        literals = arguments
        if ready.tables:
            literals = dict(arguments)
            for name, kind in ready.tables:
                value = literals.pop(name, None)
                if not isinstance(value, kind):
                    if name not in arguments:
                        return Outcome("schema_error", None, "missing", f"{tool} needs {name}")
                    return Outcome("execution_error", None, "not_a_table", f"{tool}.{name} takes an earlier result")
        if not ready.is_valid(literals):
            return _misfit(tool, ready, literals)
        try:
            value = ready.function(self._context, **arguments) if ready.takes_context else ready.function(**arguments)
        except ToolError as error:
            return Outcome("execution_error", None, error.code, error.message)
        return Outcome("ok" if value else "empty", value)

    def digest(self) -> str:
        """SHA-256 of the world's name and the context's key."""
        key = self._context.key
        digest = _digests.get(key)
        if digest is None:
            digest = _digests[key] = hashlib.sha256(f"{NAME}|{key}".encode()).hexdigest()
        return digest

    def close(self) -> None:
        """Nothing to give back."""


_digests: Final[dict[str, str]] = {}
_KINDS: Final = {"required": "missing", "additionalProperties": "unexpected"}


def _misfit(tool: str, ready: _Ready, arguments: Mapping[str, Any]) -> Outcome:
    errors = sorted(
        (_KINDS.get(error.kind.name, "invalid"), str(error.message)[:200])
        for error in ready.validator.iter_errors(arguments)
    )
    code, message = errors[0] if errors else ("invalid", "the arguments do not fit")
    return Outcome("schema_error", None, code, f"{tool}: {message}")


class DepthBench:
    """The environment ``depthbench-v1``. Its data are made once per process, when first asked for, and shared."""

    def __init__(self) -> None:
        self._contexts: dict[str, Context] = {}

    def __reduce__(self) -> Any:
        return made_by(self, DepthBench)

    @property
    def name(self) -> str:
        """``depthbench-v1``."""
        return NAME

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        """The 163 tools by name."""
        return specifications()

    @property
    def pure(self) -> bool:
        """True: tools read, and what they hand out is never changed afterwards."""
        return True

    def open(self, scenario: str = "", seed: int = 0) -> DepthBenchSession:
        """A session of ``user-0000`` to ``user-1023``; without a scenario the seed chooses.

        What a user's place, day and habits are is not to be read off the scenario: the tools tell. Raises
        :class:`callwright.UsageError` for another text.
        """
        found = self._contexts.get(scenario)
        if found is None:
            if not scenario:
                return DepthBenchSession(context(seed % CONTEXTS))
            found = self._contexts[scenario] = _read(scenario)
        return DepthBenchSession(found)


def _read(scenario: str) -> Context:
    number = scenario.removeprefix("user-")
    if len(scenario) == 9 and len(number) == 4 and number.isascii() and number.isdigit() and int(number) < CONTEXTS:
        return context(int(number))
    raise UsageError(f"{scenario[:80]!r} is no scenario of {NAME}; they are user-0000 to user-{CONTEXTS - 1:04d}")


def _conforms(environment: DepthBench, session: DepthBenchSession) -> tuple[Environment, Session]:
    """Checked by mypy only: both classes fit their protocols."""
    return environment, session
