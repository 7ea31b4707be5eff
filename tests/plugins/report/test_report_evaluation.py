"""The page of an evaluation folder: its figures, its examples, and that no content breaks it."""

from __future__ import annotations

import json
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from random import Random
from typing import Any

import pytest
from attrs import asdict
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from callwright.training.evaluation import Verdict, summarise
from callwright.training.run_folder import Run
from callwright_plugins.report.measured import read_evaluation
from callwright_plugins.report.page import write_report
from callwright_plugins.report.sections.completions import explain, pick

MakeFolder = Callable[..., Path]
SHAPES = ("none", "single", "linear", "funnel")


class Page(HTMLParser):
    """Tags and text of a page; complains about tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.stack: list[str] = []
        self.tags: list[str] = []
        self.rows: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.stack == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not {key for key, _ in attrs if key.startswith("on") or key in ("src", "href")}
        if tag != "meta":
            self.stack.append(tag)
        if tag == "tr":
            self.rows.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.stack or self.stack[-1] not in ("script", "style"):
            self.text += data
        if "tr" in self.stack:
            self.rows[-1] += f" {data}"


def page_of(path: Path) -> Page:
    return Page(write_report(Run(path)).read_text(encoding="utf-8"))


def verdicts(count: int = 80) -> list[Verdict]:
    rng = Random(4)
    found = []
    for index in range(count):
        depth = index % 4
        kind = rng.random()
        right = kind > 0.2 * depth
        failure = "" if right else rng.choice(["answer:wrong", "answer:wrong", "execution:sold_out"])
        found.append(Verdict(f"t-{index}", depth, SHAPES[depth], right, right and kind > 0.7, failure))
    return found


def write_folder(path: Path, found: list[Verdict], *, finished: bool = True, **more: Any) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    stated = {
        "corpus": {"name": "sums-v1", "split": "validation", "train": "train", "evaluation": "train"},
        "ir": "json",
        "sampler": {"name": "noisy-gold", "p": 0.8},
        "limit": None,
        "temperature": 0.0,
        "seed": 3,
        "batch": 64,
        "shots": 2,
    }
    (path / "settings.json").write_text(json.dumps(stated))
    manifest = {"command": "callwright evaluate --corpus sums-v1 --shots 2", "tasks": 100, "python": "3.11.7"}
    (path / "manifest.json").write_text(json.dumps(manifest))
    rows = [
        {"id": one.task, **asdict(one), "query": f"query of {one.task}", "completion": f"<think>{one.task}</think>"}
        for one in found
    ]
    (path / "verdicts.jsonl").write_text("".join(json.dumps({**row, **more}) + "\n" for row in rows))
    if finished:
        (path / "evaluation.json").write_text(json.dumps(summarise(found)))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "e", verdicts())


def test_every_figure_of_the_result_is_on_the_page(folder: Path) -> None:
    page, result = page_of(folder), summarise(verdicts())
    cells = {**result["by_depth"], **result["by_structure"]}
    rows = {row.split()[0]: row.split() for row in page.rows if row.split()}
    for label, cell in cells.items():
        found = [row.split() for row in page.rows if row.split()[0] == label and "%" in row]
        assert len(found) == 1
        _, n, right, interval, valid = found[0]
        bounds = [float(bound) / 100 for bound in interval.split("–")]
        assert int(n) == cell["n"]
        assert float(right[:-1]) / 100 == pytest.approx(cell["accuracy"], abs=6e-4)
        assert bounds == pytest.approx([cell["low"], cell["high"]], abs=6e-4)
        assert float(valid[:-1]) / 100 == pytest.approx(cell["valid_accuracy"], abs=6e-4)
    assert float(rows["all"][2][:-1]) / 100 == pytest.approx(result["overall"], abs=6e-4)
    assert f"of {result['n']} tasks were answered rightly" in page.text
    for counts in result["failures"].values():
        for name, count in counts.items():
            assert f"{name} {count}" in page.text


def test_the_page_says_how_to_measure_again(folder: Path) -> None:
    text = page_of(folder).text
    assert "noisy-gold on sums-v1, validation" in text
    assert "callwright evaluate --corpus sums-v1 --shots 2" in text
    assert "p=0.8" in text
    assert '"shots": 2' in text
    assert "3.11.7" in text
    assert "Written from the files of the evaluation folder" in text


def test_examples_are_right_and_wrong_with_the_failure_named(folder: Path) -> None:
    found, all_of_them = pick(read_evaluation(Run(folder))), {one.task: one for one in verdicts()}
    assert set(found) == {0, 1, 2, 3}
    for depth, group in found.items():
        assert len({(one.kind, one.failure) for one in group}) == len(group)
        for one in group:
            verdict = all_of_them[one.row["task"]]
            same = [
                other
                for other in all_of_them.values()
                if (other.depth, other.answer, other.failure, other.valid)
                == (depth, verdict.answer, verdict.failure, verdict.valid)
            ]
            assert same[0] == verdict
            assert one.count == len(same)
            assert (one.kind == "right") == verdict.answer
            assert one.failure == (verdict.failure if not verdict.answer else "" if verdict.valid else "but not valid")
    wrong = [one for one in found[3] if one.kind == "wrong"]
    assert [one.failure for one in wrong] == ["answer:wrong", "execution:sold_out"]
    page = page_of(folder).text
    assert "what is returned is not the expected answer" in page
    assert f"query of {wrong[0].row['task']}" in page
    assert f"<think>{wrong[0].row['task']}</think>" in page


def test_masked_tasks_are_neither_examples_nor_counted(tmp_path: Path) -> None:
    found = [*verdicts(8), Verdict("m", 9, "single", False, False, "masked", masked=True, lost="HTTP <500>")]
    path = write_folder(tmp_path / "e", found)
    assert 9 not in pick(read_evaluation(Run(path)))
    text = page_of(path).text
    assert "too many are masked to say more" in text
    assert "Masked attempts, and the accuracy if they were wrong or right" in text
    assert "Masked attempts" not in page_of(write_folder(tmp_path / "whole", verdicts(8))).text
    write_folder(tmp_path / "f", [*verdicts(80), found[-1]])
    assert "of 80 tasks" in page_of(tmp_path / "f").text, "one of 81 hides nothing"
    assert "1 task is masked and not counted" in text
    assert "1 masked: HTTP <500>" in text
    (path / "evaluation.json").unlink()
    text = page_of(path).text
    assert "stopped after 8 of 100 tasks" in text
    assert "1 task is masked and not counted" in text
    assert "1 masked: HTTP <500>" in text


def test_a_stopped_evaluation_is_counted_from_its_verdicts(tmp_path: Path) -> None:
    path = write_folder(tmp_path / "e", verdicts(20), finished=False)
    whole = page_of(write_folder(tmp_path / "whole", verdicts(20)))
    page = page_of(path)
    assert "stopped after 20 of 100 tasks" in page.text
    assert "The evaluation was stopped" in page.text
    assert page.rows == whole.rows


@pytest.mark.parametrize("missing", ["manifest.json", "evaluation.json", "verdicts.jsonl"])
@pytest.mark.parametrize("content", [None, b"", b"nonsense\n", b"[1]\n", b"\xff\n", b'{"depth": 1}\n'])
def test_any_file_may_be_absent_or_damaged(folder: Path, missing: str, content: bytes | None) -> None:
    (folder / missing).unlink()
    if content is not None:
        (folder / missing).write_bytes(content)
    page_of(folder)


@pytest.mark.parametrize("nasty", ["<script>alert(1)</script>", "</pre></details><h1>x</h1>", '" onclick="x', "<!-- "])
def test_text_of_a_model_stays_text(tmp_path: Path, folder: Path, nasty: str) -> None:
    texts: dict[str, Any] = dict.fromkeys(("query", "completion", "structure", "task", "id"), nasty)
    page = page_of(write_folder(tmp_path / "f", verdicts(), **texts))
    assert page.tags == page_of(folder).tags
    assert nasty in page.text


_KEYS = [
    *("depth", "answer", "failure", "completion", "query", "by_depth", "by_structure", "0", "overall", "n", "accuracy"),
    *("low", "failures", "corpus", "sampler", "name", "command", "masked", "structure"),
]
_WILD = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**400), 10**400) | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=5),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(_WILD, max_size=4), result=_WILD, manifest=_WILD, stated=_WILD)
def test_no_content_breaks_the_page(tmp_path: Path, rows: list[Any], result: Any, manifest: Any, stated: Any) -> None:
    (tmp_path / "verdicts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, value in (("evaluation.json", result), ("manifest.json", manifest), ("settings.json", stated)):
        (tmp_path / name).write_text(json.dumps(value))
    page_of(tmp_path)


def test_failures_are_explained_where_their_name_is_known() -> None:
    assert explain("execution:sold_out") == "A call failed when it was executed."
    assert explain("format:syntax").startswith("The completion is not a program")
    assert explain("something:else") == ""
