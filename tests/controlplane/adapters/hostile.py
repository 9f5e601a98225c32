"""Hostile uploads, made from a good one: each is one lie, and the codes that may refuse it.

A generator rather than a list: every tensor, key and notation gets every kind of lie.
"""

import json
import struct
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, NamedTuple

from tests.controlplane.adapters.peft_folder import PeftFolder

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
Header = dict[str, Any]
INVALID, CUT = frozenset({"header_invalid"}), frozenset({"header_truncated"})
BROKEN = INVALID | CUT
BAD_CONFIG = frozenset({"config_invalid"})
UNSUPPORTED = frozenset({"config_unsupported"})
UNMATCHED = frozenset({"tensor_unmatched", "tensor_unpaired", "modules_to_save_unsupported"})


class Case(NamedTuple):
    """codes: every problem's code is one of them."""

    name: str
    folder: PeftFolder
    codes: frozenset[str]


class Good:
    """The good adapter taken apart: config, header, and the bytes behind it."""

    def __init__(self, folder: PeftFolder) -> None:
        self.files = folder.files
        self.config: dict[str, Any] = json.loads(folder.files[CONFIG])
        raw = folder.files[WEIGHTS]
        (length,) = struct.unpack("<Q", raw[:8])
        self.header: Header = json.loads(raw[8 : 8 + length])
        self.header.pop("__metadata__", None)
        self.data = raw[8 + length :]
        self.tensors = sorted(self.header)

    def with_config(self, config: object) -> PeftFolder:
        text = config if isinstance(config, bytes) else json.dumps(config).encode()
        return PeftFolder(self.files | {CONFIG: text})

    def with_weights(self, raw: bytes) -> PeftFolder:
        return PeftFolder(self.files | {WEIGHTS: raw})

    def with_header(self, header: object, data: bytes | None = None) -> PeftFolder:
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        return self.with_weights(struct.pack("<Q", len(text)) + text + (self.data if data is None else data))

    def changed(self, tensor: str, **entry: object) -> PeftFolder:
        header = deepcopy(self.header)
        header[tensor] |= entry
        return self.with_header(header)

    def renamed(self, tensor: str, name: str) -> PeftFolder:
        return self.with_header({name if each == tensor else each: entry for each, entry in self.header.items()})


def hostile(folder: PeftFolder) -> Iterator[Case]:
    good = Good(folder)
    kinds: tuple[Callable[[Good], Iterator[Case]], ...] = (
        lengths, cuts, header_texts, entries, offsets, dtypes, shapes, values, names, config_texts, config_values,
        config_keys, patterns, disguises,
    )  # fmt: skip
    for kind in kinds:
        yield from kind(good)


def lengths(good: Good) -> Iterator[Case]:
    """What the first eight bytes claim."""
    raw = good.files[WEIGHTS]
    for length in (0, 1, 7, len(raw) - 7, len(raw), 2**24, 2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64 - 1):
        yield Case(f"length {length}", good.with_weights(struct.pack("<Q", length) + raw[8:]), BROKEN)


def cuts(good: Good) -> Iterator[Case]:
    raw = good.files[WEIGHTS]
    for end in (0, 1, 7, 8, 9, 100, len(raw) // 4, len(raw) // 2, len(raw) - 1):
        yield Case(f"cut at {end}", good.with_weights(raw[:end]), BROKEN)
    for more in (1, 4, 4096):
        yield Case(f"{more} bytes behind", good.with_weights(raw + b"\0" * more), BROKEN)


def header_texts(good: Good) -> Iterator[Case]:
    """What is no JSON, or JSON that two readers read differently."""
    whole = json.dumps(good.header).encode()
    first = good.tensors[0]
    entry = json.dumps(good.header[first]).encode()
    twice = whole[:-1] + b"," + json.dumps(first).encode() + b":" + entry + b"}"
    texts = {
        "nothing": b"", "null": b"null", "a list": b"[]", "a number": b"1", "a string": b'"a"', "open": b"{",
        "closed twice": whole + b"}", "blank first": b" " + whole, "a mark first": b"\xef\xbb\xbf" + whole,
        "no UTF-8": whole.replace(b"lora_A", b"lora_\xff", 1), "UTF-16": whole.decode().encode("utf-16"),
        "a key twice": twice, "NUL": whole + b"\0", "comment": whole + b"//",
        "single quotes": whole.replace(b'"', b"'"),
        "a trailing comma": whole[:-1] + b",}", "deep lists": b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
        "deep objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "huge number": b'{"a":' + b"9" * 50_000 + b"}",
        "NaN": b'{"a":NaN}', "Infinity": b'{"a":-Infinity}',
        "an inner key twice": twice.replace(entry, b'{"dtype":"F32","dtype":"F64"}'),
    }  # fmt: skip
    for name, text in texts.items():
        yield Case(f"header: {name}", good.with_header(text), BROKEN)
    for name, metadata in {"a list": [], "a number": 1, "nested": {"a": {}}, "numbers": {"a": 1}, "null": None}.items():
        yield Case(f"metadata: {name}", good.with_header({"__metadata__": metadata, **good.header}), INVALID)


