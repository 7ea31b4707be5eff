"""A small part of the fuzzing that ``benchmarks/fuzz_parsers.py`` does with a million completions."""

from __future__ import annotations

import importlib.util
import random
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.language.parser import ParseFailure, Parser
from callwright.language.program import Program
from callwright_plugins.chat_ir.hermes import HermesParser
from callwright_plugins.chat_ir.toolrl import ToolRLParser
from callwright_plugins.direct_ir.parser import DirectParser
from callwright_plugins.json_ir.parser import JsonParser
from callwright_plugins.xml_ir.parser import XmlParser

ROOT = Path(__file__).resolve().parents[3]
PARSERS: tuple[Parser, ...] = (DirectParser(), HermesParser(), JsonParser(), ToolRLParser(), XmlParser())


@pytest.fixture(scope="module")
def fuzzer() -> ModuleType:
    """The command as a module."""
    spec = importlib.util.spec_from_file_location("fuzz_parsers", ROOT / "benchmarks" / "fuzz_parsers.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_mutated_completions(fuzzer: ModuleType) -> None:
    pool = fuzzer.seeds(PARSERS, None)
    outcomes, _, findings = fuzzer.fuzz(PARSERS, 4000, 1, pool)
    assert findings == {}
    for parser in PARSERS:
        counts = outcomes[parser.name]
        assert sum(counts.values()) == 4000
        assert all(counts[outcome] for outcome in ("program", "structure", "syntax", "envelope")), (parser.name, counts)


def test_every_code_that_turns_up_is_documented(fuzzer: ModuleType) -> None:
    page = (ROOT / "docs" / "intermediate-representations.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(limit|envelope|syntax|structure|arguments)` \| (.*) \|$", page, re.MULTILINE)
    documented = {(stage, code) for stage, codes in rows for code in re.findall(r"`(\w+)`", codes)}
    chance = random.Random(2)
    pool = fuzzer.seeds(PARSERS, None)
    seen = set()
    for _ in range(4000):
        text = fuzzer.mutate(chance.choice(pool), chance, pool)
        for parser in PARSERS:
            result = parser.parse(text)
            if isinstance(result, ParseFailure):
                seen.add((result.stage, result.code))
    assert seen <= documented
    assert len(seen) > 40


def test_the_fuzzer_notices_broken_promises(fuzzer: ModuleType) -> None:
    class Broken(JsonParser):
        def parse(self, text: str) -> Program | ParseFailure:
            if "São" in text:
                raise KeyError(text)
            if "GetTime" in text:
                return ParseFailure("syntax", "x", "x", (0, len(text) + 1))
            return super().parse(text)

    for marker, error in (("São", "KeyError"), ("GetTime", "AssertionError")):
        text = f'<think></think><tool_call return="one">{{"0": {{"{marker}": {{}}}}}}</tool_call>'
        _, _, findings = fuzzer.fuzz([Broken()], 200, 0, [text])
        assert findings["json"][0].startswith(error)


def test_mutations_depend_on_the_seed_only(fuzzer: ModuleType) -> None:
    pool = fuzzer.seeds(PARSERS, None)

    def some(seed: int) -> list[str]:
        chance = random.Random(seed)
        return [fuzzer.mutate(chance.choice(pool), chance, pool) for _ in range(200)]

    assert some(3) == some(3) != some(4)


@settings(derandomize=True, max_examples=300)
@given(st.text(st.characters(), max_size=60), st.sampled_from(PARSERS))
def test_any_text_inside_the_blocks(text: str, parser: Parser) -> None:
    for whole in (
        text,
        f'<think>{text}</think><tool_call return="all">{text}</tool_call>',
        f"<tool_call>{text}</tool_call>",
    ):
        result = parser.parse(whole)
        if isinstance(result, ParseFailure):
            assert 0 <= result.span[0] <= result.span[1] <= len(whole)


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_nothing_is_evaluated_or_imported(parser: Parser) -> None:
    code = "__import__('callwright_fuzz_canary')"
    bodies = (
        code,
        f"[f(a={code})]",
        f'["f(a={code})"]',
        f'{{"0": {{"T": {{"a": {code}}}}}}}',
        f'<api id="0"><name>T</name><param name="a" type="eval">{code}</param></api>',
        '<api id="0"><name>T</name><param name="a" type="callwright_fuzz_canary.run">x</param></api>',
        f'{{"name": "f", "arguments": {code}}}',
    )
    for body in bodies:
        for tag in ("<tool_call>", '<tool_call return="one">'):
            parser.parse(f"<think>{code}</think>{tag}{body}</tool_call>")
    assert "callwright_fuzz_canary" not in sys.modules
