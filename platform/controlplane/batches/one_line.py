"""One line of a batch, run to its end: answered, or refused for good."""

import asyncio
import functools
import logging
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import msgspec

from controlplane.batches.attempts import attempt_id
from controlplane.batches.finishing import error_line
from controlplane.batches.input_lines import Line, bound_of
from controlplane.batches.lines import begin_line, end_line, lose_attempt
from controlplane.batches.models import Batch, BatchLine
from controlplane.batches.starting import Prices
from controlplane.batches.states import LineState
from controlplane.batches.threads import in_thread
from controlplane.errors import ApiError, Unavailable
from controlplane.inference.asking import known_engine
from controlplane.inference.resources import Door
from controlplane.inference.run import Run
from controlplane.inference.schemas import Wanted, parse_json
from controlplane.inference.services import start
from controlplane.inference.whole import ANSWERS
from controlplane.quotas.batch_holds import Share
from tenants.auth import Principal

log = logging.getLogger(__name__)
MAX_ATTEMPTS: Final = 12
LONGEST_PAUSE_SECONDS: Final = 60.0
# These stay as they are, however often they are asked.
_FINAL_CODES: Final = ("price_missing", "non_finite_logits")


@dataclass(frozen=True)
class Task:
    """A line to run. number: in the file."""

    batch: Batch
    number: int
    line: Line


async def run_line(door: Door, principal: Principal, task: Task) -> None:
    """Whatever it comes to is kept before this returns. Raises CancelledError; then the next worker takes it over."""
    batch = task.batch
    row = await in_thread(batch.tenant_id, begin_line, batch, task.number, task.line.custom_id)
    while row.attempt <= MAX_ATTEMPTS:
        asked: list[int] = []
        request_id = request_id_of(row)
        try:
            share = await _share(door, principal, task, row)
            begin = functools.partial(_begin, door, principal, request_id, share, asked)
            body = await ANSWERS[task.line.url](door, parse_json(bytes(task.line.body)), begin)
            await _succeed(task, row, body, sum(asked))
            return
        except ApiError as error:
            if not may_pass(error) or row.attempt == MAX_ATTEMPTS:
                await _fail(task, row, error, sum(asked))
                return
            log.info("%s: %s; tried again", request_id, error.code)
            await in_thread(batch.tenant_id, lose_attempt, row)
            await asyncio.sleep(pause(row.attempt, error))
    lost = Unavailable(
        f"{MAX_ATTEMPTS} attempts at this line were lost: send it in a batch of its own.", code="line_lost"
    )
    await _fail(task, row, lost, 0)


def request_id_of(row: BatchLine) -> str:
    return attempt_id(row.batch_id, row.number, row.attempt)


async def _begin(
    door: Door, principal: Principal, request_id: str, share: Share, asked: list[int], wanted: Wanted
) -> Run:
    """asked: gets how many requests to the engine it is, which may be billed even where this raises."""
    asked.append(len(wanted.prompts))
    return await start(door, principal, wanted, request_id, share)


async def _share(door: Door, principal: Principal, task: Task, row: BatchLine) -> Share:
    """The first attempt takes along what was reserved for the line."""
    if row.attempt > 1:
        return Share(task.batch.id)
    context_len = (await known_engine(door)).context_len
    amount, tokens = await in_thread(task.batch.tenant_id, _most, principal, task.line, context_len)
    return Share(task.batch.id, amount, tokens)


def _most(principal: Principal, line: Line, context_len: int) -> tuple[Decimal, int]:
    return Prices(principal).most(bound_of(line, context_len))


def may_pass(error: ApiError) -> bool:
    """Whether the same line may be answered later."""
    is_hopeless = error.headers.get("x-should-retry") == "false" or error.code in _FINAL_CODES
    return error.status in (429, Unavailable.status) and not is_hopeless


def pause(attempt: int, error: ApiError) -> float:
    """Seconds before the next one: longer each time, and not before the error said."""
    told = error.headers.get("Retry-After", "0")
    return max(min(2.0 ** (attempt - 2), LONGEST_PAUSE_SECONDS), min(float(told), LONGEST_PAUSE_SECONDS))


async def _succeed(task: Task, row: BatchLine, body: dict[str, Any], prompts: int) -> None:
    """prompts: how many requests to the engine may have been billed for it."""
    request_id = request_id_of(row)
    response = _response(request_id, 200, body)
    record = {"id": request_id, "custom_id": task.line.custom_id, "response": response, "error": None}
    await in_thread(row.tenant_id, end_line, row, LineState.COMPLETED, msgspec.json.encode(record).decode(), prompts)


async def _fail(task: Task, row: BatchLine, error: ApiError, prompts: int) -> None:
    response = _response(request_id_of(row), error.status, error.body())
    answer = error_line(task.number, task.line.custom_id, response=response)
    failure = {"status": error.status, "code": error.code, "message": error.message, "param": error.param}
    await in_thread(row.tenant_id, end_line, row, LineState.FAILED, answer, prompts, failure)


def _response(request_id: str, status: int, body: dict[str, Any]) -> dict[str, Any]:
    return {"status_code": status, "request_id": request_id, "body": body}
