"""``callwright doctor --model``: templates with one defect each, and what is said of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import Result

import callwright as cw
from callwright.errors import DataError, MissingExtra
from callwright.training import ModelFinding, ModelReport
from callwright_plugins.template_drift.checks import CHECKS
from callwright_plugins.template_drift.examination import examine_tokenizer
from callwright_plugins.template_drift.model_folder import examine_model

pytest.importorskip("transformers", reason="tokenizers of the extra 'train'")

Invoke = Callable[..., Result]

TURN = "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{{ '\\n' }}"
ASK = "{% if add_generation_prompt %}<|im_start|>assistant{{ '\\n' }}{% endif %}"
#: ChatML that knows tools: nothing is wrong with it.
SOUND = (
    "{% if tools %}<|im_start|>system{{ '\\n' }}{{ tools | tojson }}<|im_end|>{{ '\\n' }}{% endif %}"
    "{% for m in messages %}{% if m.role == 'tool' %}<|im_start|>user\n<tool_response>\n{{ m.content }}\n"
    "</tool_response><|im_end|>{{ '\\n' }}{% else %}" + TURN + "{% endif %}{% endfor %}" + ASK
)
STRIPPED = "{{ m.content.split('</think>')[-1] if m.role == 'assistant' and not loop.last else m.content }}"
LLAMA3 = (
    "{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n"
    "{{ m.content }}<|eot_id|>{% endfor %}{% if add_generation_prompt %}"
    "<|start_header_id|>assistant<|end_header_id|>{{ '\\n\\n' }}{% endif %}"
)
STRICT = (
    "{% for m in messages %}{% if m.role not in roles %}{{ raise_exception('no role ' + m.role) }}{% endif %}"
    + TURN
    + "{% endfor %}"
    + ASK
)
SPECIALS = [
    "<pad>", "<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>",
]  # fmt: skip


def make_tokenizer(template: str | None = SOUND, **options: Any) -> Any:
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    cut_by_words = options.pop("cut_by_words", True)
    normaliser = options.pop("normalizer", None)
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("Ċ", "Ċ"), ("Ċ", "<"), ("h", "e"), ("l", "l"), ("t", "h")]
    names = [*SPECIALS, *letters, *("".join(pair) for pair in merges)]
    tokenizer = Tokenizer(models.BPE({name: number for number, name in enumerate(names)}, merges))
    # Line breaks are pieces of their own, as in the tokenizers of Llama 3 and Qwen; else they merge with what follows.
    split = pre_tokenizers.Split(Regex(r"[\r\n]+|[^\r\n]+"), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level]) if cut_by_words else byte_level
    tokenizer.decoder = decoders.ByteLevel()
    if normaliser is not None:
        tokenizer.normalizer = normaliser
    tokenizer.add_special_tokens(SPECIALS)
    given = {"bos_token": "<s>", "eos_token": "<|im_end|>", "pad_token": "<pad>", **options}
    made = PreTrainedTokenizerFast(tokenizer_object=tokenizer, clean_up_tokenization_spaces=False, **given)
    made.chat_template = template
    return made


def codes(report: ModelReport) -> set[str]:
    return {f"{finding.severity}:{finding.code}" for finding in report.findings if finding.code != "retokenisation"}


def test_a_sound_template_has_nothing_to_hide() -> None:
    report = examine_tokenizer(make_tokenizer(), generation_ends=[4], vocabulary=1000)
    assert codes(report) == set()
    assert report.ok
    assert report.facts == {
        "vocabulary": len(SPECIALS) + 256 + 5,
        "template": True,
        "ends": {"<|im_end|>": 4},
        "retokenised_otherwise": report.facts["retokenised_otherwise"],
        "generation_prompt": "<|im_start|>assistant\n",
        "turn_end": "<|im_end|>\n",
        "tools_in_template": True,
    }


DEFECTS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "no template": ({"template": None}, {"warning:no_template"}),
    "thoughts taken out": (
        {"template": SOUND.replace("{{ m.content }}<|im_end|>", STRIPPED + "<|im_end|>")},
        {"warning:thought_stripping"},
    ),
    "a thought put in where there is none": (
        {
            "template": SOUND.replace(
                "{{ m.content }}<|im_end|>",
                "{% if m.role == 'assistant' and loop.last %}<think>\n\n</think>\n\n{% endif %}"
                "{{ m.content }}<|im_end|>",
            )
        },
        {"warning:prefix_drift", "note:empty_thought"},
    ),
    "the first message is numbered by how many there are": (
        {"template": "{{ messages | length }}" + SOUND},
        {"warning:prefix_drift"},
    ),
    "Llama 3": (
        {"template": LLAMA3, "eos_token": "<|eot_id|>"},
        {"note:tool_role_by_name", "note:tools_not_rendered"},
    ),
    "stops at another token than turns end with": ({"eos_token": "</s>"}, {"error:wrong_end_token"}),
    "turns end without a token": (
        {"template": SOUND.replace("<|im_end|>", ""), "eos_token": "</s>"},
        {"error:wrong_end_token"},  # the next thing that could be one opens the next turn
    ),
    "turns end in words": (
        {
            "template": "{% for m in messages %}{{ m.role + ': ' + m.content + '\\n' }}{% endfor %}"
            "{% if add_generation_prompt %}assistant: {% endif %}",
            "eos_token": "</s>",
        },
        {"warning:no_end_in_template", "note:tool_role_by_name", "note:tools_not_rendered"},
    ),
    "no end token at all": ({"eos_token": None}, {"error:no_end_token", "error:wrong_end_token"}),
    "no generation prompt": ({"template": SOUND.replace(ASK, "")}, {"error:no_generation_prompt"}),
    "half a generation prompt": (
        {
            "template": SOUND.replace(
                "\n{{ m.content }}<|im_end|>", "\n{{ 'Said: ' if m.role == 'assistant' }}{{ m.content }}<|im_end|>"
            )
        },
        {"warning:short_generation_prompt"},
    ),
    "another generation prompt": (
        {"template": SOUND.replace(ASK, ASK.replace("assistant", "model"))},
        {"warning:other_generation_prompt"},
    ),
    "an open thought": (
        {"template": SOUND.replace(ASK, ASK.replace("'\\n'", "'\\n<think>\\n'"))},
        {"note:open_thought"},
    ),
    "a closed thought": (
        {"template": SOUND.replace(ASK, ASK.replace("'\\n'", "'\\n<think>\\n\\n</think>\\n\\n'"))},
        {"warning:closed_thought"},
    ),
    "no tool role": (
        {"template": STRICT.replace("roles", "('system', 'user', 'assistant')")},
        {"warning:no_tool_role", "note:tools_not_rendered"},
    ),
    "no system role": (
        {"template": STRICT.replace("roles", "('user', 'assistant', 'tool')")},
        {"warning:no_system_role", "note:tools_not_rendered"},
    ),
    "the system is dropped": (
        {"template": SOUND.replace("{% else %}", "{% elif m.role != 'system' %}")},
        {"error:no_system_role"},
    ),
    "nothing of the user": ({"template": "{{ raise_exception('never') }}"}, {"error:template_fails"}),
    "nothing of the assistant": (
        {"template": "{% for m in messages %}{% if m.role != 'assistant' %}" + TURN + "{% endif %}{% endfor %}" + ASK},
        {"error:assistant_text_changed"},
    ),
    "no pad token": ({"pad_token": None}, {"warning:no_pad_token"}),
    "pads with the end": ({"pad_token": "<|im_end|>"}, {"warning:pad_is_end"}),
    "line breaks merge with what follows": ({"cut_by_words": False}, {"warning:boundary_drift"}),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_each_defect_is_found_and_nothing_else(defect: str) -> None:
    options, expected = DEFECTS[defect]
    report = examine_tokenizer(make_tokenizer(**options))
    assert codes(report) == expected
    assert report.ok == (not any(code.startswith("error") for code in expected))
    for finding in report.findings:
        assert finding.found
        assert finding.meaning
        assert finding.advice


def test_a_tokenizer_that_changes_texts_is_an_error() -> None:
    from tokenizers import normalizers

    report = examine_tokenizer(make_tokenizer(normalizer=normalizers.Lowercase()))
    assert "error:text_not_kept" in codes(report)


def test_control_tokens_that_are_text_are_an_error() -> None:
    from callwright_plugins.local_trainer.models.vocabulary import build_tokenizer

    tokenizer = build_tokenizer(["weather"])
    tokenizer.chat_template = SOUND.replace("<|im_end|>", "<|end|>")
    assert "error:control_as_text" in codes(examine_tokenizer(tokenizer))


def test_end_tokens_of_the_generation_config_count() -> None:
    tokenizer = make_tokenizer(eos_token="</s>")
    assert examine_tokenizer(tokenizer, generation_ends=[2, 4]).ok
    partly = examine_tokenizer(make_tokenizer(), generation_ends=[2])
    assert codes(partly) == {"warning:end_not_in_generation_config"}


def test_more_ids_than_embeddings_is_an_error() -> None:
    assert codes(examine_tokenizer(make_tokenizer(), vocabulary=200)) == {"error:vocabulary_too_large"}


def test_what_is_sampled_is_seldom_what_is_tokenised() -> None:
    """Without merges every sequence of whole letters is kept; with them some are not."""
    facts = examine_tokenizer(make_tokenizer()).facts
    assert 0 < facts["retokenised_otherwise"] <= 1


def test_the_compact_prompts_of_a_tiny_model_need_no_template() -> None:
    from callwright_plugins.local_trainer.models.vocabulary import build_tokenizer

    tokenizer = build_tokenizer(["double", "<think>", "<tool_call>"])
    assert codes(examine_tokenizer(tokenizer, compact=True)) == set()
    assert codes(examine_tokenizer(tokenizer)) == {"warning:no_template"}


# The command ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., Path]:
    def write(tokenizer: Any, **files: Any) -> Path:
        tokenizer.save_pretrained(tmp_path)
        for name, content in files.items():
            (tmp_path / f"{name}.json").write_text(content if isinstance(content, str) else json.dumps(content))
        return tmp_path

    return write


def test_a_sound_model_leaves_with_0(invoke: Invoke, save: Callable[..., Path]) -> None:
    folder = save(make_tokenizer(), config={"vocab_size": 300}, generation_config={"eos_token_id": [4]})
    result = invoke("doctor", "--model", folder, "--json")
    found = json.loads(result.stdout)
    assert (result.exit_code, found["ok"]) == (0, True)
    assert [finding["code"] for finding in found["findings"]] == ["retokenisation"]
    drawn = invoke("doctor", "--model", folder)
    assert drawn.exit_code == 0
    assert "✓ nothing here makes training wrong" in drawn.stdout
    assert "extra" not in drawn.stdout  # of the installation nothing is said


def test_a_model_that_never_stops_leaves_with_1(invoke: Invoke, save: Callable[..., Path]) -> None:
    folder = save(make_tokenizer(eos_token="</s>"), config={"text_config": {"vocab_size": 200}, "eos_token_id": 2})
    result = invoke("doctor", "--model", folder, "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert [finding["severity"] for finding in found["findings"]] == ["error", "error", "note"]
    assert {finding["code"] for finding in found["findings"][:2]} == {"vocabulary_too_large", "wrong_end_token"}
    drawn = invoke("doctor", "--model", folder).stdout
    assert "✗ wrong_end_token" in drawn
    assert "What to do: set eos_token to '<|im_end|>'" in drawn
    assert "✓" not in drawn


def test_a_run_folder_is_its_final_model(invoke: Invoke, tmp_path: Path) -> None:
    final = tmp_path / "checkpoints" / "final"
    make_tokenizer(None).save_pretrained(final)
    (final / "callwright_policy.json").write_text('{"prompt": "compact"}')
    assert codes(examine_model(tmp_path)) == set()
    assert json.loads(invoke("doctor", "--model", tmp_path, "--json").stdout)["template"] is False


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "holds no tokenizer that can be loaded"),
        ({"tokenizer.json": "{"}, "holds no tokenizer that can be loaded"),
        ({"tokenizer.json": "ok", "generation_config.json": "{"}, "generation_config.json cannot be read"),
        (None, "is not a folder"),
    ],
)
def test_a_folder_that_is_no_model_is_said(tmp_path: Path, files: dict[str, str] | None, message: str) -> None:
    folder = tmp_path if files is not None else tmp_path / "nowhere"
    for name, content in (files or {}).items():
        if content == "ok":
            make_tokenizer().save_pretrained(folder)
        else:
            (folder / name).write_text(content)
    with pytest.raises(DataError, match=message) as caught:
        examine_model(folder)
    assert "\n" not in str(caught.value)


def test_without_transformers_the_install_command_is_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtra, match=r"pip install 'callwright\[train\]'"):
        examine_model(tmp_path)


def test_codes_are_one_each() -> None:
    assert len({check.code for check in CHECKS}) == len(CHECKS) > 20


# Several checks -------------------------------------------------------------------------------------------------------


class TooLong:
    """A check of somebody else's, which needs no transformers."""

    name = "too-long"

    def examine(self, folder: Path) -> ModelReport:
        finding = ModelFinding("too_long", "error", f"{folder.name} is a long name", "it tires", "take a shorter one")
        return ModelReport([finding], {"letters": len(folder.name)}, (f"{len(folder.name)} letters",))


def test_anybodys_checks_are_told_together(invoke: Invoke, registry: cw.Registry, save: Callable[..., Path]) -> None:
    theirs = SimpleNamespace(callwright_model_checks=cw.hookimpl(lambda: [cw.Lazy("too-long", TooLong)]))
    registry.add(theirs, name="theirs")
    folder = save(make_tokenizer(None))
    result = invoke("doctor", "--model", folder, "--json")
    found = json.loads(result.stdout)
    assert (result.exit_code, found["ok"]) == (1, False)
    assert found["letters"] == len(folder.name)
    assert found["template"] is False
    codes = [finding["code"] for finding in found["findings"]]
    assert codes == ["too_long", "no_template", "retokenisation"], "worst first"
    drawn = invoke("doctor", "--model", folder).stdout
    assert f"\n{len(folder.name)} letters\n" in drawn
    assert "✗ too_long" in drawn


def test_without_a_check_it_is_said_who_has_one(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("doctor", "--model", tmp_path, plugins=cw.Registry())
    assert result.exit_code == 2
    assert result.stderr.startswith("error: no plugin that is loaded looks over models")
    assert "template-drift" in result.stderr
