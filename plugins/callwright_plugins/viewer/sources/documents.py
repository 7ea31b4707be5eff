"""Documents: a row as a page shows it, with its conversation, its calls, and evidence at its place in the text.

    {"conversation": [{"role", "text", "loss", "calls", "marks"}], "calls": […], "scores": […], …}

``loss`` says whether the tokens of a text carried any; ``calls`` are the numbers of the calls that a text wrote, and
``marks`` stretches of it (``[start, end, component, number of the evidence]``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from callwright_plugins.viewer.sources.entries import Row, listed, number_of, table, text_of, whole
from callwright_plugins.viewer.sources.finding import Kind
from callwright_plugins.viewer.sources.placing import call_spans, place_of

#: Characters of a text that a page gets; the row has all.
_LONGEST: Final = 200_000
_ROLES: Final = {"developer": "system"}
#: What is shown elsewhere on the page.
_APART: Final = frozenset(
    "prompt completion completions messages turns scores trace observations tokens said facts program tools".split()
)


def document(kind: Kind, row: Row) -> dict[str, Any]:
    """The document of a row."""
    if kind == "tasks":
        return _task_document(row)
    calls = _calls(row)
    conversation = list(_conversation(row, calls))
    scores = list(_scores(row))
    _mark(conversation, calls, scores)
    return {
        "conversation": conversation,
        "calls": calls,
        "scores": scores,
        "expected": row.get("expected"),
        "found": row.get("found"),
        "at": row.get("at"),
        "has_tokens": bool(row.get("tokens")) and isinstance(row.get("tokens"), list),
        "masked": _why_masked(row),
        "more": {key: value for key, value in row.items() if key not in _APART},
    }


def _why_masked(row: Row) -> str | None:
    """Why nothing is known of a rollout: rows of evaluations say it apart from the flag."""
    reason = row.get("lost") if row.get("masked") is True else row.get("masked")
    return reason if isinstance(reason, str) else None


# Calls ----------------------------------------------------------------------------------------------------------------


def _calls(row: Row) -> list[dict[str, Any]]:
    """The calls that ran, with what they came to, and whether the state of the world was another one after it."""
    observed = [table(one) for one in listed(row.get("observations"))]
    traced = [table(one) for one in listed(row.get("trace"))]
    made: list[dict[str, Any]] = []
    states = [text_of(one.get("state")) for one in observed]
    for number, one in enumerate(traced or observed):
        beside = observed[number] if number < len(observed) else {}
        call = {
            key: one[key]
            for key in ("turn", "call", "tool", "arguments", "kind", "value", "size", "code", "message")
            if key in one
        }
        if not traced:  # of an earlier version: the value is a digest
            call.pop("value", None)
        if "value" not in call and beside.get("value"):
            call["digest"] = beside["value"]
        if text_of(beside.get("by")):
            call["by"] = beside["by"]
        state, before = (states[number], states[number - 1] if number else "") if number < len(states) else ("", "")
        if state and before:
            call["changed"] = state != before
        made.append(call)
    return made


# The conversation -----------------------------------------------------------------------------------------------------


def _conversation(row: Row, calls: Sequence[Row]) -> Iterator[dict[str, Any]]:
    messages = [table(one) for one in listed(row.get("messages"))]
    turns = [table(one) for one in listed(row.get("turns"))]
    prompt, completion = row.get("prompt"), row.get("completion")
    if messages:
        yield from _of_messages(messages, calls, text_of(completion))
        return
    if isinstance(prompt, str) and prompt:
        yield _said("prompt", prompt, loss=False)
    elif text_of(row.get("query")):
        yield _said("user", text_of(row.get("query")), loss=False)
    masked = row.get("total", 0) is None
    if not turns:
        if isinstance(completion, str):
            written = [number for number, call in enumerate(calls) if not call.get("by")]
            yield _said("assistant", completion, loss=not masked, calls=written)
        return
    place = 0
    for turn in turns:
        count = whole(turn.get("calls")) or 0
        written = [n for n in range(place, min(place + count, len(calls))) if not calls[n].get("by")]
        place += count
        yield _said("assistant", text_of(turn.get("completion")), loss=not masked, calls=written)
        user = table(turn.get("user"))
        if text_of(turn.get("observation")):
            yield _said("user" if user and not count else "observation", text_of(turn.get("observation")), loss=False)


def _of_messages(messages: Sequence[Row], calls: Sequence[Row], completion: str) -> Iterator[dict[str, Any]]:
    """Messages as they were. Without calls of their own, an assistant's texts hold the calls of their turn."""
    turn, place = 0, 0
    last = max((n for n, one in enumerate(messages) if one.get("role") == "assistant"), default=-1)
    turned = any("turn" in call for call in calls)
    for number, message in enumerate(messages):
        role = text_of(message.get("role"))
        text = text_of(message.get("content"))
        asked = [table(one) for one in listed(message.get("tool_calls"))]
        if role == "assistant":
            if asked:
                written = list(range(place, min(place + len(asked), len(calls))))
                place += len(asked)
                if not text and len(written) < len(asked):
                    text = "\n".join(_written(one) for one in asked)
            elif turned:
                written = [n for n, call in enumerate(calls) if call.get("turn") == turn]
            else:
                written = list(range(len(calls))) if number == last and not place else []
            turn += 1
            yield _said(
                "assistant", text or (completion if number == last else ""), loss=None, calls=written, asked=asked
            )
        else:
            yield _said(_ROLES.get(role, role or "?"), text, loss=None, name=text_of(message.get("name")))


