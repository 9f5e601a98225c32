"""`python examples/make_broken_adapter.py DIR`: the pirate adapter, spoiled in four ways for the check to find.

A start that changes the base model (PiSSA) in the config; one tensor of another base model's width; a NaN; names that
no module has.
"""

import argparse
import json
import struct
from pathlib import Path

SOURCE = Path(__file__).parent / "adapters" / "pirate"
LAYER = "base_model.model.model.layers"


def make_broken_adapter(folder: Path) -> Path:
    """Write both files into `folder`, made if absent. Torch-free."""
    folder.mkdir(parents=True, exist_ok=True)
    config = json.loads((SOURCE / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps(config | {"init_lora_weights": "pissa"}, indent=2) + "\n")
    content = (SOURCE / "adapter_model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header, body = json.loads(content[8 : 8 + length]), bytearray(content[8 + length :])
    _spoil(header, body)
    text = json.dumps(header).encode()
    (folder / "adapter_model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + body)
    return folder


def _spoil(header: dict[str, dict[str, object]], body: bytearray) -> None:
    wide = header[f"{LAYER}.0.self_attn.q_proj.lora_A.weight"]
    rank, width = wide["shape"]
    wide["shape"] = [rank // 2, width * 2]
    start, _ = header[f"{LAYER}.1.self_attn.q_proj.lora_A.weight"]["data_offsets"]
    body[start : start + 2] = b"\xc0\x7f"  # a NaN in bfloat16
    for side in ("A", "B"):
        header[f"transformer.h.2.attn.lora_{side}.weight"] = header.pop(
            f"{LAYER}.2.self_attn.q_proj.lora_{side}.weight"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    print(make_broken_adapter(parser.parse_args().folder))


if __name__ == "__main__":
    main()
