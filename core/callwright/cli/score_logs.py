"""What ``callwright score --format`` does: rewards of what agents of other stacks did, from their logs."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import click
from attrs import field, frozen

from callwright.commands.jsonl import RowSink, own_stdout
from callwright.commands.row_files.logs import LogSource, read_logs
from callwright.commands.row_files.unread_forms import UnreadForms
from callwright.commands.safe_text import say
from callwright.commands.scoring.reward_rows import EvidenceKept, RewardWriter
from callwright.commands.tally import Tally
from callwright.errors import UsageError
from callwright.language.native import NATIVE_FORM
from callwright.plugins import Registry
from callwright.walk.attempt import Attempt
from callwright.walk.reward import RewardRecipe

#: Findings that are said one by one; the others are counted.
_SAID: Final = 20


@frozen
class LogRequest:
    """Which logs are scored, by what, and where the rewards go."""

    source: LogSource
    ir: str
    reward: str
    reward_options: Mapping[str, Any]
    evidence: EvidenceKept = "all"
    findings: Counter[str] = field(factory=Counter, init=False)


def score_logs(registry: Registry, asked: LogRequest, output: str | None, *, overwrite: bool) -> Tally:
    """Score logs one after the other, and write a row for each to ``output``.

    Raises :class:`callwright.UsageError` for an output that is there, unless it shall be replaced.
    """
    if output and output != "-" and Path(output).exists() and not overwrite:
        raise UsageError(f"{output} is there already: name another file, or replace it with --overwrite")
    recipe: RewardRecipe = registry.create("reward recipe", asked.reward, **asked.reward_options)
    forms = UnreadForms(registry, asked.ir)
    parser = forms.parser
    tally, writer, ids = Tally(), RewardWriter(asked.evidence), deque[str]()

    def attempts() -> Iterator[Attempt]:
        for log in read_logs(registry, asked.source):
            ids.append(log.task.id)
            for finding in log.findings(parser=parser):
                asked.findings[finding] += 1
                if len(asked.findings) <= _SAID and asked.findings[finding] == 1:
                    say(f"{log.task.id}: {finding}")
            attempt = log.episode(parser=parser)
            forms.see(attempt)
            yield attempt

    held = deque[Attempt]()

    def kept() -> Iterator[Attempt]:
        for attempt in attempts():
            held.append(attempt)
            yield attempt

    with ExitStack() as stack:
        sink = stack.enter_context(RowSink(output)) if output else None
        if output != "-":
            stack.enter_context(own_stdout())
        stack.enter_context(recipe)
        for reward in recipe.scoring(kept()):
            tally.add(reward)
            tally.tools.add(held.popleft())
            name = ids.popleft()
            if sink is not None:
                sink.write(writer.line(name, reward))
    if len(asked.findings) > _SAID:
        say(f"{len(asked.findings) - _SAID:,} further findings are not shown")
    for remark in forms.remarks():
        say(remark)
    return tally


def summary(tally: Tally, output: str | None, *, as_json: bool, draw: Any, title: str) -> None:
    """Say what the rewards come to."""
    if output:
        say(tally.sentence())
    if as_json:
        click.echo(json.dumps(tally.to_json(), indent=2), err=output == "-")
    elif not output:
        draw(tally, title=title)


def form_of(context: click.Context, ir: str) -> str:
    """The form in which native calls are read, unless one was named."""
    return NATIVE_FORM if context.get_parameter_source("ir") is click.core.ParameterSource.DEFAULT else ir
