"""Names of people, places and companies from which scenarios are drawn. All of them are invented or common."""

from __future__ import annotations

from random import Random
from typing import Final

FIRST: Final = tuple(
    "Ada Amir Anika Arjun Aurora Bao Beatriz Bela Bram Carmen Cedric Chiara Dario Diego Dora Elif Emil Esra Farah "
    "Felix Fiona Gita Goran Hana Hugo Ida Ilya Ines Ivo Jana Jonas Juno Kaito Karim Kofi Lara Leon Lin Luka Maja "
    "Malik Marta Mateo Mei Milan Nadia Nils Noor Olga Omar Otto Paula Pavel Priya Quinn Rafael Rana Remy Rosa Sami "
    "Sara Selma Simon Sofia Tariq Tessa Theo Tomas Uma Vera Viktor Wanda Xenia Yara Yusuf Zara Zeno".split()
)
LAST: Final = tuple(
    "Abel Adeyemi Andersen Aoki Baker Banerjee Becker Berg Bianchi Blanc Bosch Castro Chen Cohen Costa Dahl Diaz "
    "Dubois Eriksen Farkas Ferrari Fischer Fontaine Garcia Goldberg Gupta Haas Haddad Hansen Horvath Ibrahim Ito "
    "Ivanov Jansen Jensen Kaya Keller Khan Kim Kovacs Kowalski Laurent Lehmann Lopez Lund Maier Martin Mensah Meyer "
    "Moreau Mori Nagy Nakamura Nguyen Novak Okafor Olsen Ortiz Park Patel Peeters Petrov Popescu Ramos Rao Rossi "
    "Sato Schmidt Silva Singh Sousa Tanaka Toth Vargas Virtanen Vogel Weber Wong Yilmaz Zhang".split()
)
CITIES: Final = tuple(
    "Arnsberg,Bellport,Brightwater,Calder,Dunmore,Eastvale,Fernhill,Glenford,Harrow Bay,Isleworth,Juniper Falls,"
    "Kingsbridge,Larkspur,Maplewood,Northgate,Oakridge,Pinehurst,Queensferry,Ravenna,Silverlake,Thornbury,Umbria,"
    "Valmont,Westbrook,Yarrow".split(",")
)
COMPANIES: Final = tuple(
    "Acorn Atlas Beacon Birch Cobalt Comet Delta Ember Falcon Garnet Harbor Indigo Juniper Kestrel Lumen Meridian "
    "Nimbus Onyx Orchid Pioneer Quartz Redwood Saffron Summit Tundra Umber Vertex Willow Zephyr".split()
)
_KINDS: Final = ("Labs", "Works", "Trading", "Foods", "Systems", "Partners", "Studio", "Logistics")


def person(rng: Random) -> tuple[str, str]:
    """First and last name."""
    return rng.choice(FIRST), rng.choice(LAST)


def full_name(rng: Random) -> str:
    """``Ada Berg``."""
    return " ".join(person(rng))


def company(rng: Random) -> str:
    """``Cobalt Foods``."""
    return f"{rng.choice(COMPANIES)} {rng.choice(_KINDS)}"


def email_of(first: str, last: str, number: int, domain: str = "example.com") -> str:
    """An address that no two numbers share: ``ada.berg17@example.com``."""
    return f"{first}.{last}{number}@{domain}".lower()
