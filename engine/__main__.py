"""`python -m engine`: one engine process. Exit codes: 0 stopped, 1 failed while serving, 2 could not start."""

import argparse
import gc
import logging
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import NoReturn, get_args
from uuid import uuid4

import torch

from engine.adapters.disk_cache import DiskCache
from engine.adapters.fetch import adapter_loader, folder_reference
from engine.adapters.format import BaseShape
from engine.adapters.format import Limits as AdapterLimits
from engine.adapters.pool import AdapterPool, AdapterUnavailable
from engine.config import EngineConfig, KVType, Speculate, WeightType
from engine.core import Engine
from engine.decoding.tokenizer import Tokenizer, TokenizerError
from engine.logs import set_up_logs
from engine.metering.energy_counters import energy_meter
from engine.metering.journal import Journal, JournalError
from engine.model_info import ModelInfo
from engine.models.runner import Runner, load_runner
from engine.models.weights import ModelError
from engine.protocol import Description
from engine.scheduling.admission import Limits, pool_limit
from engine.server import AddressError, Server, check_address
from engine.sizes import parse_bytes
from engine.spans import spans_from_environment
from engine.speculation.setup import check_draft_model, proposer_of
from engine.speculation.speculator import Speculator

log = logging.getLogger("engine")

START_ERRORS = (ModelError, TokenizerError, JournalError, AddressError, AdapterUnavailable, OSError, ValueError)


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    set_up_logs(options.log_level.upper())
    try:
        server = _server(_config(options))
    except START_ERRORS as error:
        sys.stderr.write(f"engine: {error}\n")
        return 2
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: server.stop())
    sys.stdout.write(f"engine ready at {options.url}\n")
    sys.stdout.flush()
    gc.freeze()  # what is there now stays: looking through it again would hold up a step for a tenth of a second
    return 0 if server.serve() else 1


def _server(config: EngineConfig) -> Server:
    # The cheap refusals first, before gigabytes are read.
    check_address(config.url)
    check_draft_model(config)
    journal = Journal(config.home)
    if journal.closed_at_start:
        log.warning("requests that the last process left open were ended", extra={"count": journal.closed_at_start})
    runner = load_runner(config)
    config = replace(config, kv_pool_tokens=runner.kv.pages * config.page_size)
    info = runner.info
    tokenizer = Tokenizer(config.model, vocab_size=info.vocab_size, context_len=info.context_len)
    adapters = _adapters(config, runner)
    room = pool_limit(config, info.window, info.context_len)
    limits = Limits(
        info.vocab_size, info.context_len, room, config.max_rank, info.switch_len, config.max_running, info.window
    )
    grammars = tokenizer.grammars()
    spans, energy = spans_from_environment(), energy_meter(config.device)
    engine = Engine(
        config,
        limits,
        runner,
        tokenizer,
        adapters,
        journal,
        constraints=grammars.constraint,
        speculator=Speculator(proposer_of(config, info)),
        device=runner if config.device == "cuda" else None,
        spans=spans,
        energy=energy,
    )
    if config.metrics_port:
        engine.metrics.serve(config.metrics_port)
    description = _description(config, info, tokenizer, journal)
    return Server(
        config.url,
        engine,
        tokenizer,
        journal,
        description,
        grammars=grammars,
        drain_seconds=config.drain_seconds,
        energy=energy,
    )


def _adapters(config: EngineConfig, runner: Runner) -> AdapterPool:
    base = BaseShape.from_config_file(config.model)
    limits = AdapterLimits(config.max_rank, max_saved_bytes=config.max_saved_bytes)
    disk = DiskCache(config.home / "adapters", config.adapter_disk_bytes)
    load = adapter_loader(base, limits, disk, runner.bank)
    pool = AdapterPool(runner.bank, config.adapter_slots, load, config.adapter_host_bytes, lambda: disk.digests)
    for folder in config.pinned:
        pool.pin(folder_reference(folder, base, limits))
    return pool


def _description(config: EngineConfig, info: ModelInfo, tokenizer: Tokenizer, journal: Journal) -> Description:
    return Description(
        call_id="",
        engine_id=journal.engine_id,
        boot_id=f"boot_{uuid4().hex}",
        base_model=info.name,
        context_len=info.context_len,
        pool_tokens=pool_limit(config, info.window, info.context_len),
        max_rank=config.max_rank,
        adapter_slots=config.adapter_slots,
        device=config.device,
        exact=config.exact,
        hidden_size=info.hidden,
        tool_format=tokenizer.tool_format,
        reasoning=tokenizer.reasoning,
        limits={name: getattr(config, name) for name in ("page_size", "step_tokens", "max_running")},
        kv=config.kv_type,
    )


