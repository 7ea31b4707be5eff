"""How servers refuse, in their own words: the status and the body, as their sources and documentation have them."""

# ruff: noqa: E501 (the words of others)

from __future__ import annotations

from typing import Any, Final


def _vllm(message: str, param: str | None) -> dict[str, Any]:
    return {"error": {"message": message, "type": "BadRequestError", "param": param, "code": 400}}


def _flat(message: str) -> dict[str, Any]:
    return {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": 400}


#: By dialect and kind of refusal.
REFUSALS: Final[dict[tuple[str, str], tuple[int, Any]]] = {
    # vLLM: vllm/entrypoints/openai/serving_engine.py (0.6), vllm/renderers/params.py (0.16), later wording of 0.18.
    ("vllm 0.6", "overflow"): (400, _flat(
        "This model's maximum context length is 4096 tokens. However, you requested 5024 tokens (4000 in the messages, "
        "1024 in the completion). Please reduce the length of the messages or completion.")),
    ("vllm 0.11", "overflow"): (400, _vllm(
        "'max_tokens' or 'max_completion_tokens' is too large: 1024. This model's maximum context length is 4096 tokens "
        "and your request has 4000 input tokens (1024 > 4096 - 4000).", None)),
    ("vllm engine", "overflow"): (400, _vllm(
        "The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that "
        "`max_model_len` is no smaller than the number of text tokens.", None)),
    ("vllm 0.16", "overflow"): (400, _vllm(
        "You passed 3073 input tokens and requested 1024 output tokens. However, the model's context length is only "
        "4096 tokens, resulting in a maximum input length of 3072 tokens. Please reduce the length of the input prompt.",
        "input_tokens")),
    ("vllm", "overflow"): (400, _vllm(
        "This model's maximum context length is 4096 tokens. However, you requested 1024 output tokens and your prompt "
        "contains at least 3073 input tokens, for a total of at least 4097 tokens. Please reduce the length of the "
        "input prompt or the number of requested output tokens.", "input_tokens")),
    # 0.33: vllm/renderers/params.py, vllm/v1/engine/input_processor.py, vllm/entrypoints/openai/responses/serving.py.
    ("vllm 0.33", "overflow"): (400, _vllm(
        "This model's maximum context length is 4096 tokens. However, your prompt contains at least 4097 input tokens, which "
        "exceeds this limit even without any output tokens. Please reduce the length of the input prompt.", "input_tokens")),
    ("vllm 0.33 engine", "overflow"): (400, _vllm(
        "The decoder prompt (length 4096) plus the number of requested output tokens (at least 1) is longer than the maximum "
        "model length of 4096. Make sure that `max_model_len` is no smaller than the number of text tokens.", None)),
    ("vllm 0.33 responses", "overflow"): (400, {"error": {
        "message": "The engine prompt length 5000 exceeds the max_model_len 4096. Please reduce prompt.",
        "type": "invalid_request_error", "param": "input", "code": 400}}),
    # SGLang: python/sglang/srt/managers/tokenizer_manager.py and scheduler.py.
    ("sglang", "overflow"): (400, _flat(
        "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of 5024 "
        "tokens: 4000 tokens from the input messages and 1024 tokens for the completion. Please reduce the number of "
        "tokens in the input messages or the completion to fit within the limit.")),
    ("sglang prompt", "overflow"): (400, _flat(
        "The input (5000 tokens) is longer than the model's context length (4096 tokens).")),
    ("sglang scheduler", "overflow"): (400, _flat(
        "Input length (5000 tokens) exceeds the maximum allowed length (4095 tokens). Use a shorter input or enable "
        "--allow-auto-truncate.")),
    # llama.cpp: tools/server/server-context.cpp.
    ("llama.cpp", "overflow"): (400, {"error": {
        "code": 400, "message": "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
        "type": "exceed_context_size_error", "n_prompt_tokens": 5000, "n_ctx": 4096}}),
    ("llama.cpp old", "overflow"): (400, {"error": {
        "code": 400, "type": "invalid_request_error",
        "message": "the request exceeds the available context size. try increasing the context size or enable context shift"}}),
    # OpenAI: chat completions and the Responses API.
    ("openai", "overflow"): (400, {"error": {
        "message": "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens. "
        "Please reduce the length of the messages.",
        "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}}),
    ("openai responses", "overflow"): (400, {"error": {
        "message": "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "type": "invalid_request_error", "param": "input", "code": "context_length_exceeded"}}),
    ("openai", "filter"): (400, {"error": {
        "message": "Invalid prompt: your prompt was flagged as potentially violating our usage policy. Please try again "
        "with a different prompt.",
        "type": "invalid_request_error", "param": None, "code": "invalid_prompt"}}),
    ("openai policy", "filter"): (400, {"error": {
        "message": "Your request was rejected as a result of our safety system.",
        "type": "invalid_request_error", "param": None, "code": "content_policy_violation"}}),
    # Azure OpenAI: the page on content filtering.
    ("azure", "filter"): (400, {"error": {
        "message": "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. "
        "Please modify your prompt and retry.",
        "type": None, "param": "prompt", "code": "content_filter", "status": 400,
        "innererror": {"code": "ResponsibleAIPolicyViolation",
                       "content_filter_result": {"violence": {"filtered": True, "severity": "high"}}}}}),
    ("azure", "overflow"): (400, {"error": {
        "message": "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 "
        "tokens. Please reduce the length of the messages.",
        "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}}),
    # Together: the words of text-generation-inference, as LiteLLM maps them, and its later ones.
    ("together", "overflow"): (422, {"error": {
        "message": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 4000 `inputs` "
        "tokens and 1024 `max_new_tokens`",
        "type": "invalid_request_error", "param": "max_tokens", "code": None}}),
    ("together prompt", "overflow"): (422, {
        "error": "Input validation error: `inputs` must have less than 4096 tokens. Given: 5000",
        "error_type": "validation"}),
    # OpenRouter: the page on errors (moderation), and a live refusal.
    ("openrouter", "overflow"): (400, {"error": {
        "message": "This endpoint's maximum context length is 16384 tokens. However, you requested about 26265 tokens "
        "(26255 of text input, 10 in the output). Please reduce the length of either one, or use the "
        "context-compression plugin to compress your prompt automatically.",
        "code": 400, "metadata": {"provider_name": None}}}),
    ("openrouter", "filter"): (403, {"error": {
        "message": 'openai/gpt-oss-120b:free requires moderation on OpenInference. Your input was flagged for '
        '"violence/graphic". No credits were charged.',
        "code": 403, "metadata": {"reasons": ["violence/graphic"], "flagged_input": "...", "provider_name": "x"}}}),
    # Anthropic: the page on errors; its OpenAI-compatible endpoint sends the same messages.
    ("anthropic", "overflow"): (400, {"type": "error", "error": {
        "type": "invalid_request_error", "message": "prompt is too long: 213462 tokens > 200000 maximum"}}),
    ("anthropic total", "overflow"): (400, {"type": "error", "error": {
        "type": "invalid_request_error",
        "message": "input length and `max_tokens` exceed context limit: 178902 + 32000 > 200000, decrease input length "
        "or `max_tokens` and try again"}}),
    ("anthropic size", "overflow"): (413, {"type": "error", "error": {
        "type": "request_too_large", "message": "Request exceeds the maximum size"}}),
    ("anthropic", "filter"): (400, {"type": "error", "error": {
        "type": "invalid_request_error", "message": "Output blocked by content filtering policy"}}),
    ("anthropic compatible", "overflow"): (400, {"error": {
        "code": "invalid_request_error", "message": "prompt is too long: 213462 tokens > 200000 maximum",
        "type": "invalid_request_error", "param": None}}),
}  # fmt: skip

#: What looks like a refusal of one sample, and is none: the status, the body.
NO_REFUSALS: Final[dict[str, tuple[int, Any]]] = {
    # Waiting mends it, although it speaks of tokens.
    "rate": (429, {"error": {
        "message": "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 9000.",
        "type": "tokens", "code": "rate_limit_exceeded"}}),
    # Every request of the run would be refused alike.
    "limit of tokens": (400, _vllm(
        "max_tokens=200000 cannot be greater than max_model_len=4096. Please request fewer output tokens.", "max_tokens")),
    "parameter": (400, {"error": {
        "message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' "
        "instead.", "type": "invalid_request_error", "param": "max_tokens", "code": "unsupported_parameter"}}),
    "key": (401, {"error": {
        "message": "Incorrect API key provided: sk-1234****5678.", "type": "invalid_request_error",
        "code": "invalid_api_key"}}),
    "forbidden": (403, {"error": {"message": "You are not allowed to use this model", "type": "forbidden"}}),
    "model": (404, {"error": {"message": "The model `m` does not exist.", "code": "model_not_found"}}),
    "credits": (402, {"error": {"message": "Insufficient credits", "code": 402}}),
    "length of a field": (400, {"error": {
        "message": "Invalid 'user': string too long. Expected a string with maximum length 64", "param": "user",
        "code": "string_above_max_length"}}),
}  # fmt: skip
