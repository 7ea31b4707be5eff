"""Corpora that make their tasks on demand: by split and number, kept, found by id, and the same in every process."""

from __future__ import annotations

import pickle
import random
from typing import Any

import pytest

import callwright as cw
from callwright.errors import UnknownName, UsageError
from callwright.testing import check_component
from callwright.walk import CorpusOnDemand, Split, TasksOnDemand
from callwright.walk.corpora.on_demand import check_seed, check_sizes
from callwright.walk.tasks import depths_of


@cw.tool(read_only=True)
def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: A number.
        b: Another one.
    """
    return a + b


SUMS = cw.environment("sums", tools=[add])


class Sums(CorpusOnDemand):
    """Sums of drawn numbers; ``made`` are the tasks that were made."""

    def __init__(self, train_size: int = 12, seed: int = 0) -> None:
        check_sizes("sums-v1", train_size=train_size)
        check_seed("sums-v1", seed)
        self.train_size, self.seed = train_size, seed
        self.made: list[str] = []
        splits = {"train": Split(train_size, (1, 1, 0), {"seed": seed}), "evaluation": Split(4, fixed={"seed": seed})}
        super().__init__("sums-v1", SUMS, splits)

    def __reduce__(self) -> Any:
        return Sums, (self.train_size, self.seed)

    def make(self, split: str, number: int) -> cw.Task:
        self.made.append(f"{split}-{number}")
        rng = random.Random(f"sums-v1/{self.seed}/{split}/{number}")
        a, b = rng.randrange(100), rng.randrange(100)
        return cw.Task(
            f"{split}-{number}",
            f"What is {a} + {b}?",
            SUMS.tools,
            cw.Answer((a + b,)),
            SUMS,
            split=split,
            depth=0 if split == "train" and number % 3 == 2 else 1,
            program=cw.Program((cw.Call(0, "add", {"a": a, "b": b}),)),
        )


def test_a_task_is_made_when_it_is_asked_for_and_kept() -> None:
    corpus = Sums()
    assert (corpus.name, corpus.environment, corpus.splits) == ("sums-v1", SUMS, {"train": 12, "evaluation": 4})
    assert depths_of(corpus["train"]) == [1, 1, 0] * 4
    assert corpus.made == []
    assert corpus["train"][-1] is corpus.task("train-11") is corpus["train"][11]
    assert [task.id for task in corpus["train"][9:]] == ["train-9", "train-10", "train-11"]
    assert corpus.made == ["train-11", "train-9", "train-10"]
    with pytest.raises(IndexError):
        corpus["train"][12]
    assert [task.depth for task in corpus["train"]] == depths_of(corpus["train"])


def test_a_task_hangs_on_its_number_and_the_options_alone() -> None:
    whole, fewer, copied = Sums(), Sums(3), pickle.loads(pickle.dumps(Sums()))
    assert list(fewer["train"]) == list(whole["train"])[:3]
    assert [task.query for task in copied["train"]] == [task.query for task in whole["train"]]
    assert Sums(seed=1)["train"][0].query != whole["train"][0].query
    split = pickle.loads(pickle.dumps(whole["train"]))
    assert isinstance(split, TasksOnDemand)
    assert (len(split), split[5].query) == (12, whole["train"][5].query)
    assert whole.fingerprint("train") == {"seed": 0}
    assert whole.fingerprint("of a benchmark") is None


@pytest.mark.parametrize(
    "task_id", ["train-12", "train-", "train", "train-1x", "train-01", "trian-1", "train-9999999999"]
)
def test_an_id_that_is_none_names_the_last_of_each_split(task_id: str) -> None:
    with pytest.raises(UnknownName, match=r"There is no task of sums-v1 named .*train-11"):
        Sums().task(task_id)


def test_an_id_is_a_text() -> None:
    for task_id in (16, None):
        with pytest.raises(UsageError, match=f"^the id of a task is a text, not {task_id}$"):
            Sums().task(task_id)  # type: ignore[arg-type]


def test_what_is_no_option_is_named() -> None:
    with pytest.raises(UnknownName, match=r"There is no split of sums-v1 named 'trian'.*'train'"):
        Sums()["trian"]
    for size in (-1, True, 2.0, "3"):
        with pytest.raises(UsageError, match="option 'train_size' of sums-v1 is a number of tasks, not"):
            Sums(size)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="option 'seed' of sums-v1 is an integer, not 'x'"):
        Sums(seed="x")  # type: ignore[arg-type]


def test_it_passes_the_conformance_kit() -> None:
    assert check_component("corpus", Sums()) == ()


@pytest.mark.parametrize("name", ["toolworld-mini-v1", "village-v1"])
def test_shipped_corpora_are_made_so(name: str) -> None:
    corpus: Any = cw.corpus(name)
    assert isinstance(corpus, CorpusOnDemand)
    for split in corpus.splits:
        assert corpus.task(f"{split}-7").id == corpus[split][7].id == f"{split}-7"
        assert corpus.fingerprint(split)["seed"] == 0
        assert depths_of(corpus[split])[7] == corpus[split][7].depth
