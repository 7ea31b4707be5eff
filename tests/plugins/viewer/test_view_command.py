"""``callwright view`` as it is typed: what it refuses, and the pages that it exports."""

from __future__ import annotations

import hashlib
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.plugins.viewer.conftest import board_of

import callwright as cw
import callwright_plugins.viewer
from callwright.commands import App
from callwright_plugins.viewer.command import view

VIEWER = Path(callwright_plugins.viewer.__file__).parent


def called(*arguments: object) -> Result:
    return CliRunner().invoke(view, [str(one) for one in arguments], obj=App(registry=cw.default_registry()))


def data(folder: Path, name: str) -> Any:
    text = (folder / "data" / f"{name}.js").read_text("utf-8")
    found = re.fullmatch(r'callwrightData\("([^"]+)",(.*)\);\n', text, re.DOTALL)
    assert found is not None
    assert found[1] == name
    return json.loads(found[2])


def test_the_app_is_built_of_its_sources() -> None:
    """Who changes front/ runs ``npm ci && npm run build`` there."""
    front = VIEWER / "front"
    digest = hashlib.sha256()
    for path in [*sorted((front / "src").iterdir()), front / "package-lock.json"]:
        digest.update(path.read_bytes())
    built = (VIEWER / "static" / "app.js").read_text("utf-8")
    assert f"made of front/ {digest.hexdigest()};" in built.split("\n")[0]


def test_the_app_is_small_and_asks_nobody_else() -> None:
    files = list((VIEWER / "static").iterdir())
    assert sum(path.stat().st_size for path in files) < 1_000_000
    text = "\n".join(path.read_text("utf-8") for path in files)
    addresses = set(re.findall(r"https?://[^\s\"'`)]+", text))
    assert addresses <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xhtml",
        "http://www.w3.org/1998/Math/MathML",
    }
    for source in (VIEWER / "front" / "src").iterdir():
        assert not re.search(
            "innerHTML|insertAdjacent|document.write|eval\\(", source.read_text("utf-8"), re.IGNORECASE
        ), source


def test_paths_that_hold_nothing_are_refused_in_words(tmp_path: Path) -> None:
    done = called(tmp_path / "nothing")
    assert isinstance(done.exception, cw.UsageError)
    assert "there is no" in str(done.exception)
    assert called().exit_code == 2
    assert called(tmp_path, "--export", tmp_path / "x", "--tui").exit_code == 2


def test_pages_are_exported_whole(run: Path, other: Path, tmp_path: Path) -> None:
    done = called(run, other, "--export", tmp_path / "pages")
    assert done.exit_code == 0, done.output
    assert done.stdout.strip().endswith("index.html")
    page = (tmp_path / "pages" / "index.html").read_text("utf-8")
    assert 'data-exported="yes"' in page
    assert "Content-Security-Policy" in page
    state = data(tmp_path / "pages", "state")
    assert [one["rows"] for one in state["sources"]] == [72, 72]
    board = board_of(run, other)
    rows = data(tmp_path / "pages", "first--rows")
    assert rows == board.answer("rows", {"source": "first", "limit": "500"})["rows"]
    documents = {}
    for part in (0, 1):
        documents |= data(tmp_path / "pages", f"first--part-{part}")["documents"]
    assert len(documents) == 72
    assert documents["7"] == board.answer("rollout", {"source": "first", "n": "7"})
    wanted = board.answer("compare", {"first": "first", "second": "second"})
    assert data(tmp_path / "pages", "first--second--compare") == wanted
    board.close()
    again = called(run, "--export", tmp_path / "pages")
    assert again.exit_code == 0, again.output


def test_an_export_ends_where_it_is_told_to_and_overwrites_nothing_else(run: Path, tmp_path: Path) -> None:
    done = called(run, "--export", tmp_path / "pages", "--most", 10)
    assert "the last 10 are exported" in done.stderr
    assert [row["n"] for row in data(tmp_path / "pages", "first--rows")] == list(range(63, 73))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("mine", "utf-8")
    refused = called(run, "--export", tmp_path / "mine")
    assert isinstance(refused.exception, cw.UsageError)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


def test_no_text_of_a_model_ends_a_script(own: Path, tmp_path: Path) -> None:
    row = json.loads((own / "rollouts.jsonl").read_text("utf-8").splitlines()[0])
    hostile = "</script><script>alert(1)</script>\u2028<!--"
    with (own / "rollouts.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({**row, "completion": hostile, "query": hostile}) + "\n")
    assert called(own, "--export", tmp_path / "pages").exit_code == 0
    for path in (tmp_path / "pages" / "data").iterdir():
        text = path.read_text("utf-8")
        assert "<" not in text
        assert "\u2028" not in text
    assert data(tmp_path / "pages", "own--rows")[-1]["query"] == hostile


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_it_serves_until_a_signal_which_is_its_status(tmp_path: Path, number: signal.Signals, status: int) -> None:
    rows = tmp_path / "rollouts.jsonl"
    rows.write_text(json.dumps({"id": 1, "messages": [{"role": "user", "content": "hi"}]}) + "\n")
    command = [sys.executable, "-m", "callwright", "view", str(rows), "--port", "0", "--no-browse"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http://127.0.0.1:"), process.communicate()
        process.send_signal(number)
        _, errors = process.communicate(timeout=120)
    assert (process.returncode, errors.splitlines()[-1]) == (status, "stopped")
