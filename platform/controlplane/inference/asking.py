"""Questions to the engine that run nothing, with its refusals in the caller's words."""

from collections.abc import Mapping

from controlplane.inference.engine_client import Answer, Call
from controlplane.inference.engine_faults import EngineGone, EngineRefusal, engine_draining, engine_gone, error_of
from controlplane.inference.resources import Door
from engine.protocol import Describe, Description


async def known_engine(door: Door) -> Description:
    """Raises ApiError, 503, where the engine is away."""
    try:
        return await door.engine.known()
    except EngineGone:
        raise engine_gone() from None


async def serving_engine(door: Door) -> Description:
    """One that takes requests. Raises ApiError, 503, where it is away or being drained."""
    engine = await known_engine(door)
    if engine.draining:  # as it last said: it may have been taken back since
        engine = await ask(door, Describe(""), Description, {})
    if engine.draining:
        raise engine_draining()
    return engine


async def ask(door: Door, call: Call, wanted: type[Answer], names: Mapping[str, str]) -> Answer:
    """names: as in `Wanted`. Raises ApiError: 400 what the engine refuses, 503 where it is away."""
    try:
        return await door.engine.ask(call, wanted)
    except EngineRefusal as refusal:
        raise error_of(refusal.error, names) from None
    except EngineGone:
        raise engine_gone() from None
