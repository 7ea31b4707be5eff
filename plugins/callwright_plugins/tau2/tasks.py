"""Tasks of tau2's files, as dialogues that an agent has with a user."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from callwright.environments.protocol import Environment
from callwright.errors import DataError
from callwright.language.messages import Message, ToolCall
from callwright.walk.openings.opening import By, InitialCall, Opening
from callwright.walk.tasks import Answer, Task
from callwright.walk.users.said import UserSpec
from callwright_plugins.tau2.scoring import Criteria

#: What the agent begins every dialogue with that has no history.
GREETING: Final = "Hi! How can I help you today?"
#: By which the user ends a dialogue: it has what it wanted, it was handed on, its task says no more.
SIGNS: Final = ("###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###")
_SETTLED: Final = "Everything is settled."
_ASKS_FOR_IT: Final = "Please do this on your side now."
_DID_IT: Final = "I have done that."


@frozen
class Release:
    """The tasks of one commit of tau2-bench: names of its file, how many there are, and whether each states a basis."""

    commit: str
    files: tuple[str, ...]
    count: int
    states_basis: bool = True


def read_tasks(folder: Path, release: Release, split: str) -> list[dict[str, Any]]:
    """The tasks of a domain's folder, those of its ``split`` where there is a file of splits.

    Raises :class:`callwright.errors.DataError` for a folder without the file, one that is of another release, and a
    split that is not there.
    """
    file = next((folder / name for name in release.files if (folder / name).is_file()), None)
    if file is None:
        raise DataError(
            f"{folder} holds none of {', '.join(release.files)} (tau2-bench at {release.commit}): see --data"
        )
    tasks = _json(file)
    tasks = tasks.get("tasks") if isinstance(tasks, dict) else tasks
    if not isinstance(tasks, list) or not all(
        isinstance(one, dict) and isinstance(one.get("id"), str) for one in tasks
    ):
        raise DataError(f"{file}: expected a list of tasks, each with its 'id'")
    stated = {bool((one.get("evaluation_criteria") or {}).get("reward_basis")) for one in tasks}
    if tasks and stated != {release.states_basis}:
        says = "states" if release.states_basis else "does not state"
        raise DataError(
            f"{file} is not of tau2-bench at {release.commit}, where each task {says} its 'reward_basis': name another "
            "version (NAME:VERSION)"
        )
    splits = folder / "split_tasks.json"
    if splits.is_file():
        known = _json(splits)
        if split not in known:
            raise DataError(f"{splits} has no split {split!r}; there are: {', '.join(known)}")
        chosen = set(known[split])
        tasks = [one for one in tasks if one["id"] in chosen]
    if not tasks:
        raise DataError(f"{file} holds no task of the split {split!r}")
    return tasks


def _json(file: Path) -> Any:
    try:
        return json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{file} cannot be read as JSON: {error}") from error


# As dialogues ---------------------------------------------------------------------------------------------------------


def task_of(stated: Mapping[str, Any], environment: Environment, *, category: str, plays: str, split: str) -> Task:
    """A task as a dialogue. ``plays`` is who its user is: ``model``, ``script`` (the task's own ``user``), or
    ``reference``, who does its part of the reference at the right moment.

    Raises :class:`callwright.errors.DataError` for one that cannot be read.
    """
    try:
        criteria = Criteria.of(stated)
        history = tuple(_history(stated))
        begins = not history or (history[-1].role == "assistant" and not history[-1].tool_calls)
        gold, lines = reference(criteria, wants(stated) if begins else None)
        return Task(
            id=stated["id"],
            query="",
            tools=environment.tools,
            answer=Answer(),
            environment=environment,
            scenario=stated["id"] if stands_by_task(environment) else "",
            split=split,
            depth=0 if criteria is None else len(criteria.actions),
            structure="dialogue",
            facts={"category": category, "gold": gold},
            user=_user(stated, plays, lines),
            opening=Opening(tuple(_initial(stated, environment)), history or (Message.assistant(GREETING),)),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise DataError(f"task {stated.get('id')!r:.80} cannot be read: {error!r:.200}") from error


def stands_by_task(environment: Environment) -> bool:
    """Whether the sessions of an environment begin as the task says whose id is their scenario."""
    return getattr(environment, "scenarios_are_tasks", False) is True


def _initial(stated: Mapping[str, Any], environment: Environment) -> Iterator[InitialCall]:
    """The calls that put the world into place, where these are calls of its tools; tau2's code does it itself."""
    if stands_by_task(environment):
        return
    for one in (stated.get("initial_state") or {}).get("initialization_actions") or ():
        by: By = "user" if one["env_type"] == "user" else "agent"
        yield InitialCall(one["func_name"], one.get("arguments", {}), by)


def _history(stated: Mapping[str, Any]) -> Iterator[Message]:
    """The conversation with which the task begins, in the wire format."""
    for one in (stated.get("initial_state") or {}).get("message_history") or ():
        role, text = one["role"], one.get("content") or ""
        if role == "tool":
            yield Message.tool(text, one.get("id", ""))
            continue
        calls = one.get("tool_calls") or ()
        made = tuple(ToolCall(call.get("id", ""), call["name"], json.dumps(call["arguments"])) for call in calls)
        yield Message(role, text, tool_calls=made)


def wants(stated: Mapping[str, Any]) -> str:
    """What the user of a task wants, in the words with which its scenario says so."""
    told = (stated.get("user_scenario") or {}).get("instructions") or ""
    text = str(told.get("reason_for_call") or "") if isinstance(told, Mapping) else str(told)
    for sign in SIGNS:
        text = text.replace(sign, "")
    return text.strip() or "Hello."


def reference(criteria: Criteria | None, opening: str | None) -> tuple[list[dict[str, Any]], list[Any]]:
    """The reference of a task turn by turn, and the lines of a user who does its part of it.

    Each action is a turn of its own, since the official program does one after another.
    """
    gold: list[dict[str, Any]] = []
    lines: list[Any] = [] if opening is None else [opening]
    theirs: list[dict[str, Any]] = []

    def hand_over() -> None:
        if theirs:
            gold.append({"say": _ASKS_FOR_IT})
            lines.append({"say": _DID_IT, "calls": [*theirs]})
            theirs.clear()

    for action in () if criteria is None else criteria.actions:
        call = {"tool": action["name"], "arguments": action["arguments"]}
        if action.get("requestor") == "user":
            theirs.append(call)
        else:
            hand_over()
            gold.append({"calls": [call]})
    hand_over()
    told = () if criteria is None else criteria.communicate
    gold.append({"say": "\n".join(told) or _SETTLED})
    return gold, [*lines, SIGNS[0]]


def _user(stated: Mapping[str, Any], plays: str, lines: Sequence[Any]) -> UserSpec:
    if plays == "script" and "user" in stated:
        made = UserSpec.from_json(stated["user"])
        assert made is not None
        return made
    if plays != "model":
        return UserSpec("replayed", {"says": list(lines), "stop": list(SIGNS)})
    scenario = stated.get("user_scenario") or {}
    return UserSpec("model", {"goal": _told(scenario), "persona": scenario.get("persona") or "", "stop": list(SIGNS)})


#: The parts of a scenario, and how a user that a model plays is told of each.
_PARTS: Final = (
    ("reason_for_call", "Why you get in touch"),
    ("known_info", "What you know"),
    ("unknown_info", "What you do not know"),
    ("task_instructions", "How you go about it"),
)


def _told(scenario: Mapping[str, Any]) -> str:
    told = scenario.get("instructions") or ""
    if isinstance(told, Mapping):
        told = "\n\n".join(f"{title}: {told[part]}" for part, title in _PARTS if told.get(part))
    ends = (
        f"Write {SIGNS[1]} and nothing else when you are handed on to somebody else, and {SIGNS[2]} when what stands "
        "here does not say how to go on."
    )
    return f"{told}\n\n{ends}"
