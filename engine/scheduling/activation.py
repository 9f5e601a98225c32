"""Where an activated adapter (aLoRA, Greenewald et al. 2025) begins: at its prompt's last invocation, as in PEFT."""

import sys
from collections.abc import Sequence

from engine.cache.prefix import Fork


def fork_of(prompt: Sequence[int], invocation: Sequence[int], namespace: bytes) -> Fork:
    """namespace: the adapter's. A prompt without the invocation is the base model's to its end, answer included."""
    last = len(prompt) - len(invocation)
    wanted = list(invocation)
    starts = (at for at in range(last, -1, -1) if list(prompt[at : at + len(wanted)]) == wanted)
    return Fork(next(starts, sys.maxsize), namespace)
