"""Runs that LangSmith exports: JSON lines or a list of runs, or a run with its ``child_runs``.

Runs of the type ``llm`` are requests, with ``messages`` among their ``inputs`` and ``generations``, ``messages`` or
``choices`` as ``outputs``; runs of the type ``tool`` are what calls came to. The requests of a trace are a log; those
below a run of a tool, such as of a sub-agent, are another one. A run has its ``error``; the message that a tool of
LangChain returns has a ``status``. A run of a tool with an empty ``error`` did not raise, which is what LangSmith says
of a call that executed.

Source: docs.langchain.com, "Run (span) data format" and "Log LLM calls"; the shapes of ``inputs`` and ``outputs`` as
the tracer of ``langchain-core`` 1.7 writes them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from callwright.environments.protocol import Outcome
from callwright.episodes.logs.files import peek, pieces_of
from callwright.episodes.logs.log import Log
from callwright.episodes.logs.told import Shelf, outcome_of
from callwright.errors import DataError
from callwright.language.messages import Message
from callwright.tools.spec import ToolSpec
from callwright_plugins.log_formats.langchain import is_message, read_message
from callwright_plugins.log_formats.transcripts import Asked, Ran, transcribed


class LangSmithRuns:
    """The log format ``langsmith``."""

    @property
    def name(self) -> str:
        """``langsmith``."""
        return "langsmith"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether the first value is a run."""
        value = peek(head)
        return isinstance(value, Mapping) and "run_type" in value and ("trace_id" in value or "child_runs" in value)

    def read(self, path: Path, tools: Mapping[str, ToolSpec]) -> Iterator[Log]:
        """A log for each agent of each trace. Raises :class:`callwright.errors.DataError` with the line."""
        traces: dict[str, dict[str, tuple[Mapping[str, Any], str]]] = {}
        for piece in pieces_of(path):
            for run in _flat(piece.value if isinstance(piece.value, list) else [piece.value], piece.where):
                trace = str(run.get("trace_id") or run["id"])
                traces.setdefault(trace, {})[str(run["id"])] = run, piece.where
        shelf = Shelf(tools)
        for trace, runs in traces.items():
            yield from _logs(trace, runs, shelf)


def _flat(given: Sequence[Any], where: str, trace: Any = None, parent: Any = None) -> Iterator[Mapping[str, Any]]:
    """Runs with those below them."""
    for run in given:
        if not isinstance(run, Mapping) or "run_type" not in run or not run.get("id"):
            raise DataError(f"{where}: no run: expected an object with 'id' and 'run_type'")
        own = run.get("trace_id") or trace or run["id"]
        yield {**run, "trace_id": own, "parent_run_id": run.get("parent_run_id") or parent}
        yield from _flat(run.get("child_runs") or (), where, own, run["id"])


def _logs(trace: str, runs: Mapping[str, tuple[Mapping[str, Any], str]], shelf: Shelf) -> Iterator[Log]:
    agents: dict[str, list[Mapping[str, Any]]] = {}
    for run, _ in runs.values():
        if run["run_type"] in ("llm", "tool"):
            agents.setdefault(_around(run, runs), []).append(run)
    for around, members in agents.items():
        requests = [one for one in members if one["run_type"] == "llm"]
        if not requests:
            continue
        where = f"{runs[str(requests[0]['id'])][1]}: trace {trace}"
        statuses: dict[str, bool | None] = {}
        asked = [_asked(one, where, statuses) for one in requests]
        ran = [_ran(one, statuses, where) for one in members if one["run_type"] == "tool"]
        held = [tools for one in requests if (tools := _tools(one)) is not None]
        origin = {"format": "langsmith", "trace": trace, "span": around or trace}
        name = f"{trace}-{around}" if around else trace
        yield transcribed(name, asked, ran, shelf.world(held[-1] if held else None, where), origin)


def _around(run: Mapping[str, Any], runs: Mapping[str, tuple[Mapping[str, Any], str]]) -> str:
    """The run of a tool that a run is below; empty if there is none."""
    at, seen = runs.get(str(run.get("parent_run_id"))), set[str]()
    while at is not None and (name := str(at[0]["id"])) not in seen:
        if at[0]["run_type"] == "tool":
            return name
        seen.add(name)
        at = runs.get(str(at[0].get("parent_run_id")))
    return ""


