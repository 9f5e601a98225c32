"""Block shapes of the LoRA pair: sane ones by rule, better ones from a table that `benchmarks/tune_lora.py` measured.

A table is `tuned/<name of the GPU>.json`: a list of objects, each with a rank class, a token class and the tiles.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

TUNED = Path(__file__).parent / "tuned"
LEAST_ROWS = 16  # the least that a matrix unit takes
MOST_ROWS = 64  # from here on a group of warps multiplies at once
CLASSES = (16, 32, 64, 128, 256)
TOKEN_CLASSES = (1, 8, 32, 128, 512, 2048, 8192)


@dataclass(frozen=True, slots=True)
class LoraTiles:
    """rank: columns of a shrink program, and what an expand program adds at a time. inside, out: elements of x and y.

    splits: parts that the shrink cuts its sum into, added in order by the expand. warps, stages: Triton's.
    """

    rank: int
    inside: int
    out: int
    splits: int
    warps: int
    stages: int


@dataclass(frozen=True, slots=True)
class LoraWork:
    """One launch as far as its block shapes depend on it. chunks x slices programs meet each rank tile.

    rows: of a chunk, as the matrix unit takes them.
    """

    tokens: int
    chunks: int
    rows: int
    slices: int
    largest_rank: int
    inside: int


Table = Mapping[tuple[int, int], LoraTiles]


def class_of(value: int, classes: tuple[int, ...]) -> int:
    """The smallest class that holds the value; the last holds all."""
    return next((each for each in classes if value <= each), classes[-1])


def choose_tiles(work: LoraWork, multiprocessors: int, table: Table) -> LoraTiles:
    """What was measured for such work, or else what bytes suggest: long rows of weights, and no idle multiprocessor."""
    key = class_of(work.largest_rank, CLASSES), class_of(work.tokens, TOKEN_CLASSES)
    if key in table:
        return table[key]
    rank = min(64, class_of(work.largest_rank, CLASSES))
    inside = 128 if rank <= 32 else 64
    programs = work.chunks * work.slices * -(-work.largest_rank // rank)
    out = 128 if rank <= 32 and work.rows < MOST_ROWS else 64
    return LoraTiles(rank, inside, out, _splits(programs, work.inside // inside, multiprocessors), 4, 3)


def _splits(programs: int, steps: int, multiprocessors: int) -> int:
    """Powers of two up to 16: only below one wave of programs, and never less than 4 steps of the sum for each."""
    splits = 1
    while splits < 16 and programs * splits * 2 <= multiprocessors and steps >= splits * 8:
        splits *= 2
    return splits


def file_name(gpu: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", gpu.lower()).strip("-") + ".json"


def read_table(gpu: str, folder: Path = TUNED) -> Table:
    """Empty where nobody has measured this GPU. Raises ValueError on a file that is no table."""
    path = folder / file_name(gpu)
    if not path.exists():
        return {}
    try:
        lines = json.loads(path.read_text())
        return {(line["rank_class"], line["token_class"]): LoraTiles(**line["tiles"]) for line in lines}
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is no table of LoRA tiles ({error!r}): measure it anew or remove it") from error


def write_table(gpu: str, table: Table, folder: Path = TUNED) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / file_name(gpu)
    fields = LoraTiles.__slots__
    lines = [
        {"rank_class": rank, "token_class": tokens, "tiles": {name: getattr(tiles, name) for name in fields}}
        for (rank, tokens), tiles in sorted(table.items())
    ]
    path.write_text("[\n" + ",\n".join(json.dumps(line) for line in lines) + "\n]\n")
    return path
