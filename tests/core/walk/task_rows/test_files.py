"""Files of tasks: what goes in comes out, in every form, and a file of another environment is refused."""

from __future__ import annotations

import gzip
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

import callwright as cw
from callwright.errors import DataError, RunError, UnknownName, UsageError
from callwright.testing.sample import SHOP, sample_tasks
from callwright.walk.task_rows.reading import TaskFile, read_head
from callwright.walk.task_rows.writing import SUFFIXES, write_rows
from callwright.walk.tasks import Task

TASKS = sample_tasks()


@pytest.fixture(params=SUFFIXES)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param.endswith(".zst"):
        pytest.importorskip("zstandard", reason="needs zstandard")
    if request.param.endswith(".parquet"):
        pytest.importorskip("pyarrow", reason="needs pyarrow")
    return tmp_path / f"tasks{request.param}"


def read(path: Path, **options: Any) -> TaskFile:
    return cw.read_tasks(path, environments=[SHOP], **options)


def write(path: Path, tasks: list[Task] = TASKS, **options: Any) -> int:
    return cw.write_tasks(path, tasks, environments=[SHOP], **options)


def test_every_form_holds_the_same_tasks(path: Path) -> None:
    tasks = [evolve(task, split="validation" if number % 2 else "train") for number, task in enumerate(TASKS)]
    limits = cw.TurnLimits(assistant_turns=3)
    assert write(path, tasks, limits=limits, about={"seed": 4}) == len(tasks)
    found = read(path)
    assert list(found) == tasks
    assert [task.environment for task in found] == [SHOP] * len(tasks)
    assert {name: list(part) for name, part in found.splits.items()} == {"train": tasks[::2], "validation": tasks[1::2]}
    assert found.task("sample-4") == tasks[4]
    assert found[-1] == tasks[-1]
    assert found[1:3] == tasks[1:3]
    assert list(found.depths) == [task.depth for task in tasks]
    assert (found.head.limits, found.head.about) == (limits, {"seed": 4})
    assert read_head(path) == found.head
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_equal_tasks_give_equal_bytes(path: Path) -> None:
    write(path)
    before = path.read_bytes()
    write(path, list(read(path)))
    assert path.read_bytes() == before


def test_a_file_travels_to_other_processes(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    cw.write_tasks(path, list(cw.corpus("toolworld-mini-v1")["evaluation"][:5]))
    found = cw.read_tasks(path)
    again = pickle.loads(pickle.dumps(found.splits["evaluation"]))
    assert list(again) == list(found)


def test_tasks_are_made_when_they_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    write(path)
    lines = path.read_text().splitlines()
    lines[3] = lines[3].replace('"tools": [', '"tools": ["nothing", ')
    path.write_text("\n".join(lines) + "\n")
    found = read(path)
    assert found[0] == TASKS[0]
    with pytest.raises(DataError, match=r"tasks\.jsonl:4: .*'nothing'"):
        found[2]


def test_a_half_written_file_is_never_there(path: Path) -> None:
    write(path)
    before = path.read_bytes()
    broken = [*TASKS, evolve(TASKS[0], id="other", facts={"f": (1,)})]
    with pytest.raises(UsageError, match="'other' cannot be written"):
        write(path, broken)
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_two_tasks_of_one_id_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="two tasks have the id 'sample-1'"):
        write(tmp_path / "a.jsonl", [TASKS[1], TASKS[1]])
    path = tmp_path / "b.jsonl"
    write(path)
    path.write_bytes(path.read_bytes() + path.read_bytes().splitlines(keepends=True)[2])
    with pytest.raises(DataError, match=r"b\.jsonl:8: the id 'sample-1' stands in .*b\.jsonl:3, too"):
        read(path)


@pytest.mark.parametrize("name", ["tasks.csv", "tasks", "tasks.json"])
def test_another_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"is called \.jsonl"):
        write(tmp_path / name)


