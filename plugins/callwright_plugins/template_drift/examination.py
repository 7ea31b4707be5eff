"""One look at one tokenizer: every check of the table that its template gets to, and what was measured on the way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from callwright.training.model_check import ModelFinding, ModelReport
from callwright_plugins.template_drift.checks import CHECKS, Stage
from callwright_plugins.template_drift.examined import SEQUENCES, Examined


def examine_tokenizer(
    tokenizer: Any, *, generation_ends: Iterable[int] = (), vocabulary: int | None = None, compact: bool = False
) -> ModelReport:
    """The report on a tokenizer with the methods of a Hugging Face one.

    ``generation_ends``: end ids of the generation config. ``vocabulary``: rows of the model's embedding. ``compact``:
    the model was trained with a corpus's compact prompts, and needs no template.
    """
    of = Examined(tokenizer, tuple(generation_ends), vocabulary, compact)
    facts = _facts(of)
    return ModelReport(list(_findings(of)), facts, tuple(_headlines(facts)))


def _reaches(of: Examined, stage: Stage) -> bool:
    match stage:
        case "tokenizer":
            return True
        case "template":
            return of.templated
        case "opening":
            return of.templated and of.opening.messages is not None
        case "turns":
            return _reaches(of, "opening") and of.turn_end is not None


def _findings(of: Examined) -> Iterator[ModelFinding]:
    for check in CHECKS:
        seen = check.look(of) if _reaches(of, check.stage) else None
        if seen is not None:
            advice = check.advice.format(**seen.values) if seen.values else check.advice
            yield ModelFinding(check.code, seen.severity or check.severity, seen.found, check.meaning, advice)


def _facts(of: Examined) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "vocabulary": len(of.tokenizer),
        "template": of.templated,
        "ends": {of.token(end): end for end in of.ends},
    }
    if of.retokenised is not None:
        facts["retokenised_otherwise"] = of.retokenised / SEQUENCES
    if _reaches(of, "opening") and of.generation is not None:
        facts["generation_prompt"] = of.generation.prompt
    if _reaches(of, "turns"):
        assert of.turn_end is not None
        facts["turn_end"] = of.turn_end.text
        facts["tools_in_template"] = of.shows_tools
    return facts


def _headlines(facts: dict[str, Any]) -> Iterator[str]:
    ends = ", ".join(f"{token!r} ({number})" for token, number in facts["ends"].items()) or "none"
    template = "a chat template" if facts["template"] else "no chat template"
    yield f"{facts['vocabulary']} ids, {template}, completions end with {ends}"
    if "generation_prompt" in facts:
        yield f"a completion stands after {facts['generation_prompt']!r}"
