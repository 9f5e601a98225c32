"""How to run a program that refuses root, without adding a user or touching a folder outside our own.

1. not root: as it is. 2. root, and every parent folder is o+x: as `nobody`. 3. root below a private folder: in a user
namespace that maps us to `nobody`.
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
    if os.geteuid() != 0:
        return Identity([], None, None)
    nobody = pwd.getpwnam("nobody")
    if all(_is_reachable(folder) for folder in folders):
        return Identity([], nobody.pw_uid, nobody.pw_gid)
    mapped = ["unshare", "--user", f"--map-user={nobody.pw_uid}", f"--map-group={nobody.pw_gid}"]
    # Changing identity forgets the parent-death signal that the supervisor had set: set it again.
    return Identity([*mapped, "setpriv", "--pdeathsig", "KILL"], None, None)


def _is_reachable(folder: Path) -> bool:
    """Whether others may walk down to the folder (its own mode does not matter: it will be theirs)."""
    return all(parent.stat().st_mode & 0o001 for parent in folder.resolve().parents)
