"""``benchmarks/gold_order.py``: the same tasks with their reference programs in the order of the query."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import attrs
import pytest

import callwright as cw


@pytest.fixture
def command(root: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    pytest.importorskip("numpy", reason="the program draws intervals")
    monkeypatch.syspath_prepend(root / "benchmarks")
    spec = importlib.util.spec_from_file_location("gold_order", root / "benchmarks" / "gold_order.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_only_the_order_of_the_reference_program_differs(command: ModuleType) -> None:
    shipped, moved = cw.corpus(command.CORPUS), command.QueryOrder()
    tier, parser, changed = cw.reward("tier"), cw.parser("json"), 0
    for split in ("train", "evaluation"):
        for number in range(120):
            one, other = shipped[split][number], moved[split][number]
            assert sorted(call.tool for call in one.program.calls) == sorted(call.tool for call in other.program.calls)
            fields = (attribute.name for attribute in attrs.fields(cw.Task) if attribute.eq is not False)
            for name in set(fields) - {"program", "environment"}:
                assert getattr(one, name) == getattr(other, name), name
            assert tier.score(other, parser.render(other.program)).total == 1.0
            changed += one.program != other.program
    assert 60 < changed < 180


def test_demonstrations_write_in_that_order(command: ModuleType) -> None:
    right = dict.fromkeys(("simple", "alias", "unfiltered", "reference", "literal", "tool", "hallucination"), 0.0)
    for task, program in cw.corpus(command.CORPUS).demonstrations(5, 60, right):
        assert command.in_query_order(task).program == program


def test_what_is_paid_for_a_right_program(command: ModuleType) -> None:
    lines = command.paid(200, ("toolrl", "tier")).splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert [row[0] for row in cells] == ["2", "3", "4", "5", "6"]
    assert {row[5] for row in cells} == {"1.00 of 1"}
    assert float(cells[-1][3].split()[0]) < float(cells[0][3].split()[0]) == 4.0


def test_pairs_of_the_command_line(command: ModuleType) -> None:
    assert command.read_pairs(command.PAIRS) == [(733, 4242), (9001, 4243), (733, 777)]
    with pytest.raises(SystemExit, match="'733' is not a warm start and a training seed"):
        command.read_pairs("733")