def test_a_file_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot be written"):
        write(tmp_path / "file" / "tasks.jsonl")
    (tmp_path / "folder.jsonl").mkdir()
    with pytest.raises(DataError, match="is a folder"):
        write(tmp_path / "folder.jsonl")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is no file of tasks"),
        (b'{"id": "a"}\n', "is no file of tasks"),
        (b"not json\n", "is no file of tasks"),
        (b'{"callwright_tasks": 2, "environments": []}\n', "reads version 1"),
        (b'{"callwright_tasks": 1}\n', "no list of 'environments'"),
        (b'{"callwright_tasks": 1, "environments": [3]}\n', "lists 3"),
        (b'{"callwright_tasks": 1, "environments": [{"name": "email"}]}\n', "which environment it was"),
        (b'{"callwright_tasks": 1, "environments": [], "limits": {"turns": 1}}\n', "limits"),
        (b'{"callwright_tasks": 1, "environments": []}\n{"id": 3}\n', r":2: a task has an 'id'"),
        (b'{"callwright_tasks": 1, "environments": []}\n{"id": \n', r":2: not valid JSON"),
        (b'{"callwright_tasks": 1, "environments": []}\n[]\n', r":2: expected an object"),
        (b"PAR1 and nothing", "is not a Parquet file"),
        (b"PK\x03\x04", "zip archive"),
        (gzip.compress(b'{"callwright_tasks": 1, "environments": []}\n', mtime=0)[:-9], "cannot be read"),
    ],
)
def test_what_is_no_file_of_tasks_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    if content.startswith(b"PAR1"):
        pytest.importorskip("pyarrow", reason="needs pyarrow")
    path = tmp_path / "tasks"
    path.write_bytes(content)
    with pytest.raises(DataError, match=words) as caught:
        list(read(path))
    assert str(path) in str(caught.value)


def test_a_folder_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is a folder"):
        read(tmp_path)
    with pytest.raises(DataError, match="cannot be read"):
        read(tmp_path / "none.jsonl")


def test_a_task_that_is_not_there_is_named(tmp_path: Path) -> None:
    write(tmp_path / "tasks.jsonl")
    with pytest.raises(UnknownName, match=r"task of tasks\.jsonl named 'sample-9'"):
        read(tmp_path / "tasks.jsonl").task("sample-9")


# Other environments ---------------------------------------------------------------------------------------------------


def changed(path: Path, change: Any) -> Path:
    head, *rows = path.read_text().splitlines()
    said = json.loads(head)
    change(said["environments"][0])
    path.write_text("\n".join([json.dumps(said), *rows]) + "\n")
    return path


@pytest.fixture
def email(tmp_path: Path) -> Path:
    environment = cw.environment("email")
    task = Task("a", "Look.", {"list_folders": environment.tools["list_folders"]}, cw.Answer(), environment)
    path = tmp_path / "email.jsonl"
    cw.write_tasks(path, [task])
    return path


def test_a_file_says_which_environments_it_is_of(email: Path) -> None:
    (said,) = json.loads(email.read_text().splitlines()[0])["environments"]
    assert (said["name"], said["version"].split()[0]) == ("email", "callwright")
    assert set(said["tools"]) == set(cw.environment("email").tools)


def test_a_tool_that_changed_is_named(email: Path) -> None:
    def change(said: dict[str, Any]) -> None:
        said["tools"]["list_folders"] = "0" * 16
        said["tools"]["gone_tool"] = said["tools"].pop("send_message" if "send_message" in said["tools"] else "send")
        said["schema"] = "sha256:0"

    with pytest.raises(
        DataError, match=r"another environment 'email': changed: list_folders; gone: gone_tool; new: send"
    ):
        cw.read_tasks(changed(email, change), any_version=True)


def test_another_version_is_refused_unless_it_will_do(email: Path) -> None:
    path = changed(email, lambda said: said.update(version="callwright 0.0.1"))
    with pytest.raises(DataError, match=r"version callwright 0\.0\.1 then, callwright .* now.*any_version"):
        cw.read_tasks(path)
    assert len(cw.read_tasks(path, any_version=True)) == 1


