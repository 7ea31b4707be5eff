"""The page as a whole: what it says, that it holds no foreign markup, and that no run breaks it."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from callwright.cli.root import root as root_command
from callwright.commands.app import App
from callwright.errors import DataError, RunError
from callwright.plugins import load_plugins
from callwright.training.run_folder import Run
from callwright_plugins.report import callwright_run_finished
from callwright_plugins.report.page import write_report

MakeRun = Callable[..., Path]
#: The elements that a page is made of, and those of them that never have an end tag.
ELEMENTS = (
    "html head meta title style body main header footer section div p h1 h2 h3 dl dt dd table thead tbody tfoot tr th "
    "td span i b em small strong ul li figure figcaption svg line path text details summary pre code script"
)
VOID = {"meta", "br", "img", "input", "hr"}


class Page(HTMLParser):
    """Elements, attributes and text of a page; complains about tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.stack: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.stack == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.stack or self.stack[-1] not in ("script", "style"):
            self.text += data

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)


def page_of(path: Path) -> Page:
    return Page(write_report(Run(path)).read_text(encoding="utf-8"))


def edit_rows(path: Path, change: Callable[[int, dict[str, Any]], None]) -> None:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for number, row in enumerate(rows):
        change(number, row)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_a_finished_run(make_run: MakeRun) -> None:
    page = page_of(make_run())
    text = page.text
    assert "Accuracy on 280 held-out tasks rose from 26.8% to 68.2% (+41.4 points)." in text
    assert "Depths 1–5 gained beyond chance, most at depth 2 (+80 points)." in text
    assert "Depth 6 stays below half." in text
    for heading in ("Accuracy", "Reward", "Diagnostics", "Warm start", "Rollouts", "Reproduce"):
        assert heading in text
    for name in ("parameters", "KL", "Entropy", "Groups without signal", "Calls a program", "Clipped tokens"):
        assert name in text
    assert "callwright run tier-mini --set seed=0" in text
    assert "kl_weight = 0.2" in text
    assert "weather (acme-weather 2.0)" in text
    assert "Alarm" not in text
    assert page.count("svg") >= 15


def test_the_page_loads_nothing(make_run: MakeRun) -> None:
    page = page_of(make_run())
    assert not {tag for tag, _ in page.tags} & {
        "link",
        "img",
        "iframe",
        "object",
        "embed",
        "base",
        "form",
        "image",
        "use",
    }
    for _, attributes in page.tags:
        assert not {"src", "href", "srcset", "action", "background"} & set(attributes)
    style = (Path(write_report.__code__.co_filename).parent / "style.css").read_text()
    assert "url(" not in style
    assert "@import" not in style


def test_the_policy_allows_this_script_only(make_run: MakeRun) -> None:
    text = write_report(Run(make_run())).read_text()
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert f"script-src 'sha256-{digest}'" in html.unescape(policy)
    assert "default-src 'none'" in html.unescape(policy)


NASTY = [
    "<script>alert(1)</script>",
    "</pre></details></main><h1>owned</h1>",
    "<img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)" x="',
    "' onfocus='alert(1)",
    "<!-- ",
    "]]>",
    "&lt;b&gt;",
    "\x00\x1b[31m\u202edrow\u2028",
    "\ud800",
    "{{7*7}}${7*7}",
]


@pytest.mark.parametrize("nasty", NASTY)
def test_text_of_a_model_stays_text(make_run: MakeRun, nasty: str) -> None:
    path = make_run(steps=12)
    plain = page_of(path)

    def poison(number: int, row: dict[str, Any]) -> None:
        for key in ("completion", "prompt", "query", "task", "structure", "stage", "failure"):
            if key != "stage" or row[key] != "done":
                row[key] = nasty
        for part in row["scores"].values():
            for one in part["evidence"]:
                one["reason"] = nasty

    edit_rows(path / "rollouts.jsonl", poison)
    page = page_of(path)
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in plain.tags]
    assert {key for _, attributes in page.tags for key in attributes} == {
        key for _, attributes in plain.tags for key in attributes
    }
    if nasty.isascii() and nasty.isprintable():
        assert nasty in page.text
    assert not set(page.text) & {"\x00", "\x1b", "\u202e", "\u2028"}


