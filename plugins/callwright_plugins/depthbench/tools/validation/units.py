"""Units of measurement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from typing_extensions import TypedDict

from callwright_plugins.depthbench.toolkit import Domain, fail, says

DOMAIN: Final = Domain("units")
Value = Annotated[float, says(minimum=-1e9, maximum=1e9)]
Positive = Annotated[float, says(minimum=0, maximum=1e9)]

#: Unit -> how many of the first of its kind it holds.
LENGTH: Final = {"metres": 1.0, "kilometres": 1000.0, "miles": 1609.344, "feet": 0.3048, "inches": 0.0254}
MASS: Final = {"kilograms": 1.0, "grams": 0.001, "pounds": 0.45359237, "ounces": 0.028349523125, "stone": 6.35029318}
VOLUME: Final = {
    "litres": 1.0,
    "millilitres": 0.001,
    "cups": 0.2365882365,
    "pints": 0.473176473,
    "gallons": 3.785411784,
}
SPEED: Final = {"km/h": 1.0, "mph": 1.609344, "knots": 1.852, "m/s": 3.6}
AREA: Final = {"square metres": 1.0, "hectares": 10_000.0, "acres": 4046.8564224, "square feet": 0.09290304}
TEMPERATURE: Final = ("celsius", "fahrenheit", "kelvin")

LengthUnit = Literal["metres", "kilometres", "miles", "feet", "inches"]
MassUnit = Literal["kilograms", "grams", "pounds", "ounces", "stone"]
VolumeUnit = Literal["litres", "millilitres", "cups", "pints", "gallons"]
SpeedUnit = Literal["km/h", "mph", "knots", "m/s"]
AreaUnit = Literal["square metres", "hectares", "acres", "square feet"]
TemperatureUnit = Literal["celsius", "fahrenheit", "kelvin"]


class Converted(TypedDict):
    """A value in another unit."""

    value: float
    source: str
    target: str
    result: float


def _convert(value: float, source: str, target: str, sizes: Mapping[str, float]) -> Converted:
    if source == target:
        fail("same_unit", f"both units are {source}")
    return {
        "value": value,
        "source": source,
        "target": target,
        "result": round(value * sizes[source] / sizes[target], 4),
    }


@DOMAIN.tool("information", "result")
def convert_length(value: Positive, source: LengthUnit, target: LengthUnit) -> Converted:
    """A length in another unit."""
    return _convert(value, source, target, LENGTH)


@DOMAIN.tool("information", "result")
def convert_mass(value: Positive, source: MassUnit, target: MassUnit) -> Converted:
    """A mass in another unit."""
    return _convert(value, source, target, MASS)


@DOMAIN.tool("information", "result")
def convert_volume(value: Positive, source: VolumeUnit, target: VolumeUnit) -> Converted:
    """A volume in another unit."""
    return _convert(value, source, target, VOLUME)


@DOMAIN.tool("information", "result")
def convert_speed(value: Positive, source: SpeedUnit, target: SpeedUnit) -> Converted:
    """A speed in another unit."""
    return _convert(value, source, target, SPEED)


@DOMAIN.tool("information", "result")
def convert_area(value: Positive, source: AreaUnit, target: AreaUnit) -> Converted:
    """An area in another unit."""
    return _convert(value, source, target, AREA)


@DOMAIN.tool("information", "result")
def convert_temperature(value: Value, source: TemperatureUnit, target: TemperatureUnit) -> Converted:
    """A temperature in another unit."""
    if source == target:
        fail("same_unit", f"both units are {source}")
    celsius = {"celsius": value, "fahrenheit": (value - 32) / 1.8, "kelvin": value - 273.15}[source]
    result = {"celsius": celsius, "fahrenheit": celsius * 1.8 + 32, "kelvin": celsius + 273.15}[target]
    return {"value": value, "source": source, "target": target, "result": round(result, 4)}
