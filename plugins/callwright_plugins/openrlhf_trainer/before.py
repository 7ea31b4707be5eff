"""The model before the first step, measured on the evaluation's tasks: OpenRLHF itself begins with an update.

A program of its own in OpenRLHF's environment, so that the GPUs are free again before training starts.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from callwright.errors import CallwrightError
from callwright.training.evaluation import evaluate
from callwright.training.summary import summarise
from callwright_plugins.openrlhf_trainer.agent import read_label
from callwright_plugins.openrlhf_trainer.configuration import Configuration, load_pipeline, read_configuration


def measure(folder: Path, engine: Mapping[str, Any]) -> dict[str, Any]:
    """The summary of greedy attempts at the tasks of ``evaluation.jsonl``, under the limits of the run's episodes.

    The sampler is the recipe's, if it names one, else vLLM with the options ``engine``. Raises
    :class:`callwright.CallwrightError` in all foreseen cases, such as an environment without vLLM.
    """
    configuration = read_configuration(folder / "config.json")
    pipeline = load_pipeline(configuration)
    lines = (folder / "evaluation.jsonl").read_text(encoding="utf-8").splitlines()
    wanted = {str(read_label(json.loads(line)["label"])["task"]) for line in lines}
    tasks = [task for task in pipeline.tasks(pipeline.evaluation) if task.id in wanted]
    stated = pipeline.recipe.recipe.sampler
    name, options = ("vllm", of_vllm(configuration, engine)) if stated is None else (stated.name, stated.options)
    sampler = pipeline.registry.create("sampler", name, **options)
    with pipeline:
        verdicts = evaluate(
            pipeline,
            tasks,
            sampler,
            seed=pipeline.conditions.seed,
            limits=configuration.limits,
            retries=configuration.retries,
        )
    return {"step": 0, **summarise(verdicts)}


def of_vllm(configuration: Configuration, engine: Mapping[str, Any]) -> dict[str, Any]:
    """Options of the sampler ``vllm`` for this run's model."""
    return {
        "model": configuration.model,
        "engine": dict(engine),
        "chat_template_options": dict(configuration.template_options),
        "max_new_tokens": configuration.limits.turn_tokens or 1024,
    }


def main() -> int:
    """Measure by the configuration that is named, with the engine's options as JSON; prints the summary."""
    try:
        print(json.dumps(measure(Path(sys.argv[1]).parent, json.loads(sys.argv[2]))))
    except CallwrightError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())
