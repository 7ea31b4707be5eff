"""Registration of the forms, and what their prompt instructions teach."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys

import pytest

from callwright.language.parser import ParseLimits, Parser
from callwright.language.program import Program
from callwright.plugins import Registry

MODULES = ("json_ir", "xml_ir", "direct_ir", "chat_ir")
FORMS = ("direct", "hermes", "json", "toolrl", "xml")


@pytest.fixture(scope="module")
def registry() -> Registry:
    made = Registry()
    for module in MODULES:
        made.add(importlib.import_module(f"callwright_plugins.{module}"), name=module)
    return made


def create(registry: Registry, form: str, **options: object) -> Parser:
    parser = registry.create("parser", form, **options)
    assert isinstance(parser, Parser)
    return parser


def test_forms_are_registered_and_take_limits(registry: Registry) -> None:
    assert registry.names("parser") == list(FORMS)
    for form in FORMS:
        parser = create(registry, form, limits=ParseLimits(characters=3))
        assert parser.name == form
        assert getattr(parser.parse("long"), "code", "") == "too_long"


def test_registration_imports_no_parser() -> None:
    code = "import sys\n" + "".join(f"import callwright_plugins.{module}\n" for module in MODULES)
    code += "print([name for name in sys.modules if name.startswith('callwright_plugins') and name.count('.') > 1])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("form", FORMS)
def test_every_example_is_read_as_what_its_title_says(registry: Registry, form: str) -> None:
    parser = create(registry, form)
    text = parser.instructions()
    shapes = text[text.index("## What to write") : text.index("## Rules")]
    examples = dict(re.findall(r"### (.*)\n\n((?:.|\n)*?)\s*(?=\n### |\Z)", shapes))
    found = {title: parser.parse(example) for title, example in examples.items()}
    assert all(isinstance(program, Program) for program in found.values())
    structures = {title: program.structure for title, program in found.items() if isinstance(program, Program)}
    chat = {
        "Single call, or one step of a chain or of several steps": "single",
        "Parallel calls": "parallel",
        "No call": "none",
    }
    tier = {
        "Single call": "single",
        "Parallel calls": "parallel",
        "Chained calls": "linear",
        "One step of several": "single",
        "No call": "none",
    }
    assert structures == (chat if form in ("hermes", "toolrl") else tier)
    assert all(
        program.returns == ("all" if title == "Parallel calls" else "one")
        for title, program in found.items()
        if isinstance(program, Program)
    )


@pytest.mark.parametrize("form", FORMS)
def test_all_five_situations_and_abstaining_are_named(registry: Registry, form: str) -> None:
    text = create(registry, form).instructions()
    numbered = re.findall(
        r"^(\d)\. (Single call|Parallel calls|Chained calls|Multi-step|Multi-turn):", text, re.MULTILINE
    )
    assert [int(number) for number, _ in numbered] == [1, 2, 3, 4, 5]
    assert "Make no call when" in text
    assert ('return="all"' in text) == (form not in ("hermes", "toolrl"))
    rules = re.findall(r"^(\d+)\. ", text[text.index("## Rules") :], re.MULTILINE)
    assert [int(number) for number in rules] == list(range(1, len(rules) + 1))
