"""The plain parameters of a request: one table that the parser reads by and the API's schema is written from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from controlplane.inference.fields import Body, read_int, read_number

INT64: Final = 2**63
MAX_TOKENS: Final = 1_000_000
MAX_CHOICES: Final = 128
MAX_SEQUENCES: Final = 256  # over all prompts of one request
MAX_TOP: Final = 20
MAX_PROMPTS: Final = 128
MAX_BEAMS: Final = 16


@dataclass(frozen=True)
class Number:
    """One number. above: the low end itself is refused too. default None: unset."""

    low: float
    high: float
    default: float | None
    doc: str
    whole: bool = False
    above: bool = False

    def read(self, body: Body, name: str) -> float | int | None:
        if self.whole:
            found = read_int(body, name, int(self.low), int(self.high))
            return self.default if found is None else found
        return read_number(body, name, self.low, self.high, self.default or 0.0, above=self.above)

    def schema(self) -> dict[str, Any]:
        low = "exclusiveMinimum" if self.above else "minimum"
        kind = "integer" if self.whole else "number"
        ends = int if self.whole else float
        found = {"type": [kind, "null"], low: ends(self.low), "maximum": ends(self.high), "description": self.doc}
        return found if self.default is None else {**found, "default": self.default}


def whole(low: int, high: int, default: int | None, doc: str) -> Number:
    return Number(low, high, default, doc, whole=True)


# Named as in `engine.protocol.Sampling`.
SAMPLING: Final[Mapping[str, Number]] = {
    "temperature": Number(0, 2, 1.0, "0 is greedy: always the likeliest token."),
    "top_p": Number(0, 1, 1.0, "Only the likeliest tokens that together have this probability. 1 is off.", above=True),
    "top_k": whole(-1, MAX_TOKENS, 0, "Only so many of the likeliest tokens. 0 and -1 are off."),
    "min_p": Number(0, 1, 0.0, "Only tokens at least so likely, as a share of the likeliest one's. 0 is off."),
    "seed": whole(-INT64, INT64 - 1, None, "With it, the same request gives the same text."),
    "n": whole(1, MAX_CHOICES, 1, "Choices for each prompt."),
    "presence_penalty": Number(-2, 2, 0.0, "Taken from the logit of a token that has been generated."),
    "frequency_penalty": Number(-2, 2, 0.0, "Taken from a token's logit each time that it has been generated."),
    "repetition_penalty": Number(0.1, 10, 1.0, "Divides the logit of a token of the prompt or the answer. 1 is off."),
    "min_tokens": whole(0, MAX_TOKENS, 0, "The answer does not end before so many tokens."),
    "prompt_logprobs": whole(
        0,
        MAX_TOP,
        None,
        "Also the log-probability of each token of the prompt, and so many of the likeliest beside it.",
    ),
}
BEAM: Final[Mapping[str, Number]] = {
    "beam_width": whole(1, MAX_BEAMS, None, "Beams of a beam search; by default as many as `n`."),
    "length_penalty": Number(-10, 10, 1.0, "Exponent of the length that a beam's log-probability is divided by."),
}
BEST_OF: Final = whole(1, MAX_CHOICES, None, "Choices to generate, of which the `n` likeliest are returned.")
TOP_LOGPROBS: Final = whole(
    0, MAX_TOP, None, "So many of the likeliest tokens beside each one. Needs `logprobs: true`."
)
LOGPROBS: Final = whole(0, MAX_TOP, None, "The log-probability of each token, and so many of the likeliest beside it.")
TIMEOUT_HEADER: Final = "x-request-timeout"
TIMEOUT: Final = Number(1, 3600, None, "Seconds after which the request ends, with 408 where nothing has been sent.")