def _at(run: Mapping[str, Any]) -> tuple[str, str]:
    return str(run.get("start_time") or "").removesuffix("Z"), str(run.get("dotted_order") or "")


def _asked(run: Mapping[str, Any], where: str, statuses: dict[str, bool | None]) -> Asked:
    inputs, outputs = run.get("inputs"), run.get("outputs")
    given = inputs.get("messages") if isinstance(inputs, Mapping) else None
    if isinstance(given, list) and given and isinstance(given[0], list):  # a batch of one
        given = given[0]
    answers, reason = _answers(outputs)
    return Asked(
        _at(run),
        None if not isinstance(given, list) else [_message(one, where, statuses) for one in given],
        [_message(one, where, statuses) for one in answers],
        reason == "length",
    )


def _answers(outputs: Any) -> tuple[list[Any], Any]:
    """The messages that a request was answered with, and why the first one ended."""
    if not isinstance(outputs, Mapping):
        return [], None
    if isinstance(found := outputs.get("generations"), list) and found:
        each = found[0] if isinstance(found[0], list) else found
        messages = [one.get("message") for one in each if isinstance(one, Mapping) and one.get("message")]
        about = each[0].get("generation_info") if each and isinstance(each[0], Mapping) else None
        return messages, about.get("finish_reason") if isinstance(about, Mapping) else None
    if isinstance(found := outputs.get("choices"), list) and found and isinstance(found[0], Mapping):
        return [one["message"] for one in found if isinstance(one, Mapping) and "message" in one], found[0].get(
            "finish_reason"
        )
    if isinstance(found := outputs.get("messages"), list):
        return found, None
    message = outputs.get("message", outputs.get("output", outputs))
    return ([message] if isinstance(message, Mapping) and ("role" in message or is_message(message)) else []), None


def _message(given: Any, where: str, statuses: dict[str, bool | None]) -> Message:
    if is_message(given):
        return read_message(given, where, statuses)
    try:
        return Message.from_openai(given)
    except DataError as error:
        raise DataError(f"{where}: {error}") from error


def _tools(run: Mapping[str, Any]) -> Any:
    extra, inputs = run.get("extra"), run.get("inputs")
    asked = extra.get("invocation_params") if isinstance(extra, Mapping) else None
    for held in (asked, inputs):
        if isinstance(held, Mapping) and isinstance(held.get("tools"), list):
            return held["tools"]
    return None


def _ran(run: Mapping[str, Any], statuses: dict[str, bool | None], where: str) -> Ran:
    extra, outputs, error = run.get("extra"), run.get("outputs"), run.get("error")
    call_id = str(extra.get("tool_call_id") or "") if isinstance(extra, Mapping) else ""
    result = outputs.get("output", outputs) if isinstance(outputs, Mapping) else outputs
    text: str | None = None
    failed: bool | None = None if "error" not in run else bool(error)
    if is_message(result):
        message = read_message(result, where, statuses)
        call_id, text = call_id or message.tool_call_id, message.text
        status = statuses.get(message.tool_call_id)
        failed = failed or status if status is not None else failed
    elif result is not None:
        text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    if failed:
        outcome = outcome_of(text if text is not None and not error else str(error or ""), True, "error")
    elif text is None:
        outcome = Outcome("unknown", None, "", "the log does not say what this call returned")
    else:
        value = result if failed is False and not isinstance(result, str) and not is_message(result) else None
        outcome = outcome_of(text, failed, value=value)
    return Ran(_at(run), str(run.get("name") or ""), _arguments(run.get("inputs")), outcome, call_id, text)


def _arguments(inputs: Any) -> dict[str, Any] | None:
    """The arguments of a tool. Older tracers write them as a text of Python, under ``input``: these are not read."""
    if not isinstance(inputs, Mapping):
        return None
    if inputs.keys() == {"input"} and isinstance(inputs["input"], str):
        try:
            value = json.loads(inputs["input"])
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None
    return dict(inputs)
