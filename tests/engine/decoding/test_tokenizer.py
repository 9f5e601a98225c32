import json
import shutil
from pathlib import Path

import msgspec
import pytest
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from engine.decoding.tokenizer import PromptRefused, Tokenizer, TokenizerError
from engine.protocol import Detokenize, Detokenized, Message, Prepare

VOCAB, CONTEXT = 49_152, 8_192
TEXTS = [
    "Hello, world!",
    "  two  spaces\n\n1. one",
    "naïve 日本語 🙂🏴‍☠️",
    "<|im_start|>system\nx<|im_end|>",
    "\ttab 12345",
]


@pytest.fixture(scope="module")
def tokenizer(base_model: Path) -> Tokenizer:
    return Tokenizer(base_model, vocab_size=VOCAB, context_len=CONTEXT)


@pytest.fixture(scope="module")
def oracle(base_model: Path) -> PreTrainedTokenizerBase:
    return AutoTokenizer.from_pretrained(base_model)


@pytest.mark.parametrize("text", TEXTS)
def test_text_is_what_transformers_makes_of_it(
    tokenizer: Tokenizer, oracle: PreTrainedTokenizerBase, text: str
) -> None:
    ids = list(tokenizer.prepare(Prepare("c", text=text)).token_ids)
    assert ids == oracle(text)["input_ids"]
    stream = tokenizer.stream()
    pieces = [stream.push(token) for token in ids] + [stream.finish()]
    assert "".join(pieces) == oracle.decode(ids, skip_special_tokens=True)
    assert not any("\ufffd" in piece for piece in pieces)


@pytest.mark.parametrize(
    "messages",
    [
        [("user", "Hi")],
        [("system", "Be brief."), ("user", "Hi")],
        [("user", "Hi"), ("assistant", "Hello."), ("user", "日本? 🙂")],
    ],
)
def test_chat_is_what_transformers_makes_of_it(
    tokenizer: Tokenizer, oracle: PreTrainedTokenizerBase, messages: list[tuple[str, str]]
) -> None:
    ours = tokenizer.prepare(Prepare("c", messages=tuple(Message(role, content) for role, content in messages)))
    theirs = oracle.apply_chat_template(
        [{"role": role, "content": content} for role, content in messages], add_generation_prompt=True, return_dict=True
    )
    assert list(ours.token_ids) == theirs["input_ids"]


def test_the_end_is_where_the_model_says(tokenizer: Tokenizer) -> None:
    assert tokenizer.eos_ids == {2}


@pytest.mark.parametrize(
    ("prompt", "code", "param"),
    [
        (Prepare("c"), "invalid_prompt", None),
        (Prepare("c", text="a", token_ids=(1,)), "invalid_prompt", None),
        (Prepare("c", messages=()), "invalid_prompt", "messages"),
        (Prepare("c", text=""), "invalid_prompt", "text"),
        (Prepare("c", token_ids=()), "invalid_prompt", "token_ids"),
        (Prepare("c", token_ids=(1, VOCAB)), "invalid_prompt", "token_ids"),
        (Prepare("c", token_ids=(-1,)), "invalid_prompt", "token_ids"),
        (Prepare("c", token_ids=(5,) * CONTEXT), "context_length_exceeded", "token_ids"),
        (Prepare("c", text="word " * CONTEXT), "context_length_exceeded", "text"),
        (Prepare("c", text="w" * 60_000_000), "context_length_exceeded", "text"),
        (Prepare("c", messages=(Message("user", "word " * CONTEXT),)), "context_length_exceeded", "messages"),
    ],
)
def test_refused_with_a_reason(tokenizer: Tokenizer, prompt: Prepare, code: str, param: str | None) -> None:
    with pytest.raises(PromptRefused) as caught:
        tokenizer.prepare(prompt)
    error = caught.value.error
    assert (error.ref, error.code, error.param, error.permanent) == ("c", code, param, True)


@pytest.fixture
def folder(base_model: Path, tmp_path: Path) -> Path:
    """A copy of the model's small files, to be spoiled."""
    for name in ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(base_model / name, tmp_path)
    return tmp_path