@pytest.mark.parametrize("nasty", NASTY[:7])
def test_names_from_other_files_stay_text(make_run: MakeRun, nasty: str) -> None:
    path = make_run(steps=12)

    def poison(number: int, row: dict[str, Any]) -> None:
        row["scores"] = {nasty: 0.5 + number / 100}
        row["alarm"] = nasty if number > 6 else None

    edit_rows(path / "metrics.jsonl", poison)
    (path / "recipe.toml").write_text(f"name = {json.dumps(nasty)}\ndescription = {json.dumps(nasty)}\n")
    for name in ("manifest.json", "evaluation.json"):
        text = (path / name).read_text()
        text = text.replace('"acme-weather"', json.dumps(nasty)).replace('"answer:wrong"', json.dumps(nasty))
        (path / name).write_text(text.replace('"2": {', json.dumps(nasty) + ": {"))
    page = page_of(path)
    assert {tag for tag, _ in page.tags} <= set(ELEMENTS.split())
    assert page.count("script") == 1
    assert page.count("h1") == 1
    assert not {key for _, attributes in page.tags for key in attributes if key.startswith("on")}


def test_the_same_run_gives_the_same_bytes(make_run: MakeRun) -> None:
    path = make_run()
    first = write_report(Run(path)).read_bytes()
    assert write_report(Run(path)).read_bytes() == first


def test_a_stopped_run(make_run: MakeRun) -> None:
    page = page_of(make_run(steps=37, planned=100))
    assert "stopped at step 37 of 100" in page.text
    assert "After 37 steps the mean reward is" in page.text
    assert "There is no evaluation after training to compare with." in page.text


def test_a_run_that_got_worse(make_run: MakeRun) -> None:
    path = make_run()
    evaluation = json.loads((path / "evaluation.json").read_text())
    evaluation["before"], evaluation["after"] = evaluation["after"], evaluation["before"]
    (path / "evaluation.json").write_text(json.dumps(evaluation))
    text = page_of(path).text
    assert "fell from 68.2% to 26.8% (−41.4 points)." in text
    assert "Depths 1–5 lost accuracy." in text


def test_a_run_in_which_nothing_happened(make_run: MakeRun) -> None:
    path = make_run()
    evaluation = json.loads((path / "evaluation.json").read_text())
    evaluation["after"] = evaluation["before"]
    (path / "evaluation.json").write_text(json.dumps(evaluation))
    text = page_of(path).text
    assert "Accuracy on 280 held-out tasks is 26.8%, before and after." in text
    assert "No depth changed beyond chance." in text


def test_alarms_are_joined_and_shown_in_words(make_run: MakeRun) -> None:
    path = make_run(steps=40)

    def raise_alarm(number: int, row: dict[str, Any]) -> None:
        row["alarm"] = f"collapsing: {number}" if 10 <= number < 20 or number == 30 else None

    edit_rows(path / "metrics.jsonl", raise_alarm)
    text = page_of(path).text
    assert "Steps 11–20: collapsing: 19" in text
    assert "Step 31: collapsing: 30" in text
    assert "collapsing: 12" not in text


def test_what_a_careful_reader_would_want_to_know(make_run: MakeRun) -> None:
    path = make_run(steps=40)

    def spoil(number: int, row: dict[str, Any]) -> None:
        row["zero_variance"], row["truncated"], row["masked"] = 0.8, 0.25, 2
        row["entropy"] = 1.0 if number < 4 else 0.01
        row["multi_call"] |= {"executed": 0.9, "answered": 0.1, "calls": 1.0, "calls_due": 4.0}

    edit_rows(path / "metrics.jsonl", spoil)
    text = page_of(path).text
    assert "In the last quarter 80% of the groups had equal rewards throughout" in text
    assert "In the last quarter 25% of the completions were cut off" in text
    assert "Entropy has fallen to less than a tenth" in text
    assert "80 rollouts were masked" in text
    assert "In the last quarter 90% of the programs for multi-call tasks executed, but 10% answered rightly" in text


@pytest.mark.parametrize(
    "missing", ["manifest.json", "evaluation.json", "metrics.jsonl", "rollouts.jsonl", "warm_start.jsonl"]
)
def test_any_file_may_be_absent(make_run: MakeRun, missing: str) -> None:
    path = make_run(steps=12)
    (path / missing).unlink()
    page_of(path)


