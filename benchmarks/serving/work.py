"""The same work for every server that is measured: what is asked, and what the model behind says."""

import json
from typing import Final

MODEL: Final = "base"
WORDS: Final = ("The", " quick", " brown", " fox", " jumps", " over", " it", ".")
# What a step of a real engine takes at the least; slow enough that no words are told in one piece.
STEP_SECONDS: Final = 0.005
QUESTION: Final = "Write a sentence about a fox that is quick, brown and not afraid of dogs."


def body(stream: bool) -> bytes:
    asked = {
        "model": MODEL,
        "messages": [{"role": "user", "content": QUESTION}],
        "max_tokens": 16,
        "stream": stream,
    }
    return json.dumps(asked).encode()
