"""Registration of the forms, and what their prompt instructions teach."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from callwright.errors import UsageError
from callwright.language.parser import ParseLimits, Parser
from callwright.language.program import Program, Reference
from callwright.language.teaching import TeachesWhatIsAllowed
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
    parser = create(registry, form, instructions="paper")
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
    text = create(registry, form, instructions="paper").instructions()
    numbered = re.findall(
        r"^(\d)\. (Single call|Parallel calls|Chained calls|Multi-step|Multi-turn):", text, re.MULTILINE
    )
    assert [int(number) for number, _ in numbered] == [1, 2, 3, 4, 5]
    assert "Make no call when" in text
    assert ('return="all"' in text) == (form not in ("hermes", "toolrl"))
    rules = re.findall(r"^(\d+)\. ", text[text.index("## Rules") :], re.MULTILINE)
    assert [int(number) for number in rules] == list(range(1, len(rules) + 1))


# What is allowed ------------------------------------------------------------------------------------------------------

GOLDEN = Path(__file__).with_name("golden")
ALLOWED = {"once": (False, False), "steps": (True, False), "requests": (True, True)}


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.txt")), ids=lambda path: path.stem)
def test_instructions_are_letter_by_letter_those_that_were_read_over(registry: Registry, path: Path) -> None:
    """``paper`` are the ones that recipes of papers had before instructions followed the limits."""
    form, _, allowed = path.stem.partition("-")
    if allowed == "paper":
        parser = create(registry, form, instructions="paper")
        texts = {parser.instructions()}
        assert isinstance(parser, TeachesWhatIsAllowed)
        texts |= {parser.instructions_within(steps=steps, requests=more) for steps, more in ALLOWED.values()}
    else:
        parser = create(registry, form)
        assert isinstance(parser, TeachesWhatIsAllowed)
        steps, more = ALLOWED[allowed]
        texts = {parser.instructions_within(steps=steps, requests=more)}
    assert {f"{text}\n" for text in texts} == {path.read_text(encoding="utf-8")}


@pytest.mark.parametrize("form", FORMS)
def test_what_is_taught_by_default_follows_what_is_allowed(registry: Registry, form: str) -> None:
    parser = create(registry, form)
    assert isinstance(parser, TeachesWhatIsAllowed)
    texts = {allowed: parser.instructions_within(steps=s, requests=r) for allowed, (s, r) in ALLOWED.items()}
    assert parser.instructions() == texts["requests"]
    for allowed, text in texts.items():
        assert ("Multi-step" in text) == (allowed != "once")
        assert ("Multi-turn" in text) == (allowed == "requests")
        assert ("wait for" in text) == (allowed != "once")
        assert ("You answer once" in text) == (allowed == "once")
        assert "Make no call when" in text
        numbered = re.findall(r"^(\d+)\. ", text[text.index("## Rules") :], re.MULTILINE)
        assert [int(number) for number in numbered] == list(range(1, len(numbered) + 1))


@pytest.mark.parametrize("form", ["direct", "json", "xml"])
def test_all_results_of_dependent_calls_and_paths_are_taught(registry: Registry, form: str) -> None:
    parser = create(registry, form)
    text = parser.instructions()
    example = re.search(r"### Several results\n\n((?:.|\n)*?)\s*(?=\n### )", text)
    assert example is not None
    program = parser.parse(example[1])
    assert isinstance(program, Program)
    assert (program.returns, program.edges != ()) == ("all", True)
    assert "[0]" in text
    assert "[0]" not in create(registry, form, instructions="paper").instructions()
    path = Program((program.calls[0], type(program.calls[0])(1, "t", {"p": Reference(0, ("field", 0))})))
    assert parser.parse(parser.render(path)) == path


def test_other_instructions_are_refused(registry: Registry) -> None:
    with pytest.raises(UsageError, match="'allowed' or 'paper', not 'mine'"):
        create(registry, "json", instructions="mine")
