"""The ops of a decoder layer on a CUDA device: torch's, with the LoRA pair in Triton."""

from torch import Tensor

from kernels import lora
from kernels.adapter_table import AdapterTable
from kernels.segments import Segments
from kernels.torch_ops import TorchOps


class CudaOps(TorchOps):
    name = "cuda"
    chunk = lora.CHUNK

    def add_lora(self, y: Tensor, x: Tensor, table: AdapterTable, segments: Segments) -> None:
        lora.add_lora(y, x, table, segments)
