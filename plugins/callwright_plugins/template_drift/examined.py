"""A tokenizer under examination: every measure that checks share, taken once."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final, Literal

from attrs import frozen

from callwright.episodes.codec import ChatCodec
from callwright.errors import DataError
from callwright.language.messages import Message

_NOT_SHOWN: Final = "the text of the message is not in what it renders"
_SYSTEM: Final = Message(role="system", content="Use the INSTRUCTIONS.")
_USER: Final = Message(role="user", content="What is the weather in QUESTION?")
_COMPLETION: Final = "COMPLETION"
#: Random sequences that are decoded and encoded again, and how long they are.
SEQUENCES: Final = 64
LENGTH: Final = 8


@frozen
class Rendered:
    """What a template made of messages; ``text`` is ``None`` where it raised, and ``failure`` says what."""

    text: str | None
    failure: str = _NOT_SHOWN


@frozen
class Opening:
    """How a conversation can begin. ``system``: whether the template shows that role, refuses it, or drops it."""

    messages: tuple[Message, ...] | None
    system: Literal["shown", "refused", "dropped"]
    failure: str


@frozen
class GenerationPrompt:
    """``prompt``: what the template adds to ask for an answer. ``shared``: the text before it, the same in both.

    ``before`` is the whole text before the text of an assistant's message in a conversation that is rendered at once.
    ``left`` is the end of it that the generation prompt does not have; ``alike``: whether the two go together at all.
    """

    prompt: str
    shared: str
    before: str
    left: str
    alike: bool


@frozen
class TurnEnd:
    """How an assistant's turn ends: ``closing`` as the last of a conversation, ``control`` the control token that
    stands there (-1: none), ``followed`` the one where something follows, and ``text`` what both ends share.

    ``end`` is the first of their tokens at which sampling stops; ``None`` if it stops at none.
    """

    closing: str
    text: str
    control: int
    followed: int
    end: int | None


class Examined:
    """One tokenizer, with what is known of its model.

    ``generation_ends``: end ids of the generation config. ``vocabulary``: rows of the model's embedding. ``compact``:
    the model was trained with a corpus's compact prompts, and needs no template.
    """

    def __init__(self, tokenizer: Any, generation_ends: tuple[int, ...], vocabulary: int | None, compact: bool) -> None:
        self.tokenizer = tokenizer
        self.generation_ends = generation_ends
        self.vocabulary = vocabulary
        self.compact = compact
        self.codec = ChatCodec(tokenizer, ends=generation_ends)

    # What one asks of a tokenizer

    def token(self, token: int) -> str:
        """The text of one id."""
        return str(self.tokenizer.decode([token], skip_special_tokens=False))

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without tokens that the tokenizer adds by itself."""
        return list(self.tokenizer.encode(text, add_special_tokens=False))

    def common(self, text: str, other: str) -> str:
        """The beginning that two texts share, whole tokens only."""
        ids, others = self.encode(text), self.encode(other)
        same = next(
            (i for i, (a, b) in enumerate(zip(ids, others, strict=False)) if a != b), min(len(ids), len(others))
        )
        return str(self.tokenizer.decode(ids[:same], skip_special_tokens=False, clean_up_tokenization_spaces=False))

    def render(self, messages: Sequence[Message], *, generation: bool = False, **options: Any) -> Rendered:
        """What the template makes of messages. Never raises."""
        try:
            return Rendered(self.codec.render(messages, generation=generation, **options))
        except Exception as error:  # a template raises whatever it likes
            return Rendered(None, f"{type(error).__name__}: {error}")

    # Measures

    @property
    def templated(self) -> bool:
        """Whether there is a chat template."""
        return bool(getattr(self.tokenizer, "chat_template", None))

    @property
    def ends(self) -> list[int]:
        """The ids at which sampling stops."""
        return sorted(self.codec.ends)

    @cached_property
    def retokenised(self) -> int | None:
        """How many of ``SEQUENCES`` random ones become other ids; ``None`` without ordinary tokens."""
        special = set(self.tokenizer.all_special_ids)
        known = min(len(self.tokenizer), self.vocabulary or 1 << 60)
        ordinary = [token for token in range(known) if token not in special]
        if not ordinary:
            return None
        rng = random.Random(0)
        changed = 0
        for _ in range(SEQUENCES):
            ids = [ordinary[rng.randrange(len(ordinary))] for _ in range(LENGTH)]
            changed += self.encode(self.codec.text(ids)) != ids
        return changed

    @cached_property
    def opening(self) -> Opening:
        """The messages that begin every conversation here: one of the system if there is that role, and a query."""
        both, alone = self.render([_SYSTEM, _USER]), self.render([_USER])
        if both.text is not None and "QUESTION" in both.text and "INSTRUCTIONS" in both.text:
            return Opening((_SYSTEM, _USER), "shown", "")
        system: Literal["refused", "dropped"] = "refused" if both.text is None else "dropped"
        if alone.text is not None and "QUESTION" in alone.text:
            return Opening((_USER,), system, "")
        return Opening(None, system, both.failure if alone.text is not None else alone.failure)

    @property
    def first(self) -> tuple[Message, ...]:
        """The messages of the opening; for checks that come after one was found."""
        assert self.opening.messages is not None
        return self.opening.messages

    @cached_property
    def answered(self) -> Rendered:
        """The opening with an assistant's message, if its text is shown; else why not."""
        rendered = self.render([*self.first, Message(role="assistant", content=_COMPLETION)])
        shown = rendered.text is not None and _COMPLETION in rendered.text
        return rendered if shown else Rendered(None, rendered.failure)

    @cached_property
    def generation(self) -> GenerationPrompt | None:
        """The generation prompt, beside what really stands before an answer; ``None`` if that cannot be seen."""
        asked, plain = self.render(self.first, generation=True).text, self.render(self.first).text
        if self.answered.text is None or asked is None or plain is None:
            return None
        before = self.answered.text.partition(_COMPLETION)[0]
        shared = self.common(asked, plain)  # not all of plain: some templates end every text that asks for nothing more
        prompt = asked[len(shared) :]
        header = asked[: asked.rfind("<think>")] if "<think>" in prompt else asked
        alike = before.startswith(header.rstrip()) or before.rstrip().endswith(header[len(shared) :].rstrip())
        left = before[len(asked) :] if before.startswith(asked) else ""
        return GenerationPrompt(prompt, shared, before, left, alike)

    @cached_property
    def turn_end(self) -> TurnEnd | None:
        """How turns end; ``None`` if the template shows nothing of an assistant's turn."""
        if self.answered.text is None:
            return None
        special = set(self.tokenizer.all_special_ids) | set(getattr(self.tokenizer, "added_tokens_decoder", ()))
        closing = self.answered.text.rpartition(_COMPLETION)[2]
        try:
            following = self.codec.following([Message(role="user", content="NEXT")])
        except DataError:
            following = closing
        text = self.common(following, closing)
        # The end of a turn that something follows; some models write it as the beginning of that which follows.
        followed, last = (
            next((token for token in self.encode(one) if token in special), -1) for one in (following, closing)
        )
        stops = self.codec.ends
        end = next((token for token in (followed, last, *self.encode(text)) if token in stops), None)
        return TurnEnd(closing, text, last, followed, end)

    @cached_property
    def shows_tools(self) -> bool:
        """Whether the template writes the tools that it is given."""
        text = self.render(self.first, tools=[TOOL]).text
        return text is not None and "get_weather" in text


#: A tool, a call of it with its result, and an answer: what conversations here are made of.
TOOL: Final = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
CALL: Final = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Łódź"}}\n</tool_call>'
RESULT: Final = '{"id":0,"name":"get_weather","result":{"celsius":-3.5}}'
ANSWER: Final = "It is -3.5 degrees."
THOUGHT: Final = "I need THOUGHT first."
