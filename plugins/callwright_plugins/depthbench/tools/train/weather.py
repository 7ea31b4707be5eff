"""Weather, air and sun of a city on a day. Values depend on the city, the season and the day."""

from __future__ import annotations

import math
from datetime import date
from typing import Final

from typing_extensions import TypedDict

from callwright_plugins.depthbench.toolkit import CityName, Clock, Day, Domain, clock, the_city, the_day
from callwright_plugins.depthbench.world import City, roll

DOMAIN: Final = Domain("weather")
_CONDITIONS: Final = ("sunny", "partly cloudy", "overcast", "light rain", "heavy rain", "windy", "foggy", "clear")


class Weather(TypedDict):
    """The weather of a day."""

    city: CityName
    date: Day
    high_celsius: int
    low_celsius: int
    condition: str
    wind_kmh: int


class AirQuality(TypedDict):
    """The air of a day."""

    city: CityName
    date: Day
    index: int
    category: str


class UvIndex(TypedDict):
    """The sun's strength on a day."""

    city: CityName
    date: Day
    index: int
    advice: str


class Pollen(TypedDict):
    """Grains per cubic metre."""

    city: CityName
    date: Day
    grass: int
    tree: int
    level: str


class Rain(TypedDict):
    """Rain of a day."""

    city: CityName
    date: Day
    chance_percent: int
    millimetres: float


class SunTimes(TypedDict):
    """Sunrise and sunset."""

    city: CityName
    date: Day
    sunrise: Clock
    sunset: Clock


def _season(city: City, day: date) -> float:
    """1 in the middle of summer, -1 in the middle of winter."""
    wave = -math.cos(2 * math.pi * (day.timetuple().tm_yday - 10) / 365)
    return wave if city.latitude >= 0 else -wave


def _place(city: str, day: str) -> tuple[City, date]:
    return the_city(city), the_day(day)


@DOMAIN.tool("information")
def get_weather(city: CityName, date: Day) -> Weather:
    """Temperatures, condition and wind in a city on a date."""
    place, day = _place(city, date)
    seed = roll(f"weather/{city}/{date}", 1 << 30)
    mean = 24 - abs(place.latitude) * 0.32 + _season(place, day) * abs(place.latitude) * 0.2 - place.elevation / 250
    high = round(mean + 4 + seed % 9 - 4)
    return {
        "city": city,
        "date": date,
        "high_celsius": high,
        "low_celsius": high - 5 - seed // 9 % 7,
        "condition": _CONDITIONS[seed // 63 % 8],
        "wind_kmh": 3 + seed // 504 % 45,
    }


@DOMAIN.tool("information")
def get_air_quality(city: CityName, date: Day) -> AirQuality:
    """Air quality index (0 to 300) of a city on a date, with its category."""
    place, _ = _place(city, date)
    index = 12 + roll(f"air/{city}/{date}", 110) + min(60, place.population // 200)
    category = "good" if index <= 50 else "moderate" if index <= 100 else "unhealthy"
    return {"city": city, "date": date, "index": index, "category": category}


@DOMAIN.tool("information")
def get_uv_index(city: CityName, date: Day) -> UvIndex:
    """UV index (0 to 12) of a city on a date, with advice."""
    place, day = _place(city, date)
    index = max(
        0, min(12, round(6.5 - abs(place.latitude) * 0.06 + _season(place, day) * 3 + roll(f"uv/{city}/{date}", 4)))
    )
    advice = "no protection needed" if index < 3 else "wear sunscreen" if index < 7 else "stay in the shade at noon"
    return {"city": city, "date": date, "index": index, "advice": advice}


@DOMAIN.tool("information")
def get_pollen_count(city: CityName, date: Day) -> Pollen:
    """Grass and tree pollen of a city on a date."""
    _place(city, date)
    seed = roll(f"pollen/{city}/{date}", 1 << 20)
    grass, tree = seed % 120, seed // 120 % 300
    return {
        "city": city,
        "date": date,
        "grass": grass,
        "tree": tree,
        "level": "low" if grass + tree < 90 else "medium" if grass + tree < 250 else "high",
    }


@DOMAIN.tool("information")
def get_rain_forecast(city: CityName, date: Day) -> Rain:
    """Chance and amount of rain in a city on a date."""
    _place(city, date)
    seed = roll(f"rain/{city}/{date}", 1 << 20)
    return {
        "city": city,
        "date": date,
        "chance_percent": seed % 101,
        "millimetres": round(seed % 101 * (seed // 101 % 37) / 100, 1),
    }


@DOMAIN.tool("information")
def get_sun_times(city: CityName, date: Day) -> SunTimes:
    """Sunrise and sunset in a city on a date, in local time."""
    place, day = _place(city, date)
    half = 360 + _season(place, day) * abs(place.latitude) * 3.4
    noon = 720 + round((place.offset * 15 - place.longitude) * 4)
    return {"city": city, "date": date, "sunrise": clock(round(noon - half)), "sunset": clock(round(noon + half))}
