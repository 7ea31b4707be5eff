"""JSON Schemas of the file formats. Tests hold every file that the program writes against them.

Rows may gain keys in later versions, so no schema of a written row forbids others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from callwright.errors import UnknownName
from callwright.walk.limits import TRUNCATION_POLICIES
from callwright.walk.task_rows.schema import head_schema, row_schema

Schema = dict[str, Any]

STRING: Final[Schema] = {"type": "string"}
NUMBER: Final[Schema] = {"type": "number"}
COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
SHARE: Final[Schema] = {"type": "number", "minimum": 0, "maximum": 1}
FLAG: Final[Schema] = {"type": "boolean"}

#: Name and one line about each format.
FORMATS: Final[Mapping[str, str]] = {
    "recipe": "a pipeline recipe (TOML): recipe.toml of a run folder, callwright run",
    "manifest": "manifest.json of a run folder: versions, plugins, seed, command",
    "metrics": "a row of metrics.jsonl: one step of training",
    "rollouts": "a row of rollouts.jsonl: one sampled completion with its reward",
    "evaluation": "evaluation.json of a run folder: before, during and after training",
    "grid": "grid.json, which callwright grid writes: means over seeds and paired differences",
    "result": "what callwright evaluate --json prints, and one evaluation of a run",
    "verdicts": "a row of verdicts.jsonl, which callwright evaluate -o writes",
    "score-input": "a row that callwright score reads",
    "score-output": "a row that callwright score writes",
    "out-ledger": "OUT.ledger.json, which score and rescore keep beside OUT: whose it is, and how far it has come",
    "recording": "a row of a recorded environment: one call and what it returned",
    "task": "a task as callwright explain shows it",
    "task-head": "the first line of a file of tasks: its environments as they were",
    "task-row": "a row of a file of tasks",
}


def schema_of(name: str) -> Schema:
    """The schema of a format. Raises :class:`callwright.errors.UnknownName`."""
    if name not in FORMATS:
        raise UnknownName("format", name, FORMATS)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": name,
        "description": FORMATS[name],
        **_MAKERS[name](),
    }


def nullable(schema: Schema) -> Schema:
    """The schema or ``null``."""
    return {"anyOf": [schema, {"type": "null"}]}


def rows_of(schema: Schema) -> Schema:
    """A list of such values."""
    return {"type": "array", "items": schema}


def table_of(schema: Schema) -> Schema:
    """An object of any keys with such values."""
    return {"type": "object", "additionalProperties": schema}


def record(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    """An object with these keys."""
    return {"type": "object", "properties": {**required, **(optional or {})}, "required": list(required)}


def said(schema: Schema, description: str) -> Schema:
    """A schema with a description."""
    return {**schema, "description": description}


def _recipe() -> Schema:
    from callwright.recipe_file import PipelineRecipe

    schema = PipelineRecipe.model_json_schema()
    for key, inner in schema["properties"].items():  # a component may be given by its name alone
        if "$ref" in inner:
            rest = {name: value for name, value in inner.items() if name != "$ref"}
            schema["properties"][key] = {"anyOf": [{"type": "string"}, {"$ref": inner["$ref"]}], **rest}
        elif key != "turns" and any("$ref" in branch for branch in inner.get("anyOf", ())):
            inner["anyOf"].insert(0, {"type": "string"})
    model = schema["properties"]["model"]
    schema["properties"]["model"] = {
        "anyOf": [{"type": "string"}, {"type": "object"}],
        "description": model.get("description", ""),
    }
    return schema


def _manifest() -> Schema:
    plugin = record({"name": STRING, "distribution": STRING, "version": STRING})
    return record(
        {"python": STRING, "platform": STRING, "versions": table_of(STRING), "plugins": rows_of(plugin)},
        {
            "command": STRING,
            "seed": {"type": "integer"},
            "started": {"type": "string", "format": "date-time"},
            "reward": record({"name": STRING, "truncated": {"enum": list(TRUNCATION_POLICIES)}}, {"floor": NUMBER}),
        },
    )


def _shares() -> dict[str, Schema]:
    return {
        "parsed": said(nullable(SHARE), "share of completions that are programs"),
        "executed": said(nullable(SHARE), "share of completions whose every call executed"),
        "answered": said(nullable(SHARE), "share of right answers"),
        "calls": said(nullable(NUMBER), "mean number of calls of the programs"),
        "calls_due": said(nullable(NUMBER), "mean number of calls of the reference programs"),
    }


def _undeclared() -> Schema:
    counts = record({"calls": COUNT, "failures": COUNT, "share": SHARE, "alarming": FLAG, "account": STRING})
    return said(table_of(counts), "by tool: failures that it does not declare, where there are any")


def _thought_words() -> Schema:
    return said(nullable({"type": "number", "minimum": 0}), "mean number of words of a thought; null: none can be read")


def _usage(of: str) -> Schema:
    return said(
        record(
            {"requests": said(COUNT, "answers that it is made of")},
            {
                "prompt_tokens": COUNT,
                "cached_tokens": said(COUNT, "those of the prompt tokens that the server had kept"),
                "completion_tokens": COUNT,
                "reasoning_tokens": said(COUNT, "those of the completion tokens that are thoughts"),
                "cost": said({"type": "number", "minimum": 0}, "in the currency of the sampler's prices"),
            },
        ),
        f"what the answers of a server {of} took, where one was asked; what is 0 may be left out",
    )


def _metrics() -> Schema:
    return record(
        {
            "step": said({"type": "integer", "minimum": 1}, "counted from 1"),
            "reward": said(nullable(NUMBER), "mean total; null in a step that samples nothing"),
        },
        {
            "reward_std": nullable(NUMBER),
            "scores": said(table_of(nullable(NUMBER)), "mean value of each reward component"),
            **_shares(),
            "multi_call": said({"type": "object", "properties": _shares()}, "the same, of tasks of two or more calls"),
            "length": said(nullable(NUMBER), "mean number of tokens of a completion"),
            "thought_words": _thought_words(),
            "truncated": said(nullable(SHARE), "share of completions that a limit of tokens cut off"),
            "tokens": COUNT,
            "rollouts": COUNT,
            "masked": said(COUNT, "rollouts without a reward: their machinery failed, or they are masked as cut off"),
            "masked_cut": said(COUNT, 'those that are masked as cut off (truncated = "mask"), where there are any'),
            "prompts_too_long": said(COUNT, "tasks whose prompts are too long, for which others were drawn, if any"),
            "undeclared": _undeclared(),
            "usage": _usage("for the rewards of the step"),
            "groups": said(COUNT, "groups that were trained on"),
            "zero_variance": said(nullable(SHARE), "share of groups whose rewards are all equal"),
            "resampling_rounds": COUNT,
            "loss": nullable(NUMBER),
            "gradient_norm": nullable(NUMBER),
            "learning_rate": NUMBER,
            "kl": said(nullable(NUMBER), "nats a token, against the frozen reference"),
            "entropy": said(nullable(NUMBER), "nats a token"),
            "ratio_mean": nullable(NUMBER),
            "ratio_max": nullable(NUMBER),
            "clip_fraction": nullable(SHARE),
            "clip_fraction_low": nullable(SHARE),
            "clip_fraction_high": nullable(SHARE),
            "turns": said(nullable(NUMBER), "mean number of completions of an episode"),
            "stops": said(table_of(COUNT), "why episodes ended, counted"),
            "environment_tokens": said(COUNT, "tokens of observations, which carry no loss"),
            "observations_cut": COUNT,
            "retried": said(COUNT, "episodes that were begun again after the machinery failed"),
            "value_loss": nullable(NUMBER),
            "value_gradient_norm": nullable(NUMBER),
            "value_mean": nullable(NUMBER),
            "return_mean": nullable(NUMBER),
            "value_error": nullable(NUMBER),
            "value_clip_fraction": nullable(SHARE),
            "kl_weight": nullable(NUMBER),
            "epoch": said(NUMBER, "passes over the demonstrations that are done, of supervised training"),
            "demonstrations": said(COUNT, "how many were learnt from"),
            "not_finite": said(
                record({"updates": COUNT, "of": COUNT, "tasks": rows_of(STRING), "found": rows_of(STRING)}),
                "updates that were left out since they were not finite, where there are any; the figures are then null",
            ),
            "alarm": said(nullable(STRING), "what is going wrong, in words"),
        },
    )


def _evidence() -> Schema:
    return record(
        {"code": STRING, "reason": STRING},
        {"call": {"type": "integer"}, "path": STRING, "expected": STRING, "found": STRING},
    )


def _score() -> Schema:
    why = said(rows_of(_evidence()), "why points are lost; callwright score --evidence lost or none leaves it empty")
    parts = {"value": NUMBER, "low": NUMBER, "high": NUMBER, "weight": NUMBER, "evidence": why}
    return record(parts)


def _reward() -> tuple[dict[str, Schema], dict[str, Schema]]:
    required = {
        "total": said(nullable(NUMBER), "null if the machinery failed, or if it was cut off and that masks it"),
        "scores": said(
            table_of(_score()), "the sum of weight * value is the total; 'truncated': what being cut off took"
        ),
        "stage": said({"enum": ["format", "parse", "execution", "answer", "done"]}, "where the first point was lost"),
    }
    return required, {"masked": said(STRING, "why the total is null")}


def _score_output() -> Schema:
    required, optional = _reward()
    return record({"id": {"type": ["string", "integer"]}, **required}, optional)


def _rollouts() -> Schema:
    required, optional = _reward()
    return record(
        {"step": COUNT, "task": STRING, "completion": STRING, **required},
        {
            "depth": COUNT,
            "structure": STRING,
            "query": STRING,
            "prompt": STRING,
            "truncated": FLAG,
            "advantage": said(nullable(NUMBER), "null in a step that is not finite"),
            "answered": FLAG,
            "failure": said(STRING, "empty for a right answer"),
            "thought_words": said(nullable(COUNT), "words of the thought; null: there is none that can be read"),
            "group": said(STRING, "the same for all completions of one prompt in one step"),
            "sample": said(COUNT, "the place in its group, from 0"),
            "trace": said(rows_of({"type": "object"}), "each call with arguments, outcome, and value or its size"),
            "tokens": said(rows_of({"type": "array"}), "[text, log-probability]; null: an observation, without loss"),
            "stop": said(STRING, "why the episode ended"),
            "turns": said(rows_of({"type": "object"}), "the completions of an episode and what their calls came to"),
            **optional,
        },
    )


def _cell() -> Schema:
    return record(
        {"accuracy": SHARE, "n": COUNT, "low": SHARE, "high": SHARE},
        {
            "valid_accuracy": said(SHARE, "right, and every call fits its schema"),
            "thought_words": _thought_words(),
            "clusters": said(COUNT, "tasks or families, where attempts are not independent"),
            "masked": said(COUNT, "attempts besides of which nothing is known"),
            "lowest": said(SHARE, "the accuracy if those were wrong"),
            "highest": said(SHARE, "the accuracy if those were right"),
        },
    )


def _samples() -> Schema:
    estimate = record({"value": nullable(SHARE), "tasks": COUNT, "low": SHARE, "high": SHARE})
    return record(
        {
            "n": said(COUNT, "attempts at each task"),
            "tasks": COUNT,
            "pass@k": said(table_of(estimate), "that one of k is right: 1 - C(n - c, k) / C(n, k)"),
            "pass^k": said(table_of(estimate), "that all of k are right: C(c, k) / C(n, k)"),
        }
    )


def _rewards() -> Schema:
    figure = nullable(NUMBER)
    return record(
        {"n": COUNT, "tasks": COUNT, "mean": figure, "low": figure, "high": figure},
        {
            "within": said(figure, "deviation of the samples of a task"),
            "between": said(figure, "deviation of the means of tasks"),
            "flat": said(COUNT, "tasks whose samples all have the same"),
        },
    )


def _cut_off() -> Schema:
    return record(
        {"n": COUNT},
        {
            "prompts": said(COUNT, "those whose prompt left no room, so that nothing was written"),
            "context": said(COUNT, "those that filled the model's context"),
            "tokens": said(COUNT, "the commonest length at which they were, where it is known"),
        },
    )


def _result() -> Schema:
    cell = _cell()
    return record(
        {
            "overall": said(nullable(SHARE), "share of right answers"),
            "by_depth": said(table_of(cell), 'by number of calls: "0", "1", …'),
            "by_structure": table_of(cell),
            "failures": said(table_of(table_of(COUNT)), "the commonest, by depth"),
        },
        {
            "n": COUNT,
            "masked": COUNT,
            "lost": said(table_of(COUNT), "why attempts are masked: the commonest reasons"),
            "headline": said(FLAG, "whether so few are masked that the accuracy of all says something"),
            "all": said(cell, "the cell of everything"),
            "by": said(table_of(table_of(cell)), "what --by asked for"),
            "cut_off": said(_cut_off(), "attempts that a limit of length cut off, where there are any"),
            "errors": said(table_of(COUNT), "classes of errors, finer than failures, over all depths"),
            "samples": _samples(),
            "benchmark": said({"type": "object"}, "name, version, whether it is official, and why it is not"),
            "values": said(table_of(nullable(NUMBER)), "figures of the benchmark's official table"),
            "rewards": said(_rewards(), "totals of the reward that --reward names"),
            "valid_overall": nullable(SHARE),
            "thought_words": _thought_words(),
            "undeclared": _undeclared(),
            "usage": _usage("for all rows"),
            "prompts_too_long": said(COUNT, "tasks that were left out for their prompts, during a training"),
            "reward": said(nullable(NUMBER), "mean total, of supervised training"),
            "loss": said(nullable(NUMBER), "nats a token of the reference solutions, of supervised training"),
        },
    )


def _evaluation() -> Schema:
    result = _result()
    during = {**result, "properties": {"step": COUNT, **result["properties"]}}
    early = said(COUNT, "after how many steps training ended since evaluations got no better")
    return record(
        {"before": nullable(result), "after": nullable(result)}, {"during": rows_of(during), "stopped_early": early}
    )


def _grid() -> Schema:
    interval = record(
        {"n": COUNT, "mean": nullable(NUMBER)},
        {"std": nullable(NUMBER), "low": nullable(NUMBER), "high": nullable(NUMBER)},
    )
    failure = record({"status": {"type": "integer"}, "said": STRING, "log": STRING})
    run = record(
        {"seed": COUNT, "folder": STRING, "finished": FLAG},
        {
            "values": table_of(nullable(NUMBER)),
            "wall_seconds": NUMBER,
            "cpu_seconds": NUMBER,
            "peak_memory_mb": COUNT,
            "alarm": said(record({"step": COUNT, "said": STRING}), "the first that training raised"),
            "failure": said(failure, "why the newest attempt at it failed"),
        },
    )
    setting = record(
        {"name": STRING, "overrides": rows_of(STRING), "metrics": table_of(interval), "runs": rows_of(run)}
    )
    difference = record({"first": STRING, "second": STRING, "metrics": said(table_of(interval), "second minus first")})
    return record(
        {
            "recipe": STRING,
            "set": rows_of(STRING),
            "over": table_of(rows_of(STRING)),
            "seeds": rows_of(COUNT),
            "metrics": said(rows_of(STRING), "what was asked for; those of each depth are measured, too"),
            "depths": rows_of(COUNT),
            "level": said(SHARE, "of the intervals"),
            "settings": rows_of(setting),
            "differences": said(rows_of(difference), "over the seeds that both settings have"),
            "remarks": rows_of(STRING),
        }
    )


def _verdicts() -> Schema:
    return record(
        {
            "id": STRING,
            "task": STRING,
            "depth": COUNT,
            "structure": STRING,
            "answer": FLAG,
            "valid": FLAG,
            "failure": STRING,
            "masked": FLAG,
            "completion": STRING,
        },
        {
            "query": STRING,
            "thought_words": said(nullable(COUNT), "words of the thought; null: there is none that can be read"),
            "error": said(STRING, "a finer class than failure; empty for a right answer"),
            "sample": said(COUNT, "the number of the attempt at its task"),
            "family": said(STRING, "of tasks that succeed and fail together"),
            "groups": said({"type": "object"}, "what else tables can be made by"),
            "completions": said(rows_of(STRING), "of an episode of several turns"),
            "said": said(rows_of(nullable({"type": "object"})), "what the user said and did after each"),
            "user_turns": said(rows_of(COUNT), "how many completions each turn of the task's user has"),
            "messages": said(rows_of({"type": "object"}), "what was said; later samples leave out the system message"),
            "trace": said(rows_of({"type": "object"}), "every call that ran, with its outcome and value"),
            "at": said(STRING, "where what was returned first differs from what was expected"),
            "expected": said({}, "what was expected there"),
            "found": said({}, "what was found there"),
            "stop": said(STRING, "why the episode ended"),
            "truncated": FLAG,
            "cut": said({"enum": ["tokens", "context", "prompt"]}, "what cut it off, if something did"),
            "cut_at": said(COUNT, "after how many tokens of the last completion, where they are known"),
            "tokens": said(COUNT, "sampled tokens, where the sampler keeps them"),
            "reward": said(nullable(NUMBER), "the total of the reward that --reward names; null: masked"),
            "judgement": said({"type": "object"}, "what the benchmark says: correct, score, error, parts, evidence"),
            "lost": said(STRING, "why nothing is known of a masked attempt"),
            "calls": said(table_of(COUNT), "how often each tool was called"),
            "undeclared": said(
                table_of(record({"failures": COUNT, "account": STRING})), "undeclared failures, by tool"
            ),
            "usage": _usage("for this task"),
        },
    )


def _score_input() -> Schema:
    schema = record(
        {"id": said({"type": ["string", "integer"]}, "given back with the reward")},
        {
            "completion": STRING,
            "completions": said(rows_of(STRING), "in place of a completion: those of an episode of several turns"),
            "turns": said(rows_of({"type": "object"}), "the same as a run keeps it: each with its completion"),
            "said": said({"type": "array"}, "what the user said and did after each of the completions"),
            "task": said({"type": ["string", "integer"]}, "the id of the task in the corpus; needed with --corpus"),
            "ground_truth": said(STRING, "what is right, for recipes that need no corpus"),
            "step": said(COUNT, "for rewards with a schedule: how far training is"),
            "total_steps": said(COUNT, "for rewards with a schedule: of how many steps"),
            "truncated": said(FLAG, "whether a limit of tokens cut the completion off; false if left out"),
            "masked": said({}, "true: an evaluation masked the row, and lost says why; it stays masked"),
            "quarantined": said(
                record({"line": COUNT, "reason": STRING}), "why an earlier command set the row aside; not read"
            ),
        },
    )
    return {**schema, "anyOf": [{"required": [one]} for one in ("completion", "completions", "turns")]}


def _output_ledger() -> Schema:
    return record(
        {
            "ledger": said(COUNT, "the version of this format"),
            "finished": FLAG,
            "about": said({"type": "object"}, "what the output is of; only the same goes on with it"),
            "input": said(record({"lines": COUNT, "crc": COUNT}), "the lines that are done, and their CRC-32"),
            "output": said(record({"bytes": COUNT, "crc": COUNT}), "the bytes that go with them, and their CRC-32"),
            "beside": said(COUNT, "the bytes of the file of rows that were set aside"),
            "state": said({"type": "object"}, "the summary of the lines that are done"),
            "held": said(STRING, "lines of output that come next and are not among the bytes"),
        }
    )


def _recording() -> Schema:
    return record(
        {
            "scenario": STRING,
            "tool": STRING,
            "arguments": {"type": "object"},
            "status": said(STRING, "ok; missing: no such tool; raised: an execution error; or the kind of an outcome"),
        },
        {
            "value": said({}, "what an executed call returned"),
            "error": said(nullable(STRING), "what a failed one said"),
            "state": said(STRING, "the digest before the call"),
            "next": said(STRING, "the digest after it"),
            "seed": said({"type": "integer"}, "of the first call of a session that began otherwise than the first one"),
        },
    )


def _task() -> Schema:
    return record(
        {
            "id": STRING,
            "split": STRING,
            "depth": said(COUNT, "number of calls of the reference program"),
            "chain": said(COUNT, "calls on its longest dependency chain"),
            "structure": {"enum": ["none", "single", "parallel", "linear", "funnel", "tree", "conjunctive", "mixed"]},
            "returns": {"enum": ["one", "all"]},
            "scenario": STRING,
            "prompt": said(STRING, "the query"),
            "target_tools": rows_of(STRING),
            "distractors": said(rows_of(STRING), "offered tools that the reference does not call"),
            "program": said(nullable(STRING), "the reference program in the json form"),
            "answer": said({"type": "array"}, "the expected values; empty where nothing is to be called"),
        }
    )


_MAKERS: Final[Mapping[str, Callable[[], Schema]]] = {
    "recipe": _recipe,
    "manifest": _manifest,
    "metrics": _metrics,
    "rollouts": _rollouts,
    "evaluation": _evaluation,
    "grid": _grid,
    "result": _result,
    "verdicts": _verdicts,
    "score-input": _score_input,
    "score-output": _score_output,
    "out-ledger": _output_ledger,
    "recording": _recording,
    "task": _task,
    "task-head": head_schema,
    "task-row": row_schema,
}
