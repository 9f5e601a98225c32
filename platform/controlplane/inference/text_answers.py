"""Text completions in OpenAI's shape, whole and streamed, with the prompt before the text where it is echoed."""

from controlplane.inference.answers import TEXT_PREFIX, Json, choice_body, usage_body
from controlplane.inference.logprob_shapes import TextLogprobs, joined, prompt_logprobs
from controlplane.inference.pieces import Piece, PromptLogprobs
from controlplane.inference.run import Ending, Run
from controlplane.inference.schemas import Wanted
from engine.protocol import TokenLogprob


class TextShape:
    """A `Shape`. Choice i of prompt p has the index p * n + i."""

    def __init__(self, wanted: Wanted, run: Run) -> None:
        self.generation_id = TEXT_PREFIX + run.request_id
        self._head = {
            "id": self.generation_id, "object": "text_completion", "created": run.created, "model": run.model,
        }  # fmt: skip
        self._wanted = wanted
        self._prompts = run.prompts
        self._tail: Json = {"usage": None} if wanted.include_usage else {}
        self._of_prompt: dict[int, PromptLogprobs] = {}
        self._choices: dict[int, _Choice] = {}

    def opening(self) -> list[Json]:
        return []

    def chunks(self, piece: Piece) -> list[Json]:
        text, logprobs = self._told(piece)
        if not text and piece.finish_reason is None:
            return []
        return [self._chunk(choice_body(piece.index, {"text": text}, logprobs, piece.finish_reason, piece.stop_reason))]

    def closing(self, ending: Ending) -> list[Json]:
        usage = usage_body(ending.usage, ending.amount)
        return [{**self._chunk(), "usage": usage}] if self._wanted.include_usage else []

    def whole(self, choices: list[Piece], ending: Ending) -> Json:
        bodies = [self._whole_choice(piece) for piece in choices]
        return {**self._head, "choices": bodies, "usage": usage_body(ending.usage, ending.amount)}

    def _whole_choice(self, piece: Piece) -> Json:
        text, logprobs = self._told(piece)
        body = choice_body(piece.index, {"text": text}, logprobs, piece.finish_reason, piece.stop_reason)
        found = self._of_prompt.get(piece.index // self._wanted.sampling.n)
        shows = self._wanted.shows_prompt_logprobs and found is not None
        return {**body, "prompt_logprobs": prompt_logprobs(found)} if shows and found else body

    def _told(self, piece: Piece) -> tuple[str, Json | None]:
        """What the caller sees of it: its text, and before a choice's first the echoed prompt."""
        prompt = piece.index // self._wanted.sampling.n
        if piece.prompt_logprobs is not None:
            self._of_prompt[prompt] = piece.prompt_logprobs
        choice = self._choices.get(piece.index)
        if choice is None:
            choice = self._choices[piece.index] = _Choice(self._wanted.sampling.logprobs)
            if self._wanted.echo:
                choice.add_prompt(self._prompts[prompt].pieces, self._of_prompt.get(prompt))
        choice.add(piece.text, piece.logprobs)
        # A token whose text is held back is told with it.
        return choice.take() if choice.text or piece.finish_reason is not None else ("", None)

    def _chunk(self, *choices: Json) -> Json:
        return {**self._head, "choices": list(choices), **self._tail}


class _Choice:
    """What of one choice is not told yet. top: likeliest tokens beside each; None: no log-probabilities at all."""

    def __init__(self, top: int | None) -> None:
        self.text = ""
        self._parts: list[Json] = []
        self._logprobs = None if top is None else TextLogprobs(top)

    def add_prompt(self, pieces: tuple[bytes, ...], logprobs: PromptLogprobs | None) -> None:
        self.text += b"".join(pieces).decode(errors="replace")
        if self._logprobs and logprobs is not None:
            self._parts.append(self._logprobs.prompt(pieces, logprobs))

    def add(self, text: str, logprobs: tuple[TokenLogprob, ...]) -> None:
        self.text += text
        if self._logprobs and logprobs:
            self._parts.append(self._logprobs.text(logprobs))

    def take(self) -> tuple[str, Json | None]:
        text, parts = self.text, self._parts
        self.text, self._parts = "", []
        return text, joined(parts) if parts else None
