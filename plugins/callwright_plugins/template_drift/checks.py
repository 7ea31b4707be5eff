"""Everything that is looked for, as a table: code, severity, the look itself, what it means for training, what to do.

A check belongs to a stage, and is made only if the template gets that far: ``tokenizer`` always, ``template`` if there
is one, ``opening`` if it can render how a conversation begins, ``turns`` if it shows what an assistant said. Within a
severity, findings are told in the order of this table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from attrs import frozen

from callwright.training.model_check import Severity
from callwright_plugins.template_drift import history, prompts, turns, vocabulary
from callwright_plugins.template_drift.examined import Examined
from callwright_plugins.template_drift.seen import Seen

Stage = Literal["tokenizer", "template", "opening", "turns"]


@frozen
class Check:
    """One thing that may be wrong. ``advice`` may have places for the values of what was seen."""

    stage: Stage
    severity: Severity
    look: Callable[[Examined], Seen | None]
    meaning: str
    advice: str

    @property
    def code(self) -> str:
        """The stable name of the finding: that of the function that looks for it."""
        return self.look.__name__


CHECKS: Final = (
    Check(
        "tokenizer",
        "warning",
        vocabulary.no_pad_token,
        "the local trainer pads with an end token that is masked; other trainers refuse to make batches",
        "set pad_token to a token that is never sampled",
    ),
    Check(
        "tokenizer",
        "warning",
        vocabulary.pad_is_end,
        "trainers that find padding by its id leave the end of every completion out of the loss, so that the model "
        "unlearns to stop; trainers with a mask, such as the local one, do not",
        "set pad_token to another token that is never sampled",
    ),
    Check(
        "tokenizer",
        "error",
        vocabulary.vocabulary_too_large,
        "ids beyond the embeddings end training with an index error, or read memory that is not theirs",
        "resize the embeddings, or use the tokenizer that belongs to the model",
    ),
    Check(
        "tokenizer",
        "error",
        vocabulary.text_not_kept,
        "demonstrations teach texts that no parser accepts, and rewards are computed of other texts than the model "
        "wrote",
        "switch off clean_up_tokenization_spaces and normalisation, or use a byte-level tokenizer",
    ),
    Check(
        "tokenizer",
        "note",
        vocabulary.retokenisation,
        "usual for subword tokenizers, and harmless where training keeps sampled ids, as here; trainers that tokenise "
        "completions again compute probabilities of tokens that were never sampled",
        "use rollouts that return token ids (vLLM: return_token_ids)",
    ),
    Check(
        "tokenizer",
        "error",
        vocabulary.no_end_token,
        "no completion can end itself: every one runs into its limit and counts as cut",
        "set eos_token in the tokenizer's config",
    ),
    Check(
        "tokenizer",
        "warning",
        vocabulary.no_template,
        "messages become plain text with blank lines between them; nothing tells the model whose turn it is",
        "train with the compact prompts of a corpus, or use a tokenizer with the template of its model",
    ),
    Check(
        "template",
        "error",
        prompts.template_fails,
        "there is no prompt to train on",
        "use the template that belongs to the model",
    ),
    Check(
        "opening",
        "warning",  # an error where the message is dropped without a word
        prompts.no_system_role,
        "the instructions and the list of tools are put at the head of the user's first message where the template "
        "refuses; where it leaves them out, the model never sees them",
        "use a template that renders the role system",
    ),
    Check(
        "opening",
        "error",
        vocabulary.control_as_text,
        "the control tokens that the template writes reach the model spelt out, in characters",
        "load the tokenizer with split_special_tokens=False, or train with the compact prompts of a corpus",
    ),
    Check(
        "opening",
        "note",
        prompts.two_begin_tokens,
        "prompts here have one; programs that tokenise a rendered text with special tokens get two",
        "tokenise rendered texts with add_special_tokens=False",
    ),
    Check(
        "opening",
        "warning",
        prompts.no_begin_token,
        "prompts through the template lack a token that the model was probably trained with",
        "add the token to the template, if the model's documentation shows it",
    ),
    Check(
        "opening",
        "warning",
        prompts.other_generation_prompt,
        "completions begin after another text than the answers that a model of this template was shown",
        "have the block 'if add_generation_prompt' of the template write what stands before an answer",
    ),
    Check(
        "opening",
        "warning",
        prompts.short_generation_prompt,
        "the model writes that itself, so it stands in the text that is parsed",
        "use a form of programs that allows for it, or complete the generation prompt of the template",
    ),
    Check(
        "opening",
        "note",
        prompts.empty_thought,
        "rollouts keep answers as they were sampled; a server that renders the conversation anew adds to them",
        "reward a think block in every turn, so that nothing is added",
    ),
    Check(
        "opening",
        "error",
        prompts.no_generation_prompt,
        "completions begin outside of the assistant's turn: the model has to write the template's text first",
        "give the template the block 'if add_generation_prompt'",
    ),
    Check(
        "opening",
        "note",
        prompts.open_thought,
        "parsers are given the text with that prefix, and ids are left as they are; programs that parse the completion "
        "alone see a thought that is closed but never opened",
        "nothing, as long as the rewards read what rollouts hand them",
    ),
    Check(
        "opening",
        "warning",
        prompts.closed_thought,
        "the model is told not to think, while most forms of programs begin with a think block",
        "switch thinking on (chat_template_options), or use a form without a think block",
    ),
    Check(
        "opening",
        "error",
        turns.assistant_text_changed,
        "what follows a completion cannot be read off the template, so there are no turns after the first",
        "use the template that belongs to the model",
    ),
    Check(
        "turns",
        "warning",
        turns.turn_end_changes,
        "rollouts keep the token that was sampled; a server that renders the conversation anew replaces it",
        "serve with the ids that were sampled",
    ),
    Check(
        "turns",
        "warning",
        turns.end_not_in_generation_config,
        "engines that read only the generation config write on after the turn",
        "add {number} to eos_token_id of generation_config.json",
    ),
    Check(
        "turns",
        "error",
        turns.wrong_end_token,
        "the model writes on after its turn, as the user or a tool, until the length limit cuts it",
        "set eos_token to {token}, or add {number} to eos_token_id of generation_config.json",
    ),
    Check(
        "turns",
        "warning",
        turns.no_end_in_template,
        "completions end with a token that the model never saw at the end of a turn, unless it was trained to",
        "have the template write the end token after an assistant's text",
    ),
    Check(
        "turns",
        "warning",
        turns.no_tool_role,
        "results of calls become messages of the user with <tool_response> lines, in training as in evaluation",
        "serve the model in the same way, or use a template with the role",
    ),
    Check(
        "turns",
        "note",
        turns.tool_role_by_name,
        "results of calls come in a turn named 'tool', which the model may never have seen",
        "ask for messages of the user instead, if the model was trained so (observation_role = 'user')",
    ),
    Check(
        "turns",
        "note",
        turns.tools_not_rendered,
        "prompts list the tools in the system message, which is the default; tools_in_template is refused",
        "leave tools_in_template off",
    ),
    Check(
        "turns",
        "warning",
        history.prefix_drift,
        "rollouts keep the ids of earlier turns, so training is consistent; a server that renders the conversation "
        "anew shows the model other contexts than it was trained in",
        "serve with the ids that were sampled, or use a template that only adds to the end",
    ),
    Check(
        "turns",
        "warning",
        history.thought_stripping,
        "in rollouts the model goes on seeing its thoughts; a server that renders the conversation anew shows it a "
        "conversation without them",
        "serve with the ids that were sampled, or switch stripping off (chat_template_options), or train single turns",
    ),
    Check(
        "turns",
        "warning",
        history.boundary_drift,
        "what the model samples at this place is not what tokenising the whole conversation gives, so that "
        "demonstrations, servers and rollouts disagree on a token",
        "have the template end there with a special token or a line break that never merges",
    ),
)
