"""Parameters that several tools of the calendar take."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

EventId = Annotated[str, Field(description="Id of an event, such as E00012.", min_length=1, max_length=40)]
Moment = Annotated[
    str,
    Field(
        description="ISO 8601 time such as 2026-03-02T14:00; without an offset it is a local time of the time zone.",
        min_length=1,
        max_length=40,
    ),
]
OptionalMoment = Annotated[str, Field(description="ISO 8601 time, or empty for the default.", max_length=40)]
OccurrenceStart = Annotated[
    str,
    Field(description="occurrence_start of one occurrence of a series; empty: the event as a whole.", max_length=40),
]
ZoneName = Annotated[str, Field(description="IANA time zone; empty: the default one.", max_length=60)]
PersonName = Annotated[str, Field(description="Id or email address of a person, or me.", min_length=1, max_length=120)]
People = Annotated[
    list[PersonName], Field(description="Ids or email addresses of people; me is the signed-in person.", max_length=20)
]
AllowConflict = Annotated[bool, Field(description="Go on although the signed-in person is busy then.")]