def entries(good: Good) -> Iterator[Case]:
    """What a tensor's description is made of."""
    first = good.tensors[0]
    for wrong in (None, [], "F32", 1, {}, True):
        yield Case(f"entry {wrong!r}", good.with_header(good.header | {first: wrong}), INVALID)
    for key in ("dtype", "shape", "data_offsets"):
        entry = {name: value for name, value in good.header[first].items() if name != key}
        yield Case(f"entry without {key}", good.with_header(good.header | {first: entry}), INVALID)
    yield Case("entry with more", good.changed(first, strides=[1, 1]), INVALID)


def offsets(good: Good) -> Iterator[Case]:
    """Overlaps, holes, and places outside the file, for each tensor."""
    for tensor in good.tensors:
        start, end = good.header[tensor]["data_offsets"]
        size, total = end - start, len(good.data)
        for name, span in {
            "shifted": [start + 4, end + 4], "behind the end": [total, total + size], "far": [2**47, 2**47 + size],
            "wrapping": [2**64 - size, 2**64], "before": [start - 8, end - 8], "backwards": [end, start],
            "empty": [start, start], "longer": [start, end + 4], "negative": [-size, 0],
        }.items():  # fmt: skip
            yield Case(f"offsets {name}: {tensor}", good.changed(tensor, data_offsets=span), BROKEN)
    first, second = good.tensors[:2]
    same = good.header[first]["data_offsets"]
    yield Case("two at one place", good.changed(second, data_offsets=same, shape=good.header[first]["shape"]), BROKEN)
    for wrong in (None, [], [0], [0, 1, 2], "0,1", {"a": 1}, [0.0, 64.0], ["0", "64"], [False, True], 64, [None, None]):
        yield Case(f"offsets {wrong!r}", good.changed(first, data_offsets=wrong), INVALID)


def dtypes(good: Good) -> Iterator[Case]:
    first = good.tensors[0]
    same_size = {"F32": ("I32", "U32"), "BF16": ("I16", "U16"), "F16": ("I16", "U16")}[good.header[first]["dtype"]]
    for dtype in ("F4", "f32", "F32 ", "", "float32", "Ｆ32", "__import__('os')", None, 1, [], {}, True):
        yield Case(f"dtype {dtype!r}", good.changed(first, dtype=dtype), frozenset({"dtype_unsupported"}) | INVALID)
    for dtype in same_size:
        yield Case(f"dtype {dtype}", good.changed(first, dtype=dtype), frozenset({"dtype_unsupported"}))
    for dtype in ("F64", "I64", "I8", "BOOL", "F8_E4M3"):
        yield Case(f"dtype {dtype} of other size", good.changed(first, dtype=dtype), INVALID)


def shapes(good: Good) -> Iterator[Case]:
    fits = frozenset({"tensor_shape_wrong", "rank_mismatch", "tensor_unpaired", "rank_over_limit"})
    for tensor in good.tensors[:8]:
        rows, columns = good.header[tensor]["shape"]
        for name, shape in {
            "transposed": [columns, rows], "flat": [rows * columns], "deeper": [1, rows, columns],
            "one row": [1, rows * columns],
        }.items():  # fmt: skip
            yield Case(f"shape {name}: {tensor}", good.changed(tensor, shape=shape), fits)
    first = good.tensors[0]
    for wrong in ([], [0, 0], [2**32, 2**32], [2**40, 2**24], [-1, -64], [1.5, 4], ["4", "16"], [True, 64], None,
                  "4x16", 64, [1] * 100, {"0": 4}, [[4, 16]], [10**400, 1], [2**48, 1]):  # fmt: skip
        yield Case(f"shape {wrong!r}"[:60], good.changed(first, shape=wrong), INVALID)


