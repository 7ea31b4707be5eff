"""The trainer ``zebra``: measures a sampler in steps, without weights. What it leaves stands in its run folder.

A real one samples groups, scores them with ``pipeline.score``, asks the algorithm for advantages and a loss, and
updates a model. This is the frame around that: steps, rows that survive a crash, resuming, and the last evaluation.
"""

from __future__ import annotations

from itertools import islice

import callwright as cw
from callwright.language.messages import Message
from callwright.training import Run
from callwright.training.reporter import SILENT, Reporter
from callwright.walk.sampling import SamplingRequest


class Zebra:
    """``steps`` steps of ``prompts`` tasks each; ``sampler`` is any registered sampler."""

    name = "zebra"

    def __init__(self, registry: cw.Registry, steps: int = 4, prompts: int = 8, sampler: str = "noisy-gold") -> None:
        if steps < 1 or prompts < 1:
            raise cw.UsageError("the options 'steps' and 'prompts' of the trainer 'zebra' are 1 or more")
        self.steps, self.prompts = steps, prompts
        self.sampler: cw.Sampler = registry.create("sampler", sampler)

    def train(self, pipeline: cw.Pipeline, run: Run, *, reporter: Reporter = SILENT) -> None:
        """Go on after the last whole row of ``metrics.jsonl``: every step hangs on its number alone."""
        done = len(run.rows("metrics.jsonl"))
        tasks = pipeline.tasks("train")
        reporter.start("training", self.steps, done)
        for step in range(done, self.steps):
            totals = []
            for task in islice(tasks, step * self.prompts % max(1, len(tasks)), None):
                request = SamplingRequest((Message.user(task.query),), task, parser=pipeline.parser)
                [[completion]] = self.sampler.sample([request], seed=step)
                reward = pipeline.score(pipeline.attempt(task, completion.text))
                if reward.total is not None:  # a masked sample says nothing
                    totals.append(reward.total)
                if len(totals) == self.prompts:
                    break
            mean = sum(totals) / len(totals) if totals else None
            run.append("metrics.jsonl", [{"step": step + 1, "reward": mean, "samples": len(totals)}])
            reporter.advance(1, **({} if mean is None else {"reward": mean}))
        reporter.finish()
        rows = run.rows("metrics.jsonl")
        run.write_json("evaluation.json", {"after": {"reward": rows[-1]["reward"]}})
