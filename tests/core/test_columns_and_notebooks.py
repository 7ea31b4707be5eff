"""Rewards over columns in one line, and values that draw themselves: text of a model is only text there."""

from __future__ import annotations

import math
import pickle
import re
from html.parser import HTMLParser
from typing import Any

import pytest

import callwright as cw
from callwright.errors import UnknownName, UsageError
from callwright.language.markup import Diff, table

CORPUS = "toolworld-mini-v1"
HOSTILE = "<script>alert(1)</script><img src=x onerror=y> \x1b[31m \u202e \ud800 & \x00"


@pytest.fixture(scope="module")
def gold() -> str:
    task: Any = cw.corpus(CORPUS)["evaluation"][16]
    return cw.parser("json").render(task.program)


def columns(*completions: Any) -> dict[str, list[Any]]:
    return {"task": ["evaluation-16"] * len(completions), "completion": list(completions)}


def test_columns_are_scored_as_single_texts_are(gold: str) -> None:
    found = cw.scorer("tier", corpus=CORPUS)(columns(gold, "no call"))
    assert found["reward"] == [1.0, 0.0]
    assert found["stage"] == ["done", "format"]
    assert found["masked"] == [None, None]
    assert found["why"][1].startswith("0: ")


@pytest.mark.parametrize("task", [16, None])
def test_a_cell_that_is_no_id_of_a_task_is_told_with_its_row(task: Any) -> None:
    with pytest.raises(UsageError, match=rf"^row 1: 'task' holds {task}: the id of a task is a text, as the corpus"):
        cw.scorer("tier", corpus=CORPUS)({"task": ["evaluation-16", task], "completion": ["a", "b"]})


@pytest.mark.parametrize("option", ["reward", "corpus", "ir"])
def test_objects_where_a_scorer_takes_names_are_refused_when_it_is_made(option: str) -> None:
    given: dict[str, Any] = {"reward": "tier", "corpus": CORPUS, "ir": "json", option: cw.parser("json")}
    with pytest.raises(UsageError, match=rf"^a scorer of columns takes the name of a registered {option}, not J"):
        cw.scorer(**given)


@pytest.mark.parametrize("nothing", [None, math.nan, float("nan")])
def test_a_completion_that_is_not_there_is_masked_and_not_zero(nothing: Any) -> None:
    found = cw.scorer("tier", corpus=CORPUS)(columns(nothing))
    assert found["reward"] == [None]
    assert found["masked"] == ["there is no completion"]


def test_a_list_of_messages_ends_with_the_completion(gold: str) -> None:
    chat = [{"role": "user", "content": "x"}, {"role": "assistant", "content": gold}]
    assert cw.scorer("tier", corpus=CORPUS)(columns(chat))["reward"] == [1.0]


