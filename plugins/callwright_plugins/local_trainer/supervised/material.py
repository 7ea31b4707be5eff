"""What is shown, and what is measured on: the demonstrations of a run, encoded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from attrs import frozen

from callwright.errors import UsageError
from callwright.training.demonstrations import Demonstrates, Shown
from callwright.training.reporter import Reporter
from callwright.walk.limits import TurnLimits
from callwright.walk.tasks import Task
from callwright_plugins.local_trainer.learning.demonstrations import (
    Bound,
    Encoded,
    Example,
    encode,
    none_to_show,
    of_corpus,
    of_tasks,
)
from callwright_plugins.local_trainer.models.policy import Policy
from callwright_plugins.local_trainer.options import SupervisedOptions
from callwright_plugins.local_trainer.randomness import python_generator

if TYPE_CHECKING:
    from callwright.pipeline import Pipeline


@frozen
class Material:
    """The demonstrations that are learnt from, where they are from, and how many are left out."""

    encoded: Encoded
    source: str

    @property
    def examples(self) -> Sequence[Example]:
        """The demonstrations as token ids."""
        return self.encoded.examples

    def to_json(self) -> dict[str, Any]:
        """What ``demonstrations.json`` says of them."""
        lengths = [example.length for example in self.examples]
        return {
            "source": self.source,
            "shown": len(lengths),
            "too_long": self.encoded.too_long,
            "masked": self.encoded.masked,
            "tokens": sum(lengths),
            "learnt_tokens": sum(example.tokens for example in self.examples),
            "longest": max(lengths),
        }


def material(
    pipeline: Pipeline, policy: Policy, options: SupervisedOptions, limits: TurnLimits, reporter: Reporter
) -> Material:
    """The demonstrations of a run. Raises :class:`callwright.UsageError` if there are none, or if one cannot be shown.

    Whatever :func:`callwright_plugins.local_trainer.learning.demonstrations.encode` raises is raised here.
    """
    source, shown, count = _chosen(pipeline, options)
    bound = _bound(policy, options)
    reporter.start("demonstrations", count)
    encoded = encode(pipeline, policy, shown, bound, limits, reporter)
    reporter.finish()
    if encoded.too_long:
        reporter.say(f"{encoded.too_long:,} of {count:,} demonstrations are too long ({bound.option}) and are left out")
    if encoded.masked:
        reporter.say(f"{encoded.masked:,} of {count:,} demonstrations are left out, since the machinery failed in them")
    if not encoded.examples:
        if encoded.too_long:
            raise UsageError(f"all demonstrations are longer than the {bound.tokens} tokens of {bound.option}")
        raise none_to_show()
    return Material(encoded, source)


def held_out(pipeline: Pipeline, policy: Policy, tasks: Sequence[Task], limits: TurnLimits) -> tuple[Example, ...]:
    """The references of the tasks of evaluation, as far as they fit into the model: what its loss is measured on."""
    bound = Bound(policy.positions or 1 << 62, "the model", leave_out=True)
    return encode(pipeline, policy, of_tasks(pipeline, tasks), bound, limits).examples


def _chosen(pipeline: Pipeline, options: SupervisedOptions) -> tuple[str, Iterable[tuple[Task, Shown]], int]:
    """Where demonstrations are from, what they are, and how many there are."""
    corpus, seed, limit = pipeline.corpus, pipeline.conditions.seed, options.limit
    own = isinstance(corpus, Demonstrates)
    if options.source == "demonstrations" and not own:
        raise UsageError(f"the corpus {corpus.name!r} makes no demonstrations; use source = 'references'")
    if own and options.source != "references":
        if limit is None:
            raise UsageError(
                f"the corpus {corpus.name!r} makes as many demonstrations as it is asked for; say how many: 'limit'"
            )
        made = of_corpus(pipeline, seed, limit, dict(options.demonstrations))
        assert made is not None
        return "demonstrations", made, limit
    if options.demonstrations:
        raise UsageError(f"the corpus {corpus.name!r} makes no demonstrations, so 'demonstrations' means nothing")
    found = of_tasks(pipeline, pipeline.tasks(pipeline.train))
    if limit is not None and limit < len(found):
        drawn = python_generator(seed, "demonstrations").sample(range(len(found)), limit)
        found = [found[place] for place in sorted(drawn)]
    return "references", found, len(found)


def _bound(policy: Policy, options: SupervisedOptions) -> Bound:
    leave_out = options.too_long == "leave_out"
    if policy.positions is not None and policy.positions < options.max_tokens:
        return Bound(policy.positions, "the model's positions", leave_out)
    return Bound(options.max_tokens, "'max_tokens'", leave_out)
