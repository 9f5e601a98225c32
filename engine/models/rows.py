"""What a step's forward pass hands over."""

from typing import NamedTuple

from torch import Tensor


class Rows(NamedTuple):
    """The rows that runs asked for, in the order of the batch. logits: float32 [rows, vocab]. hidden: float32 [rows of
    pooled sequences, hidden size], after the last norm."""

    logits: Tensor
    hidden: Tensor
