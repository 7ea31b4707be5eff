"""Teachers in a synthesis: replies are kept, counted once, bounded in cost, and replayed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

import callwright as cw
from callwright.errors import RecipeError, RunError
from callwright.language.messages import Message
from callwright.machines.executors import make_executor
from callwright.machines.model_server.budget import BudgetSpent
from callwright.plugins import Lazy, PluginSource, Registry, load_plugins
from callwright.testing.synthesis import shop
from callwright.testing.synthesis.shop import Prices
from callwright.training import Accepted, Materials, MissingReply, Rejected, TeacherReply, TeacherRequest, Unit
from callwright.training.reporter import SILENT
from callwright.training.synthesis.folder import MANIFEST, UNITS, Synthesis
from callwright.training.synthesis.work import SynthesisRequest
from callwright.training.teaching.cache import ReplyFile
from callwright.training.teaching.metered import MeteredTeacher

RECIPE: dict[str, Any] = {
    "synthesis": {"synthesizer": "worded", "environments": ["sample-shop"], "count": 10, "teacher": "priced"}
}


class Priced:
    """Half a cent a reply, at most ``max_cost``. ``asked`` is what it was asked, by all of them."""

    name = "priced"

    def __init__(self, asked: list[str], max_cost: float = 1e9) -> None:
        self.asked, self.left = asked, max_cost

    def settings(self, role: str) -> dict[str, Any]:
        return {"model": "priced"}

    def ask(self, requests: Sequence[TeacherRequest]) -> list[TeacherReply]:
        return [self._answer(request) for request in requests]

    def _answer(self, request: TeacherRequest) -> TeacherReply:
        if self.left < 0.5:
            raise BudgetSpent("the budget is spent")
        self.left -= 0.5
        self.asked.append(request.messages[-1].text)
        return TeacherReply(f"How much is {request.messages[-1].text}?", usage={"prompt_tokens": 7, "cost": 0.5})


class Worded(Prices):
    """Has a teacher word its questions."""

    name = "worded"  # type: ignore[assignment]

    def make(self, unit: Unit, materials: Materials) -> Accepted | Rejected:
        made = Prices.make(self, unit, materials)
        if isinstance(made, Rejected):
            return made
        assert materials.teacher is not None
        (reply,) = materials.teacher.ask([TeacherRequest("user", (Message.user(unit.id),))])
        assert isinstance(reply, TeacherReply)
        return evolve(made, row={**made.row, "query": reply.text})


@pytest.fixture
def asked() -> list[str]:
    return []


@pytest.fixture
def registry(asked: list[str]) -> Registry:
    class Plugin:
        @staticmethod
        @cw.hookimpl
        def callwright_teachers() -> list[Lazy]:
            return [Lazy("priced", lambda max_cost=1e9: Priced(asked, max_cost), summary="priced")]

        @staticmethod
        @cw.hookimpl
        def callwright_synthesizers() -> list[Lazy]:
            return [Lazy("worded", Worded, summary="worded")]

    found = load_plugins()
    found.add(shop, name="shop")
    found.add(Plugin(), name="priced")
    return found


def run(folder: Path, registry: Registry, *, executor: str = "serial", replies: Path | None = None, **how: Any) -> Any:
    request = SynthesisRequest(PluginSource(None), RECIPE, replies or folder / "replies.sqlite", **how)
    work = Synthesis(request.open(registry), request, make_executor(executor, 1 if executor == "serial" else 3), folder)
    with work.alone():
        return work.run(SILENT)


def test_every_reply_is_counted_with_its_unit(tmp_path: Path, registry: Registry, asked: list[str]) -> None:
    found = run(tmp_path, registry)
    rows = [json.loads(line) for line in (tmp_path / UNITS).read_text().splitlines()]
    assert found["usage"] == {"requests": len(asked), "prompt_tokens": 7 * len(asked), "cost": 0.5 * len(asked)}
    assert all(row["usage"] == {"requests": 1, "prompt_tokens": 7, "cost": 0.5} for row in rows if "accepted" in row)
    assert not any("usage" in row for row in rows if "rejected" in row)
    assert found["teacher"] == "priced"


def test_a_budget_is_kept_over_all_starts_and_nothing_is_paid_twice(
    tmp_path: Path, registry: Registry, asked: list[str]
) -> None:
    run(tmp_path / "whole", registry)
    needed = len(asked)
    asked.clear()
    with pytest.raises(BudgetSpent):
        run(tmp_path / "out", registry, most_cost=2.25)
    assert len(asked) == 4
    with pytest.raises(RunError, match=r"2 were spent .* may cost 2;.*higher --max-cost"):
        run(tmp_path / "out", registry, most_cost=2.0)
    with pytest.raises(BudgetSpent):
        run(tmp_path / "out", registry, most_cost=3.0)
    assert len(asked) == 6
    run(tmp_path / "out", registry, most_cost=100.0)
    assert len(asked) == len(set(asked)) == needed
    assert ReplyFile(tmp_path / "out" / "replies.sqlite").cost() == 0.5 * needed
    for name in (UNITS, MANIFEST, "tasks.jsonl"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_what_has_all_its_units_ends_also_where_the_budget_is_spent(
    tmp_path: Path, registry: Registry, asked: list[str]
) -> None:
    made = run(tmp_path, registry)
    (tmp_path / MANIFEST).unlink()  # as a kill leaves it between the last unit and the end
    assert run(tmp_path, registry, most_cost=0.5 * len(asked)) == made
    assert len(asked) == made["usage"]["requests"]


@pytest.mark.parametrize("executor", ["serial", "thread"])
def test_a_replay_asks_nobody(tmp_path: Path, registry: Registry, asked: list[str], executor: str) -> None:
    run(tmp_path / "whole", registry)
    asked.clear()
    run(tmp_path / "again", registry, executor=executor, replies=tmp_path / "whole" / "replies.sqlite", replay=True)
    assert asked == []
    for name in (UNITS, MANIFEST, "tasks.jsonl"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    with pytest.raises(MissingReply, match="A replay asks no server"):
        run(tmp_path / "other", registry, replay=True)


def test_a_teacher_without_prices_cannot_be_bounded(tmp_path: Path, registry: Registry) -> None:
    recipe = {"synthesis": {**RECIPE["synthesis"], "teacher": "scripted"}}
    request = SynthesisRequest(PluginSource(None), recipe, tmp_path / "replies.sqlite", most_cost=1.0)
    with pytest.raises(RecipeError, match=r"'max_cost'.*--max-cost bounds a teacher that asks a server"):
        request.open(registry)


def test_a_metered_teacher_is_the_teacher_inside(asked: list[str]) -> None:
    import asyncio

    metered = MeteredTeacher(Priced(asked))
    assert (metered.name, metered.settings("user"), metered.usage) == ("priced", {"model": "priced"}, {})
    request = TeacherRequest("user", (Message.user("a"),))

    async def ask() -> Any:
        async with metered.connected() as asker:
            return await asker.ask_one(request)

    assert [*metered.ask([request]), asyncio.run(ask())] == Priced([]).ask([request, request])
    assert metered.usage == {"requests": 2, "prompt_tokens": 14, "cost": 1.0}
