"""An evaluation as a log of Inspect (``inspect_ai``), which ``inspect view`` and ``read_eval_log`` open.

The log is JSON in version 2 of Inspect's format; nothing of Inspect is imported. It is made of the kept rows alone.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from callwright import __version__
from callwright.measuring.folders import RESULT, SETTINGS, Evaluated

#: How the score of a sample is called in the log.
SCORER: Final = "callwright"
_ROLES: Final = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
_THOUGHTS: Final = ("reasoning_content", "reasoning", "thinking")
#: What Inspect keeps in places of its own.
_TOLD: Final = frozenset({"messages", "completion", "completions", "id", "task", "sample", "expected", "query"})


def inspect_log(evaluated: Evaluated) -> dict[str, Any]:
    """The log of an evaluation.

    A sample of a task is an epoch of an Inspect sample, ``C`` or ``I``; a masked one has an error and no score, as
    nothing is known of it. ``accuracy`` leaves those out. What the benchmark's own table says are further metrics.
    """
    made = datetime.fromtimestamp((evaluated.path / SETTINGS).stat().st_mtime, UTC).isoformat(timespec="seconds")
    systems: dict[str, list[dict[str, Any]]] = {}
    samples = [_sample(row, evaluated.name, systems) for row in _rows(evaluated)]
    known = [one["scores"][SCORER]["value"] == "C" for one in samples if "scores" in one]
    values: dict[str, float] = {"accuracy": sum(known) / len(known)} if known else {}
    stated = evaluated.stated.get("values")
    for name, value in (stated if isinstance(stated, Mapping) else {}).items():
        if type(value) in (int, float):
            values[f"table: {name}"] = value
    metrics = {name: {"name": name, "value": value} for name, value in values.items()}
    name, _, version = evaluated.benchmark.partition(":")
    marked = hashlib.sha256(json.dumps(evaluated.settings, sort_keys=True).encode()).hexdigest()[:22]
    ids = list(dict.fromkeys(one["id"] for one in samples))
    score = {
        "name": SCORER,
        "scorer": SCORER,
        "scored_samples": len(known),
        "unscored_samples": len(samples) - len(known),
        "metrics": metrics,
    }
    return {
        "version": 2,
        "status": "success" if (evaluated.path / RESULT).exists() else "cancelled",
        "eval": {
            # Fixed by what was measured: Inspect would draw another at each reading.
            "eval_id": marked,
            "run_id": marked,
            "task_id": marked,
            "created": made,
            "task": name,
            "task_version": version or 0,
            "dataset": {"name": name, "samples": len(ids), "sample_ids": ids, "shuffled": False},
            "model": evaluated.name,
            "config": {"epochs": max((one["epoch"] for one in samples), default=1)},
            "packages": {"callwright": __version__},
            "metadata": {"settings": dict(evaluated.settings), "unofficial": list(evaluated.unofficial)},
        },
        # Headers are read without the samples, and only where these two are there.
        "plan": {"name": "plan", "steps": [{"solver": SCORER, "params": {}}]},
        "results": {"total_samples": len(samples), "completed_samples": len(known), "scores": [score]},
        "stats": {"started_at": made, "completed_at": made},
        "samples": samples,
    }


def log_name(log: Mapping[str, Any]) -> str:
    """A file name under which ``inspect view`` lists a log of JSON: time, task and a name, with ``_`` between them."""
    stated = log["eval"]
    parts = (re.sub(r"[^A-Za-z0-9.-]+", "-", str(part))[:60] or "x" for part in (stated["task"], stated["model"]))
    return "_".join([stated["created"].replace(":", "-"), *parts]) + ".json"


def _rows(evaluated: Evaluated) -> Iterator[Mapping[str, Any]]:
    return (evaluated.row(place) for place in range(len(evaluated.verdicts)))


def _sample(row: Mapping[str, Any], model: str, systems: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """``systems`` keeps what opens the first sample of a task: rows of later ones leave it out."""
    said = list(_messages(row.get("messages") or []))
    opening = [one for one in said if one["role"] == "system"]
    if row["sample"] == 0:
        systems[row["task"]] = opening
    elif not opening:
        said = [*systems.get(row["task"], []), *said]
    if not said:
        said = [{"role": "user", "content": str(row.get("query", ""))}]
    begin = next((place for place, one in enumerate(said) if one["role"] == "assistant"), len(said))
    made: dict[str, Any] = {
        "id": row["task"],
        "epoch": row["sample"] + 1,
        "input": said[:begin],
        "target": json.dumps(row["expected"], ensure_ascii=False) if "expected" in row else "",
        "messages": said,
        "metadata": {key: value for key, value in row.items() if key not in _TOLD},
    }
    last = next((one for one in reversed(said) if one["role"] == "assistant"), None)
    if last is not None:
        stop = "max_tokens" if row.get("truncated") else "stop"
        choice = {"message": {**last, "source": "generate", "model": model}, "stop_reason": stop}
        made["output"] = {"model": model, "choices": [choice], "completion": str(row.get("completion", ""))}
    if isinstance(usage := row.get("usage"), Mapping):
        made["model_usage"] = {model: _usage(usage)}
    if row["masked"]:
        judgement = row.get("judgement")
        why = row.get("lost") or (judgement.get("masked") if isinstance(judgement, Mapping) else None)
        message = f"masked: {why or 'nothing is known of this attempt'}"
        made["error"] = {"message": message, "traceback": "", "traceback_ansi": ""}
    else:
        score: dict[str, Any] = {"value": "C" if row["answer"] else "I", "answer": str(row.get("completion", ""))}
        if row.get("error"):
            score["explanation"] = row["error"]
        made["scores"] = {SCORER: score}
    return made


def _usage(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Tokens as Inspect counts them: those of the input that a cache held are counted apart."""
    prompt, cached, made = (int(usage.get(f"{kind}_tokens", 0)) for kind in ("prompt", "cached", "completion"))
    told = {"input_tokens": max(prompt - cached, 0), "output_tokens": made, "total_tokens": prompt + made}
    told |= {"input_tokens_cache_read": cached} if cached else {}
    return told | ({"reasoning_tokens": int(usage["reasoning_tokens"])} if "reasoning_tokens" in usage else {})