def values(good: Good) -> Iterator[Case]:
    """What is not finite, first and last number of each tensor; and nothing but zeros."""
    bits = {"F32": ("<I", 0x7F800000, 0xFF800000, 0x7FC00000), "BF16": ("<H", 0x7F80, 0xFF80, 0x7FC0)}
    bits["F16"] = ("<H", 0x7C00, 0xFC00, 0x7E00)
    for tensor in good.tensors[:8]:
        form, *wrong = bits[good.header[tensor]["dtype"]]
        start, end = good.header[tensor]["data_offsets"]
        for value in wrong:
            item = struct.pack(form, value)
            for at in (start, end - len(item)):
                data = good.data[:at] + item + good.data[at + len(item) :]
                folder = good.with_header(good.header, data)
                yield Case(f"value {value:x} at {at}: {tensor}", folder, frozenset({"non_finite"}))
    yield Case("all zero", good.with_header(good.header, bytes(len(good.data))), frozenset({"changes_nothing"}))


def names(good: Good) -> Iterator[Case]:
    """Tensors that are of no module, whatever they look like."""
    first = next(tensor for tensor in good.tensors if "q_proj.lora_A" in tensor)
    wrong = {
        "traversal": "../../etc/passwd", "absolute": "/etc/passwd", "NUL": first + "\0",
        "inner NUL": first.replace("q_", "q\0_"),
        "Cyrillic": first.replace("a", "\u0430", 1), "fullwidth": first.replace("q_proj", "\uff51_proj"),
        "right to left": "\u202e" + first, "zero width": first.replace("q_proj", "q\u200b_proj"),
        "combining": first.replace("q_proj", "q\u0301_proj"), "surrogate": first + "\ud800",
        "upper case": first.upper(),
        "a newline": first + "\n", "long": first * 20_000, "empty": "", "a space": first + " ",
        "twice prefixed": "base_model.model." + first, "pickle": "data.pkl", "dunder": "__class__",
        "code": "${jndi:ldap://x}",
        "markup": "<script>alert(1)</script>", "query": "'; DROP TABLE adapters_adapter; --", "dots": "....",
        "an adapter's name": first.replace("lora_A.weight", "lora_A.default.weight"),
        "no such module": first.replace("q_proj", "z_proj"),
    }  # fmt: skip
    for layer in ("-1", "99", "00", "01", "1e0", "\uff11", "0x0", "", " 0", "9" * 400, "+0", "0.0", "1_0"):
        wrong[f"layer {layer[:9]!r}"] = first.replace("layers.0.", f"layers.{layer}.")
    for name, tensor in wrong.items():
        yield Case(f"name: {name}", good.renamed(first, tensor), UNMATCHED)
    for tensor in good.tensors[:8]:
        header = {each: entry for each, entry in good.header.items() if each != tensor}
        yield Case(f"hole for {tensor}", good.with_header(header), BROKEN)
    yield Case("no tensor", good.with_header({}, b""), UNMATCHED)


def config_texts(good: Good) -> Iterator[Case]:
    whole = good.files[CONFIG]
    texts = {
        "nothing": b"", "null": b"null", "list": b"[]", "open": b"{", "twice": whole + whole,
        "no UTF-8": b'{"r":"\xff"}',
        "UTF-16": whole.decode().encode("utf-16"), "NaN": b'{"r":NaN}', "Infinity": b'{"lora_alpha":Infinity}',
        "a key twice": whole[:-1] + b',"r":9999}', "deep": b'{"r":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        "pickle": b"\x80\x04\x95cposix\nsystem\n", "yaml": b"r: !!python/object/apply:os.system ['true']",
        "NUL": b"\0" * 64,
        "huge number": b'{"r":' + b"1" * 20_000 + b"}",
    }  # fmt: skip
    for name, text in texts.items():
        yield Case(f"config: {name}", good.with_config(text), BAD_CONFIG)


def config_values(good: Good) -> Iterator[Case]:
    """Every key that is read, at every type that it is not."""
    junk = [None, "4", 4.5, -1, 0, 2**31, 2**63, 1e308, [4], {"r": 4}, True, "__import__('os').system('true')"]
    fits = BAD_CONFIG | {"rank_mismatch"}
    for value in junk:
        yield Case(f"r={value!r}", good.with_config(good.config | {"r": value}), fits)
    for value in (None, "8", 0, 1e300, -1e300, [8], {}, True, 10**400):
        yield Case(f"lora_alpha={value!r}"[:60], good.with_config(good.config | {"lora_alpha": value}), BAD_CONFIG)
    for key in ("use_rslora", "use_dora", "lora_bias"):
        for value in ("true", 1, [True], {"a": 1}, 0.5):
            yield Case(f"{key}={value!r}", good.with_config(good.config | {key: value}), BAD_CONFIG)
    for value in ("embed_tokens", {"a": 1}, [1], [None], [["lm_head"]], 7):
        folder = good.with_config(good.config | {"modules_to_save": value})
        yield Case(f"modules_to_save={value!r}", folder, BAD_CONFIG | UNSUPPORTED)
    for value in ("1", [1.5], ["1"], [True], [-1], [2**31], [0] * 257, {"a": 1}, [None]):
        folder = good.with_config(good.config | {"alora_invocation_tokens": value})
        yield Case(f"alora_invocation_tokens={value!r}"[:60], folder, BAD_CONFIG)
    for value in (
        "org/another-model",
        "/etc/passwd",
        "https://169.254.169.254/",
        ["a"],
        {"a": 1},
        7,
        "../" * 20,
        "x\0y",
    ):
        folder = good.with_config(good.config | {"base_model_name_or_path": value})
        yield Case(f"base_model_name_or_path={value!r}"[:70], folder, frozenset({"base_model_mismatch"}))


