"""An engine is told which adapters to keep: it forgets them when it ends, the database does not."""

import logging

from controlplane.adapters.queries import pinned_adapters
from controlplane.inference.engine_faults import EngineRefusal
from controlplane.inference.engine_sync import EngineCalls
from engine.protocol import AdapterRef
from tenants.sql import run_sync

log = logging.getLogger(__name__)


def sync_pins(engine: EngineCalls) -> None:
    """Pin what is wanted and not pinned there, unpin the rest. Raises EngineGone."""
    known = engine.describe()
    found = run_sync(pinned_adapters(base_model=known.base_model))
    wanted = {each.digest: AdapterRef(each.version_id, each.uri, each.digest, each.rank) for each in found}
    for digest in known.pinned:
        if digest not in wanted:
            engine.pin(AdapterRef("", "", digest, 1), pinned=False)
    for digest, adapter in wanted.items():
        if digest not in known.pinned:
            try:
                engine.pin(adapter, pinned=True)
            except EngineRefusal as refusal:
                log.warning("%s is not pinned: %s", adapter.version, refusal.error.message)
