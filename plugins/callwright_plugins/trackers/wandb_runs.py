"""Weights & Biases: a run each, with figures over our steps and a table of rollouts."""

from __future__ import annotations

from typing import Any

import wandb
from attrs import evolve, field, frozen

from callwright.errors import UsageError
from callwright.training import Run, Step
from callwright.training.tracking.tracker import recipe_of
from callwright_plugins.trackers.options import maybe_text, text, texts, truth


@frozen
class WandB:
    """Shows runs on W&B. ``offline``: in ``trackers/wandb`` of the run folder, for ``wandb sync``.

    The account comes from ``wandb login`` or ``WANDB_API_KEY``, the server from ``WANDB_BASE_URL``. ``entity`` is the
    team; left out, the user's own.
    """

    project: str = field(default="callwright", validator=text)
    entity: str | None = field(default=None, validator=maybe_text)
    group: str | None = field(default=None, validator=maybe_text)
    tags: list[str] = field(factory=list, validator=texts)
    offline: bool = field(default=False, validator=truth)

    @property
    def name(self) -> str:
        """The registered name."""
        return "wandb"

    @property
    def network_checks(self) -> tuple[str, ...]:
        """Whatever is not offline."""
        return () if self.offline else ("*",)

    def stand_in(self) -> WandB:
        """The same in the run folder."""
        return evolve(self, offline=True)

    def follow(self, run: Run, known: str | None) -> WandBRun:
        """A new run, or the one of this id. Raises :class:`callwright.UsageError` where nobody is logged in."""
        mode: Any = "offline" if self.offline else wandb.setup().settings.mode
        # By itself W&B would ask for a key, on a terminal that shows the progress of training.
        if mode == "online" and wandb.run is None and not wandb.login(prompt=False, verify=False):
            raise UsageError("nobody is logged in at W&B: run `wandb login`, set WANDB_API_KEY, or say offline = true")
        folder = run.path / "trackers"
        folder.mkdir(exist_ok=True)
        return WandBRun(
            wandb.init(
                id=known,
                resume="allow",
                project=self.project,
                entity=self.entity,
                group=self.group,
                tags=self.tags,
                name=run.path.name,
                config=recipe_of(run),
                dir=str(folder),
                mode=mode,
                reinit="create_new",
                settings=wandb.Settings(console="off", silent=True, save_code=False, disable_git=True),
            )
        )


class WandBRun:
    """A run on W&B. The axis is the training step, since W&B's own counts what was logged and takes nothing late."""

    def __init__(self, run: Any) -> None:
        self._run = run
        run.define_metric("step")
        run.define_metric("*", step_metric="step")

    @property
    def id(self) -> str:
        """W&B's id of the run."""
        return str(self._run.id)

    def send(self, step: Step) -> None:
        """One row of history."""
        row: dict[str, Any] = {"step": step.number, **step.figures}
        if step.rollouts:
            cells = [list(rollout.values()) for rollout in step.rollouts]
            row["rollouts/table"] = wandb.Table(columns=list(step.rollouts[0]), data=cells, allow_mixed_types=True)
        self._run.log(row)

    def close(self, completed: bool) -> None:
        """Wait until everything is uploaded, or written."""
        self._run.finish(exit_code=0 if completed else 1)
