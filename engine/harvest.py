"""What the rows of a step yield: tokens, log-probabilities of prompts, beams' candidates, pooled hidden states."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from engine.choice import Choice
from engine.decoding.constraint import ConstraintRefused
from engine.decoding.logprobs import Scored, score
from engine.decoding.sampler import Draw, sample
from engine.models.rows import Rows
from engine.request import Request
from engine.scheduling.sequence import Batch, Run, Sequence
from engine.speculation.verify import verification


@dataclass(slots=True)
class Pick:
    """One draw. row: of the logits. token: what was drawn, None where the row is not finite. drafted: how many tokens
    of its run's draft are taken to come before it."""

    request: Request
    choice: Choice
    run: Run
    row: int
    token: int | None = None
    drafted: int = 0
    scored: Scored | None = None


@dataclass(slots=True)
class Harvest:
    """prompts: by request, scores of the prompt's tokens that follow the run's rows. refused: by request, why its
    grammar cannot be held to. broken: requests whose rows are not finite. searches: by request, runs of its beams.
    forking: requests whose choices all drew from the end of the prompt, which one sequence computed."""

    picks: list[Pick] = field(default_factory=list)
    prompts: dict[Request, tuple[Run, list[Scored]]] = field(default_factory=dict)
    pooled: dict[Request, tuple[Run, Tensor]] = field(default_factory=dict)
    searches: dict[Request, list[Run]] = field(default_factory=dict)
    forking: list[Request] = field(default_factory=list)
    refused: dict[Request, str] = field(default_factory=dict)
    broken: dict[Request, None] = field(default_factory=dict)

    @property
    def came(self) -> dict[Sequence, list[int | None]]:
        """What each sequence's picks drew."""
        came: dict[Sequence, list[int | None]] = {}
        for pick in self.picks:
            came.setdefault(pick.choice.sequence, []).append(pick.token)
        return came


def harvest(batch: Batch, rows: Rows, live: Mapping[str, Request]) -> Harvest:
    """Read every row that the batch has asked for. live: by request id."""
    got, draws = Harvest(), list[Draw]()
    row = hidden = 0
    for run in batch.runs:
        request = live[run.sequence.request_id]
        if run.sequence.pools:
            hidden += run.rows
            _pool(got, request, run, rows.hidden[hidden - run.rows : hidden])
            continue
        row += run.rows
        if run.sequence.rows_from is not None:
            _score_prompt(got, request, run, rows.logits[row - run.rows : row])
        if not run.samples or request.is_read_only:
            continue
        if request.search is None:
            _aim(got, draws, request, run, row - 1)
        else:
            _read_beam(got, request, run, rows.logits[row - 1])
    if draws:
        _draw(got.picks, draws, rows.logits)
        got.picks = _standing(got.picks)
    return got


def _pool(got: Harvest, request: Request, run: Run, hidden: Tensor) -> None:
    if run.rows:
        got.pooled[request] = run, hidden.double().sum(dim=0)
        if not bool(got.pooled[request][1].isfinite().all()):
            got.broken[request] = None


def _score_prompt(got: Harvest, request: Request, run: Run, logits: Tensor) -> None:
    """The row of each token of the prompt scores the next one."""
    first = run.start + run.length - run.rows
    following = run.sequence.tokens[first + 1 : min(first + 1 + run.rows, run.sequence.prompt_len)]
    top = request.sampling.prompt_logprobs or 0
    scored = score(logits[: len(following)], following, [top] * len(following))
    got.prompts[request] = run, scored
    if not bool(logits.amax(dim=-1).isfinite().all()):
        got.broken[request] = None


def _aim(got: Harvest, draws: list[Draw], request: Request, run: Run, row: int) -> None:
    choices = request.drawing(run.sequence)
    if len(choices) > 1:
        got.forking.append(request)
    try:
        for choice in choices:
            for drafted, draw in enumerate(verification(choice, run.draft) if run.draft else (choice.draw(),)):
                draws.append(draw)
                got.picks.append(Pick(request, choice, run, row - len(run.draft) + drafted, drafted=drafted))
    except ConstraintRefused as refusal:
        got.refused[request] = str(refusal)


def _read_beam(got: Harvest, request: Request, run: Run, row: Tensor) -> None:
    got.searches.setdefault(request, []).append(run)
    if request.search is None or not request.search.read(run.sequence, row):
        got.broken[request] = None


def _standing(picks: list[Pick]) -> list[Pick]:
    """Without those that follow a drafted token which did not come."""
    standing = list[Pick]()
    for pick in picks:
        if not pick.drafted or _follows(pick, standing[-1]):
            standing.append(pick)
    return standing


def _follows(pick: Pick, before: Pick) -> bool:
    place = pick.drafted - 1
    return before.run is pick.run and before.drafted == place and before.token == pick.run.draft[place]


def _draw(picks: list[Pick], draws: list[Draw], logits: Tensor) -> None:
    rows = [pick.row for pick in picks]
    if rows != list(range(len(logits))):
        logits = logits[rows]
    scores = list[int]()
    for place, token in enumerate(sample(logits, draws)):
        picks[place].token = token
        if token is not None and picks[place].request.top is not None:
            scores.append(place)
    if scores:
        tokens, top = [picks[place].token or 0 for place in scores], [picks[place].request.top or 0 for place in scores]
        for place, scored in zip(scores, score(logits[scores], tokens, top), strict=True):
            picks[place].scored = scored
