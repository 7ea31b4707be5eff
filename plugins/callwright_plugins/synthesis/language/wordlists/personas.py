"""Who speaks: a few lines about somebody, and their habits."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from callwright_plugins.synthesis.language.wordlists.frames import Register


@frozen
class Persona:
    """Somebody with habits: ``greets`` and ``thanks`` are shares, ``typos`` the share of queries with one.

    ``about`` is what a model that plays this person is told; habits of its own queries follow from the other fields.
    """

    name: str
    about: str
    register: Register
    greets: float = 0.3
    thanks: float = 0.3
    typos: float = 0.0
    lower: bool = False
    counts: bool = False
    background: float = 0.15
    corrects: float = 0.05
    says_days: float = 0.7


PERSONAS: Final = (
    Persona("brisk manager", "You run a small team and never have time. You ask for one thing in few words and do not "
            "greet.", "plain", greets=0.05, thanks=0.1, background=0.02),
    Persona("careful clerk", "You work in an office and write as in a letter. You say every detail and always thank.",
            "formal", greets=0.7, thanks=0.8, says_days=0.9),
    Persona("tired student", "You write on your phone late at night, in small letters and with slips.", "casual",
            greets=0.2, thanks=0.2, typos=0.5, lower=True, counts=True),
    Persona("chatty neighbour", "You explain yourself before you ask, and you are friendly to everybody.", "casual",
            greets=0.8, thanks=0.6, background=0.6),
    Persona("retired teacher", "You write in whole sentences, spell small numbers out, and dislike short forms.",
            "formal", greets=0.6, thanks=0.7, counts=True, says_days=1.0),
    Persona("engineer", "You state facts and ids as they are, days in digits, and leave out what is not needed.",
            "plain", greets=0.1, thanks=0.15, says_days=0.05, background=0.05),
    Persona("shop owner", "You do three things at once and change your mind while you write.", "plain", greets=0.3,
            thanks=0.4, typos=0.2, corrects=0.3, background=0.3),
    Persona("newcomer", "You are new to all of this and ask politely whether a thing can be done.", "plain",
            greets=0.6, thanks=0.7, background=0.3, counts=True),
    Persona("old friend", "You write as to somebody whom you have known for years.", "casual", greets=0.5, thanks=0.3,
            counts=True),
    Persona("consultant", "You are polite, exact and a little stiff.", "formal", greets=0.5, thanks=0.6),
    Persona("parent on the run", "You hold a child in one arm and type with the other hand.", "casual", greets=0.1,
            thanks=0.3, typos=0.6, lower=True, background=0.2),
    Persona("researcher", "You number your steps in your head and say which result you mean.", "plain", greets=0.2,
            thanks=0.4, says_days=0.5),
)  # fmt: skip
#: Sentences before a request. They hold no fact that a program needs.
GREETINGS: Final = {
    "plain": ("hello.", "hi.", "hello there.", "good morning.", "good afternoon.", "good evening.", "hi there!"),
    "formal": ("good day.", "dear Sir or Madam.", "good morning.", "good afternoon.", "dear assistant.", "greetings."),
    "casual": ("hey!", "hey there!", "hi!", "heya.", "yo!", "hiya!", "hey hey.", "morning!", "evening!"),
}
BACKGROUND: Final = (
    "I have been meaning to do this for a week.",
    "I am a little short of time.",
    "Somebody reminded me of this today.",
    "This is for a colleague.",
    "I am tidying up today.",
    "I was asked to sort this out.",
    "It has been a long day.",
    "I promised to look after this.",
    "I am getting things in order.",
    "I would do it myself, but I am on a train.",
    "My partner asked me about this.",
    "This has waited long enough.",
    "I am going through my list.",
    "I want this off my desk.",
    "There is no hurry.",
    "It is rather urgent.",
)
THANKS: Final = {
    "plain": ("thanks.", "thank you.", "thanks a lot.", "thank you very much.", "many thanks.", "that is all."),
    "formal": ("thank you in advance.", "with kind regards.", "I thank you for your help.", "thank you very much.",
               "with many thanks.", "yours sincerely."),
    "casual": ("thanks!", "thx!", "cheers!", "ta!", "you're the best!", "thanks a bunch!", "appreciate it!", "ty!"),
}  # fmt: skip
