"""The options of the teachers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from callwright.options import OptionTable, RequestOptions


class _Asked(OptionTable):
    model: str = Field(description="The model, by the name that the server has for it.")
    base_url: str | None = Field(
        default=None, description="Address of the server; $OPENAI_BASE_URL, else OpenAI's, if left out."
    )
    api_key_env: str = Field(default="OPENAI_API_KEY", description="The environment variable with the key.")
    temperature: float = Field(default=0.7, ge=0, description="Where a request says nothing else.")
    max_tokens: int = Field(default=1024, ge=1, description="Tokens of a reply at most, where a request says nothing.")
    token_limit: Literal["max_tokens", "max_completion_tokens"] = Field(
        default="max_tokens", description="The name under which the server takes that limit."
    )
    body: Mapping[str, Any] | None = Field(default=None, description="Added to every request, such as { top_p = 0.9 }.")
    roles: Mapping[str, Mapping[str, Any]] | None = Field(
        default=None,
        description="Other model, temperature, max_tokens and body for a role: { judge = { temperature = 0 } }.",
    )
    structured: Literal["auto", "schema", "text"] = Field(
        default="auto",
        description="How a schema is sent: as response_format, not at all, or the first until the server refuses it.",
    )
    send_seed: bool = Field(default=True, description="Send each request's seed.")
    revision: str = Field(
        default="", description="A word for what the server runs: change it with the weights, for caches."
    )


class ModelTeacherOptions(RequestOptions, _Asked):
    """Options of ``teacher = "openai"``."""


class ReplayedTeacherOptions(OptionTable):
    """Options of ``teacher = "replayed"``."""

    file: str = Field(description="The file with the replies of another teacher.")
    model: str | None = Field(
        default=None, description="Whose replies are taken, where the file holds several models'."
    )


class ScriptedTeacherOptions(OptionTable):
    """Options of ``teacher = "scripted"``."""

    lines: Sequence[Any] = Field(
        default=(),
        description="Lines in order: what one says, and which role and which words of a request it answers.",
    )
    answer: Any = Field(
        default=None, description="In Python: a function from a request to a reply, asked where no line fits."
    )
