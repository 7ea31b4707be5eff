"""Parameters that a model refuses: recognised in the server's words, left out or renamed from then on, and said once.

Reasoning models of OpenAI take no ``temperature`` but 1 and want ``max_completion_tokens``; older deployments of Azure
know only ``max_tokens``; the Responses API has no ``seed``. Only what Callwright sends of its own accord is changed.
What somebody asked for by name (``reasoning_effort``, ``parallel_tool_calls``, ``logprobs``, a field of ``body``) and
that is refused is an error in the server's words: without it something else would be measured.

The words, as met in the wild:

* ``unsupported_parameter``: "Unsupported parameter: 'max_tokens' is not supported with this model. Use
  'max_completion_tokens' instead." (OpenAI, Azure; QwenLM/qwen-code#921, opencode#37964)
* ``unsupported_value``: "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1)
  value is supported." (OpenAI, Azure; OpenHands#4131, cline#7224)
* without a code: "Unrecognized request argument supplied: max_completion_tokens" (Azure's older versions;
  openai-python#1724)
* ``unknown_parameter``: "Unknown parameter: 'seed'." (OpenAI's Responses API)
* "Unknown name \\"seed\\": Cannot find field." (Gemini's endpoint; dzhng/deep-research#23), "Extra inputs are not
  permitted" (servers that check with pydantic), "property 'seed' is unsupported" (Groq)
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import define, field

_CODES: Final = frozenset({"unsupported_parameter", "unsupported_value", "unknown_parameter", "extra_forbidden"})
_WORDS: Final = re.compile(
    r"unsupported (?:parameter|value)|not supported|does(?:n't| not) support|is unsupported"
    r"|unknown (?:parameter|field|name)|unrecognized (?:request )?argument"
    r"|extra (?:inputs|fields) (?:are )?not permitted|only the default|may only be set|deprecated"
)
#: What is sent without anybody's asking, and what becomes of it: another name, or ``None`` to leave it out.
_REFUSED: Final[Mapping[str, str | None]] = {
    "max_tokens": "max_completion_tokens",
    "max_completion_tokens": "max_tokens",
    "temperature": None,
    "seed": None,
    "n": None,
    "reasoning.summary": None,
}
_MEANS: Final[Mapping[str, str]] = {
    "temperature": "the model samples at its own temperature, and --temperature has no effect",
    "seed": "completions cannot be sampled again",
    "n": "completions are asked for one by one",
    "reasoning.summary": "thoughts are not shown",
}


@define(eq=False)
class RefusedParameters:
    """What one model of one server was found not to take, for as long as the command runs. Safe over threads."""

    _found: dict[str, str | None] = field(factory=dict, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def __getstate__(self) -> dict[str, str | None]:
        """What was found; a lock belongs to its process."""
        return dict(self._found)

    def __setstate__(self, found: dict[str, str | None]) -> None:
        self._found, self._lock = found, threading.Lock()

    def accepted(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The body of a request without what the model refuses."""
        made = dict(body)
        for name, other in tuple(self._found.items()):
            outer, _, inner = name.partition(".")
            if inner and isinstance(made.get(outer), Mapping):
                made[outer] = {key: value for key, value in made[outer].items() if key != inner}
            elif outer in made and not inner:
                value = made.pop(outer)
                if other is not None:
                    made.setdefault(other, value)
        return made

    def learn(
        self,
        body: Mapping[str, Any],
        status: int,
        message: str,
        code: str | None,
        param: str | None,
        say: Callable[[str], object] = lambda said: None,
    ) -> bool:
        """Whether a request with this ``body``, refused so, is to be sent again without what was refused.

        ``message``, ``code`` and ``param`` are those of the server's error. ``say`` is given a sentence the first time.
        """
        if status not in (400, 422):
            return False
        with self._lock:
            name = next((name for name in _REFUSED if _holds(body, name) and _concerns(name, message, param)), None)
            if name is None or not (code in _CODES or _WORDS.search(message.lower())):
                return False
            if name in self._found:  # a request that was under way when it was found
                return True
            other = _REFUSED[name]
            if other is not None and (other in body or other in self._found):  # the model takes neither
                return False
            self._found[name] = other
        change = f"it is sent as {other!r}" if other else f"it is left out: {_MEANS[name]}"
        say(f"the model refuses {name!r} ({message}); from here on {change}")
        return True


def _holds(body: Mapping[str, Any], name: str) -> bool:
    outer, _, inner = name.partition(".")
    value = body.get(outer)
    return (isinstance(value, Mapping) and inner in value) if inner else outer in body


def _concerns(name: str, message: str, param: str | None) -> bool:
    if param:
        return param == name
    found = re.search(rf"(?<![\w.]){re.escape(name)}(?![\w])", message)
    return found is not None and (len(name) > 1 or f"'{name}'" in message or message.endswith(f": {name}"))
