"""One evaluation done as the options of ``callwright evaluate`` say: in which workers, into which folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen

from callwright.capability import has
from callwright.cli.evaluation_folder import GO_ON, Evaluation
from callwright.cli.evaluation_work import EvaluationRequest, Opened
from callwright.commands.bars import reporter
from callwright.commands.failures import Stopped
from callwright.commands.jsonl import own_stdout
from callwright.commands.safe_text import say
from callwright.errors import RunError
from callwright.machines.executors import make_executor
from callwright.machines.model_server import BudgetSpent
from callwright.machines.model_server.reply_cache import REPLIES, ReplyCache
from callwright.machines.redaction import redacted_value
from callwright.training.spending import in_words
from callwright.training.summary import check_keys
from callwright.walk.prompt import draw_shots
from callwright.walk.sampling import RefusesTasks

if TYPE_CHECKING:
    from callwright.commands.app import App


@frozen
class Doing:
    """How evaluations are done, whatever they measure."""

    app: App
    #: The kind of executor, and how many it has.
    kind: str
    workers: int
    #: Seconds that a batch may take.
    stuck_after: float
    keep_replies: bool
    accept_changes: bool
    #: The keys of each further table.
    by: Sequence[Sequence[str]] = ()

    @property
    def elsewhere(self) -> bool:
        """Whether the work is done in other processes."""
        return self.kind in ("process", "ray")

    def evaluate(self, here: Opened, output: str | None) -> dict[str, Any]:
        """Do what was opened, from where an earlier start into ``output`` left it, and return the result.

        Raises :class:`callwright.commands.failures.Stopped` when it is interrupted and
        :class:`callwright.errors.RunError` for a spent budget and a folder that holds something else.
        """
        pipeline = here.pipeline
        check_keys(self.by, here.tasks)
        if has(here.sampler, RefusesTasks):  # before there is a folder, as all that follows
            here.sampler.refuse_tasks(here.tasks, pipeline.conditions.limits)
        for task in here.tasks[:1]:
            draw_shots(pipeline.corpus, task, here.asked.shots)  # raises for a corpus without any
        folder = Path(output) if output else None
        if folder is not None and self.keep_replies and self.kind != "ray":  # whose workers may be on other machines
            here = here.keeping(ReplyCache(folder / REPLIES))
        work = Evaluation(
            here=here,
            executor=make_executor(self.kind, self.workers),
            elsewhere=self.elsewhere,
            stuck_after=self.stuck_after,
            folder=folder,
            command=self.app.command,
            accept_changes=self.accept_changes,
            by=self.by,
            settings=_settings(here),
        )
        kept = f"nothing in {output} is lost" if output else "nothing was kept (no -o)"
        try:
            with reporter() as bars, own_stdout(), work.alone():
                result = work.run(bars)
        except KeyboardInterrupt as stop:
            raise Stopped(f"stopped; {kept}{'; the same command goes on' if output else ''}") from stop
        except BudgetSpent as spent:
            goes_on = f"{kept}; {GO_ON}" if output else f"{kept}; with -o and a higher --max-cost it is"
            raise RunError(f"stopped before more than {here.most_cost:g} were spent; {goes_on}") from spent
        finally:
            if work.asked.get("requests"):  # of a server, by this start
                say(in_words(work.asked))
        if (usage := result.get("usage")) and usage["requests"] != work.asked["requests"]:
            say(f"in all: {in_words(usage)}")
        return result


def _settings(here: Opened) -> dict[str, Any]:
    asked: EvaluationRequest = here.asked
    stated: dict[str, Any] = redacted_value(
        {
            "corpus": here.corpus_settings() | {"split": here.split},
            "ir": here.pipeline.parser.name,
            **here.taught_settings(),
            "sampler": here.sampler_settings(),
            "limit": asked.limit,
            "temperature": asked.temperature,
            "seed": asked.seed,
            "batch": asked.batch,
            "shots": asked.shots,
            **here.more_settings(),
        }
    )
    return stated