@pytest.mark.parametrize("name", ["recipe.toml", "manifest.json", "evaluation.json", "metrics.jsonl", "rollouts.jsonl"])
@pytest.mark.parametrize(
    "content", [b"", b"\n", b"nonsense\n", b"[1, 2]\n", b'{"step": 1}\n', b"\xff\xfe\n", b"5\n", b'"x"']
)
def test_any_file_may_be_damaged(make_run: MakeRun, name: str, content: bytes) -> None:
    path = make_run(steps=6)
    (path / name).write_bytes(content)
    page_of(path)


def test_damage_is_said(make_run: MakeRun) -> None:
    path = make_run(steps=12)
    lines = (path / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    lines[3] = b"nonsense\n"
    (path / "metrics.jsonl").write_bytes(b"".join(lines) + b'{"step": 13, "torn')
    (path / "evaluation.json").write_bytes(b"{")
    text = page_of(path).text
    assert "metrics.jsonl: 1 damaged row was left out" in text
    assert "evaluation.json is not valid JSON" in text
    assert "torn" not in text


def test_an_empty_run(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text("")
    text = page_of(tmp_path).text
    assert "This run has written no results." in text
    assert tmp_path.name in text


_KEYS = [
    *("step", "reward", "scores", "depth", "total", "value", "evidence", "by_depth", "0", "before", "after", "during"),
    *("accuracy", "n", "kl", "alarm", "failures"),
]
_WILD = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**400), 10**400) | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=5),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(metrics=st.lists(_WILD, max_size=4), rollouts=st.lists(_WILD, max_size=4), evaluation=_WILD, manifest=_WILD)
def test_no_content_breaks_the_page(
    tmp_path: Path, metrics: list[Any], rollouts: list[Any], evaluation: Any, manifest: Any
) -> None:
    (tmp_path / "recipe.toml").write_text("corpus = 5\ntrainer = {steps = 'x'}\n")
    for name, rows in (("metrics.jsonl", metrics), ("rollouts.jsonl", rollouts)):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "evaluation.json").write_text(json.dumps(evaluation))
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    page = page_of(tmp_path)
    assert "NaN" not in "".join(str(value) for tag, values in page.tags if tag == "path" for value in values.values())


def test_a_long_run_makes_no_long_page(make_run: MakeRun) -> None:
    path = make_run(steps=3000)
    assert write_report(Run(path)).stat().st_size < 500_000


def test_long_texts_are_cut_and_counted(make_run: MakeRun) -> None:
    path = make_run(steps=6)

    def lengthen(number: int, row: dict[str, Any]) -> None:
        row["completion"] = "x" * 10_000

    edit_rows(path / "rollouts.jsonl", lengthen)
    text = page_of(path).text
    assert "… (4,000 more characters)" in text
    assert "x" * 6001 not in text


def test_the_hook_writes_the_report(make_run: MakeRun) -> None:
    path = make_run(steps=6)
    callwright_run_finished(Run(path))
    assert (path / "report.html").is_file()


def test_the_command(make_run: MakeRun, tmp_path: Path) -> None:
    import callwright_plugins.report

    registry = load_plugins(extra={"report": callwright_plugins.report}, entry_points=False)

    def invoke(*words: str) -> Any:
        return CliRunner().invoke(root_command, ["report", *words], obj=App(registry=registry), catch_exceptions=False)

    path = make_run(steps=6)
    assert invoke(str(path)).stdout == f"{path / 'report.html'}\n"
    elsewhere = tmp_path / "elsewhere.html"
    assert invoke(str(path), "-o", str(elsewhere)).stdout == f"{elsewhere}\n"
    assert elsewhere.read_bytes() == (path / "report.html").read_bytes()
    result = invoke(str(tmp_path))
    assert result.exit_code == 2
    why = "is not a run folder: it has no recipe.toml; nor an evaluation: it has no settings.json"
    assert result.output == f"error: {tmp_path} {why}\n"
    result = invoke(str(tmp_path / "nowhere"))
    assert (result.exit_code, result.output) == (2, f"error: there is no folder {tmp_path / 'nowhere'}\n")
    result = invoke(str(path), "-o", str(tmp_path / "no" / "such" / "folder"))
    assert result.exit_code == 1
    assert "cannot be written" in result.output


def test_errors_of_the_library(tmp_path: Path, make_run: MakeRun) -> None:
    with pytest.raises(DataError, match="is not a run folder"):
        write_report(Run(tmp_path))
    with pytest.raises(RunError):
        write_report(Run(make_run(steps=3)), tmp_path / "no" / "report.html")