def _config(options: argparse.Namespace) -> EngineConfig:
    device = options.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError("--device is cuda, and torch finds no CUDA device here: use --device cpu or auto")
    return EngineConfig(
        model=options.model,
        home=options.home,
        url=options.url,
        device=device,
        exact=options.exact,
        weights=options.weights,
        kv=options.kv,
        page_size=options.page_size,
        kv_pool_tokens=options.kv_pool_tokens,
        step_tokens=options.step_tokens,
        max_running=options.max_running,
        max_waiting=options.max_waiting,
        max_waiting_per_tenant=options.max_waiting_per_tenant,
        adapter_slots=options.adapter_slots,
        adapter_host_bytes=parse_bytes(options.adapter_host_bytes),
        adapter_disk_bytes=parse_bytes(options.adapter_disk_bytes),
        pinned=tuple(options.pin),
        max_rank=options.max_rank,
        max_saved_bytes=parse_bytes(options.max_saved_bytes),
        speculate=options.speculate,
        draft_model=options.draft_model,
        drain_seconds=options.drain_seconds,
        metrics_port=options.metrics_port,
        threads=options.threads,
    )


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"engine: {message} (see python -m engine --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m engine", description="Serve one base model and its adapters over the engine wire.")
    add, shipped = parser.add_argument, EngineConfig(model=Path(), home=Path(), url="")
    add("--model", type=Path, required=True, help="Hugging Face folder of the base model")
    add("--home", type=Path, required=True, help="folder of the usage journal")
    add("--url", required=True, help="where to listen: ipc://PATH or tcp://127.0.0.1:PORT")
    add("--device", choices=("auto", "cpu", "cuda"), default="auto")
    add("--exact", action="store_true", help="fp32 weights and fp32 KV, the mode oracles compare in")
    add(
        "--weights",
        choices=get_args(WeightType),
        default=shipped.weights,
        help="what the base model's linears are kept and multiplied in; adapters stay in 16 bits (%(default)s)",
    )
    add("--kv", choices=get_args(KVType), help="what keys and values are kept in: fp8, or fp32 with --exact")
    add("--threads", type=int, default=shipped.threads, help="CPU threads; 0 = all cores")
    for name, help_text in (
        ("page_size", "tokens per KV page"),
        ("kv_pool_tokens", "tokens that the KV pool holds; 0 = what a CUDA device has room for"),
        ("step_tokens", "token budget of one step"),
        ("max_running", "sequences in one step"),
        ("max_waiting", "requests that may wait"),
        ("max_waiting_per_tenant", "requests of one tenant that may wait"),
        ("adapter_slots", "adapters on the device at once"),
        ("max_rank", "highest LoRA rank served"),
    ):
        add(f"--{name.replace('_', '-')}", type=int, default=getattr(shipped, name), help=f"{help_text} (%(default)s)")
    add("--adapter-host-bytes", default="1GiB", help="host memory for adapters behind the slots (%(default)s)")
    add("--adapter-disk-bytes", default="8GiB", help="disk for adapters fetched from elsewhere (%(default)s)")
    add("--max-saved-bytes", default="256MB", help="of an adapter's whole weights (%(default)s)")
    add("--pin", type=Path, action="append", default=[], help="adapter folder that keeps a slot; may be repeated")
    add(
        "--speculate",
        choices=get_args(Speculate),
        default=shipped.speculate,
        help="who guesses tokens ahead, where that makes answers faster; text stays the same (%(default)s)",
    )
    add("--draft-model", type=Path, help="Hugging Face folder of a smaller model, for --speculate draft")
    add("--drain-seconds", type=float, default=shipped.drain_seconds, help="for what runs at SIGTERM (%(default)s)")
    add("--metrics-port", type=int, default=shipped.metrics_port, help="for Prometheus, on 127.0.0.1; 0 = none")
    add("--log-level", choices=("debug", "info", "warning", "error"), default="info")
    return parser


if __name__ == "__main__":
    sys.exit(main())
