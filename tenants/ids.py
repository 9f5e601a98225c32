"""Public ids: a prefix that says what it names, then 22 characters nobody can guess."""

import secrets
from typing import Final

_ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_LENGTH: Final = 22
_COUNT: Final = len(_ALPHABET) ** _LENGTH


def new_id(prefix: str) -> str:
    """`ten_`, `mem_`, `key_`, `adp_`, `adv_`, `req_`, ... + 131 random bits in base 62."""
    left, characters = secrets.randbelow(_COUNT), list[str]()
    for _ in range(_LENGTH):  # one draw for all: the system is asked each time
        left, at = divmod(left, len(_ALPHABET))
        characters.append(_ALPHABET[at])
    return f"{prefix}_{''.join(characters)}"
