"""What people call the browser that a user agent stands for."""

from typing import Final

# The first that is found wins: the later names ride along in the earlier ones' texts.
BROWSERS: Final = (
    ("Edg/", "Edge"),
    ("EdgA/", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
SYSTEMS: Final = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("CrOS", "ChromeOS"),
    ("Windows", "Windows"),
    ("Macintosh", "macOS"),
    ("Linux", "Linux"),
)


def device_words(user_agent: str) -> str:
    """ "Firefox on Linux"; a program by its own name; "Unknown device" where nothing was said."""
    browser = _first(BROWSERS, user_agent)
    system = _first(SYSTEMS, user_agent)
    if browser:
        return f"{browser} on {system}" if system else browser
    return user_agent.split("/")[0].strip()[:40] or "Unknown device"


def _first(words: tuple[tuple[str, str], ...], text: str) -> str | None:
    return next((name for sign, name in words if sign in text), None)
