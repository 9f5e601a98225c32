"""The same work for every server that is measured: what is asked, and what the model behind says."""

import json
from typing import Final

MODEL: Final = "base"
ADAPTER: Final = "house-style"
MODES: Final = ("streamed", "whole", "adapter")
WORDS: Final = ("The", " quick", " brown", " fox", " jumps", " over", " it", ".")
# What a step of a real engine takes at the least; slow enough that no words are told in one piece.
STEP_SECONDS: Final = 0.005
QUESTION: Final = "Write a sentence about a fox that is quick, brown and not afraid of dogs."


def body(mode: str) -> bytes:
    """mode: "adapter" is streamed, from a tenant's adapter in place of the base model."""
    asked = {
        "model": ADAPTER if mode == "adapter" else MODEL,
        "messages": [{"role": "user", "content": QUESTION}],
        "max_tokens": 16,
        "stream": mode != "whole",
    }
    return json.dumps(asked).encode()
