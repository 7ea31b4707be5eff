"""One agent as a process: told where its model and its tools are, watched, and killed with everything it started."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from attrs import field, frozen

from callwright.episodes.gateway.session import GatewaySession
from callwright.errors import UsageError
from callwright.machines.redaction import redacted

#: Characters of an agent's standard error that a message quotes.
_QUOTED: Final = 300
#: prctl(PR_SET_PDEATHSIG).
_PARENT_DEATH_SIGNAL: Final = 1
#: Bytes of an agent's answer on standard output.
_MOST_OUTPUT: Final = 1024 * 1024


@frozen
class AgentEnded:
    """How an agent ended: what it wrote to standard output, and what went wrong; ``None`` if nothing did."""

    answer: str
    failure: str | None = None
    said: str = field(default="", repr=False)


def words_of(command: str | Sequence[str]) -> tuple[str, ...]:
    """The words of a command. Raises :class:`callwright.UsageError` for none, or for a quote that is not closed."""
    try:
        words = tuple(shlex.split(command)) if isinstance(command, str) else tuple(command)
    except ValueError as error:
        raise UsageError(f"the agent's command cannot be read: {error}") from error
    if not words:
        raise UsageError('the agent\'s command is empty; give it as "python my_agent.py"')
    return words


def environment_of(session: GatewaySession, given: Mapping[str, str]) -> dict[str, str]:
    """What the agent finds in its environment, beside what this process has, whose keys of model servers are left out.

    ``OPENAI_BASE_URL`` and ``OPENAI_API_KEY`` are read by every client of OpenAI's, and the same of ``ANTHROPIC_`` by
    every one of Anthropic's, so that an agent needs no change.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "ANTHROPIC_"))}
    return {
        **kept,
        "OPENAI_BASE_URL": session.url,
        "OPENAI_API_KEY": session.name,
        "ANTHROPIC_BASE_URL": session.anthropic_url,
        "ANTHROPIC_API_KEY": session.name,
        "CALLWRIGHT_TOOLS_URL": session.tools_url,
        "CALLWRIGHT_MCP_URL": session.mcp_url,
        "CALLWRIGHT_QUERY": session.task.query,
        "CALLWRIGHT_TASK": session.task.id,
        "CALLWRIGHT_SEED": str(session.seed),
        "PYTHONHASHSEED": str(session.seed % 2**32),
        **given,
    }


async def run_agent(
    words: Sequence[str], session: GatewaySession, *, time_limit: float, given: Mapping[str, str]
) -> AgentEnded:
    """Run an agent to its end, ``time_limit`` seconds at most.

    On standard input it reads its task as JSON: ``query``, ``tools`` (as OpenAI's functions) and ``messages``; what it
    writes to standard output is its answer. Raises :class:`callwright.UsageError` for a command that does not exist.
    """
    task = session.task
    told: dict[str, Any] = {
        "task": task.id,
        "query": task.query,
        "tools": [spec.to_openai() for spec in task.offered.values()],
        "messages": [{"role": "user", "content": task.query}],
    }
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment_of(session, given),
            start_new_session=True,
            preexec_fn=_ending_with(os.getpid()),
        )
    except OSError as error:
        raise UsageError(f"the agent's command {words[0]!r} cannot be started: {error.strerror}") from error
    try:
        out, err = await asyncio.wait_for(process.communicate(json.dumps(told).encode()), time_limit)
    except TimeoutError:
        return AgentEnded("", f"the agent did not end within {time_limit:g} seconds")
    finally:
        _kill(process)
        await process.wait()
    answer = out[:_MOST_OUTPUT].decode("utf-8", "replace").strip()
    said = redacted(err.decode("utf-8", "replace").strip())
    if process.returncode:
        how = f"status {process.returncode}" if process.returncode > 0 else f"signal {-process.returncode}"
        last = said.splitlines()[-1][-_QUOTED:] if said else "it wrote nothing to standard error"
        return AgentEnded(answer, f"the agent ended with {how}: {last}", said)
    return AgentEnded(answer, said=said)


def _ending_with(parent: int) -> Callable[[], None] | None:
    """What a copy of this process does before it becomes the agent: it asks to be killed when this one is.

    On Linux alone; elsewhere an agent whose parent was killed goes on until its model is gone.
    """
    if sys.platform != "linux":
        return None
    import ctypes

    prctl = ctypes.CDLL(None).prctl

    def ask() -> None:
        prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it has gone before it was asked about
            os._exit(1)

    return ask


def _kill(process: asyncio.subprocess.Process) -> None:
    """The agent, and whatever it started that is still there."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
