"""Tasks of general-agent, on small files that we wrote in their format: no task of theirs is in this repository.

The format is that of ``general_agent_v1`` in verifiers (commit 7696f86): ``task.toml``, ``instruction.md``,
``db.json``, ``gold.json`` and a ``tools.py`` that imports ``DB``, ``Tools`` and ``tool`` from ``general_agent.tools``.
"""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

import callwright as cw
from callwright.errors import DataError, UnknownName, UsageError
from callwright.pipeline import open_pipeline
from callwright.testing import check_component
from callwright.walk.completion import Completion

TOOLS = '''
from typing import Optional

from general_agent.tools import DB, Tools, tool
from pydantic import BaseModel


class Lamp(BaseModel):
    id: str
    room: str
    on: bool = False


class TaskDB(DB):
    lamps: list[Lamp] = []
    wanted: Optional[str] = None
    switched: int = 0


class TaskTools(Tools):
    db: TaskDB

    @tool
    def list_lamps(self, room: Optional[str] = None) -> list:
        """The lamps, of one room or of all."""
        return [lamp.model_dump() for lamp in self.db.lamps if room in (None, lamp.room)]

    @tool
    def switch_on(self, lamp_id: str) -> dict:
        """Switch a lamp on.

        Args:
            lamp_id: Which one.
        """
        self.db.switched += 1
        for lamp in self.db.lamps:
            if lamp.id == lamp_id:
                lamp.on = True
                return lamp.model_dump()
        raise ValueError(f"Lamp {lamp_id} not found")

    def not_a_tool(self) -> None:
        """Agents are not told of it."""


def verify(db: TaskDB) -> float:
    lamp = next((one for one in db.lamps if one.id == db.wanted), None)
    return 1.0 if lamp is not None and lamp.on else 0.0
'''
DB = {"lamps": [{"id": "L1", "room": "hall"}, {"id": "L2", "room": "attic"}], "wanted": "L2"}
GOLD = [["list_lamps", {"room": "attic"}], ["switch_on", {"lamp_id": "L2"}]]
FORM = cw.parser("json")


def write(root: Path, name: str, *, tier: int = 0, tools: str = TOOLS, gold: Any = GOLD, db: Any = DB) -> Path:
    """A task in their format."""
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "task.toml").write_text(f"[metadata]\ntier = {tier}\n")
    (folder / "instruction.md").write_text("Light the attic.\n")
    (folder / "tools.py").write_text(tools)
    (folder / "db.json").write_text(json.dumps(db))
    (folder / "gold.json").write_text(json.dumps(gold))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A few tasks; ``home_t0`` and ``home_t2`` are of one family."""
    for name, tier in (("home_t0", 0), ("home_t2", 2), *((f"other{n}_t1", 1) for n in range(20))):
        write(tmp_path, name, tier=tier)
    return tmp_path


def test_a_folder_is_an_environment(folder: Path) -> None:
    task = cw.corpus("general-agent", data=folder).task("home_t0")
    assert list(task.tools) == ["list_lamps", "switch_on"]
    assert task.tools["switch_on"].parameters["required"] == ["lamp_id"]
    assert task.tools["switch_on"].description.startswith("Switch a lamp on.")
    session = task.environment.open()
    first = session.digest()
    missing = session.call("switch_on", {"lamp_id": "L9"})
    assert (missing.kind, missing.code, missing.message) == ("execution_error", "ValueError", "Lamp L9 not found")
    assert session.digest() == first  # also what it counted before it failed is undone
    assert session.call("switch_on", {"lamp": "L2"}).kind == "schema_error"
    assert session.call("not_a_tool", {}).kind == "unknown_tool"
    assert session.call("list_lamps", {"room": "hall"}).value == [{"id": "L1", "room": "hall", "on": False}]
    assert session.call("switch_on", {"lamp_id": "L2"}).value == {"id": "L2", "room": "attic", "on": True}
    assert session.digest() != first == task.environment.open().digest()
    assert "general_agent" not in sys.modules
    assert not list(folder.glob("**/__pycache__"))


def test_the_structure_is_that_of_the_gold_calls(tmp_path: Path) -> None:
    write(tmp_path, "home_t0")
    write(tmp_path, "one_t0", gold=GOLD[1:])
    corpus = cw.corpus("general-agent", data=tmp_path)
    assert [corpus.task(name).structure for name in ("home_t0", "one_t0")] == ["parallel", "single"]


def attempted(folder: Path, calls: list[tuple[str, dict[str, Any]]]) -> cw.Reward:
    """What the task's own reward gives for these calls, a turn each."""
    pipeline = open_pipeline("general-agent", cw.corpus("general-agent", data=folder), FORM)
    conversation = pipeline.conversation(pipeline.task("home_t0"))
    for name, arguments in calls:
        conversation.accept(Completion(FORM.render(cw.Program((cw.Call(0, name, arguments),)))))
    conversation.accept(Completion(FORM.render(cw.Program(()))))
    return pipeline.score(conversation.attempt)


