"""The options of the sampler ``openai``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from callwright.options import OptionTable, RequestOptions


class _Asked(OptionTable):
    model: str = Field(description="The model, by the name that the server has for it.")
    base_url: str | None = Field(
        default=None, description="Address of the server; $OPENAI_BASE_URL, else OpenAI's, if left out."
    )
    api_key_env: str = Field(default="OPENAI_API_KEY", description="The environment variable with the key.")
    max_new_tokens: int = Field(default=1024, ge=1, description="Tokens of a completion at most.")
    token_limit: Literal["max_tokens", "max_completion_tokens"] = Field(
        default="max_tokens", description="The name under which the server takes that limit."
    )
    api: Literal["chat", "responses"] = Field(default="chat", description="Chat completions, or the Responses API.")
    tools: Literal["prompt", "native"] = Field(
        default="prompt", description="Tools stand in the system message, or are sent as function definitions."
    )
    parallel_tool_calls: bool | None = Field(
        default=None, description="Sent with native tools: whether a turn may hold several calls."
    )
    tool_choice: str | None = Field(
        default=None, description="Sent with native tools: auto, required, none, or the name of a tool."
    )
    strict: bool = Field(default=False, description="Sent with native tools: the server holds calls to their schemas.")
    earlier_thoughts: Literal["keep", "template", "drop"] = Field(
        default="keep",
        description="What later turns are sent of a thought: as it came, in the text for the template, or nothing.",
    )
    reasoning_effort: str | None = Field(default=None, description="Sent as it is.")
    logprobs: bool = Field(default=False, description="Ask for the log-probabilities of the sampled tokens.")
    body: Mapping[str, Any] | None = Field(default=None, description="Added to every request, such as { top_p = 0.9 }.")
    send_seed: bool = Field(default=True, description="Send each sample's seed.")


class OpenAISamplerOptions(RequestOptions, _Asked):
    """Options of ``sampler = "openai"``."""
