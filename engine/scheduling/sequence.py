"""`Sequence`, one request's state inside the engine, and `Batch`, one step's work."""

from dataclasses import dataclass, field, replace

from engine.cache.prefix import Fork
from engine.protocol import AdapterRef, Sampling


@dataclass(slots=True, eq=False)
class Sequence:
    """Lengths are named by where they live: known in `tokens`; `cached_len` of them came from the prefix cache;
    `computed_len` of them have K/V in `pages`. `prompt_len` never changes, also when a preempted sequence comes back.

    slot: adapter slot while running, None = base model. pages: page table; page i holds tokens [i*size, (i+1)*size).
    behind: pages at the table's head that lie behind the window of every layer. They are not its own any more: the
    entries say 0, and nothing reads them.
    max_len: tokens it may grow to. arrival: seniority, kept when preempted.
    metered_cached_len: `cached_len` of the first admission, None before it: what preemption does is not the tenant's.
    tenant: whose turn it is served in (`admission.turn_of`). weight: its share of the service.
    queued_at: the plan after which it began to wait.
    passed_over_at: the plan that first passed it over because its adapter was in no slot.
    namespace: of its K/V in the prefix cache; base_namespace: the base model's, of the same tenant. fork: where an
    activated adapter begins, known from its first slot on; tokens before it are the base model's.
    rows_from: the first token whose row (logits, or hidden state) is still asked for; None: only the last token's is.
    pools: its rows are hidden states.
    """

    request_id: str
    tenant: str
    namespace: bytes
    adapter: AdapterRef | None
    sampling: Sampling
    tokens: list[int]
    prompt_len: int
    slot: int | None = None
    pages: list[int] = field(default_factory=list)
    behind: int = 0
    cached_len: int = 0
    computed_len: int = 0
    max_len: int = 0
    arrival: int = 0
    metered_cached_len: int | None = None
    passed_over_at: int | None = None
    weight: float = 1.0
    queued_at: int = 0
    base_namespace: bytes = b""
    fork: Fork | None = None
    rows_from: int | None = None
    pools: bool = False

    @property
    def first_row(self) -> int:
        """The first token whose row is needed: K/V of those before it may come from the prefix cache."""
        last = len(self.tokens) - 1
        return last if self.rows_from is None else min(self.rows_from, last)

    @property
    def held_pages(self) -> list[int]:
        """Those that it has a reference on."""
        return self.pages[self.behind :]

    @property
    def root(self) -> bytes:
        """The namespace that its first page is in."""
        return self.namespace if self.fork is None else self.base_namespace

    @property
    def completion_len(self) -> int:
        return len(self.tokens) - self.prompt_len

    @property
    def adapted_from(self) -> int:
        """The first token that its adapter computes."""
        return 0 if self.fork is None else self.fork.at

    def heir(self, *tokens: int) -> "Sequence":
        """One that goes on from the tokens so far with these, and holds nothing yet."""
        return replace(
            self,
            tokens=[*self.tokens, *tokens],
            slot=None,
            pages=[],
            behind=0,
            cached_len=0,
            computed_len=0,
            passed_over_at=None,
            rows_from=None,
        )

    @property
    def remaining_len(self) -> int:
        """Tokens still to compute before the next one can be sampled."""
        return len(self.tokens) - self.computed_len


@dataclass(frozen=True, slots=True)
class Run:
    """One sequence's share of a step: tokens [start, start + length) of it are computed.

    draft: the last of those, where they are only guessed to follow the sequence's own (`engine.speculation`).
    rows: how many of the last of them have to yield a row of output. 0: a chunk of a prompt; 1: the next token is
    sampled; all: log-probabilities of a prompt; k + 1: verification of k drafts.
    """

    sequence: Sequence
    start: int
    length: int
    rows: int
    draft: tuple[int, ...] = ()

    @property
    def tokens(self) -> list[int]:
        """The `length` tokens that it computes."""
        return [*self.sequence.tokens[self.start : self.start + self.length], *self.draft]

    @property
    def samples(self) -> bool:
        """It reaches the sequence's last token: the next one is sampled from that one's row."""
        return self.start + self.length == len(self.sequence.tokens) + len(self.draft)


@dataclass(frozen=True, slots=True)
class Batch:
    """What one step computes. Pages for every run are allocated before the batch is handed over."""

    runs: tuple[Run, ...]

    @property
    def tokens(self) -> int:
        return sum(run.length for run in self.runs)

    @property
    def rows(self) -> int:
        return sum(run.rows for run in self.runs)
