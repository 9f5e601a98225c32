"""How to run a program that refuses root, without adding a user or touching a folder outside our own.

1. not root: as it is. 2. root, and every parent folder is o+x: as `nobody`. 3. root below a private folder, or a user
id without a name (containers run as any number, PostgreSQL wants a name): in a namespace that maps us to `nobody`.
"""

import os
import pwd
from pathlib import Path
from typing import NamedTuple


class Identity(NamedTuple):
    """prefix goes before the command; user is passed to Popen(user=, group=) when not None."""

    prefix: list[str]
    uid: int | None
    gid: int | None


def identity_for(*folders: Path) -> Identity:
    is_root = os.geteuid() == 0
    if not is_root and _has_name(os.geteuid()):
        return Identity([], None, None)
    nobody = pwd.getpwnam("nobody")
    if is_root and all(_is_reachable(folder) for folder in folders):
        return Identity([], nobody.pw_uid, nobody.pw_gid)
    mapped = ["unshare", "--user", f"--map-user={nobody.pw_uid}", f"--map-group={nobody.pw_gid}"]
    # Changing identity forgets the parent-death signal that the supervisor had set: set it again.
    return Identity([*mapped, "setpriv", "--pdeathsig", "KILL"], None, None)


def _has_name(uid: int) -> bool:
    try:
        return bool(pwd.getpwuid(uid).pw_name)
    except KeyError:
        return False


def _is_reachable(folder: Path) -> bool:
    """Whether others may walk down to the folder (its own mode does not matter: it will be theirs)."""
    return all(parent.stat().st_mode & 0o001 for parent in folder.resolve().parents)
