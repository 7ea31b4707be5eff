"""The prompts of a run as OpenRLHF reads them. A program: it runs in OpenRLHF's environment, whose tokenizer it uses.

    python -m callwright_plugins.openrlhf_trainer.export RUN/openrlhf/config.json

A row of ``train.jsonl``: ``prompt`` (rendered, the tools in it), ``label`` (JSON: which task, which row, how many
copies, what is logged, a digest of the prompt's ids) and, of ``evaluation.jsonl``, ``datasource``.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, TypeVar

from callwright.errors import CallwrightError, DataError, UsageError
from callwright.training.run_folder import write_atomically
from callwright_plugins.openrlhf_trainer.configuration import Configuration, load_pipeline, read_configuration
from callwright_plugins.openrlhf_trainer.prompts import Prompt, all_prompts, load_tokenizer, make_renderer

#: Beside a model that was trained with a corpus's compact prompt, as the trainer ``local`` writes it.
NOTE = "callwright_policy.json"


def export(folder: Path, tokenizer: Any = None, ends: Sequence[int] | None = None) -> dict[str, Any]:
    """Write ``train.jsonl``, ``evaluation.jsonl`` and, last, ``prompts.json``, whose content is returned.

    ``tokenizer`` and ``ends`` are those of the configured model unless they are given. Raises
    :class:`callwright.errors.DataError` if no prompt is short enough or the model's tokenizer cannot be loaded.
    """
    configuration = read_configuration(folder / "config.json")
    pipeline = load_pipeline(configuration)
    config = folder / "config.json" if tokenizer is None else None  # by which processes load the same tokenizer
    if tokenizer is None:
        tokenizer = load_tokenizer(configuration.model)
    if ends is None:
        ends = generation_ends(configuration.model)
    form = prompt_form(configuration)
    renderer = make_renderer(pipeline, configuration, tokenizer, form, ends)
    corpus = pipeline.recipe.recipe.corpus
    places = range(len(pipeline.tasks(corpus.train)))
    depths = [task.depth for task in pipeline.tasks(corpus.evaluation)]
    wanted = [(corpus.train, places), (corpus.evaluation, per_depth(depths, configuration.evaluation_tasks))]
    with closing(all_prompts(renderer, wanted, config=config, form=form, ends=ends)) as prompts:
        rendered = list(islice(prompts, len(places)))
        train = [prompt for prompt in rendered if prompt is not None]
        chosen = list(prompts) if train else []
    too_long = len(rendered) - len(train)
    if not train:
        raise DataError(
            f"all {too_long} prompts of the split {corpus.train!r} have more than {configuration.max_prompt_tokens} "
            "tokens; raise trainer.max_prompt_tokens"
        )
    seed = pipeline.conditions.seed
    drawn = draw(train, configuration.depths, configuration.steps * configuration.prompts, seed)
    rate = configuration.rollouts_per_step / configuration.prompts
    lines = (
        _row(
            prompt,
            row=row,
            split=corpus.train,
            copies=configuration.group,
            logged=min(configuration.group, int((row + 1) * rate) - int(row * rate)),
        )
        for row, prompt in enumerate(drawn)
    )
    count = _write(folder / "train.jsonl", lines)
    measured = [prompt for prompt in chosen if prompt is not None]
    evaluated = _write(
        folder / "evaluation.jsonl",
        (
            _row(prompt, row=row, split=corpus.evaluation, copies=1, logged=0, measured=True)
            for row, prompt in enumerate(measured)
        ),
    )
    end_texts = [tokenizer.decode([end], skip_special_tokens=False) for end in sorted(renderer.codec.ends)]
    said = {
        "form": form,
        "ends": sorted(ends),
        "end_texts": end_texts,
        "rows": count,
        "tasks": len(train),
        "too_long": too_long,
        "evaluation_rows": evaluated,
        "evaluation_too_long": len(chosen) - len(measured),
        "longest_prompt": max(prompt.length for prompt in train),
    }
    write_atomically(folder / "prompts.json", json.dumps(said, indent=2) + "\n")
    return said


class HasDepth(Protocol):
    """A task, or what is exported of one."""

    @property
    def depth(self) -> int:
        """The depth of the task."""


Drawn = TypeVar("Drawn", bound=HasDepth)


def draw(tasks: Sequence[Drawn], depths: Sequence[int] | None, count: int, seed: int) -> Iterator[Drawn]:
    """``count`` tasks: every one once, in an order of this seed, before any comes again; of each listed depth likewise.

    Raises :class:`callwright.UsageError` for a depth that no task has.
    """
    pools: dict[int | None, list[Drawn]] = {None: list(tasks)}
    for task in tasks:
        pools.setdefault(task.depth, []).append(task)
    for depth in depths or ():
        if depth not in pools:
            known = ", ".join(str(key) for key in sorted(key for key in pools if key is not None))
            raise UsageError(f"'depths' asks for depth {depth}, but the exported tasks only have {known}")
    turns: Sequence[int | None] = list(depths) if depths else [None]
    streams = {key: _again_and_again(pools[key], f"{seed}/{key}") for key in dict.fromkeys(turns)}
    return (next(streams[turns[place % len(turns)]]) for place in range(count))


def _again_and_again(tasks: Sequence[Drawn], seed: str) -> Iterator[Drawn]:
    rng = random.Random(seed)
    while True:
        order = list(tasks)
        rng.shuffle(order)
        yield from order


def per_depth(depths: Sequence[int], count: int | None) -> list[int]:
    """The places of the first ``count`` tasks of each depth, in their order; all of them without a count."""
    seen: dict[int, int] = {}
    chosen = []
    for place, depth in enumerate(depths):
        seen[depth] = seen.get(depth, 0) + 1
        if count is None or seen[depth] <= count:
            chosen.append(place)
    return chosen


def prompt_form(configuration: Configuration) -> str:
    """``chat`` or ``compact``: what the recipe says, else what the note beside the model says."""
    if configuration.prompt != "auto":
        return configuration.prompt
    note = Path(configuration.model) / NOTE
    try:
        noted = json.loads(note.read_text(encoding="utf-8")) if note.is_file() else {}
    except (OSError, ValueError) as error:
        raise DataError(f"{note} cannot be read: {error}") from error
    return "compact" if isinstance(noted, dict) and noted.get("prompt") == "compact" else "chat"


def generation_ends(model: str) -> list[int]:
    """The end tokens of the generation config, else of the model's: those at which vLLM stops. None without either."""
    from transformers import AutoConfig, GenerationConfig

    for kind in (GenerationConfig, AutoConfig):
        try:
            ends = getattr(kind.from_pretrained(model), "eos_token_id", None)
        except (OSError, ValueError):
            continue
        return [] if ends is None else [ends] if isinstance(ends, int) else list(ends)
    return []


def _row(prompt: Prompt, *, row: int, split: str, copies: int, logged: int, measured: bool = False) -> dict[str, Any]:
    label = {
        "task": prompt.id,
        "split": split,
        "row": row,
        "copies": copies,
        "logged": logged,
        "evaluation": measured,
        "prompt": prompt.digest,
    }
    shown = {"prompt": prompt.text, "label": json.dumps(label)}
    return {**shown, "datasource": f"depth {prompt.depth}"} if measured else shown


def _write(path: Path, rows: Iterator[dict[str, Any]]) -> int:
    """Write rows one by one, and the whole file in one step; returns how many."""
    scratch, count = path.with_name(path.name + ".part"), 0
    with scratch.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")
            count += 1
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(path)
    return count


def main() -> int:
    """Export by the configuration that is named; prints what was made, or one line of what is wrong."""
    try:
        print(json.dumps(export(Path(sys.argv[1]).parent)))
    except CallwrightError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())
