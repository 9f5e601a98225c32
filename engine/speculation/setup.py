"""The proposer that the operator chose."""

import dataclasses
from pathlib import Path

import tokenizers

from engine.config import EngineConfig
from engine.decoding.tokenizer import TokenizerError
from engine.model_info import ModelInfo
from engine.models.runner import load_runner
from engine.speculation.draft_model import DraftModel
from engine.speculation.lookup import Lookup
from engine.speculation.proposer import Proposer


def proposer_of(config: EngineConfig, target: ModelInfo) -> Proposer | None:
    """None where speculation is off. Raises ModelError for a draft model that cannot be read."""
    if config.speculate == "lookup":
        return Lookup()
    return None if config.draft_model is None else _draft_model(config, config.draft_model, target)


def check_draft_model(config: EngineConfig) -> None:
    """Raises TokenizerError, naming a token, where the draft model and the model number the same tokens differently."""
    if config.draft_model is None:
        return
    ours, theirs = _vocabulary(config.model), _vocabulary(config.draft_model)
    different = sorted(token for token in ours.keys() | theirs.keys() if ours.get(token) != theirs.get(token))
    if different:
        token = different[0]
        raise TokenizerError(
            f"draft_model {config.draft_model} cannot draft for {config.model}: their tokenizers differ in "
            f"{len(different)} tokens, as in {token!r}, which is {_numbered(ours.get(token))} of the model and "
            f"{_numbered(theirs.get(token))} of the draft; use a smaller model of the same family"
        )


def _vocabulary(folder: Path) -> dict[str, int]:
    path = folder / "tokenizer.json"
    try:
        return tokenizers.Tokenizer.from_file(str(path)).get_vocab(with_added_tokens=True)
    except Exception as error:  # the library raises bare Exception
        raise TokenizerError(f"{path} cannot be read: {error}") from error


def _numbered(number: int | None) -> str:
    return "no token" if number is None else f"token {number}"


def _draft_model(config: EngineConfig, folder: Path, target: ModelInfo) -> DraftModel:
    runner = load_runner(dataclasses.replace(config, model=folder, adapter_slots=1, max_rank=1, pinned=()))
    return DraftModel(
        runner,
        vocab_size=runner.info.vocab_size,
        target_vocab_size=target.vocab_size,
        context_len=runner.info.context_len,
        pages=config.pages,
        page_size=config.page_size,
        step_tokens=config.step_tokens,
    )
