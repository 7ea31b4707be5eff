"""tau2's own evaluators on dialogues that hold a task's reference; runs in tau2's interpreter (tau2_agreement.py)."""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
import time
import types
from typing import Any

#: Packages whose own imports are left out: clients of models, which no evaluator here asks.
BARE = ("tau2", "tau2.orchestrator", "tau2.evaluator", "tau2.runner", "tau2.agent")


def _module(name: str) -> Any:
    for package in BARE:
        if package not in sys.modules:
            path = None if "." not in package else sys.modules[package.rpartition(".")[0]].__path__
            found = importlib.machinery.PathFinder.find_spec(package, path)
            assert found is not None
            sys.modules[package] = types.ModuleType(package)
            sys.modules[package].__path__ = list(found.submodule_search_locations or ())
    importlib.import_module("loguru").logger.remove()
    return importlib.import_module(name)


def _constructor(domain: str) -> Any:
    module = _module(f"tau2.domains.{domain}.environment")
    return getattr(module, "get_environment", None) or module.get_environment_manual_policy


def dialogue(domain: str, task: dict[str, Any], dropped: int) -> dict[str, Any]:
    """The calls of a reference with their results; without the last ``dropped`` ones that change something."""
    messages, tasks = _module("tau2.data_model.message"), _module("tau2.data_model.tasks")
    read = tasks.Task.model_validate(task)
    environment = _constructor(domain)()
    state = read.initial_state
    history = (state.message_history if state else None) or []
    environment.set_state(
        state.initialization_data if state else None, state.initialization_actions if state else None, history
    )
    actions = list(read.evaluation_criteria.actions or [])
    for _ in range(dropped):
        writing = [at for at, one in enumerate(actions) if environment._is_mutating_tool(one.name)]
        if not writing:
            return {}
        del actions[writing[-1]]
    calls = []
    for at, one in enumerate(actions):
        call = messages.ToolCall(id=str(at), name=one.name, arguments=one.arguments, requestor=one.requestor)
        calls.append([one.requestor, one.name, one.arguments, environment.get_response(call).content])
    return {"calls": calls}


def reward(domain: str, task: dict[str, Any], calls: list[Any], said: list[str]) -> dict[str, Any]:
    """What the official evaluators say of a dialogue, with the seconds that they took."""
    messages, tasks = _module("tau2.data_model.message"), _module("tau2.data_model.tasks")
    environment = _module("tau2.evaluator.evaluator_env").EnvironmentEvaluator
    action = _module("tau2.evaluator.evaluator_action").ActionEvaluator
    communicate = _module("tau2.evaluator.evaluator_communicate").CommunicateEvaluator
    read = tasks.Task.model_validate(task)
    made: list[Any] = list((read.initial_state.message_history if read.initial_state else None) or [])
    for at, (by, name, arguments, content) in enumerate(calls):
        call = messages.ToolCall(id=f"made_{at}", name=name, arguments=arguments, requestor=by)
        kind = messages.UserMessage if by == "user" else messages.AssistantMessage
        made.append(kind(role=by, content=None, tool_calls=[call]))
        made.append(messages.ToolMessage(id=call.id, role="tool", content=content, requestor=by))
    made += [messages.AssistantMessage(role="assistant", content=text) for text in said]
    begun = time.perf_counter()
    world = environment.calculate_reward(_constructor(domain), read, made)
    acted = action.calculate_reward(read, made)
    told = communicate.calculate_reward(read, made)
    seconds = time.perf_counter() - begun
    basis = {one.value for one in read.evaluation_criteria.reward_basis}
    factors = {one.value: value for one, value in (world.reward_breakdown or {}).items()}
    if "ACTION" in basis:
        factors["ACTION"] = acted.reward
    if "COMMUNICATE" in basis:
        factors["COMMUNICATE"] = told.reward
    return {"factors": factors, "db_match": world.db_check.db_match, "seconds": seconds}