def _messages(kept: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Messages of the wire format as Inspect has them: arguments are objects, thoughts are parts of the content."""
    for one in kept:
        if not isinstance(one, Mapping):
            continue
        role = _ROLES.get(str(one.get("role")), "user")
        message: dict[str, Any] = {"role": role, "content": _content(one.get("content"))}
        if role == "assistant":
            thought = next((one[key] for key in _THOUGHTS if isinstance(one.get(key), str) and one[key]), None)
            if thought is not None:
                content = message["content"]
                parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
                message["content"] = [{"type": "reasoning", "reasoning": thought}, *parts]
            if calls := list(_calls(one.get("tool_calls") or [])):
                message["tool_calls"] = calls
        if role == "tool":
            if isinstance(answered := one.get("tool_call_id"), str):
                message["tool_call_id"] = answered
            if isinstance(name := one.get("name"), str):
                message["function"] = name
        yield message


def _content(given: Any) -> str | list[dict[str, Any]]:
    if given is None or isinstance(given, str):
        return given or ""
    parts = []
    for part in given if isinstance(given, list) else [given]:
        text = part if isinstance(part, str) else part.get("text") if isinstance(part, Mapping) else None
        parts.append({"type": "text", "text": text if isinstance(text, str) else json.dumps(part, ensure_ascii=False)})
    return parts


def _calls(given: Any) -> Iterator[dict[str, Any]]:
    for number, one in enumerate(given if isinstance(given, list) else ()):
        function = one.get("function") if isinstance(one, Mapping) else None
        if not isinstance(function, Mapping):
            continue
        made = {"id": str(one.get("id") or f"call_{number}"), "function": str(function.get("name", ""))}
        written = function.get("arguments")
        try:
            arguments = json.loads(written) if isinstance(written, str) else written
        except (ValueError, RecursionError) as error:
            yield {**made, "arguments": {}, "parse_error": f"{type(error).__name__}: {written}", "type": "function"}
            continue
        if not isinstance(arguments, dict):
            yield {**made, "arguments": {}, "parse_error": f"no object: {written}", "type": "function"}
            continue
        yield {**made, "arguments": arguments, "type": "function"}
