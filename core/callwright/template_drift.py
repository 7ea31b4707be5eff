"""Template drift: whether a tokenizer and its chat template say the same of a conversation, turn by turn.

Rollouts keep token ids, so nothing here makes them inconsistent by itself. But a template that ends turns with a token
that nobody stops at, or that opens no turn for the model, makes training wrong; and one that rewrites earlier turns
shows a served model other contexts than it was trained in. :func:`examine_tokenizer` finds out without the model.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from attrs import asdict, evolve, frozen

from callwright.episodes.codec import ChatCodec
from callwright.errors import DataError, MissingExtra
from callwright.walk.sampling import Message

#: ``error``: training would go wrong. ``warning``: it is right here, but not everywhere, or costs something. ``note``.
Severity = Literal["error", "warning", "note"]

_THOUGHT: Final = "I need THOUGHT first."
_CALL: Final = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Łódź"}}\n</tool_call>'
_RESULT: Final = '{"id":0,"name":"get_weather","result":{"celsius":-3.5}}'
_ANSWER: Final = "It is -3.5 degrees."
_TOOL: Final = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
_TEXTS: Final = (
    f"<think>\n{_THOUGHT}\n</think>\n\n{_CALL}",
    '{"0": {"find": {"names": ["a  b", " c", "é", "漢字", "🙂"], "n": [1, -2.50, null, true]}}}',
    "Line one\n\n  indented\ttabbed\n\nDon't  collapse   spaces , or  move commas .",
)
#: Random sequences that are decoded and encoded again, and how long they are.
_SEQUENCES, _LENGTH = 64, 8


@frozen
class Finding:
    """One thing that was found: a stable code, what it is, what it means for training, and what to do."""

    code: str
    severity: Severity
    found: str
    meaning: str
    advice: str


@frozen
class DriftReport:
    """Everything that was found of one tokenizer, worst first."""

    findings: tuple[Finding, ...]
    facts: dict[str, Any]

    @property
    def ok(self) -> bool:
        """Whether nothing would make training wrong."""
        return not any(finding.severity == "error" for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """What ``callwright doctor --model DIR --json`` prints."""
        return {"ok": self.ok, **self.facts, "findings": [asdict(finding) for finding in self.findings]}


def examine_model(folder: Path) -> DriftReport:
    """The report on a Hugging Face directory; nothing is downloaded, no code of it is run, the weights are not read.

    Raises :class:`callwright.errors.DataError` if there is no tokenizer, and :class:`callwright.errors.MissingExtra`
    without transformers.
    """
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise MissingExtra("callwright doctor --model", "train", error.name or "transformers") from error
    final = folder / "checkpoints" / "final"
    folder = final if final.is_dir() else folder
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder; --model takes a Hugging Face model directory")
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # whatever the files of somebody else make the library raise
        reason = (str(error).strip().splitlines() or ["no reason given"])[0]
        raise DataError(f"{folder} holds no tokenizer that can be loaded: {type(error).__name__}: {reason}") from error
    config, generation = _read(folder / "config.json"), _read(folder / "generation_config.json")
    return examine_tokenizer(
        tokenizer,
        generation_ends=_ids(generation.get("eos_token_id", config.get("eos_token_id"))),
        vocabulary=_vocabulary(config),
        compact=_read(folder / "callwright_policy.json").get("prompt") == "compact",
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    return value if isinstance(value, dict) else {}


def _ids(value: Any) -> tuple[int, ...]:
    return tuple(one for one in (value if isinstance(value, list) else [value]) if type(one) is int)


def _vocabulary(config: dict[str, Any]) -> int | None:
    inner = config.get("text_config")
    for part in (config, inner if isinstance(inner, dict) else {}):
        if type(part.get("vocab_size")) is int:
            return int(part["vocab_size"])
    return None


def examine_tokenizer(
    tokenizer: Any, *, generation_ends: Iterable[int] = (), vocabulary: int | None = None, compact: bool = False
) -> DriftReport:
    """The report on a tokenizer.

    ``generation_ends``: end ids of the generation config. ``vocabulary``: rows of the model's embedding. ``compact``:
    the model was trained with a corpus's compact prompts, and needs no template.
    """
    examination = _Examination(tokenizer, tuple(generation_ends), vocabulary, compact)
    examination.run()
    order: dict[Severity, int] = {"error": 0, "warning": 1, "note": 2}
    return DriftReport(
        tuple(sorted(examination.findings, key=lambda finding: order[finding.severity])), examination.facts
    )


class _Examination:
    """One look at one tokenizer."""

    def __init__(self, tokenizer: Any, generation_ends: tuple[int, ...], vocabulary: int | None, compact: bool) -> None:
        self.tokenizer = tokenizer
        self.generation_ends = generation_ends
        self.vocabulary = vocabulary
        self.compact = compact
        self.codec = ChatCodec(tokenizer, ends=generation_ends)
        self.findings: list[Finding] = []
        self.facts: dict[str, Any] = {}

    def add(self, code: str, severity: Severity, found: str, meaning: str, advice: str) -> None:
        self.findings.append(Finding(code, severity, found, meaning, advice))

    def run(self) -> None:
        ends = sorted(self.codec.ends)
        self.facts = {
            "vocabulary": len(self.tokenizer),
            "template": bool(getattr(self.tokenizer, "chat_template", None)),
            "ends": {self.token(end): end for end in ends},
        }
        self.pads()
        self.sizes()
        self.texts()
        self.sampled()
        if not ends:
            self.add(
                "no_end_token",
                "error",
                "neither the tokenizer nor the generation config names an end token",
                "no completion can end itself: every one runs into its limit and counts as cut",
                "set eos_token in the tokenizer's config",
            )
        if self.facts["template"]:
            self.templated()
        elif not self.compact:
            self.add(
                "no_template",
                "warning",
                "the tokenizer has no chat template",
                "messages become plain text with blank lines between them; nothing tells the model whose turn it is",
                "train with the compact prompts of a corpus, or use a tokenizer with the template of its model",
            )

    def token(self, token: int) -> str:
        return str(self.tokenizer.decode([token], skip_special_tokens=False))

    def encode(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text, add_special_tokens=False))

    # The tokenizer ---------------------------------------------------------------------------------------------------

    def pads(self) -> None:
        pad, own = self.tokenizer.pad_token_id, self.tokenizer.eos_token_id
        if pad is None:
            self.add(
                "no_pad_token",
                "warning",
                "the tokenizer has no pad token",
                "the local trainer pads with an end token that is masked; other trainers refuse to make batches",
                "set pad_token to a token that is never sampled",
            )
        elif pad == own:
            self.add(
                "pad_is_end",
                "warning",
                f"the pad token is the end token, {self.token(pad)!r}",
                "trainers that find padding by its id leave the end of every completion out of the loss, so that the "
                "model unlearns to stop; trainers with a mask, such as the local one, do not",
                "set pad_token to another token that is never sampled",
            )

    def sizes(self) -> None:
        if self.vocabulary is not None and len(self.tokenizer) > self.vocabulary:
            self.add(
                "vocabulary_too_large",
                "error",
                f"the tokenizer has {len(self.tokenizer)} ids, the model {self.vocabulary} embeddings",
                "ids beyond the embeddings end training with an index error, or read memory that is not theirs",
                "resize the embeddings, or use the tokenizer that belongs to the model",
            )

    def texts(self) -> None:
        for text in _TEXTS:
            back = self.codec.text(self.encode(text))
            if back != text:
                at = next((i for i, (a, b) in enumerate(zip(text, back, strict=False)) if a != b), len(back))
                self.add(
                    "text_not_kept",
                    "error",
                    f"decoding does not give back what was encoded: {text[at : at + 20]!r} is {back[at : at + 20]!r}",
                    "demonstrations teach texts that no parser accepts, and rewards are computed of other texts than "
                    "the model wrote",
                    "switch off clean_up_tokenization_spaces and normalisation, or use a byte-level tokenizer",
                )
                return

    def sampled(self) -> None:
        special = set(self.tokenizer.all_special_ids)
        ordinary = [
            token for token in range(min(len(self.tokenizer), self.vocabulary or 1 << 60)) if token not in special
        ]
        if not ordinary:
            return
        rng = random.Random(0)
        changed = 0
        for _ in range(_SEQUENCES):
            ids = [ordinary[rng.randrange(len(ordinary))] for _ in range(_LENGTH)]
            changed += self.encode(self.codec.text(ids)) != ids
        self.facts["retokenised_otherwise"] = changed / _SEQUENCES
        if changed:
            self.add(
                "retokenisation",
                "note",
                f"{changed} of {_SEQUENCES} random sequences of {_LENGTH} ids become other ids when their text is "
                "tokenised again",
                "usual for subword tokenizers, and harmless where training keeps sampled ids, as here; trainers "
                "that tokenise completions again compute probabilities of tokens that were never sampled",
                "use rollouts that return token ids (vLLM: return_token_ids)",
            )

    # The template ----------------------------------------------------------------------------------------------------

    def templated(self) -> None:
        first = self.opening()
        if first is None:
            return
        self.control_tokens()
        self.begin_token(first)
        self.generation_prompt(first)
        if not self.turn_end(first):
            return
        self.tool_role(first)
        self.tools(first)
        self.prefixes(first)
        self.boundaries()

    def opening(self) -> list[Message] | None:
        """The messages that begin every conversation here: one of the system if there is that role, and a query."""
        user = Message(role="user", content="What is the weather in QUESTION?")
        system = Message(role="system", content="Use the INSTRUCTIONS.")
        for messages in ([system, user], [user]):
            text = self.render(messages)
            if text is not None and "QUESTION" in text and (len(messages) == 1 or "INSTRUCTIONS" in text):
                if len(messages) == 1:
                    self.add(
                        "no_system_role",
                        "warning",
                        "the template refuses or leaves out the message of the system",
                        "the instructions and the list of tools are put at the head of the user's first message where "
                        "the template refuses; where it leaves them out, the model never sees them",
                        "use a template that renders the role system",
                    )
                    if self.render([system, user]) is not None:
                        self.worsen("no_system_role")
                return messages
        self.add(
            "template_fails",
            "error",
            f"the template cannot render a message of the user: {self.failure}",
            "there is no prompt to train on",
            "use the template that belongs to the model",
        )
        return None

    def worsen(self, code: str) -> None:
        """A message that is dropped without a word is worse than one that is refused."""
        self.findings = [evolve(one, severity="error") if one.code == code else one for one in self.findings]

    failure = "the text of the message is not in what it renders"

    def render(self, messages: Sequence[Message], *, generation: bool = False, **options: Any) -> str | None:
        try:
            return self.codec.render(messages, generation=generation, **options)
        except Exception as error:  # a template raises whatever it likes
            self.failure = f"{type(error).__name__}: {error}"
            return None

    def control_tokens(self) -> None:
        own = self.tokenizer.eos_token_id
        if own is not None and self.encode(self.token(own)) != [own]:
            self.add(
                "control_as_text",
                "error",
                f"the tokenizer does not encode {self.token(own)!r} as the end token but as text",
                "the control tokens that the template writes reach the model spelt out, in characters",
                "load the tokenizer with split_special_tokens=False, or train with the compact prompts of a corpus",
            )

    def begin_token(self, first: list[Message]) -> None:
        begin = self.tokenizer.bos_token
        text = self.render(first)
        if begin is None or text is None:
            return
        added = list(self.tokenizer.encode("x"))[:1] == [self.tokenizer.bos_token_id]
        if added and text.startswith(begin):
            self.add(
                "two_begin_tokens",
                "note",
                f"the template writes {begin!r}, and so does the tokenizer by itself",
                "prompts here have one; programs that tokenise a rendered text with special tokens get two",
                "tokenise rendered texts with add_special_tokens=False",
            )
        elif added:
            self.add(
                "no_begin_token",
                "warning",
                f"the tokenizer puts {begin!r} before a text, but the template does not write it",
                "prompts through the template lack a token that the model was probably trained with",
                "add the token to the template, if the model's documentation shows it",
            )

    def generation_prompt(self, first: list[Message]) -> None:
        said = self.render([*first, Message(role="assistant", content="COMPLETION")])
        asked = self.render(first, generation=True)
        plain = self.render(first)
        if said is None or "COMPLETION" not in said or asked is None or plain is None:
            return
        before = said.partition("COMPLETION")[0]
        common = self.common(asked, plain)  # not all of plain: some templates end every text that asks for nothing more
        prompt = asked[len(common) :]
        left = before[len(asked) :] if before.startswith(asked) else ""
        header = asked[: asked.rfind("<think>")] if "<think>" in prompt else asked
        self.facts["generation_prompt"] = prompt
        if not before.startswith(header.rstrip()) and not before.rstrip().endswith(header[len(common) :].rstrip()):
            self.add(
                "other_generation_prompt",
                "warning",
                f"the generation prompt is {prompt!r}, but {before[len(common) :]!r} stands before an assistant's text",
                "completions begin after another text than the answers that a model of this template was shown",
                "have the block 'if add_generation_prompt' of the template write what stands before an answer",
            )
        elif left.strip() and prompt and "</think>" not in left:
            self.add(
                "short_generation_prompt",
                "warning",
                f"the template puts {left!r} before an assistant's text, and the generation prompt ends before it",
                "the model writes that itself, so it stands in the text that is parsed",
                "use a form of programs that allows for it, or complete the generation prompt of the template",
            )
        elif "</think>" in left and not self.codec.prefix_text:
            self.add(
                "empty_thought",
                "note",
                f"the template puts {left!r} before the text of an answer without a thought",
                "rollouts keep answers as they were sampled; a server that renders the conversation anew adds to them",
                "reward a think block in every turn, so that nothing is added",
            )
        elif left.strip() and not prompt:
            self.add(
                "no_generation_prompt",
                "error",
                f"the template puts {left!r} before an assistant's text, but the generation prompt does not have it",
                "completions begin outside of the assistant's turn: the model has to write the template's text first",
                "give the template the block 'if add_generation_prompt'",
            )
        if self.codec.prefix_text:
            self.add(
                "open_thought",
                "note",
                f"the generation prompt ends with {self.codec.prefix_text!r}: completions begin inside of a thought",
                "parsers are given the text with that prefix, and ids are left as they are; programs that parse the "
                "completion alone see a thought that is closed but never opened",
                "nothing, as long as the rewards read what rollouts hand them",
            )
        elif "<think>" in prompt:
            self.add(
                "closed_thought",
                "warning",
                f"the generation prompt ends with a thought that is already closed: {prompt!r}",
                "the model is told not to think, while most forms of programs begin with a think block",
                "switch thinking on (chat_template_options), or use a form without a think block",
            )

    def common(self, text: str, other: str) -> str:
        """The beginning that two texts share, whole tokens only."""
        ids, others = self.encode(text), self.encode(other)
        same = next(
            (i for i, (a, b) in enumerate(zip(ids, others, strict=False)) if a != b), min(len(ids), len(others))
        )
        return str(self.tokenizer.decode(ids[:same], skip_special_tokens=False, clean_up_tokenization_spaces=False))

    def turn_end(self, first: list[Message]) -> bool:
        """Look at how turns end; False if the template shows nothing of an assistant's turn."""
        said = self.render([*first, Message(role="assistant", content="COMPLETION")])
        if said is None or "COMPLETION" not in said:
            self.add(
                "assistant_text_changed",
                "error",
                f"the template does not render the text of an assistant's message: {self.failure}",
                "what follows a completion cannot be read off the template, so there are no turns after the first",
                "use the template that belongs to the model",
            )
            return False
        special = set(self.tokenizer.all_special_ids) | set(getattr(self.tokenizer, "added_tokens_decoder", ()))
        closing = said.rpartition("COMPLETION")[2]
        try:
            following = self.codec.following([Message(role="user", content="NEXT")])
        except DataError:
            following = closing
        self.facts["turn_end"] = self.common(following, closing)
        # The end of a turn that something follows; some models write it as the beginning of that which follows.
        ids = [next((token for token in self.encode(text) if token in special), -1) for text in (following, closing)]
        if -1 not in ids and ids[0] != ids[1]:
            self.add(
                "turn_end_changes",
                "warning",
                f"a turn ends with {self.token(ids[1])!r}, and with {self.token(ids[0])!r} once something follows it",
                "rollouts keep the token that was sampled; a server that renders the conversation anew replaces it",
                "serve with the ids that were sampled",
            )
        ids += self.encode(self.facts["turn_end"])
        ends = self.codec.ends
        if any(token in ends for token in ids):
            first_end = next(token for token in ids if token in ends)
            if self.generation_ends and first_end not in self.generation_ends:
                self.add(
                    "end_not_in_generation_config",
                    "warning",
                    f"the template ends a turn with {self.token(first_end)!r}, which is not in the generation config",
                    "engines that read only the generation config write on after the turn",
                    f"add {first_end} to eos_token_id of generation_config.json",
                )
            return True
        named = ", ".join(repr(self.token(end)) for end in sorted(ends)) or "none"
        control = ids[0]
        if control >= 0:
            self.add(
                "wrong_end_token",
                "error",
                f"the template ends a turn with {self.token(control)!r}, but sampling stops at {named}",
                "the model writes on after its turn, as the user or a tool, until the length limit cuts it",
                f"set eos_token to {self.token(control)!r}, or add {control} to eos_token_id of generation_config.json",
            )
        elif ends:
            self.add(
                "no_end_in_template",
                "warning",
                f"the template ends a turn with {closing!r}, which holds none of the end tokens ({named})",
                "completions end with a token that the model never saw at the end of a turn, unless it was trained to",
                "have the template write the end token after an assistant's text",
            )
        return True

    def tool_role(self, first: list[Message]) -> None:
        said = [*first, Message(role="assistant", content=_CALL), Message(role="tool", content=_RESULT)]
        text = self.render(said)
        if self.codec.observation_role == "user":
            why = "does not render it" if text is not None else f"refuses it ({self.failure})"
            self.add(
                "no_tool_role",
                "warning",
                f"the template has no role 'tool': it {why}",
                "results of calls become messages of the user with <tool_response> lines, in training as in evaluation",
                "serve the model in the same way, or use a template with the role",
            )
        elif text is not None and "tool" not in str(self.tokenizer.chat_template):
            self.add(
                "tool_role_by_name",
                "note",
                "the template knows nothing of the role 'tool': it writes any role by its name",
                "results of calls come in a turn named 'tool', which the model may never have seen",
                "ask for messages of the user instead, if the model was trained so (observation_role = 'user')",
            )

    def tools(self, first: list[Message]) -> None:
        text = self.render(first, tools=[_TOOL])
        self.facts["tools_in_template"] = text is not None and "get_weather" in text
        if not self.facts["tools_in_template"]:
            self.add(
                "tools_not_rendered",
                "note",
                "the template does not show tools that it is given",
                "prompts list the tools in the system message, which is the default; tools_in_template is refused",
                "leave tools_in_template off",
            )

    def prefixes(self, first: list[Message]) -> None:
        role = self.codec.observation_role
        result: Message = (
            Message(role="tool", content=_RESULT)
            if role == "tool"
            else Message(role="user", content=f"<tool_response>\n{_RESULT}\n</tool_response>")
        )
        again = Message(role="user", content="And tomorrow?")
        thought = f"<think>\n{_THOUGHT}\n</think>\n\n"
        plain = self.drift([*first, _said(_CALL), result, _said(_ANSWER), again, _said(_ANSWER)])
        if plain is not None:
            self.add(
                "prefix_drift",
                "warning",
                f"rendering one more message changes what stands before it: {plain}",
                "rollouts keep the ids of earlier turns, so training is consistent; a server that renders the "
                "conversation anew shows the model other contexts than it was trained in",
                "serve with the ids that were sampled, or use a template that only adds to the end",
            )
        thoughtful = [
            *first,
            _said(thought + _CALL),
            result,
            _said(thought + _ANSWER),
            again,
            _said(thought + _ANSWER),
        ]
        lost = self.lost_thought(thoughtful)
        if lost is not None:
            self.add(
                "thought_stripping",
                "warning",
                f"the template takes thoughts out of earlier turns: {lost}",
                "in rollouts the model goes on seeing its thoughts; a server that renders the conversation anew shows "
                "it a conversation without them",
                "serve with the ids that were sampled, or switch stripping off (chat_template_options), or train "
                "single turns",
            )

    def drift(self, messages: Sequence[Message]) -> str | None:
        before: str | None = None
        for count in range(1, len(messages) + 1):
            text = self.render(messages[:count])
            if text is not None and before is not None and not text.startswith(before):
                at = next((i for i, (a, b) in enumerate(zip(before, text, strict=False)) if a != b), len(text))
                role = messages[count - 1]["role"]
                return (
                    f"with message {count} ({role}), {before[at - 10 if at > 10 else 0 : at + 30]!r} becomes "
                    f"{text[at - 10 if at > 10 else 0 : at + 30]!r}"
                )
            # Up to the end of the last message: what follows it depends on whether anything does.
            said = messages[count - 1]["content"]
            before = None if text is None or said not in text else text[: text.rindex(said) + len(said)]
        return None

    def lost_thought(self, messages: Sequence[Message]) -> str | None:
        seen = 0
        for count in range(1, len(messages) + 1):
            text = self.render(messages[:count])
            if text is None:
                continue
            written = text.count("THOUGHT")
            said = sum("THOUGHT" in message["content"] for message in messages[:count])
            if written < seen or written < said:
                last = messages[count - 1]["role"]
                return f"of {said} thoughts in {count} messages, the last of them the {last}'s, {written} are left"
            seen = written
        return None

    def boundaries(self) -> None:
        prompt = str(self.facts.get("generation_prompt", ""))
        closing = str(self.facts.get("turn_end", ""))
        for text in ("<think>\nSo", "Hello", '{"0"', _CALL):
            for left, right, where in ((prompt, text, "before"), (text, closing, "after")):
                if left and right and self.encode(left + right) != self.encode(left) + self.encode(right):
                    self.add(
                        "boundary_drift",
                        "warning",
                        f"{left[-20:]!r} and {right[:20]!r} are tokenised otherwise together than apart ({where} a "
                        "completion)",
                        "what the model samples at this place is not what tokenising the whole conversation gives, so "
                        "that demonstrations, servers and rollouts disagree on a token",
                        "have the template end there with a special token or a line break that never merges",
                    )
                    return


def _said(text: str) -> Message:
    return Message(role="assistant", content=text)
