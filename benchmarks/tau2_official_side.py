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
    """The calls of a reference with their results; without the last ``dropped`` ones that change something.

    ``left_out`` are the places of these.
    """
    messages, tasks = _module("tau2.data_model.message"), _module("tau2.data_model.tasks")
    read = tasks.Task.model_validate(task)
    environment = _constructor(domain)()
    state = read.initial_state
    history = (state.message_history if state else None) or []
    environment.set_state(
        state.initialization_data if state else None, state.initialization_actions if state else None, history
    )
    actions = list(read.evaluation_criteria.actions or [])
    left_out = []
    for _ in range(dropped):
        writing = [at for at, one in enumerate(actions) if environment._is_mutating_tool(one.name)]
        if not writing:
            return {}
        left_out.append(writing[-1])
        del actions[writing[-1]]
    calls = []
    for at, one in enumerate(actions):
        call = messages.ToolCall(id=str(at), name=one.name, arguments=one.arguments, requestor=one.requestor)
        calls.append([one.requestor, one.name, one.arguments, environment.get_response(call).content])
    return {"calls": calls, "left_out": left_out}


def simulation(domain: str, task: dict[str, Any], calls: list[Any], said: list[str], name: str) -> dict[str, Any]:
    """A dialogue as an official result file has it, with the reward that the official evaluators give it.

    NL_ASSERTION is left out of the reward where there are sentences for a judge. ``run`` is a ``SimulationRun``,
    ``seconds`` the processor time of the evaluators.
    """
    messages, tasks = _module("tau2.data_model.message"), _module("tau2.data_model.tasks")
    simulations = _module("tau2.data_model.simulation")
    environment = _module("tau2.evaluator.evaluator_env").EnvironmentEvaluator
    action = _module("tau2.evaluator.evaluator_action").ActionEvaluator
    communicate = _module("tau2.evaluator.evaluator_communicate").CommunicateEvaluator
    read = tasks.Task.model_validate(task)
    history = (read.initial_state.message_history if read.initial_state else None) or []
    greeting = messages.AssistantMessage(role="assistant", content="Hi! How can I help you today?")
    made: list[Any] = [*history] or [greeting, messages.UserMessage(role="user", content="I need something.")]
    for at, (by, tool, arguments, content) in enumerate(calls):
        call = messages.ToolCall(id=f"made_{at}", name=tool, arguments=arguments, requestor=by)
        kind = messages.UserMessage if by == "user" else messages.AssistantMessage
        made.append(kind(role=by, content=None, tool_calls=[call]))
        made.append(messages.ToolMessage(id=call.id, role="tool", content=content, requestor=by))
    made += [messages.AssistantMessage(role="assistant", content=text) for text in said]
    made.append(messages.UserMessage(role="user", content="###STOP###"))
    begun = time.process_time()
    world = environment.calculate_reward(_constructor(domain), read, made)
    acted = action.calculate_reward(read, made)
    told = communicate.calculate_reward(read, made)
    seconds = time.process_time() - begun
    basis = {one.value for one in read.evaluation_criteria.reward_basis}
    factors = {one.value: value for one, value in (world.reward_breakdown or {}).items()}
    if "ACTION" in basis:
        factors["ACTION"] = acted.reward
    if "COMMUNICATE" in basis:
        factors["COMMUNICATE"] = told.reward
    if "NL_ASSERTION" in basis and not read.evaluation_criteria.nl_assertions:
        factors["NL_ASSERTION"] = 1.0
    reward = 1.0
    for value in factors.values():
        reward *= value
    run = simulations.SimulationRun(
        id=name,
        task_id=read.id,
        start_time="2026-01-01T00:00:00",
        end_time="2026-01-01T00:00:01",
        duration=1.0,
        termination_reason="user_stop",
        messages=made,
        reward_info=simulations.RewardInfo(reward=reward, db_check=world.db_check, reward_breakdown=factors),
    )
    return {"run": run.model_dump(mode="json"), "seconds": seconds}


def stated(task: dict[str, Any]) -> dict[str, Any]:
    """A task as an official result file states it, with all defaults."""
    found: dict[str, Any] = _module("tau2.data_model.tasks").Task.model_validate(task).model_dump(mode="json")
    return found
