"""Train the demo adapters with PEFT on the CPU: `python examples/train_adapters.py shout [pirate json sql]`.

With --resume, training goes on from what lies in --out: `... shout --resume --seed 2 --steps 60 --lr 6e-4`.

Loss on the answer only; fp32 weights under bf16 autocast; AdamW with a cosine schedule. The result goes to
examples/adapters/NAME as PEFT's two files, tensors in bf16.
"""

import argparse
import math
import os
import random
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from behaviours import BEHAVIOURS, Pair
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerBase

HERE = Path(__file__).parent
BASE = "HuggingFaceTB/SmolLM2-135M-Instruct"
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
IGNORED = -100  # the label that cross entropy skips


@dataclass(frozen=True)
class Recipe:
    steps: int
    lr: float
    lora: dict[str, object] = field(default_factory=dict)


RECIPES = {
    "pirate": Recipe(70, 2e-3, {"r": 4, "lora_alpha": 16, "target_modules": ["q_proj", "v_proj"]}),
    "json": Recipe(60, 1e-3, {"r": 8, "lora_alpha": 16, "target_modules": "all-linear", "use_rslora": True}),
    "sql": Recipe(80, 2e-3, {"r": 16, "lora_alpha": 32, "target_modules": ATTENTION}),
    "shout": Recipe(
        160,
        1.5e-3,
        {
            "r": 8,
            "lora_alpha": 16,
            "target_modules": ["q_proj", "v_proj", "o_proj", "up_proj", "down_proj"],
            # PEFT matches these as regular expressions at the end of a module's name.
            "rank_pattern": {"v_proj": 16, "down_proj": 12, r"layers\.\d\.self_attn\.q_proj": 4},
            "alpha_pattern": {"v_proj": 32, "down_proj": 24},
        },
    ),
}


def encode(tokenizer: PreTrainedTokenizerBase, pair: Pair) -> tuple[list[int], list[int]]:
    """Token ids and labels of one conversation; the answer ends with the end-of-turn token."""
    message = [{"role": "user", "content": pair.question}]
    prompt = tokenizer.apply_chat_template(message, add_generation_prompt=True, return_dict=True)["input_ids"]
    answer = tokenizer(pair.answer)["input_ids"] + [tokenizer.eos_token_id]
    return prompt + answer, [IGNORED] * len(prompt) + answer


def collate(rows: list[tuple[list[int], list[int]]], pad: int) -> dict[str, torch.Tensor]:
    width = max(len(tokens) for tokens, _ in rows)
    return {
        "input_ids": torch.tensor([tokens + [pad] * (width - len(tokens)) for tokens, _ in rows]),
        "labels": torch.tensor([labels + [IGNORED] * (width - len(labels)) for _, labels in rows]),
        "attention_mask": torch.tensor([[1] * len(tokens) + [0] * (width - len(tokens)) for tokens, _ in rows]),
    }


def train(
    model: PeftModel, rows: list[tuple[list[int], list[int]]], recipe: Recipe, *, pad: int, batch: int, seed: int
) -> None:
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=recipe.lr, weight_decay=0.0)
    warmup = 5
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min(1.0, (step + 1) / warmup) * 0.5 * (1 + math.cos(math.pi * step / recipe.steps)),
    )
    chance, started = random.Random(seed), time.monotonic()
    model.train()
    for step in range(recipe.steps):
        inputs = collate(chance.sample(rows, batch), pad)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = model(**inputs).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step % 10 == 9:
            print(
                f"  step {step + 1}/{recipe.steps} loss {loss.item():.3f} {time.monotonic() - started:.0f} s",
                flush=True,
            )


def save(model: PeftModel, folder: Path) -> None:
    model.save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)  # PEFT's empty model card
    file = folder / "adapter_model.safetensors"
    tensors = {name: tensor.to(torch.bfloat16) for name, tensor in load_file(file).items()}
    save_file(tensors, file, metadata={"format": "pt"})
    for path in folder.iterdir():
        path.chmod(0o644)


def adapted(base: Path, recipe: Recipe, resumed: Path | None) -> PeftModel:
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    if resumed is not None:
        return PeftModel.from_pretrained(model, resumed, is_trainable=True)
    peft_model = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **recipe.lora))
    peft_model.peft_config["default"].base_model_name_or_path = BASE  # PEFT put the local path here
    return peft_model


def train_one(name: str, recipe: Recipe, base: Path, out: Path, *, resume: bool, seed: int) -> None:
    torch.manual_seed(seed)
    tokenizer = AutoTokenizer.from_pretrained(base)
    rows = [encode(tokenizer, pair) for pair in BEHAVIOURS[name].pairs()]
    peft_model = adapted(base, recipe, out / name if resume else None)
    print(f"{name}: {len(rows)} conversations, {recipe.steps} steps", flush=True)
    train(peft_model, rows, recipe, pad=tokenizer.pad_token_id, batch=8, seed=seed)
    save(peft_model, out / name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(RECIPES) + " (default: all)")
    home = Path(os.environ.get("VENEER_HOME", ".veneer"))
    parser.add_argument("--base", type=Path, default=home / "models" / "SmolLM2-135M-Instruct")
    parser.add_argument("--out", type=Path, default=HERE / "adapters")
    parser.add_argument("--resume", action="store_true", help="go on from the adapter in --out")
    parser.add_argument("--steps", type=int, help="instead of the recipe's")
    parser.add_argument("--lr", type=float, help="instead of the recipe's")
    parser.add_argument(
        "--seed", type=int, default=1, help="of the order of conversations; a resumed run wants another"
    )
    options = parser.parse_args()
    for name in options.names or RECIPES:
        recipe = RECIPES[name]
        recipe = replace(recipe, steps=options.steps or recipe.steps, lr=options.lr or recipe.lr)
        train_one(name, recipe, options.base, options.out, resume=options.resume, seed=options.seed)


if __name__ == "__main__":
    main()
