"""Logging: structlog, set up here and nowhere else, so that the library stays silent inside other programs."""

from __future__ import annotations

import sys
from collections.abc import MutableMapping
from typing import Any, Final

_LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def configure(*, level: str | None = None, json_lines: bool = False, verbosity: int = 0) -> None:
    """Log to stderr: for people in columns, with ``json_lines`` one JSON object a line.

    Without ``level`` it is ``warning``, with ``verbosity`` 1 ``info`` and from 2 ``debug``.
    """
    import structlog

    threshold = _LEVELS[level] if level else (30, 20, 10)[min(verbosity, 2)]
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
