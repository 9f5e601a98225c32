"""Veneer and its peers on the same work, in one run: `python -m benchmarks.peers MODEL_FOLDER [--quick] [--only ...]`.

All get the same model in bf16 and the same adapters of random weights, ranks 4 to 64 in turn. Veneer is its whole
stack, as `make up` runs it, asked through its door; vLLM is asked through its own with the same client. transformers
with PEFT (static mixed batches) and llama.cpp (its batch API) are called in process and spared HTTP. Before a server is
timed with a set of adapters it answers with each of them, and the model in fp32 with that adapter merged into its
weights judges every token. Rounds are interleaved, each with prompts that nobody has seen; figures are medians.

"Veneer is": Veneer's tokens/s over the server's, the median of the rounds' own ratios. "Share of bound": tokens/s over
what this machine's memory and multipliers, measured first, would allow (benchmarks/comparison/bound.py). TTFT is of
those requests that arrive behind others where the work has such. Memory is the peak of each process, added up.
`make bench-setup` builds the peers; one that is not there, breaks, or cannot do some work is said to. The last line is
JSON. Figures of one shared machine move from run to run; the ratios of one run are what to compare.
"""

import sys
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "platform"))  # as manage.py does

from benchmarks.comparison.command import main  # after the path is set

if __name__ == "__main__":
    sys.exit(main(__doc__))
