"""The mutants of ``make mutants``: each is a change of what the interpreter does, and each can be made again."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

TEXT = '''
from os import path

LIMIT: int = 10


def chosen(rows: list[int], wanted: int = 3) -> list[int]:
    """The rows that are wanted."""
    found = []
    for row in rows:
        if row is None or not row:
            continue
        if row < wanted and row + 1 != LIMIT:
            found.append("name" if row == 2 else f"the {row}")
        raise ValueError(f"{row} is not wanted")
    return found
'''
EXPECTED = """
<module>: 10 -> 11
chosen: 3 -> 4
chosen: if row is None or not row -> if True
chosen: if row is None or not row -> if False
chosen: row is None or not row -> row is None and (not row)
chosen: row is None -> row is not None
chosen: not row -> row
chosen: continue -> break
chosen: if row < wanted and row + 1 != LIMIT -> if True
chosen: if row < wanted and row + 1 != LIMIT -> if False
chosen: row < wanted and row + 1 != LIMIT -> row < wanted or row + 1 != LIMIT
chosen: row < wanted -> row <= wanted
chosen: row + 1 != LIMIT -> row + 1 == LIMIT
chosen: row + 1 -> row - 1
chosen: 1 -> 2
chosen: found.append('name' if row == 2 else f'the {row}') -> pass
chosen: 'name' if row == 2 else f'the {row}' -> 'name'
chosen: 'name' if row == 2 else f'the {row}' -> f'the {row}'
chosen: row == 2 -> row != 2
chosen: 2 -> 3
chosen: 'name' -> 'name~'
chosen: raise ValueError(f'{row} is not wanted') -> pass
chosen: return found -> return None
""".strip().splitlines()


@pytest.fixture(scope="module")
def mutants(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutants", root / "benchmarks" / "mutants.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutants"] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def test_every_operator_makes_its_change_and_words_for_people_are_left_alone(
    mutants: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "rows.py").write_text(TEXT, encoding="utf-8")
    found = mutants.mutants(tmp_path, "rows.py")
    assert sorted(mutant.key.removeprefix("rows.py::") for mutant in found) == sorted(EXPECTED)
    original = ast.unparse(ast.parse(TEXT))
    made = [mutants.mutated(tmp_path, mutant) for mutant in found]
    assert len(set(made)) == len(made)
    assert original not in made
    for source in made:
        compile(source, "rows.py", "exec")


def test_a_mutant_of_a_text_that_has_changed_is_not_made(mutants: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "rows.py").write_text(TEXT, encoding="utf-8")
    (mutant, *_) = mutants.mutants(tmp_path, "rows.py")
    (tmp_path / "rows.py").write_text("LIMIT = 'none'\n", encoding="utf-8")
    with pytest.raises(StopIteration):
        mutants.mutated(tmp_path, mutant)
