"""`ETag` and `If-Match`: a change is made to what its sender has seen, or not at all.

A tag is a digest of what GET answers. The look at the tag and the change are one serializable transaction: whoever
changes the same rows in between makes the database refuse it, which is told as 412, too.
"""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from django.db import OperationalError, connection, transaction
from django.utils.http import parse_etags
from rest_framework.renderers import JSONRenderer

from controlplane.errors import InvalidRequest, PreconditionFailed

HEADER: Final = "If-Match"
_SERIALIZATION_FAILURE: Final = "40001"


def tag_of(data: Any, without: Iterable[str] = ()) -> str:
    """Strong. without: members that change as the thing is used, which is no change to it."""
    seen = {name: value for name, value in data.items() if name not in without} if without else data
    return f'"{hashlib.sha256(JSONRenderer().render(seen)).hexdigest()[:32]}"'


def check_tag(header: str, current: str) -> None:
    """Raises PreconditionFailed where none of the header's tags is the current one."""
    wanted = parse_etags(header)
    if not wanted:
        raise InvalidRequest(
            f"{HEADER} is {header[:60]!r}: send the ETag of the last answer as it was, in its quotes", param=HEADER
        )
    if wanted != ["*"] and current not in wanted:
        raise PreconditionFailed(
            f"{HEADER}: it has changed since you read it. Read it again, and send your change with its new ETag, "
            f"{current}.",
            param=HEADER, headers={"ETag": current},
        )  # fmt: skip


@contextmanager
def unchanged_until_commit() -> Iterator[None]:
    """What is read inside is still so when it commits, or PreconditionFailed. Joins a transaction that is open."""
    is_ours = not connection.in_atomic_block
    try:
        with transaction.atomic():
            if is_ours:
                with connection.cursor() as cursor:
                    cursor.execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
            yield
    except OperationalError as exc:
        if getattr(exc.__cause__, "sqlstate", None) != _SERIALIZATION_FAILURE:
            raise
        raise PreconditionFailed(
            f"{HEADER}: it was changed at the same time. Read it again, and send your change with its new ETag.",
            param=HEADER,
        ) from None