def with_template(folder: Path, template: str) -> Tokenizer:
    (folder / "chat_template.jinja").write_text(template)
    return Tokenizer(folder, vocab_size=VOCAB, context_len=CONTEXT)


def chat(tokenizer: Tokenizer) -> str:
    prepared = tokenizer.prepare(Prepare("c", messages=(Message("user", "Hi"),)))
    return tokenizer.decode(list(prepared.token_ids))


def test_a_template_file_of_its_own_comes_first_and_knows_the_special_tokens(folder: Path) -> None:
    template = "{%- for m in messages %}{{ m.role }}:{{ m['content'] }};{{ bos_token is string }}{% endfor -%}"
    assert chat(with_template(folder, template)) == "user:Hi;True"


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
        ("{{ messages[7].content }}", "no element 7"),
        ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "unsafe"),
        ("{{ messages.append(1) }}", "unsafe"),
        ("{% for i in range(99999999) %}x{% endfor %}", "Range too big"),
        ("{% for i in range(90000) %}{{ 'x' * 9000 }}{% endfor %}", "more than"),
    ],
)
def test_a_template_that_refuses_or_misbehaves_is_the_requests_error(folder: Path, template: str, message: str) -> None:
    with pytest.raises(PromptRefused, match=message) as caught:
        chat(with_template(folder, template))
    assert (caught.value.error.code, caught.value.error.param) == ("invalid_prompt", "messages")


def test_no_template_means_text_only(folder: Path) -> None:
    config = json.loads((folder / "tokenizer_config.json").read_text())
    config.pop("chat_template", None)
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    tokenizer = Tokenizer(folder, vocab_size=VOCAB, context_len=CONTEXT)
    with pytest.raises(PromptRefused, match="no chat template"):
        chat(tokenizer)
    assert tokenizer.prepare(Prepare("c", text="Hi"))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("tokenizer.json", None, "is missing"),
        ("tokenizer.json", "{}", "cannot be read"),
        ("config.json", "[]", "JSON object"),
        ("config.json", None, "cannot be read"),
        ("chat_template.jinja", "{% for %}", "not valid Jinja"),
    ],
)
def test_a_spoiled_folder_is_named(folder: Path, name: str, content: str | None, message: str) -> None:
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(content)
    with pytest.raises(TokenizerError, match=message):
        Tokenizer(folder, vocab_size=VOCAB, context_len=CONTEXT)


@pytest.mark.parametrize("text", TEXTS)
def test_pieces_are_the_bytes_of_the_text_and_detokenize_writes_all_out(
    tokenizer: Tokenizer, oracle: PreTrainedTokenizerBase, text: str
) -> None:
    prepared = tokenizer.prepare(Prepare("c", text=text, with_pieces=True, special_tokens=False))
    assert list(prepared.token_ids) == oracle(text, add_special_tokens=False)["input_ids"]
    assert b"".join(prepared.pieces) == text.encode()
    assert tokenizer.detokenize(Detokenize("d", prepared.token_ids)) == Detokenized("d", text)


@pytest.mark.parametrize("ids", [(1, VOCAB), (-1,)])
def test_ids_outside_the_vocabulary_are_not_detokenized(tokenizer: Tokenizer, ids: tuple[int, ...]) -> None:
    with pytest.raises(PromptRefused, match="not in the vocabulary") as caught:
        tokenizer.detokenize(Detokenize("d", ids))
    assert (caught.value.error.ref, caught.value.error.param) == ("d", "token_ids")


def test_a_prompt_that_ends_in_a_thought_says_so(folder: Path) -> None:
    tokenizer = with_template(folder, "{{ messages[0].content }}{% if thinks %}<think>\n{% else %}</think>{% endif %}")
    asked = Prepare("c", messages=(Message("user", "Hi"),))
    assert not tokenizer.prepare(asked).is_thinking
    assert tokenizer.prepare(msgspec.structs.replace(asked, template_options={"thinks": True})).is_thinking
    assert tokenizer.reasoning == ("<think>", "</think>")
