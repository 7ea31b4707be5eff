"""What scored logs become elsewhere: trajectories of Harbor, scores on OpenTelemetry's spans, rows for training.

Sources: ATIF's RFC 0001, version 1.7; the event ``gen_ai.evaluation.result`` of OpenTelemetry's GenAI conventions
0.1.0, in OTLP 1.10; rows for training are those of TRL's conversational formats with tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from callwright import __version__
from callwright.episodes.logs.log import Log
from callwright.episodes.logs.logged import ORIGIN
from callwright.episodes.logs.told import arguments_of
from callwright.episodes.logs.unstated import UnstatedTools
from callwright.language.messages import Message
from callwright.walk.reward import Reward

_VERSION: Final = "ATIF-v1.7"
_TRACE, _SPAN = 32, 16
#: Keys of rows for training that hold a conversation.
CONVERSATIONS: Final = ("messages", "prompt", "chosen", "rejected")
#: Messages at the beginning of a conversation that nobody sampled.
_GIVEN: Final = ("system", "developer", "user")


def tools_of(log: Log) -> list[dict[str, Any]]:
    """The definitions of the tools that were offered; none where nobody states them."""
    return [] if isinstance(log.task.tools, UnstatedTools) else [one.to_openai() for one in log.task.offered.values()]


def trajectory(log: Log, reward: Reward | None = None) -> dict[str, Any]:
    """A log as a trajectory of ATIF. A reward stands under ``extra`` of the trajectory.

    Arguments that are no object stand as text under ``extra`` of their call, since the format takes objects alone.
    """
    steps: list[dict[str, Any]] = []
    open_calls: dict[str, dict[str, Any]] = {}
    for message in log.messages:
        if message.role == "tool" and message.tool_call_id in open_calls:
            step = open_calls.pop(message.tool_call_id)
            result = {"source_call_id": message.tool_call_id, "content": message.text}
            step.setdefault("observation", {"results": []})["results"].append(result)
            continue
        step = _step(len(steps) + 1, message)
        steps.append(step)
        open_calls |= {call["tool_call_id"]: step for call in step.get("tool_calls", ())}
    agent: dict[str, Any] = {"name": "unknown", "version": "unknown"}
    if tools := tools_of(log):
        agent["tool_definitions"] = tools
    made: dict[str, Any] = {"schema_version": _VERSION, "session_id": log.task.id, "agent": agent, "steps": steps}
    extra = {"callwright": {"version": __version__}} if reward is None else {"callwright": _scored(reward)}
    return {**made, "extra": extra}


def _step(number: int, message: Message) -> dict[str, Any]:
    source = {"system": "system", "developer": "system", "assistant": "agent"}.get(message.role, "user")
    step: dict[str, Any] = {"step_id": number, "source": source, "message": message.text}
    if message.role != "assistant":
        return step
    if message.thought:
        step["reasoning_content"] = message.thought
    if message.tool_calls:
        step["tool_calls"] = [_call(f"step_{number}_{at}", call) for at, call in enumerate(message.tool_calls)]
    return step


def _call(usual: str, call: Any) -> dict[str, Any]:
    arguments = arguments_of(call.arguments)
    made = {"tool_call_id": call.id or usual, "function_name": call.name, "arguments": arguments or {}}
    return made if arguments is not None else {**made, "extra": {"arguments_text": call.arguments}}


def _scored(reward: Reward) -> dict[str, Any]:
    found: dict[str, Any] = {"version": __version__, "reward": reward.total, "stage": reward.stage}
    found["scores"] = {name: one.score.value for name, one in reward.scores.items()}
    return found | ({"masked": reward.masked} if reward.masked else {})


def evaluations(scored: Iterable[tuple[Log, Reward]], name: str, at: int = 0) -> dict[str, Any]:
    """The rewards of logs as events of OTLP, each on the span that it is about: an export of log records.

    ``at`` is their time in nanoseconds since 1970. Logs of no span are left out. The reward is one event, and each
    term another; of a masked one there is the explanation alone, and ``error.type``.
    """
    records = [record for log, reward in scored for record in _records(log, reward, name, at)]
    scope = {"scope": {"name": "callwright", "version": __version__}, "logRecords": records}
    return {"resourceLogs": [{"resource": {"attributes": []}, "scopeLogs": [scope]}]}


def events_of(export: Mapping[str, Any]) -> int:
    """How many events an export of :func:`evaluations` holds."""
    return len(export["resourceLogs"][0]["scopeLogs"][0]["logRecords"])


def _records(log: Log, reward: Reward, name: str, at: int) -> Iterator[dict[str, Any]]:
    origin = log.task.facts.get(ORIGIN)
    if not isinstance(origin, Mapping) or not (
        _is_id(origin.get("trace"), _TRACE) and _is_id(origin.get("span"), _SPAN)
    ):
        return
    values: list[tuple[str, float | None, str]] = [(name, reward.total, reward.explain())]
    if reward.total is not None:
        values += [
            (f"{name}.{term}", one.score.value, "; ".join(each.reason for each in one.score.evidence))
            for term, one in reward.scores.items()
        ]
    for label, value, why in values:
        attributes: list[dict[str, Any]] = [_text("gen_ai.evaluation.name", label)]
        if value is None:
            attributes.append(_text("error.type", "masked"))
        else:
            attributes.append({"key": "gen_ai.evaluation.score.value", "value": {"doubleValue": value}})
        if why:
            attributes.append(_text("gen_ai.evaluation.explanation", why))
        yield {
            "timeUnixNano": str(at),
            "eventName": "gen_ai.evaluation.result",
            "traceId": origin["trace"],
            "spanId": origin["span"],
            "attributes": attributes,
        }


def _is_id(value: Any, digits: int) -> bool:
    return isinstance(value, str) and len(value) == digits and all(one in "0123456789abcdefABCDEF" for one in value)


def _text(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value}}


def chat(log: Log, reward: Reward) -> dict[str, Any]:
    """A row for supervised training: the conversation up to the last message that was sampled, and the tools."""
    said = list(log.messages)
    while said and said[-1].role != "assistant":
        said.pop()
    row = {"id": log.task.id, "messages": [one.to_openai() for one in said], "reward": reward.total}
    return row | ({"tools": tools} if (tools := tools_of(log)) else {})


def pairs(scored: Iterable[tuple[Log, Reward]], margin: float = 0.0) -> Iterator[dict[str, Any]]:
    """Preferences: of logs with one beginning, the best and the worst, if their rewards differ by more than ``margin``.

    The beginning, ``prompt``, are the messages before the first that was sampled, with the tools.
    """
    groups: dict[str, list[tuple[float, Log]]] = {}
    for log, reward in scored:
        if reward.total is not None and _sampled(log):
            key = repr(([one.to_openai() for one in _prompt(log)], tools_of(log)))
            groups.setdefault(key, []).append((reward.total, log))
    for members in groups.values():
        best, worst = max(members, key=lambda one: one[0]), min(members, key=lambda one: one[0])
        if best[0] - worst[0] > margin:
            row: dict[str, Any] = {"id": best[1].task.id, "prompt": [one.to_openai() for one in _prompt(best[1])]}
            row |= {"chosen": _sampled(best[1]), "rejected": _sampled(worst[1])}
            row |= {"chosen_reward": best[0], "rejected_reward": worst[0]}
            yield row | ({"tools": tools} if (tools := tools_of(best[1])) else {})


def _prompt(log: Log) -> list[Message]:
    first = next((at for at, one in enumerate(log.messages) if one.role not in _GIVEN), len(log.messages))
    return list(log.messages[:first])


def _sampled(log: Log) -> list[dict[str, Any]]:
    rest = list(log.messages[len(_prompt(log)) :])
    while rest and rest[-1].role != "assistant":
        rest.pop()
    return [one.to_openai() for one in rest]
