"""Demonstrations as token ids: what of each the policy is to write, and what it only reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from callwright.episodes.token_episode import Codec, PromptTooLong
from callwright.episodes.token_line import TokenLine
from callwright.errors import DataError, UsageError
from callwright.language.messages import Message
from callwright.language.native import turn_text
from callwright.language.parser import Parser
from callwright.language.program import Program
from callwright.training.demonstrations import WEIGHT, Demonstrates, Shown, reference_of
from callwright.training.reporter import SILENT, Reporter
from callwright.walk.limits import SINGLE_TURN, TurnLimits
from callwright.walk.tasks import Task
from callwright_plugins.local_trainer.models.policy import Policy
from callwright_plugins.local_trainer.sampling.episodes import DemonstrationTooLong, demonstrate, shown_ids

if TYPE_CHECKING:
    from callwright.pipeline import Pipeline


@frozen
class Example:
    """One demonstration as token ids: a prompt, and a completion with its end token.

    Of several turns the completion is everything after the prompt, and ``mask`` is 0 for what the environment said.
    ``task`` is the id of what it solves, where that is known.
    """

    prompt: tuple[int, ...]
    completion: tuple[int, ...]
    mask: tuple[int, ...] | None = None
    task: str = field(default="", eq=False)

    @property
    def tokens(self) -> int:
        """How many tokens are learnt from."""
        return len(self.completion) if self.mask is None else sum(self.mask)

    @property
    def length(self) -> int:
        """How many tokens there are, prompt included."""
        return len(self.prompt) + len(self.completion)


@frozen
class Encoded:
    """Demonstrations that are shown, and how many are not: too long, or cut short by a failure of the machinery."""

    examples: tuple[Example, ...]
    too_long: int = 0
    masked: int = 0


@frozen
class Bound:
    """The most tokens of a demonstration, prompt included, and the option that says so.

    Longer ones are an error, or left out where ``leave_out`` says so.
    """

    tokens: int
    option: str
    leave_out: bool = False


def of_corpus(
    pipeline: Pipeline, seed: int, count: int, options: dict[str, Any]
) -> Iterable[tuple[Task, Shown]] | None:
    """``count`` demonstrations that the corpus makes itself; ``None`` if it makes none."""
    corpus, environment = pipeline.corpus, pipeline.environment
    if not isinstance(corpus, Demonstrates):
        return None
    made = corpus.demonstrations(seed, count, options)
    if environment is None:
        return made
    return ((evolve(task, environment=environment), shown) for task, shown in made)


def of_tasks(pipeline: Pipeline, tasks: Iterable[Task]) -> list[tuple[Task, Shown]]:
    """What is to be shown for some tasks; those for which there is nothing are left out."""
    found = ((task, reference_of(pipeline.corpus, task)) for task in tasks)
    return [(task, shown) for task, shown in found if shown is not None]


def encode(
    pipeline: Pipeline,
    policy: Policy,
    shown: Iterable[tuple[Task, Shown]],
    bound: Bound,
    limits: TurnLimits = SINGLE_TURN,
    reporter: Reporter = SILENT,
) -> Encoded:
    """Demonstrations as token ids, each tokenised as the policy would have to write it.

    Of a program, as far as ``limits`` go on: the program, what its calls came to, and the answer. One whose machinery
    failed on the way is left out. Raises :class:`callwright.UsageError` if one is longer than ``bound`` allows, or if
    the tokenizer does not give back the text of one: a policy would then be trained on something that the parser never
    sees.
    """
    codec = policy.codec()
    examples: list[Example] = []
    too_long = masked = 0
    for task, what in shown:
        try:
            line = _line(pipeline, policy, codec, task, what, limits)
            example = None if line is None else _short_enough(line, task, bound)
        except (DemonstrationTooLong, PromptTooLong):
            if not bound.leave_out:
                raise
            too_long += 1
        else:
            masked += example is None
            if example is not None:
                examples.append(example)
        reporter.advance()
    return Encoded(tuple(examples), too_long, masked)


def _line(
    pipeline: Pipeline, policy: Policy, codec: Codec, task: Task, shown: Shown, limits: TurnLimits
) -> TokenLine | None:
    """The line of one demonstration; ``None`` if the machinery failed."""
    messages = () if policy.form == "compact" else pipeline.messages(task)
    if isinstance(shown, Program) and not limits.single:
        conditions = evolve(pipeline.conditions, limits=limits)
        episode = pipeline.token_episode(task, codec, messages=messages, conditions=conditions)
        demonstrate(episode, policy, shown)
        return episode.line if episode.masked is None else None
    line = TokenLine(codec.prompt_ids(messages, task))
    if isinstance(shown, Program):  # nothing follows it, so nothing has to be executed to show it
        line.sampled(shown_ids(policy, task, pipeline.parser.render(shown)))
    elif isinstance(shown, str):
        line.sampled(shown_ids(policy, task, shown))
    else:
        _converse(line, policy, codec, task, messages, tuple(shown), pipeline.parser)
    return line


def _converse(
    line: TokenLine,
    policy: Policy,
    codec: Codec,
    task: Task,
    prompt: Sequence[Message],
    following: Sequence[Message],
    parser: Parser,
) -> None:
    """Put a conversation behind its prompt. Messages between two of the assistant are heard together."""
    if not following or following[0].role != "assistant" or following[-1].role != "assistant":
        raise DataError(
            f"the demonstration of task {task.id!r} must begin and end with an assistant's message: it is what follows "
            "the prompt, and what comes after the last completion teaches nothing"
        )
    history, heard = list(prompt), list[Message]()
    ids: tuple[int, ...] = ()
    for message in following:
        if message.role != "assistant":
            heard.append(message)
            continue
        if ids:
            if not heard:
                raise DataError(
                    f"the demonstration of task {task.id!r} has two messages of the assistant with nothing between them"
                )
            line.heard(codec.observation_ids(history, ids, heard))
            history += heard
            heard = []
        text = turn_text(message, parser)
        ids = shown_ids(policy, task, text)
        if _is_learnt(message, task):
            line.sampled(ids)
        else:
            line.heard(ids)
        history.append(Message.assistant(text))
    if not line.ranges:
        raise DataError(f"the demonstration of task {task.id!r} has no message of the assistant with a weight above 0")


def _is_learnt(message: Message, task: Task) -> bool:
    weight = message.extra.get(WEIGHT, 1)
    if isinstance(weight, bool) or weight not in (0, 1):
        raise DataError(f"the demonstration of task {task.id!r}: the weight of a message is 0 or 1, not {weight!r:.40}")
    return bool(weight)


def _short_enough(line: TokenLine, task: Task, bound: Bound) -> Example:
    example = Example(line.prompt_ids, line.response_ids, line.mask, task.id)
    if example.length > bound.tokens:
        raise DemonstrationTooLong(
            f"the demonstration of task {task.id!r} has {example.length} tokens, more than the {bound.tokens} of "
            f"{bound.option}"
        )
    return example


def none_to_show() -> UsageError:
    """What is raised where there are no demonstrations at all."""
    return UsageError("there is nothing to start from: the corpus has no demonstrations and its tasks no programs")
