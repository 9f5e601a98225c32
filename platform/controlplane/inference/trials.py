"""The engine tries an adapter before anybody may call it: one short prompt, with and without it.

One that answers it exactly as its base model does may still have trained what that prompt does not touch, rows of the
embedding say. So it is tried on further tokens, and refused only where there are none left that could show a change.
"""

import time
from typing import Final

from django.conf import settings

from controlplane.adapters.trials import (
    Candidate,
    Trial,
    accept_trial,
    begin_trial,
    candidate,
    postpone_trial,
    refuse_trial,
)
from controlplane.inference.comparing import CHUNK, Compared, NotFinite, chunks_of, difference_of, text_of, walk
from controlplane.inference.engine_faults import EngineGone, EngineRefusal
from controlplane.inference.engine_sync import EngineCalls
from controlplane.inference.settlement import PLATFORM
from engine.adapters.format import BaseShape
from engine.protocol import AdapterRef, Description, Generate, Sampling, TokenEvent
from tenants.ids import new_id

PROMPT: Final = "The quick brown fox jumps over the lazy dog. Once upon a time"
PATIENCE_SECONDS: Final = 60.0
WALK_SECONDS: Final = 60.0
_ANSWER_TOKENS: Final = 8
_SAMPLING: Final = Sampling(_ANSWER_TOKENS, temperature=0.0, ignore_eos=True, logprobs=5, prompt_logprobs=5)
_WALKING: Final = Sampling(1, temperature=0.0, ignore_eos=True, logprobs=0, prompt_logprobs=0)
# Modules with a row for each token of the vocabulary; every other module has a part in every token.
_BY_TOKEN: Final = frozenset({"embed_tokens", "lm_head"})


def try_adapter(engine: EngineCalls, version_id: str) -> None:
    """Bring a version that waits for its trial to `ready` or `rejected`; left as it is where the engine has no room for
    it. Raises EngineGone."""
    wanted = candidate(version_id)
    if wanted is None:
        return
    served = engine.describe()
    if served.base_model != wanted.base_model:
        raise EngineGone(f"no engine serves {wanted.base_model}")
    prompt = _prompt(engine.prepare(PROMPT).token_ids, wanted.invocation)
    try:
        base = _run(engine, prompt, None)
        if not begin_trial(version_id):
            return
        tried = _run(engine, prompt, wanted)
        found = _compared(engine, served, wanted, base, tried)
    except EngineRefusal as refusal:
        _refused(version_id, refusal)
    except NotFinite:
        _refuse_as_not_finite(version_id, "scores that are not finite")
    else:
        _judge(wanted, found, Trial(len(prompt), found.largest_difference or 0.0, text_of(tried), text_of(base)))


def _prompt(token_ids: tuple[int, ...], invocation: tuple[int, ...]) -> tuple[int, ...]:
    """An activated LoRA changes only what follows its invocation."""
    return (*token_ids, *invocation, *token_ids) if invocation else token_ids


def _run(
    engine: EngineCalls, prompt: tuple[int, ...], wanted: Candidate | None, sampling: Sampling = _SAMPLING
) -> list[TokenEvent]:
    ref = AdapterRef(wanted.version_id, wanted.uri, wanted.digest, wanted.rank) if wanted else None
    request = Generate(new_id("try"), PLATFORM, PLATFORM, prompt, sampling, ref)
    events = engine.generate(request, seconds=PATIENCE_SECONDS)
    if events[-1].finish_reason not in ("stop", "length"):
        raise EngineGone(f"the trial ended by {events[-1].finish_reason}")
    return events


def _compared(
    engine: EngineCalls, served: Description, wanted: Candidate, base: list[TokenEvent], tried: list[TokenEvent]
) -> Compared:
    """By the short prompt, and where that shows nothing by the whole vocabulary, or one piece of it where every token
    is as good as another."""
    difference = difference_of(base, tried)
    if difference is not None:
        return Compared(difference, 0, is_exhausted=False)
    room = min(served.context_len, served.pool_tokens) - len(wanted.invocation) - 2
    chunks = chunks_of(_vocabulary(), min(CHUNK, room))
    if not _BY_TOKEN.intersection(wanted.target_modules):
        chunks = chunks[:1]

    def ask(prompt: tuple[int, ...], with_adapter: bool) -> list[TokenEvent]:
        return _run(engine, prompt, wanted if with_adapter else None, _WALKING)

    deadline = time.monotonic() + WALK_SECONDS
    return walk(ask, wanted.invocation, chunks, lambda: time.monotonic() < deadline)


def _vocabulary() -> int:
    return BaseShape.from_config_file(settings.MODEL_DIR).outside["lm_head"][0]


def _judge(wanted: Candidate, found: Compared, trial: Trial) -> None:
    if found.is_exhausted:
        remedy = "Train longer, or check that the trained adapter was saved."
        answers = f"the base model's answers to {trial.prompt_tokens + found.tokens} tokens, to the last digit"
        refuse_trial(wanted.version_id, "trial_same_as_base", answers, "another answer", remedy)
    else:
        accept_trial(wanted.version_id, trial)


def _refused(version_id: str, refusal: EngineRefusal) -> None:
    error = refusal.error
    if not error.permanent:
        postpone_trial(version_id)
    elif error.code == "non_finite_logits":
        _refuse_as_not_finite(version_id, "an answer that is not finite")
    else:
        remedy = "Save the adapter again with PEFT's save_pretrained, on the base model served here."
        refuse_trial(version_id, "trial_failed", f"the engine's refusal: {error.code}", "an answer", remedy)


def _refuse_as_not_finite(version_id: str, found: str) -> None:
    remedy = "Training diverged: train again with a lower learning rate, or from a checkpoint before it did."
    refuse_trial(version_id, "trial_not_finite", found, "finite numbers", remedy)
