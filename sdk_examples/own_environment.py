"""Tools of your own as plain typed functions, a task, and a score. Run: python sdk_examples/own_environment.py"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import callwright as cw

City = Literal["Lima", "Oslo", "Rome"]
Day = Literal["Monday", "Tuesday"]
WARMTH = {"Lima": 19, "Oslo": 4, "Rome": 23}


@dataclass(frozen=True)
class Forecast:
    """What a forecast says."""

    city: City
    day: Day
    degrees: int


@cw.tool(read_only=True)
def get_forecast(city: City, day: Day) -> Forecast:
    """Weather forecast for a city on a day."""
    return Forecast(city, day, WARMTH[city] + (2 if day == "Tuesday" else 0))


@cw.tool(read_only=True)
def warmest(forecasts: list[Forecast]) -> Forecast:
    """The warmest of several forecasts."""
    if not forecasts:
        raise cw.ToolError("no_forecasts", "there is nothing to compare")
    return max(forecasts, key=lambda forecast: forecast.degrees)


weather = cw.environment("weather", tools=[get_forecast, warmest])
task = cw.Task(
    id="warmest-1",
    query="Where will it be warmer on Tuesday, in Oslo or in Rome?",
    tools=weather.tools,
    answer=cw.Answer(({"city": "Rome", "day": "Tuesday", "degrees": 25},)),
    environment=weather,
    depth=3,
)
COMPLETION = """<think>Two forecasts, then compare them.</think>
<tool_call return="one">
{"0": {"get_forecast": {"city": "Oslo", "day": "Tuesday"}},
 "1": {"get_forecast": {"city": "Rome", "day": "Tuesday"}},
 "2": {"warmest": {"forecasts": ["API_RESPONSE_0", "API_RESPONSE_1"]}}}
</tool_call>"""

if __name__ == "__main__":
    print(weather.tools["warmest"].parameters)
    print(cw.reward("tier").score(task, COMPLETION).explain())
    print(cw.reward("tier").score(task, COMPLETION.replace('"Oslo"', '"Olso"')).explain())