def test_an_environment_that_is_not_installed_is_named(email: Path) -> None:
    path = changed(email, lambda said: said.update(name="emial"))
    with pytest.raises(DataError, match="Did you mean 'email'"):
        cw.read_tasks(path)


def test_a_row_of_an_environment_that_the_head_does_not_name_is_refused(email: Path) -> None:
    head, row = email.read_text().splitlines()
    other = row.replace('"environment": "email"', '"environment": "calendar"')
    email.write_text(f"{head}\n{other}\n")
    with pytest.raises(DataError, match=r"email\.jsonl:2: the head does not name the environment 'calendar'"):
        cw.read_tasks(email)[0]


def test_rows_that_are_written_already_are_taken_as_they_are(tmp_path: Path, email: Path) -> None:
    row = json.loads(email.read_text().splitlines()[1])
    other = tmp_path / "rows.jsonl"
    assert write_rows(other, [row, {**row, "id": "b"}]) == 2
    assert [task.id for task in cw.read_tasks(other)] == ["a", "b"]
    with pytest.raises(UsageError, match="or two have it"):
        write_rows(other, [row, row])
    with pytest.raises(UsageError, match="no JSON"):
        write_rows(other, [{**row, "facts": {"f": print}}])


# The corpora that are here --------------------------------------------------------------------------------------------


def corpora() -> list[cw.Corpus]:
    found = [cw.corpus(name) for name in ("depthbench-v1", "worlds-mini-v1", "toolworld-mini-v1", "village-v1")]
    return [*found, cw.corpus("depthbench-v1", instances=True), cw.corpus("depthbench-v1+maps")]


@pytest.mark.parametrize("corpus", corpora(), ids=lambda corpus: corpus.name)
def test_every_task_of_a_corpus_comes_back(corpus: cw.Corpus, tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    # The village takes a while to draw its tasks, the first hundred of which are like all others.
    most = 100 if corpus.name == "village-v1" else None
    tasks = [task for split in corpus.splits for task in corpus[split][:most]]
    assert cw.write_tasks(path, tasks) == len(tasks)
    found = cw.read_tasks(path)
    for task, other in zip(tasks, found, strict=True):
        assert other == task, task.id
        assert list(other.tools) == list(task.tools)
        assert other.environment.name == task.environment.name
    step = max(1, len(tasks) // 40)
    for task, other in zip(tasks[::step], found[::step], strict=True):
        one, two = (each.environment.open(each.scenario, each.seed) for each in (task, other))
        assert one.digest() == two.digest(), task.id
        one.close()
        two.close()


@pytest.mark.parametrize(("name", "reward"), [("depthbench-v1", "tier"), ("worlds-mini-v1", "worlds")])
def test_gold_earns_the_same(name: str, reward: str, tmp_path: Path) -> None:
    corpus = cw.corpus(name)
    tasks = [task for task in corpus["validation"][:: 20 if name == "depthbench-v1" else 3] if task.program]
    path = tmp_path / "tasks.jsonl.gz"
    cw.write_tasks(path, tasks)
    other = cw.corpus("tasks", file=str(path))
    totals: list[list[object]] = []
    for source, chosen in ((corpus, tasks), (other, list(other["validation"]))):
        pipeline = cw.Pipeline(source, reward, "json")
        attempts = [pipeline.attempt(task, pipeline.parser.render(task.program)) for task in chosen if task.program]
        totals.append([pipeline.score(attempt).total for attempt in attempts])
        totals.append([attempt.trace.final_state for attempt in attempts if attempt.trace is not None])
    assert totals[:2] == totals[2:]
    assert len(totals[1]) > 10


def test_another_process_reads_the_same_tasks(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    tasks = cw.corpus("worlds-mini-v1")["validation"][:3]
    cw.write_tasks(path, tasks)
    code = (
        "import sys, callwright as cw\n"
        "for task in cw.read_tasks(sys.argv[1]):\n"
        "    print(task.id, task.environment.open(task.scenario, task.seed).digest())"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        f"{task.id} {task.environment.open(task.scenario, task.seed).digest()}" for task in tasks
    ]
