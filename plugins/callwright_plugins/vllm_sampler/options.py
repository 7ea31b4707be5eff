"""The options of the sampler ``vllm``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from callwright.options import OptionTable


class VLLMSamplerOptions(OptionTable):
    """Options of ``sampler = "vllm"``."""

    model: str = Field(description="A Hugging Face directory, or a name that vLLM resolves.")
    base_url: str | None = Field(
        default=None, description="A running server (vllm serve); the engine runs in this process if left out."
    )
    served_as: str | None = Field(default=None, description="The server's name for the model; as model if left out.")
    tokenizer: str | None = Field(default=None, description="Where the tokenizer is read from; model if left out.")
    max_new_tokens: int = Field(default=1024, ge=1, description="Tokens of a completion at most.")
    structured: Literal["json", "hermes"] | None = Field(
        default=None, description="The form whose calls are held to the offered tools and their schemas."
    )
    seeds: bool = Field(default=True, description="A seed for every completion, so that it can be sampled again.")
    sampling: Mapping[str, Any] | None = Field(
        default=None, description="Further parameters of sampling, such as { top_p = 0.95 }."
    )
    engine: Mapping[str, Any] | None = Field(default=None, description="Options of vllm.LLM, in this process.")
    tools_in_template: bool = Field(
        default=False, description="Tools are given to the chat template and not written into the system message."
    )
    chat_template_options: Mapping[str, Any] | None = Field(
        default=None, description="Passed to the chat template, such as { enable_thinking = false }."
    )
    concurrency: int = Field(default=64, ge=1, description="Requests under way at a time, on a server.")
    retries: int = Field(default=5, ge=0, description="How often a request is repeated that failed in passing.")
    timeout: float = Field(default=600.0, gt=0, description="Seconds for all of a request.")
    api_key_env: str = Field(default="VLLM_API_KEY", description="The environment variable with the server's key.")
    yarn: Any = Field(
        default=None, description="Extends the context for this evaluation: a factor, or { factor, original }."
    )
