"""What ``callwright explain`` knows of one completion, as plain values."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from attrs import frozen

from callwright.errors import CallwrightError
from callwright.language.program import Program, plain

if TYPE_CHECKING:
    from callwright.language.parser import Parser
    from callwright.pipeline import Pipeline
    from callwright.tools.validation import Mismatch
    from callwright.training.evaluation import Verdict
    from callwright.walk.attempt import Attempt
    from callwright.walk.reward import Reward
    from callwright.walk.tasks import Task
    from callwright.walk.trace import CallRecord


@frozen
class Walk:
    """One attempt from task to reward."""

    task: Task
    attempt: Attempt
    reward: Reward
    verdict: Verdict
    recipe: str
    json_parser: Parser

    @classmethod
    def of(cls, pipeline: Pipeline, task: Task, completion: str) -> Walk:
        """Parse, validate, execute and score a completion."""
        from callwright.training.evaluation import judge

        attempt = pipeline.attempt(task, completion)
        reward = pipeline.score(attempt)
        registry = pipeline.registry
        reader = registry.create("parser", "json") if "json" in registry.names("parser") else pipeline.parser
        return cls(task, attempt, reward, judge(attempt), pipeline.reward.name, reader)

    def to_json(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        attempt = self.attempt
        failure = attempt.failure
        return {
            "task": task_row(self.task, self.json_parser),
            "completion": attempt.completion.text,
            "failure": None
            if failure is None
            else {
                "stage": failure.stage,
                "code": failure.code,
                "message": failure.message,
                "span": list(failure.span),
            },
            "program": None if attempt.program is None else program_json(attempt.program),
            "mismatches": [mismatch_json(mismatch) for mismatch in self.mismatches()],
            "trace": [step_json(step) for step in (attempt.trace.records if attempt.trace else ())],
            "returned": None if attempt.trace is None else list(attempt.trace.returned),
            "verdict": {
                "answer": self.verdict.answer,
                "valid": self.verdict.valid,
                "failure": self.verdict.failure,
                "masked": self.verdict.masked,
            },
            "recipe": self.recipe,
            "reward": self.reward.to_json(),
        }

    def mismatches(self) -> tuple[Mismatch, ...]:
        """Every schema mismatch, in the order of the walk."""
        validation = self.attempt.validation
        if validation is None:
            return ()
        return (*validation.names, *validation.parameters, *validation.types, *validation.values)


def task_row(task: Task, parser: Parser) -> dict[str, Any]:
    """A task as a row of the format ``task`` (``callwright schema task``)."""
    targets = list(dict.fromkeys(call.tool for call in task.program.calls)) if task.program is not None else []
    return {
        "id": task.id,
        "split": task.split,
        "depth": task.depth,
        "chain": task.chain,
        "structure": task.structure,
        "returns": task.returns,
        "scenario": task.scenario,
        "prompt": task.query,
        "target_tools": targets,
        "distractors": [name for name in task.offered if name not in targets],
        "program": _rendered(task.program, parser),
        "answer": list(task.answer.values),
    }


def _rendered(program: Program | None, parser: Parser) -> str | None:
    if program is None:
        return None
    try:
        return parser.render(program)
    except CallwrightError:  # this form cannot write it; the program is still there for others
        return json.dumps(program_json(program))


def program_json(program: Program) -> dict[str, Any]:
    """A program with what is known of its shape."""
    return {
        "returns": program.returns,
        "depth": program.depth,
        "chain": program.chain,
        "structure": program.structure,
        "thought": program.thought,
        "calls": [{"id": call.id, "tool": call.tool, "arguments": plain(call.arguments)} for call in program.calls],
        "edges": [[program.calls[earlier].id, program.calls[later].id] for earlier, later in program.edges],
        "dangling": [
            {"call": program.calls[position].id, "path": path, "reference": str(reference)}
            for position, path, reference in program.dangling
        ],
    }


def mismatch_json(mismatch: Mismatch) -> dict[str, Any]:
    """A schema mismatch."""
    names = ("kind", "call", "tool", "path", "expected", "found")
    return {name: getattr(mismatch, name) for name in names}


def step_json(step: CallRecord) -> dict[str, Any]:
    """An executed call."""
    outcome = step.outcome
    row = {"call": step.call, "tool": step.tool, "arguments": dict(step.arguments), "outcome": outcome.kind}
    if outcome.executed:
        return {**row, "value": outcome.value}
    return {**row, "code": outcome.code, "message": outcome.message}
