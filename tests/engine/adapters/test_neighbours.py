"""Tensors that lie beside each other are looked at together, and what is wrong is still told of the one that has it."""

from typing import Any

import pytest

from engine.adapters.format import AdapterRefused, Limits, check_source
from engine.adapters.source import Buffer, Folder
from engine.adapters.values import scan_bytes

NAN = {"BF16": b"\xc0\x7f", "F32": b"\x00\x00\xc0\x7f"}


@pytest.mark.parametrize("together", [1, 300, 1 << 20])
@pytest.mark.parametrize("spoilt", range(8))
def test_the_tensor_that_is_not_finite_is_named(
    draft: Any, monkeypatch: pytest.MonkeyPatch, spoilt: int, together: int
) -> None:
    monkeypatch.setattr("engine.adapters.tensors._TOGETHER", together)
    for name in list(draft.tensors)[2:5]:  # of another type than those around them
        kind, shape, data = draft.tensors[name]
        draft.tensors[name] = ["F32", shape, b"".join(b"\0\0" + data[i : i + 2] for i in range(0, len(data), 2))]
    name = list(draft.tensors)[spoilt]
    kind, _, data = draft.tensors[name]
    draft.tensors[name][2] = data[: -len(NAN[kind])] + NAN[kind]
    with pytest.raises(AdapterRefused) as refused:
        check_source(Folder(draft.write()), draft.base, Limits())
    assert [(problem.code, problem.where) for problem in refused.value.problems] == [("non_finite", name)]


def test_a_sound_file_is_looked_at_once_and_one_pair_for_its_effect(draft: Any) -> None:
    looked = []

    def scan(data: Buffer, dtype: str) -> tuple[bool, bool]:
        looked.append(len(data))
        return scan_bytes(data, dtype)

    check_source(Folder(draft.write()), draft.base, Limits(), scan)
    sizes = [len(data) for _, _, data in draft.tensors.values()]
    assert looked == [sum(sizes), sizes[1], sizes[0]]
