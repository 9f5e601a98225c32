"""Public ids: a prefix that says what it names, then 22 characters nobody can guess."""

import secrets

_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def new_id(prefix: str) -> str:
    """`ten_`, `mem_`, `key_`, `adp_`, `adv_`, `req_`, ... + 131 random bits in base 62."""
    return f"{prefix}_{''.join(secrets.choice(_ALPHABET) for _ in range(22))}"
