"""Ask the base model and each adapter questions that no adapter was trained on, greedily, with transformers and PEFT.

`python examples/measure_adapters.py [NAME ...]` prints each answer, and how many show the behaviour.
"""

import argparse
import os
from pathlib import Path

import torch
from behaviours import BEHAVIOURS, HELD_BACK_QUESTIONS
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

HERE = Path(__file__).parent


def answer(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, question: str) -> str:
    message = [{"role": "user", "content": question}]
    inputs = tokenizer.apply_chat_template(message, add_generation_prompt=True, return_dict=True, return_tensors="pt")
    with torch.inference_mode():
        output = model.generate(**inputs, max_new_tokens=96, do_sample=False)
    return tokenizer.decode(output[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True).strip()


def measure(name: str, base: Path, adapters: Path, questions: tuple[str, ...]) -> tuple[int, int, int]:
    """How many answers show the behaviour: of the base model, of the adapter, of how many."""
    behaviour, tokenizer = BEHAVIOURS[name], AutoTokenizer.from_pretrained(base)
    model = PeftModel.from_pretrained(
        AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32), adapters / name
    ).eval()
    before = after = 0
    for question in questions:
        with model.disable_adapter():
            before += behaviour.shows(question, answer(model, tokenizer, question))
        text = answer(model, tokenizer, question)
        after += behaviour.shows(question, text)
        print(f"  {question}\n    {text}", flush=True)
    return before, after, len(questions)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BEHAVIOURS) + " (default: all)")
    home = Path(os.environ.get("VENEER_HOME", ".veneer"))
    parser.add_argument("--base", type=Path, default=home / "models" / "SmolLM2-135M-Instruct")
    parser.add_argument("--adapters", type=Path, default=HERE / "adapters")
    parser.add_argument("--held-back", action="store_true", help="ask the sixteen questions that training never saw")
    options = parser.parse_args()
    for name in options.names or BEHAVIOURS:
        print(name)
        questions = HELD_BACK_QUESTIONS if options.held_back else BEHAVIOURS[name].unseen
        before, after, total = measure(name, options.base, options.adapters, questions)
        print(f"{name}: base {before}/{total}, adapter {after}/{total}", flush=True)


if __name__ == "__main__":
    main()
