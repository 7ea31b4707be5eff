"""Logging: structlog, set up here and nowhere else, so that the library stays silent inside other programs."""

from __future__ import annotations

import sys
from collections.abc import Callable, MutableMapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Final

_LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def configure(*, level: str | None = None, json_lines: bool = False, verbosity: int = 0) -> None:
    """Log to stderr: for people in columns, with ``json_lines`` one JSON object a line.

    Without ``level`` it is ``warning``, with ``verbosity`` 1 ``info`` and from 2 ``debug``. A command that logs nothing
    does not wait for structlog and what that imports: it is set up when somebody imports it.
    """
    threshold = _LEVELS[level] if level else (30, 20, 10)[min(verbosity, 2)]
    if "structlog" in sys.modules:
        _configure(threshold, json_lines)
    else:
        sys.meta_path.insert(0, _OnceImported("structlog", partial(_configure, threshold, json_lines)))


def _configure(threshold: int, json_lines: bool) -> None:
    import structlog

    renderer: structlog.typing.Processor
    if json_lines:
        renderer = structlog.processors.JSONRenderer()
    else:
        plain = structlog.dev.plain_traceback  # rich's would be imported, and prints local variables
        renderer = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso" if json_lines else "%H:%M:%S", utc=json_lines),
            *([structlog.processors.format_exc_info] if json_lines else []),
            _without_secrets,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=_StderrFactory(),
        cache_logger_on_first_use=False,
    )


def _without_secrets(logger: object, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    from callwright.machines.redaction import redacted_value

    for key, value in event.items():
        if isinstance(value, str | dict | list | tuple):
            event[key] = redacted_value(value)
        elif isinstance(value, BaseException) and key != "exc_info":
            event[key] = redacted_value(repr(value))
    return event


class _StderrFactory:
    """Loggers that look up ``sys.stderr`` when they are made, not when logging was set up."""

    def __call__(self, *arguments: object) -> object:
        import structlog

        return structlog.PrintLogger(sys.stderr)


class _OnceImported(MetaPathFinder, Loader):
    """Does something once, as soon as a module has been imported, by whom ever."""

    def __init__(self, name: str, then: Callable[[], None]) -> None:
        self._name, self._then = name, then
        self._loader: Loader | None = None

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        with suppress(ValueError):
            sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            self._loader, spec.loader = spec.loader, self
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        assert self._loader is not None
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        assert self._loader is not None
        assert module.__spec__ is not None
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._then()
