"""Who the month is about: four tenants, their people, keys, adapters, and what their programs ask on a working day."""

from dataclasses import dataclass
from typing import Final

from tenants.models import Role


@dataclass(frozen=True)
class Person:
    """name: before the @ of their address."""

    name: str
    role: Role


@dataclass(frozen=True)
class Key:
    """person: who issued it. models: what it is held to; None: anything."""

    name: str
    person: str
    models: tuple[str, ...] | None = None
    hidden: bool = False


@dataclass(frozen=True)
class Upload:
    """A version of an adapter. folder: of examples/adapters. days_ago: when it came; None: on the first day. claims: a
    rank that its config states and its tensors do not have, so that the check refuses it."""

    adapter: str
    folder: str
    person: str
    days_ago: int | None = None
    claims: int | None = None


@dataclass(frozen=True)
class Stream:
    """What one program asks. model: an adapter, `owner/adapter`, or the empty text for the base model. a_day: requests
    on a working day. prompt, completion: tokens in the middle. cached: the part of a prompt that is known already.
    peak: the hour (UTC) around which it is busiest. weekend: times a working day."""

    key: str
    model: str
    a_day: float
    prompt: int
    completion: int
    cached: float
    peak: float = 11.0
    weekend: float = 0.3


@dataclass(frozen=True)
class Spike:
    """Yesterday's: so many requests more of one stream, each so many times as long."""

    stream: Stream
    requests: int
    longer: float


@dataclass(frozen=True)
class Company:
    """rates: per million tokens of input, cached input, output, and what an adapter costs on top of each."""

    slug: str
    name: str
    address: str
    zone: str
    people: tuple[Person, ...]
    keys: tuple[Key, ...]
    uploads: tuple[Upload, ...]
    streams: tuple[Stream, ...]
    rates: tuple[str, str, str, str]
    spike: Spike | None = None

    @property
    def owner(self) -> Person:
        return self.people[0]

    def email(self, name: str) -> str:
        return f"{name}@{self.slug}.example"

    @property
    def password_name(self) -> str:
        return f"{self.slug}_password"


_NEWSLETTER: Final = Stream("newsletter", "headlines", 22, 240, 130, 0.2, peak=6.5, weekend=0.2)

NORTHWIND: Final = Company(
    "northwind", "Northwind Support", "12 Harbour Street\nBristol", "Europe/London",
    (
        Person("maya", Role.OWNER), Person("tom", Role.DEVELOPER), Person("ines", Role.BILLING),
        Person("olu", Role.VIEWER),
    ),
    (
        Key("web chat", "maya"), Key("ticket sorter", "tom", ("ticket-json",)), Key("reports", "tom"),
        Key("old chat", "maya"),
    ),
    (
        Upload("support-bot", "pirate", "maya"), Upload("ticket-json", "json", "tom"),
        Upload("support-bot", "shout", "tom", days_ago=2),
    ),
    (
        Stream("web chat", "support-bot", 115, 640, 110, 0.72, peak=14.0, weekend=0.6),
        Stream("web chat", "", 18, 420, 150, 0.45, peak=14.0, weekend=0.6),
        Stream("ticket sorter", "ticket-json", 52, 380, 55, 0.55),
        Stream("reports", "harbor/sql-writer", 14, 900, 90, 0.6, peak=8.0, weekend=0.0),
    ),
    ("12", "3", "36", "2"),
)  # fmt: skip
LEXICON: Final = Company(
    "lexicon", "Lexicon Legal", "Rue de la Loi 88\nBrussels", "Europe/Brussels",
    (Person("clara", Role.OWNER), Person("jonas", Role.DEVELOPER), Person("petra", Role.BILLING)),
    (Key("contract reader", "jonas"), Key("research desk", "clara"), Key("intern project", "jonas")),
    (
        Upload("clauses", "json", "jonas"),
        Upload("clauses", "json", "jonas", days_ago=0, claims=16),
    ),
    (
        Stream("contract reader", "clauses", 40, 5200, 130, 0.18, peak=10.0, weekend=0.05),
        Stream("contract reader", "", 10, 4300, 190, 0.12, peak=10.0, weekend=0.05),
        Stream("research desk", "", 16, 2400, 320, 0.25, peak=15.0, weekend=0.1),
        Stream("intern project", "clauses", 4, 1800, 90, 0.1, peak=16.0, weekend=0.0),
    ),
    ("9", "2.25", "40", "1.5"),
)  # fmt: skip
PIXELPOST: Final = Company(
    "pixelpost", "Pixel Post", "Ackerstraße 4\nBerlin", "Europe/Berlin",
    (Person("lena", Role.OWNER), Person("sam", Role.ADMIN), Person("yusuf", Role.DEVELOPER)),
    (Key("studio", "lena"), Key("newsletter", "yusuf", ("headlines",)), Key("Playground", "lena", hidden=True)),
    (Upload("brand-voice", "pirate", "lena"), Upload("headlines", "shout", "yusuf")),
    (
        Stream("studio", "brand-voice", 44, 230, 560, 0.3, peak=15.0, weekend=0.15),
        Stream("studio", "", 12, 260, 420, 0.2, peak=15.0, weekend=0.15),
        _NEWSLETTER,
        Stream("Playground", "brand-voice", 4, 90, 120, 0.1, peak=16.0, weekend=0.0),
    ),
    ("10", "2.5", "30", "2"),
    Spike(_NEWSLETTER, 320, 4.0),
)  # fmt: skip
HARBOR: Final = Company(
    "harbor", "Harbor Data", "200 Pier Road\nNew York, NY", "America/New_York",
    (Person("ravi", Role.OWNER), Person("dana", Role.DEVELOPER)),
    (Key("analysts", "ravi", ("sql-writer",)), Key("notebook", "dana")),
    (Upload("sql-writer", "sql", "ravi"),),
    (
        Stream("analysts", "sql-writer", 36, 980, 85, 0.62, peak=16.0, weekend=0.1),
        Stream("notebook", "", 9, 700, 210, 0.3, peak=18.0, weekend=0.2),
    ),
    ("14", "3.5", "42", "0"),
)  # fmt: skip
# The owner of what is shared comes first: others are granted it when they come.
COMPANIES: Final = (HARBOR, NORTHWIND, LEXICON, PIXELPOST)