def test_cells_of_a_data_frame_may_be_arrays_or_not_there(gold: str) -> None:
    pandas = pytest.importorskip("pandas", reason="data frames need pip install pandas")
    numpy = pytest.importorskip("numpy")
    chat = numpy.array([{"role": "user", "content": "x"}, {"role": "assistant", "content": gold}], dtype=object)
    texts = pandas.DataFrame({"task": ["evaluation-16"] * 2, "completion": pandas.Series([gold, None], dtype="string")})
    chats = pandas.DataFrame({"task": ["evaluation-16"] * 2, "completion": [chat, pandas.NA]})
    for frame in (texts, chats):
        assert cw.score_frame(frame, "tier", corpus=CORPUS)["masked"].isna().tolist() == [True, False]
    found = cw.score_frame(pandas.DataFrame({"messages": [chat, pandas.NA]}), "tier")
    assert found["why"].tolist()[1] == "masked: there is no conversation"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (["a", "b"], "row 1: 'completion' holds list"),
        (7, "row 1: 'completion' holds int"),
        ([{"role": "user", "content": "x"}], "row 1: the last message of 'completion' is of the role 'user'"),
    ],
)
def test_any_other_value_is_told_with_its_row(value: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        cw.scorer("tier", corpus=CORPUS)(columns("text", value))


def test_a_wrong_column_or_task_is_told(gold: str) -> None:
    with pytest.raises(UsageError, match="there is no column 'task', but id, completion"):
        cw.scorer("tier", corpus=CORPUS)({"id": ["evaluation-16"], "completion": [gold]})
    with pytest.raises(UsageError, match="the column 'task' has 2 rows and 'completion' has 1"):
        cw.scorer("tier", corpus=CORPUS)({"task": ["evaluation-16"] * 2, "completion": [gold]})
    with pytest.raises(UnknownName, match="evaluation-99999"):
        cw.scorer("tier", corpus=CORPUS)({"task": ["evaluation-99999"], "completion": [gold]})


def test_a_data_frame_gets_columns_and_stays_as_it_is(gold: str) -> None:
    pandas = pytest.importorskip("pandas", reason="data frames need pip install pandas")
    frame = pandas.DataFrame({"task": ["evaluation-16"] * 3, "answer": [gold, None, "x"], "more": [1, 2, 3]})
    found = cw.score_frame(frame, "tier", corpus=CORPUS, completion="answer")
    assert list(frame.columns) == ["task", "answer", "more"]
    assert list(found.columns) == ["task", "answer", "more", "reward", "stage", "masked", "why"]
    assert found["reward"].iloc[0] == 1.0
    assert math.isnan(found["reward"].iloc[1])
    with pytest.raises(UsageError, match="takes a pandas data frame, not dict"):
        cw.score_frame({}, "tier", corpus=CORPUS)


def test_a_data_set_is_mapped_in_one_line_and_taken_from_the_cache(tmp_path: Any, gold: str) -> None:
    datasets = pytest.importorskip("datasets", reason="data sets need pip install datasets")
    from datasets.fingerprint import Hasher

    made, again = cw.scorer("tier", corpus=CORPUS), cw.scorer("tier", corpus=CORPUS)
    before = Hasher.hash(made)
    made(columns(gold))  # used: corpus and reward are loaded now
    assert Hasher.hash(made) == before == Hasher.hash(again)
    assert Hasher.hash(cw.scorer("simple", corpus=CORPUS)) != before
    found = datasets.Dataset.from_dict(columns(gold, "x")).map(cw.scorer("tier", corpus=CORPUS), batched=True)
    assert found["reward"] == [1.0, 0.0]


def test_a_scorer_travels(gold: str) -> None:
    made = cw.scorer("tier", corpus=CORPUS)
    made(columns(gold))
    assert pickle.loads(pickle.dumps(made))(columns(gold))["reward"] == [1.0]


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def inert(page: str) -> str:
    read = _Tags()
    read.feed(page)
    assert read.tags <= {"table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert read.attributes <= {"style"}
    assert not re.search("[\x00-\x08\x1b\u202e\ud800]", page)
    return page


def test_a_reward_draws_its_terms_and_why_points_were_lost(gold: str) -> None:
    task = cw.corpus(CORPUS)["evaluation"][16]
    page = inert(cw.reward("tier").score(task, gold.replace("15", '"x"', 1), ir="json")._repr_html_())
    assert "<caption>reward" in page
    assert "types" in page
    assert "masked: gone" in inert(cw.walk.Reward(None, {}, masked="gone")._repr_html_())


def test_an_attempt_draws_its_calls(gold: str) -> None:
    task = cw.corpus(CORPUS)["evaluation"][16]
    page = inert(cw.Attempt(task, gold, cw.parser("json"))._repr_html_())
    assert "FindRestaurants" in page
    assert task.query in page
    inert(cw.Attempt(task, HOSTILE, cw.parser("json"))._repr_html_())


def test_a_diff_is_a_dictionary_that_draws_itself() -> None:
    session: Any = cw.environment("calendar").open("typical", seed=1)
    assert session.diff() == {}
    assert "nothing changed" in session.diff()._repr_html_()
    diff = Diff({"notes": {"added": {HOSTILE: {"a": HOSTILE}}, "changed": {"2": {"b": [1, 2]}}}, "clock": [1, 2]})
    assert pickle.loads(pickle.dumps(diff)) == diff
    page = inert(diff._repr_html_())
    assert page.count("<tr>") == 4


def test_long_and_odd_values_are_shown_as_text() -> None:
    page = inert(table(("a", "b"), [("x" * 5000, object()), (HOSTILE, {"k": HOSTILE})], HOSTILE))
    assert "…" in page
    assert len(page) < 4000