def test_the_reward_is_the_tasks_own_check(folder: Path) -> None:
    assert attempted(folder, [("switch_on", {"lamp_id": "L2"})]).total == 1.0  # as the gold calls leave it
    another_way = [("switch_on", {"lamp_id": "L1"}), ("switch_on", {"lamp_id": "L2"})]
    assert attempted(folder, another_way).total == 1.0  # another state, which verify(db) accepts
    wrong = attempted(folder, [("switch_on", {"lamp_id": "L1"})])
    assert (wrong.total, "verify(db) does not accept it" in wrong.explain()) == (0.0, True)
    assert attempted(folder, []).total == 0.0


def test_a_written_program_is_scored_too(folder: Path) -> None:
    task = cw.corpus("general-agent", data=folder).task("home_t0")
    assert task.program is not None
    assert cw.reward("general-agent").score(task, FORM.render(task.program), ir=FORM).total == 1.0
    assert cw.reward("tier").score(task, FORM.render(task.program), ir=FORM).total == 1.0


def test_without_verify_the_gold_state_decides(tmp_path: Path) -> None:
    write(tmp_path, "home_t0", tools=TOOLS.partition("def verify")[0])
    assert attempted(tmp_path, [("switch_on", {"lamp_id": "L2"})]).total == 1.0
    another_way = [("switch_on", {"lamp_id": "L1"}), ("switch_on", {"lamp_id": "L2"})]
    assert attempted(tmp_path, another_way).total == 0.0


def test_a_verify_that_raises_accepts_nothing(tmp_path: Path) -> None:
    write(tmp_path, "home_t0", tools=TOOLS.partition("def verify")[0] + "def verify(db):\n    raise KeyError('x')\n")
    assert attempted(tmp_path, [("switch_on", {"lamp_id": "L1"})]).total == 0.0


def test_families_are_never_in_two_splits(folder: Path) -> None:
    corpus = cw.corpus("general-agent", data=folder)
    assert sum(corpus.splits.values()) == 22
    families = {split: {task.facts["family"] for task in corpus[split]} for split in corpus.splits}
    assert set(families) == {"train", "evaluation"}
    assert not families["train"] & families["evaluation"]
    only = cw.corpus("general-agent", data=folder, min_tier=2)
    assert [task.id for split in only.splits for task in only[split]] == ["home_t2"]
    assert sum(cw.corpus("general-agent", data=folder, families=["home"]).splits.values()) == 2
    assert pickle.loads(pickle.dumps(corpus)).task("home_t2").query == "Light the attic."
    with pytest.raises(UnknownName):
        corpus.task("home_t9")


def test_the_corpus_passes_the_kit(folder: Path) -> None:
    corpus = cw.corpus("general-agent", data=folder, families=["home"])
    check_component("corpus", corpus)
    check_component("environment", corpus.environment)


def test_foreign_code_runs_in_processes(folder: Path) -> None:
    from callwright.environments.isolated.placing import place

    environment = cw.corpus("general-agent", data=folder).task("home_t0").environment
    assert place(environment, "auto", None) is not None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tools": "import nothing_of_this_name"}, "cannot be imported"),
        ({"tools": "x = 1"}, "no class TaskDB"),
        ({"db": {"lamps": 3}}, "is not the world of its tools.py"),
        ({"gold": {"a": 1}}, "no list of"),
        ({"gold": [["switch_on", {"lamp_id": "L9"}]]}, "gold call 0 switch_on fails: Lamp L9 not found"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, change: Any, words: str) -> None:
    write(tmp_path, "home_t0", **change)
    with pytest.raises(DataError, match=words):
        cw.corpus("general-agent", data=tmp_path).task("home_t0")


def test_a_folder_without_tasks_and_options_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has no task of general-agent"):
        cw.corpus("general-agent", data=tmp_path)
    with pytest.raises(UsageError, match="data"):
        cw.corpus("general-agent")
