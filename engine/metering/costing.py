"""Step time -> device time of each sequence that took part."""

from collections.abc import Sequence

# Attention over this many tokens costs about as much as a token's linear layers do.
LINEAR_EQUIVALENT = 512


def run_weight(start: int, length: int) -> int:
    """What computing tokens [start, start + length) costs, in units of one token's attention to one other."""
    attended = length * start + length * (length + 1) // 2
    return length * LINEAR_EQUIVALENT + attended


def prefill_part(share_ns: int, start: int, length: int, prompt_len: int) -> int:
    """What of a run's share computed tokens of the prompt; the rest is what came after it, computed again."""
    of_prompt = max(0, min(start + length, prompt_len) - start)
    return share_ns * run_weight(start, of_prompt) // run_weight(start, length)


def split_step(step_ns: int, weights: Sequence[int]) -> list[int]:
    """Shares of `step_ns` in proportion to `weights` (positive integers). They sum to `step_ns` exactly."""
    total, given, passed, shares = sum(weights), 0, 0, list[int]()
    for weight in weights:
        passed += weight
        share = step_ns * passed // total - given
        given += share
        shares.append(share)
    return shares
