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
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from callwright.errors import CallwrightError, DataError, UsageError
from callwright.training.run_folder import write_atomically
from callwright.walk.tasks import Task
from callwright_plugins.openrlhf_trainer.configuration import (
    Configuration,
    load_pipeline,
    make_codec,
    read_configuration,
)

if TYPE_CHECKING:
    from callwright.episodes.token_episode import Codec
    from callwright.pipeline import Pipeline

#: Beside a model that was trained with a corpus's compact prompt, as the trainer ``local`` writes it.
NOTE = "callwright_policy.json"


def export(folder: Path, tokenizer: Any = None, ends: Sequence[int] | None = None) -> dict[str, Any]:
    """Write ``train.jsonl``, ``evaluation.jsonl`` and, last, ``prompts.json``, whose content is returned.

    ``tokenizer`` and ``ends`` are those of the configured model unless they are given. Raises
    :class:`callwright.errors.DataError` if no prompt is short enough or the model's tokenizer cannot be loaded.
    """
    configuration = read_configuration(folder / "config.json")
    pipeline = load_pipeline(configuration)
    if tokenizer is None:
        tokenizer = load_tokenizer(configuration.model)
    if ends is None:
        ends = generation_ends(configuration.model)
    form = prompt_form(configuration)
    codec = make_codec(tokenizer, pipeline, form, frozenset(ends), configuration.template_options)
    corpus = pipeline.recipe.recipe.corpus
    train, too_long = _rendered(pipeline, codec, pipeline.tasks(corpus.train), configuration)
    if not train:
        raise DataError(
            f"all {too_long} prompts of the split {corpus.train!r} have more than {configuration.max_prompt_tokens} "
            "tokens; raise trainer.max_prompt_tokens"
        )
    seed = pipeline.conditions.seed
    drawn = draw([task for task, _ in train], configuration.depths, configuration.steps * configuration.prompts, seed)
    shown = {task.id: ids for task, ids in train}
    rate = configuration.rollouts_per_step / configuration.prompts
    lines = (
        _row(
            codec,
            task,
            shown[task.id],
            row=row,
            split=corpus.train,
            copies=configuration.group,
            logged=min(configuration.group, int((row + 1) * rate) - int(row * rate)),
        )
        for row, task in enumerate(drawn)
    )
    count = _write(folder / "train.jsonl", lines)
    chosen = per_depth(pipeline.tasks(corpus.evaluation), configuration.evaluation_tasks)
    measured, evaluation_too_long = _rendered(pipeline, codec, chosen, configuration)
    evaluated = _write(
        folder / "evaluation.jsonl",
        (
            _row(codec, task, ids, row=row, split=corpus.evaluation, copies=1, logged=0, measured=True)
            for row, (task, ids) in enumerate(measured)
        ),
    )
    made = {
        "form": form,
        "ends": sorted(ends),
        "end_texts": [tokenizer.decode([end], skip_special_tokens=False) for end in sorted(codec.ends)],
        "rows": count,
        "tasks": len(train),
        "too_long": too_long,
        "evaluation_rows": evaluated,
        "evaluation_too_long": evaluation_too_long,
        "longest_prompt": max(len(ids) for _, ids in train),
    }
    write_atomically(folder / "prompts.json", json.dumps(made, indent=2) + "\n")
    return made


def draw(tasks: Sequence[Task], depths: Sequence[int] | None, count: int, seed: int) -> Iterator[Task]:
    """``count`` tasks: every one once, in an order of this seed, before any comes again; of each listed depth likewise.

    Raises :class:`callwright.UsageError` for a depth that no task has.
    """
    pools: dict[int | None, list[Task]] = {None: list(tasks)}
    for task in tasks:
        pools.setdefault(task.depth, []).append(task)
    for depth in depths or ():
        if depth not in pools:
            known = ", ".join(str(key) for key in sorted(key for key in pools if key is not None))
            raise UsageError(f"'depths' asks for depth {depth}, but the exported tasks only have {known}")
    turns: Sequence[int | None] = list(depths) if depths else [None]
    streams = {key: _again_and_again(pools[key], f"{seed}/{key}") for key in dict.fromkeys(turns)}
    return (next(streams[turns[place % len(turns)]]) for place in range(count))


def _again_and_again(tasks: Sequence[Task], seed: str) -> Iterator[Task]:
    rng = random.Random(seed)
    while True:
        order = list(tasks)
        rng.shuffle(order)
        yield from order


def per_depth(tasks: Sequence[Task], count: int | None) -> list[Task]:
    """The first ``count`` tasks of each depth, in their order; all of them without a count."""
    seen: dict[int, int] = {}
    chosen = []
    for task in tasks:
        seen[task.depth] = seen.get(task.depth, 0) + 1
        if count is None or seen[task.depth] <= count:
            chosen.append(task)
    return chosen


def digest_of_ids(ids: Sequence[int]) -> str:
    """A short digest of a prompt: the engine's process must come to the same ids."""
    return blake2b(json.dumps(list(ids)).encode(), digest_size=8).hexdigest()


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


def load_tokenizer(model: str) -> Any:
    """The tokenizer of a directory or of a name. Raises :class:`callwright.errors.DataError` if there is none."""
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(model)
    except (OSError, ValueError) as error:
        raise DataError(f"the tokenizer of {model!r} cannot be loaded: {error}") from error


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


def _rendered(
    pipeline: Pipeline, codec: Codec, tasks: Sequence[Task], configuration: Configuration
) -> tuple[list[tuple[Task, tuple[int, ...]]], int]:
    """The tasks whose prompts are short enough, with their ids, and how many were not."""
    room = configuration.limits.context_tokens
    longest = configuration.max_prompt_tokens if room is None else min(configuration.max_prompt_tokens, room - 1)
    kept = []
    for task in tasks:
        ids = tuple(codec.prompt_ids(pipeline.messages(task), task))
        if len(ids) <= longest:
            kept.append((task, ids))
    return kept, len(tasks) - len(kept)


def _row(
    codec: Any,
    task: Task,
    ids: tuple[int, ...],
    *,
    row: int,
    split: str,
    copies: int,
    logged: int,
    measured: bool = False,
) -> dict[str, Any]:
    label = {
        "task": task.id,
        "split": split,
        "row": row,
        "copies": copies,
        "logged": logged,
        "evaluation": measured,
        "prompt": digest_of_ids(ids),
    }
    prompt = codec.tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)
    shown = {"prompt": prompt, "label": json.dumps(label)}
    return {**shown, "datasource": f"depth {task.depth}"} if measured else shown


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
