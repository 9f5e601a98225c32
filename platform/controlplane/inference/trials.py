"""The engine tries an adapter before anybody may call it: one short prompt, with and without it."""

import math
from typing import Final

from controlplane.adapters.trials import (
    Candidate,
    Trial,
    accept_trial,
    begin_trial,
    candidate,
    postpone_trial,
    refuse_trial,
)
from controlplane.inference.engine_faults import EngineGone, EngineRefusal
from controlplane.inference.engine_sync import EngineCalls
from controlplane.inference.settlement import PLATFORM
from engine.protocol import AdapterRef, Generate, Sampling, TokenEvent
from tenants.ids import new_id

PROMPT: Final = "The quick brown fox jumps over the lazy dog. Once upon a time"
PATIENCE_SECONDS: Final = 60.0
_ANSWER_TOKENS: Final = 8
_SAMPLING: Final = Sampling(_ANSWER_TOKENS, temperature=0.0, ignore_eos=True, logprobs=5, prompt_logprobs=5)
# One list per place, prompt first: log-probabilities by token id.
Scores = list[dict[int, float]]


def try_adapter(engine: EngineCalls, version_id: str) -> None:
    """Bring a version that waits for its trial to `ready` or `rejected`; left as it is where the engine has no room for
    it. Raises EngineGone."""
    wanted = candidate(version_id)
    if wanted is None:
        return
    if engine.describe().base_model != wanted.base_model:
        raise EngineGone(f"no engine serves {wanted.base_model}")
    prompt = _prompt(engine.prepare(PROMPT).token_ids, wanted.invocation)
    try:
        base = _run(engine, prompt, None)
        if not begin_trial(version_id):
            return
        tried = _run(engine, prompt, wanted)
    except EngineRefusal as refusal:
        _refused(version_id, refusal)
        return
    _judge(version_id, len(prompt), base, tried)


def _prompt(token_ids: tuple[int, ...], invocation: tuple[int, ...]) -> tuple[int, ...]:
    """An activated LoRA changes only what follows its invocation."""
    return (*token_ids, *invocation, *token_ids) if invocation else token_ids


def _run(engine: EngineCalls, prompt: tuple[int, ...], wanted: Candidate | None) -> list[TokenEvent]:
    ref = AdapterRef(wanted.version_id, wanted.uri, wanted.digest, wanted.rank) if wanted else None
    request = Generate(new_id("try"), PLATFORM, PLATFORM, prompt, _SAMPLING, ref)
    events = engine.generate(request, seconds=PATIENCE_SECONDS)
    if events[-1].finish_reason not in ("stop", "length"):
        raise EngineGone(f"the trial ended by {events[-1].finish_reason}")
    return events


def _refused(version_id: str, refusal: EngineRefusal) -> None:
    error = refusal.error
    if not error.permanent:
        postpone_trial(version_id)
    elif error.code == "non_finite_logits":
        remedy = "Training diverged: train again with a lower learning rate, or from a checkpoint before it did."
        refuse_trial(version_id, "trial_not_finite", "an answer that is not finite", "finite numbers", remedy)
    else:
        remedy = "Save the adapter again with PEFT's save_pretrained, on the base model served here."
        refuse_trial(version_id, "trial_failed", f"the engine's refusal: {error.code}", "an answer", remedy)


def _judge(version_id: str, prompt_tokens: int, base: list[TokenEvent], tried: list[TokenEvent]) -> None:
    scores = _scores(tried)
    if not all(math.isfinite(score) for place in scores for score in place.values()):
        remedy = "Training diverged: train again with a lower learning rate, or from a checkpoint before it did."
        refuse_trial(version_id, "trial_not_finite", "scores that are not finite", "finite numbers", remedy)
        return
    difference = _largest_difference(_scores(base), scores)
    accept_trial(version_id, Trial(prompt_tokens, difference, _text(tried), _text(base)))


def _largest_difference(base: Scores, tried: Scores) -> float:
    """Over the tokens that both name at a place."""
    places = zip(base, tried, strict=False)
    return max((abs(one[token] - other[token]) for one, other in places for token in one.keys() & other), default=0.0)


def _scores(events: list[TokenEvent]) -> Scores:
    prompt = next((event.prompt_logprobs for event in events if event.prompt_logprobs is not None), ())
    answer = [each for event in events for each in event.logprobs or ()]
    return [
        {top.token_id: top.logprob for top in each.top} | {each.token_id: each.logprob}
        for each in (*prompt, *answer)
        if each is not None
    ]


def _text(events: list[TokenEvent]) -> str:
    """PostgreSQL's text cannot hold a NUL."""
    return "".join(event.text for event in events).replace("\0", "\N{REPLACEMENT CHARACTER}")
