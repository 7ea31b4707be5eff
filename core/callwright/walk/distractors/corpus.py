"""A corpus among distractors: every task of another one, offered tools of other environments that run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from callwright.capability import has
from callwright.environments.composed.environment import ComposedEnvironment
from callwright.environments.protocol import Environment
from callwright.errors import UsageError
from callwright.walk.corpora.capabilities import HasFingerprint
from callwright.walk.distractors.tasks import USUAL, composed_with, distracted
from callwright.walk.tasks import Corpus, Task, depths_of

if TYPE_CHECKING:
    from callwright.plugins import Registry


class DistractedCorpus(Corpus):
    """``corpus`` among ``tools`` tools of ``environments`` a task (:func:`.tasks.distracted`).

    Its name is ``toolworld-mini-v1+email``; a registry knows it by that. Tasks are made when they are asked for. Raises
    :class:`callwright.UsageError` without environments, and for a number that is none.
    """

    def __init__(
        self, corpus: Corpus, environments: Sequence[Environment], *, tools: int = USUAL, seed: int = 0
    ) -> None:
        if not environments:
            raise UsageError("distractors come from other environments; name one")
        if any(isinstance(given, bool) or not isinstance(given, int) for given in (tools, seed)) or tools < 0:
            raise UsageError(f"distractors are a number of tools and a seed, not {tools!r:.40} and {seed!r:.40}")
        self.inner, self.others, self.tools, self.seed = corpus, tuple(environments), tools, seed
        self._wholes: dict[int, ComposedEnvironment] = {}
        self._environment = self._whole(corpus.environment)

    @property
    def name(self) -> str:
        """The names of the corpus and of the environments of the distractors."""
        return "+".join((self.inner.name, *(one.name for one in self.others)))

    @property
    def environment(self) -> ComposedEnvironment:
        """The corpus' environment and the others as one."""
        return self._environment

    @property
    def splits(self) -> Mapping[str, int]:
        """As of the corpus."""
        return self.inner.splits

    def __getitem__(self, split: str) -> Sequence[Task]:
        """The tasks of a split, in the order of the corpus."""
        return _Tasks(self, split)

    def task(self, task_id: str) -> Task:
        """The task with this id; raises :class:`callwright.errors.UnknownName`."""
        return self.among(self.inner.task(task_id))

    def fingerprint(self, split: str) -> dict[str, Any]:
        """What fixes the tasks of a split: what does so in the corpus, and which distractors are drawn."""
        inner = (
            self.inner.fingerprint(split)
            if has(self.inner, HasFingerprint)
            else {"tasks": [task.id for task in self.inner[split]]}
        )
        return {
            "corpus": inner,
            "distractors": [one.name for one in self.others],
            "tools": self.tools,
            "seed": self.seed,
        }

    def among(self, task: Task) -> Task:
        """A task of the corpus among distractors."""
        return distracted(task, self._whole(task.environment), tools=self.tools, seed=self.seed)

    def _whole(self, environment: Environment) -> ComposedEnvironment:
        known = self._wholes.get(id(environment))
        if known is None:
            known = self._wholes[id(environment)] = composed_with(environment, self.others)
        return known

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_wholes"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._wholes = {id(self._environment.parts[0]): self._environment}


class _Tasks(Sequence[Task]):
    def __init__(self, corpus: DistractedCorpus, split: str) -> None:
        self._corpus, self._split = corpus, split
        self._inner = corpus.inner[split]

    def __reduce__(self) -> Any:
        return _Tasks, (self._corpus, self._split)

    def __len__(self) -> int:
        return len(self._inner)

    @property
    def depths(self) -> Sequence[int]:
        """The depth of each task."""
        return depths_of(self._inner)

    @overload
    def __getitem__(self, index: int) -> Task: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Task]: ...

    def __getitem__(self, index: int | slice) -> Task | Sequence[Task]:
        if isinstance(index, slice):
            return [self._corpus.among(task) for task in self._inner[index]]
        return self._corpus.among(self._inner[index])


def among_tools(
    names: Sequence[str],
    registry: Registry,
    tools: int = USUAL,
    seed: int = 0,
    corpus: Mapping[str, Any] | None = None,
    environments: Mapping[str, Mapping[str, Any]] | None = None,
) -> DistractedCorpus:
    """The corpus that a registry knows as ``toolworld-mini-v1+email``.

    ``corpus`` are the options of the corpus, ``environments`` those of the environments, by name.
    """
    made = registry.create("corpus", names[0], **(corpus or {}))
    others = [registry.create("environment", name, **(environments or {}).get(name, {})) for name in names[1:]]
    return DistractedCorpus(made, others, tools=tools, seed=seed)