def _written(call: Row) -> str:
    function = table(call.get("function"))
    return f"{text_of(function.get('name'))}({text_of(function.get('arguments'))})"


def _said(
    role: str, text: str, *, loss: bool | None, calls: Sequence[int] = (), name: str = "", asked: Sequence[Row] = ()
) -> dict[str, Any]:
    made: dict[str, Any] = {"role": role, "text": text[:_LONGEST], "loss": loss, "calls": list(calls), "marks": []}
    if len(text) > _LONGEST:
        made["cut"] = len(text) - _LONGEST
    if name:
        made["name"] = name
    if asked:
        made["asked"] = [
            {
                "id": text_of(one.get("id")),
                "name": text_of(table(one.get("function")).get("name")),
                "arguments": text_of(table(one.get("function")).get("arguments")),
            }
            for one in asked
        ]
    return made


# Scores ---------------------------------------------------------------------------------------------------------------


def _scores(row: Row) -> Iterator[dict[str, Any]]:
    for name, value in table(row.get("scores")).items():
        part = table(value)
        evidence = [dict(table(one)) for one in listed(part.get("evidence"))]
        yield {
            "name": name,
            "value": number_of(part.get("value")),
            "low": number_of(part.get("low")),
            "high": number_of(part.get("high")),
            "weight": number_of(part.get("weight")),
            "closed": any(one.get("code") == "gate_closed" for one in evidence),
            "evidence": evidence,
        }


def _mark(conversation: list[dict[str, Any]], calls: Sequence[Row], scores: Sequence[Row]) -> None:
    """Put evidence to the stretches of text that it is about."""
    spoken = [said for said in conversation if said["role"] == "assistant"]
    for said in spoken:
        written = [calls[n] for n in said["calls"]]
        names = [text_of(calls[n].get("tool")) or _told_name(n, scores) for n in said["calls"]]
        spans = call_spans(said["text"], names)
        places = {
            call["call"] if isinstance(call.get("call"), int) else n: span
            for call, span, n in zip(written, spans, said["calls"], strict=True)
        }
        for score in scores:
            for number, evidence in enumerate(score["evidence"]):
                turn = evidence.get("turn")
                if isinstance(turn, int) and written and written[0].get("turn", turn) != turn:
                    continue
                span = place_of(said["text"], evidence, places, last=said is spoken[-1])
                if span is not None:
                    said["marks"].append([span[0], span[1], score["name"], number])


def _told_name(number: int, scores: Sequence[Row]) -> str:
    """The name of a call's tool from what evidence says of it, where the row has no trace."""
    for score in scores:
        for evidence in score["evidence"]:
            if evidence.get("call") == number:
                words = text_of(evidence.get("reason")).split()
                if len(words) > 2 and words[0] == "call":
                    return words[2].split(".")[0].rstrip(":")
    return ""


# Tasks ----------------------------------------------------------------------------------------------------------------


def _task_document(row: Row) -> dict[str, Any]:
    facts = table(row.get("facts"))
    conversation = [_said("user", text_of(row.get("query")), loss=None)]
    calls: list[dict[str, Any]] = []
    user = _User(row, facts)
    for turn in map(table, listed(facts.get("gold"))):
        some = [table(one) for one in listed(turn.get("calls"))]
        if some:
            written = list(range(len(calls), len(calls) + len(some)))
            calls += [{"tool": text_of(one.get("tool")), "arguments": one.get("arguments")} for one in some]
            conversation.append(_said("assistant", "", loss=None, calls=written))
        elif said := text_of(turn.get("say")):
            conversation.append(_said("assistant", said, loss=None))
            if (told := user.hears(said)) is not None:
                conversation.append(_said("user", told, loss=None))
    if not facts.get("gold"):
        for one in listed(table(row.get("program")).get("calls")):
            one = table(one)
            calls.append({"tool": text_of(one.get("tool")), "arguments": one.get("arguments")})
        conversation.append(_said("assistant", "", loss=None, calls=list(range(len(calls)))))
    return {
        "conversation": conversation,
        "calls": calls,
        "scores": [],
        "expected": row.get("answer"),
        "found": None,
        "at": None,
        "has_tokens": False,
        "masked": None,
        "plan": facts.get("blueprint"),
        "goal": facts.get("goal"),
        "steps": facts.get("steps"),
        "more": {**{key: value for key, value in row.items() if key not in _APART}, "tools": row.get("tools")},
    }


class _User:
    """What the user of a synthesised task says next: what it held back where it is asked, else its next query."""

    def __init__(self, row: Row, facts: Row) -> None:
        options = table(table(row.get("user")).get("options"))
        self._queries = [text_of(table(one).get("query")) for one in listed(facts.get("stages"))]
        self._tells = [
            table(options.get("tells")),
            *(table(table(one).get("tells")) for one in listed(options.get("then"))),
        ]
        self._stage, self._told = 0, False

    def hears(self, said: str) -> str | None:
        """Its answer to words of the assistant; ``None`` where it has nothing more to say."""
        tells = self._tells[self._stage] if self._stage < len(self._tells) else {}
        if tells and not self._told and said.rstrip().endswith("?"):
            self._told = True
            return " ".join(map(text_of, tells.values()))
        self._stage, self._told = self._stage + 1, False
        return self._queries[self._stage] if self._stage < len(self._queries) else None
