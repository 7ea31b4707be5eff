"""Corpora of tasks that somebody holds in a list."""

from __future__ import annotations

import pickle

import pytest
from attrs import evolve

import callwright as cw
from callwright.errors import UnknownName, UsageError
from callwright.testing import check_component
from callwright.walk import ListedCorpus


def tasks() -> list[cw.Task]:
    return list(cw.corpus("toolworld-mini-v1")["evaluation"][14:20])


def test_tasks_stand_in_the_splits_that_they_name() -> None:
    made = [evolve(task, split="train" if at % 2 else "held-out") for at, task in enumerate(tasks())]
    corpus = ListedCorpus("errands", made)
    assert (corpus.name, corpus.splits) == ("errands", {"held-out": 3, "train": 3})
    assert [task.id for task in corpus["train"]] == [task.id for task in made[1::2]]
    assert corpus.task(made[0].id) is made[0]
    assert corpus.environment is made[0].environment
    with pytest.raises(UnknownName, match=r"errands.*held-out"):
        corpus["held-in"]
    with pytest.raises(UnknownName, match="task of errands"):
        corpus.task("nobody")
    with pytest.raises(UsageError, match=r"^the id of a task is a text, not 16$"):
        corpus.task(16)  # type: ignore[arg-type]
    again = pickle.loads(pickle.dumps(corpus))
    assert [task.id for split in again.splits for task in again[split]] == [
        *(m.id for m in made[::2]),
        *(m.id for m in made[1::2]),
    ]
    check_component("corpus", corpus)


def test_what_is_no_corpus_is_said() -> None:
    first = tasks()[0]
    for given, told in (([], "has no task"), ([first, first], "two tasks with the id"), (["one"], "is of tasks")):
        with pytest.raises(cw.UsageError, match=told):
            ListedCorpus("errands", given)  # type: ignore[arg-type]
    with pytest.raises(cw.UsageError, match="a corpus has a name"):
        ListedCorpus("", [first])


def test_pipelines_and_evaluations_take_it() -> None:
    corpus = ListedCorpus("errands", tasks())
    pipeline = cw.Pipeline(corpus, "tier", "json")
    found = cw.evaluate(pipeline, list(corpus["evaluation"]), cw.sampler("noisy-gold", p=1.0))
    assert [verdict.answer for verdict in found] == [True] * 6