def config_keys(good: Good) -> Iterator[Case]:
    """Methods that are not applied here, and code that is never run."""
    asked: dict[str, list[Any]] = {
        "peft_type": [None, "IA3", "lora", "LORA ", "PROMPT_TUNING", 1, ["LORA"]],
        "task_type": ["SEQ_CLS", "causal_lm", 1, []],
        "bias": ["some", True, 1, []],
        "init_lora_weights": ["pissa", "olora", "corda", "loftq", "lora_ga", 1, 0, [], {}],
        "auto_map": [{"AutoModel": "modeling.Evil"}, "x"],
        "trust_remote_code": [True, "yes"],
        "auto_mapping": [
            {"base_model_class": "X", "parent_library": "evil"},
            "transformers_modules.evil",
            [1],
            {"a": 1},
        ],
        "tokenizer_kwargs": [{"trust_remote_code": True}],
        "fan_in_fan_out": [True],
        "trainable_token_indices": [[1, 2]],
        "layer_replication": [[[0, 2]]],
        "target_parameters": [["a"]],
        "revision": ["refs/pr/1", 1],
        "a_key_of_tomorrow": [True, "x", 1, {"a": 1}],
        "__class__": ["x"],
        "chat_template": ["{{ ''.__class__.__mro__ }}", "{% for i in range(10**9) %}x{% endfor %}"],
    }
    codes = UNSUPPORTED | BAD_CONFIG
    for key, wrong in asked.items():
        for value in wrong:
            yield Case(f"{key}={value!r}"[:70], good.with_config(good.config | {key: value}), codes)


def patterns(good: Good) -> Iterator[Case]:
    """Regular expressions that would run for years, are none, or smuggle flags and look-behind."""
    expressions = [
        "(", ")", "[", "*", "a**", "(?P<a", "(?P=a)", r"(a)\1", "(?i)q_proj", "(?i:q_proj)", "(?<=a)b", "(?<!a)b",
        "(?>a+)", "a++", "(?(1)a|b)", "\\", "(?#", "a{1,99999999999999999999}", "x" * 1001, "(" * 400 + ")" * 400,
        "[z-a]", "\\Z\\",
    ]  # fmt: skip
    for key in ("rank_pattern", "alpha_pattern"):
        for expression in expressions:
            folder = good.with_config(good.config | {key: {expression: 4}})
            yield Case(f"{key} {expression[:20]!r}", folder, BAD_CONFIG)
        for value in ([], ["q_proj"], "q_proj", 4, {"q_proj": "4"}, {"q_proj": None}, {"q_proj": 0}, {"q_proj": True},
                      {"q_proj": [4]}, {f"m{i}": 4 for i in range(5000)}):  # fmt: skip
            if value:
                yield Case(f"{key}={value!r}"[:60], good.with_config(good.config | {key: value}), BAD_CONFIG)
    slow = {f"(.*.*.*)*y{i}": 4 for i in range(4000)}
    yield Case("patterns for years", good.with_config(good.config | {"rank_pattern": slow}), BAD_CONFIG)


def disguises(good: Good) -> Iterator[Case]:
    """Other files under the right name."""
    pickles = {"protocol 2": b"\x80\x02cposix\nsystem\n", "protocol 4": b"\x80\x04\x95\x1a\0\0\0\0\0\0\0\x8c\x05posix"}
    others = {"zip": b"PK\x03\x04", "GGUF": b"GGUF\x03\0\0\0"} | pickles
    for name, magic in others.items():
        folder = good.with_weights(magic + b"A" * 4000)
        yield Case(f"{name} as weights", folder, frozenset({"pickle_refused"}) | BROKEN)
    for name, magic in {"ELF": b"\x7fELF", "gzip": b"\x1f\x8b\x08", "HTML": b"<!DOCTYPE html>", "tar": b"./\0"}.items():
        yield Case(f"{name} as weights", good.with_weights(magic + b"\0" * 4000), BROKEN)
