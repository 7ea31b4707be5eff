"""Refusals of one sample: the prompt does not fit, or its content is not wanted, in the words of each kind of server.

A refusal is an answer: asking again would get the same one, and other samples are not concerned. All that is known of
how servers say so stands in one table. A row is one wording; it counts where the code or type of the error is one of
its codes, or its message holds one of its phrases (in lower case). What is not in the table is no refusal: then the
request itself is wrong (:class:`callwright.UsageError`), or the server fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from attrs import frozen

from callwright.errors import CallwrightError, InfrastructureFailure

Kind = Literal["overflow", "filter"]


class Refused(CallwrightError):
    """The server refuses this one sample. The message is what it says, without secrets."""


class ContextExceeded(Refused):
    """The server says that the prompt does not fit into the model's context: a truncated, empty completion."""


class ContentFiltered(Refused, InfrastructureFailure):
    """A filter of the server took the prompt or the answer for unwanted: the sample is masked, nothing is scored.

    Whoever masks what failed masks this, too: it says nothing of what the model can do. ``answer`` is what was answered
    and is paid for, where the filter took all of it; ``None`` where the request was refused.
    """

    def __init__(self, message: str, answer: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.answer = answer


@frozen
class Wording:
    """How servers of some dialects refuse."""

    dialects: str
    kind: Kind
    codes: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()


WORDINGS: Final = (
    # platform.openai.com/docs/guides/error-codes; learn.microsoft.com/azure/ai-services/openai. The Responses API says
    # "Your input exceeds the context window of this model" with the same code. OpenRouter: error.metadata.error_type.
    Wording("OpenAI, Azure, OpenRouter", "overflow", ("context_length_exceeded",), ("exceeds the context window",)),
    # "This model's maximum context length is N tokens": OpenAI; vLLM's serving_engine.py up to 0.11 and again in 0.18;
    # SGLang's tokenizer_manager.py ("exceeds the model's maximum context length of"); OpenRouter ("This endpoint's …").
    Wording("OpenAI, Azure, vLLM, SGLang, OpenRouter", "overflow", (), ("maximum context length",)),
    # vllm/renderers/params.py (0.16); v1/engine/input_processor.py, entrypoints/openai/responses/serving.py (0.33).
    Wording(
        "vLLM",
        "overflow",
        (),
        ("the model's context length is only", "longer than the maximum model length", "exceeds the max_model_len"),
    ),
    # python/sglang/srt/managers/tokenizer_manager.py; scheduler.py. Together serves by it, too.
    Wording(
        "SGLang, Together",
        "overflow",
        (),
        ("longer than the model's context length", "exceeds the maximum allowed length"),
    ),
    # tools/server/server-context.cpp
    Wording(
        "llama.cpp",
        "overflow",
        ("exceed_context_size_error",),
        ("exceeds the available context size", "larger than the max context size"),
    ),
    # text-generation-inference, router/src/validation.rs, whose words Together's servers use.
    Wording(
        "Together, text-generation-inference",
        "overflow",
        (),
        ("`inputs` tokens + `max_new_tokens` must be", "`inputs` must have less than"),
    ),
    # docs.anthropic.com/en/api/errors, in its own shape and through its OpenAI-compatible endpoint; 413 is by bytes.
    Wording("Anthropic", "overflow", ("request_too_large",), ("prompt is too long", "exceed context limit")),
    # learn.microsoft.com/azure/ai-services/openai/concepts/content-filter
    Wording(
        "Azure",
        "filter",
        ("content_filter", "responsibleaipolicyviolation"),
        ("content management policy",),
    ),
    # "invalid_prompt" is the code of other mistakes, too, so that its phrase counts.
    Wording(
        "OpenAI",
        "filter",
        ("content_policy_violation",),
        ("flagged as potentially violating our usage policy", "rejected as a result of our safety system"),
    ),
    # openrouter.ai/docs/api-reference/errors: status 403 with error.metadata.reasons and flagged_input.
    Wording("OpenRouter", "filter", ("flagged_input",), ("your input was flagged", "requires moderation on")),
    Wording("Anthropic", "filter", (), ("blocked by content filtering policy",)),
)

#: Statuses that are no refusal whatever the words are: keys, models, and rates ("tokens per minute").
_OTHERS: Final = frozenset({401, 402, 404, 407, 408, 429})


@frozen
class Said:
    """What a server says of an error. ``marks`` are its code, its type and whatever else tells it apart."""

    message: str
    code: str = ""
    param: str | None = None
    marks: frozenset[str] = frozenset()


def said(body: Any) -> Said:
    """An error in any of the shapes: ``{"error": {…}}``, ``{"error": "…"}``, the error itself, or a text. Total."""
    if isinstance(body, Mapping) and body.get("error"):
        body = body["error"]
    if not isinstance(body, Mapping):
        return Said(_line(body) if isinstance(body, str) else "")
    message = next((found for name in ("message", "detail", "msg") if isinstance(found := body.get(name), str)), "")
    marks = {_text(body.get("code")), _text(body.get("type"))}
    for name in ("innererror", "inner_error"):
        if isinstance(inner := body.get(name), Mapping):
            marks.add(_text(inner.get("code")))
    if isinstance(about := body.get("metadata"), Mapping):
        marks.add(_text(about.get("error_type")))
        marks |= {"flagged_input"} & set(about)
    param = body.get("param")
    return Said(
        _line(message), _text(body.get("code")), param if isinstance(param, str) else None, frozenset(marks) - {""}
    )


def _text(value: Any) -> str:
    return str(value).lower()[:200] if isinstance(value, str | int) else ""


def _line(text: str) -> str:
    return " ".join(text[:8000].split())[:4000]


def refusal(status: int, error: Said) -> Kind | None:
    """Which refusal of one sample this answer is, if it is one."""
    if status in _OTHERS:
        return None
    low = error.message.lower()
    for wording in WORDINGS:
        if error.marks.intersection(wording.codes) or any(phrase in low for phrase in wording.phrases):
            return wording.kind
    return None


def is_filtered(choice: Mapping[str, Any]) -> bool:
    """Whether a filter took a choice of an answered request (status 200): ``finish_reason`` says so."""
    return choice.get("finish_reason") == "content_filter"


def filtered(answer: Mapping[str, Any]) -> int:
    """How many samples of an answered request a filter took: of choices, of the Responses API, of Anthropic's own."""
    choices = answer.get("choices")
    if isinstance(choices, list):
        return sum(isinstance(choice, Mapping) and is_filtered(choice) for choice in choices)
    details = answer.get("incomplete_details")
    incomplete = details.get("reason") if isinstance(details, Mapping) else None
    return int(incomplete == "content_filter" or answer.get("stop_reason") == "refusal")
