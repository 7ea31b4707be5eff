"""A sampler that asks an OpenAI-compatible server: OpenAI, vLLM, SGLang, llama.cpp, Ollama, and many more."""

from __future__ import annotations

from collections.abc import Iterable

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy


@hookimpl
def callwright_samplers() -> Iterable[Lazy]:
    """Register the sampler; the client is imported when it is first asked."""
    yield Lazy(
        "openai",
        "callwright_plugins.openai_sampler.sampler:OpenAISampler",
        summary="chat completions of any OpenAI-compatible server, with retries, rate limits and counted costs",
        extra="openai",
        reaches="callwright_plugins.openai_sampler.sampler:reaches",
        takes="callwright_plugins.openai_sampler.options:OpenAISamplerOptions",
    )
