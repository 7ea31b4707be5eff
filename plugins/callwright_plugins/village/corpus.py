"""The corpus: errands drawn from a seed, with cakes, amounts and passwords held out for evaluation."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any, Final

from attrs import evolve

from callwright.environments.protocol import Environment
from callwright.episodes.conversation import Conversation
from callwright.errors import UsageError
from callwright.language.messages import Message
from callwright.language.parser import Parser
from callwright.language.program import Call, Program
from callwright.pickling import made_again, made_by
from callwright.plugins import default_registry
from callwright.walk.completion import Completion
from callwright.walk.conditions import Conditions
from callwright.walk.corpora.on_demand import CorpusOnDemand, Split, check_seed, check_sizes
from callwright.walk.limits import TurnLimits
from callwright.walk.tasks import Answer, Task
from callwright.walk.users.said import UserSpec
from callwright_plugins.village import BAKERY, NAME, PURSE, bakery, purse
from callwright_plugins.village.clerk import Clerk
from callwright_plugins.village.errands import CLOCK, INSISTS, KINDS, PATIENCE, TELLS, THANKS, Errand, Known, draw
from callwright_plugins.village.people import passwords
from callwright_plugins.village.prompts import prompt_text, vocabulary

_SCENARIO: Final = "day"
#: The form of the demonstrations: text is said, calls stand in blocks.
FORM: Final = "hermes"
_LIMITS: Final = TurnLimits(assistant_turns=12, user_turns=12)


class VillageCorpus(CorpusOnDemand):
    """The corpus ``village-v1``.

    ``train_size`` is the size of the split ``train``, whose errands are of the kinds of ``mix`` in turn;
    ``evaluation_size`` is the number of errands *of each kind* in the split ``evaluation``. The seed draws them. Which
    cakes, amounts and passwords are held out does not depend on it. Raises :class:`callwright.UsageError` for options
    that are no sizes or kinds.
    """

    def __init__(
        self,
        train_size: int = 2000,
        evaluation_size: int = 25,
        seed: int = 0,
        mix: Sequence[str] = ("save", "cancel", "pay", "bring", "bring"),
    ) -> None:
        check_sizes(NAME, train_size=train_size, evaluation_size=evaluation_size)
        check_seed(NAME, seed)
        if not isinstance(mix, list | tuple) or not mix or any(kind not in KINDS for kind in mix):
            raise UsageError(f"option 'mix' of {NAME} lists kinds of errands ({', '.join(KINDS)}), not {mix!r}")
        self._options = (train_size, evaluation_size, seed, tuple(mix))
        together: Environment = default_registry().create("environment", f"{BAKERY}+{PURSE}")
        self._bakery, self._purse = made_again(bakery.environment, ()), made_again(purse.environment, ())
        self._seed = seed
        self._kinds = {"train": tuple(mix), "evaluation": tuple(KINDS)}
        drawn = {"seed": seed, "mix": list(mix)}
        sizes = {"train": train_size, "evaluation": evaluation_size * len(KINDS)}
        stated = {"train": {"train_size": train_size}, "evaluation": {"evaluation_size": evaluation_size}}
        splits = {
            split: Split(sizes[split], [KINDS[kind][1] for kind in kinds], {**stated[split], **drawn})
            for split, kinds in self._kinds.items()
        }
        super().__init__(NAME, together, splits)

    def __reduce__(self) -> Any:
        return made_by(self, VillageCorpus, *self._options)

    def make(self, split: str, number: int) -> Task:
        """An errand; the kinds of a split take turns."""
        kinds = self._kinds[split]
        rng = Random(f"{NAME}/{self._seed}/{split}/{number}")
        return self._draw(f"{split}-{number}", split, kinds[number % len(kinds)], rng)

    def prompt_text(self, task: Task) -> str | None:
        """The prompt for a model with a tiny vocabulary: names of tools, then what the user says."""
        return prompt_text(task)

    def vocabulary(self) -> list[str]:
        """The pieces that prompts and conversations of this corpus (form ``hermes``) are made of."""
        return list(vocabulary())

    def reference(self, task: Task) -> Sequence[Message]:
        """What a clerk without bad habits does: the conversation after the query."""
        return self._conversation(task, Clerk(0.0, 0.0, 0.0), Random(0))

    def demonstrations(
        self, seed: int, count: int, options: Mapping[str, Any] | None = None
    ) -> Iterator[tuple[Task, Sequence[Message]]]:
        """``count`` errands of the train side, each with the conversation that a clerk in a hurry has.

        ``options`` are those of :class:`callwright_plugins.village.clerk.Clerk`. Raises :class:`callwright.UsageError`,
        before anything is drawn, for a name or value that it does not take.
        """
        return self._demonstrate(seed, count, Clerk.read(options or {}))

    def _demonstrate(self, seed: int, count: int, clerk: Clerk) -> Iterator[tuple[Task, Sequence[Message]]]:
        mix = self._options[3]
        for number in range(count):
            rng = Random(f"{NAME}/{self._seed}/demonstration/{seed}/{number}")
            task = self._draw(f"demonstration-{seed}-{number}", "train", mix[number % len(mix)], rng)
            yield task, self._conversation(task, clerk, rng)

    def _conversation(self, task: Task, clerk: Clerk, rng: Random) -> Sequence[Message]:
        parser: Parser = default_registry().create("parser", FORM)
        first = Message.user(task.query)
        conversation = Conversation(task, parser, [first], Conditions(limits=_LIMITS))
        acts = clerk.run(task.facts["kind"], task.facts["values"], rng)
        act = next(acts)
        while not conversation.over:
            said = act if isinstance(act, str) else parser.render(Program((act,), "one"))
            heard = conversation.take(Completion(said))
            conversation.hear(heard)
            if conversation.over:
                break
            turn = conversation.turns[-1]
            if isinstance(act, Call):
                assert turn.trace is not None
                act = acts.send(turn.trace.records[0].outcome)
            else:
                act = acts.send(heard[0].text)
        messages = list(conversation.messages[1:])
        while messages[-1].role != "assistant":  # a last word of the user
            messages.pop()
        return messages

    def _draw(self, task_id: str, split: str, kind: str, rng: Random) -> Task:
        for_evaluation = split == "evaluation"
        allowed = frozenset(passwords(for_evaluation=for_evaluation))
        while True:
            seed = rng.randrange(1 << 31)
            mine = self._purse.open(_SCENARIO, seed).world.need(purse.Purse, "me")
            if mine.password in allowed:
                break
        cakes = self._bakery.open(_SCENARIO, seed).world.rows(bakery.Cake)
        known = Known({cake.name: cake.price for cake in cakes}, mine.balance, mine.saved)
        task = self._posed(task_id, split, seed, draw(kind, rng, for_evaluation=for_evaluation, known=known))
        # What the last call comes to is the answer, for those who ask for answers; the reward asks for the end state.
        last = next(one for one in reversed(self.reference(task)) if one.role == "tool")
        return evolve(task, answer=Answer((json.loads(last.text)["result"],)))

    def _posed(self, task_id: str, split: str, seed: int, errand: Errand) -> Task:
        options = {
            "knows": {"password": {"knowledge": "password", "of": "me"}},
            "tells": {"password": TELLS},
            "then": list(errand.then),
            "satisfied": errand.goal,
            "patience": PATIENCE,
            "insists": INSISTS,
            "thanks": THANKS,
        }
        return Task(
            id=task_id,
            query=errand.query,
            tools=self.environment.tools,
            answer=Answer(),
            environment=self.environment,
            scenario=_SCENARIO,
            seed=seed,
            split=split,
            depth=KINDS[errand.kind][1],
            structure="linear" if KINDS[errand.kind][1] > 1 else "single",
            facts={"kind": errand.kind, "values": errand.values, "goal": errand.goal},
            clock=CLOCK,
            user=UserSpec("scripted", options),
        )
