"""Prompts: what a model is told for a task."""

from __future__ import annotations

import json

from callwright.corpus import Task
from callwright.parser import Parser
from callwright.plugins import Registry
from callwright.sampler import Message
from callwright.tool import ToolSpec


def build_messages(task: Task, parser: Parser, registry: Registry | None = None) -> tuple[Message, ...]:
    """The system message (the form's instructions, then the offered tools) and the query (TIER, appendix C).

    Plugins that listen to ``callwright_prompt`` may change the messages.
    """
    offered = "\n".join(describe_tool(spec) for spec in task.tools.values() if not spec.hidden)
    system = f"{parser.instructions()}\n\n# Tools\n{offered or '(none)'}\n"
    messages: list[Message] = [{"role": "system", "content": system}, {"role": "user", "content": task.query}]
    if registry is not None and registry.listens("callwright_prompt"):
        registry.hook.callwright_prompt(task=task, messages=messages)
    return tuple(messages)


def describe_tool(spec: ToolSpec) -> str:
    """A tool as one line of JSON: name, description, parameters, and what it returns where the schema says."""
    shown: dict[str, object] = {
        "name": spec.name,
        "description": spec.description,
        "parameters": dict(spec.parameters),
    }
    if spec.result is not None:
        shown["returns"] = dict(spec.result)
    return json.dumps(shown, ensure_ascii=False)
