"""The committed demo adapters are what the examples' page says, and the broken one is refused for all its faults."""

import runpy
from pathlib import Path

import pytest

from engine.adapters.format import AdapterRefused, BaseShape, Limits, check_adapter

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
ALL = ("down_proj", "gate_proj", "k_proj", "o_proj", "q_proj", "up_proj", "v_proj")

KINDS = {
    "pirate": (4, ("q_proj", "v_proj"), {4}, {16 / 4}),
    "json": (8, ALL, {8}, {16 / 8**0.5}),
    "sql": (16, ("k_proj", "o_proj", "q_proj", "v_proj"), {16}, {32 / 16}),
    "shout": (
        16,
        ("down_proj", "o_proj", "q_proj", "up_proj", "v_proj"),
        {4, 8, 12, 16},
        {16 / 4, 16 / 8, 24 / 12, 32 / 16},
    ),
}


@pytest.fixture(scope="module")
def base(base_model: Path) -> BaseShape:
    return BaseShape.from_config_file(base_model)


@pytest.mark.parametrize("name", KINDS)
def test_the_demo_adapters_are_served(base: BaseShape, name: str) -> None:
    max_rank, targets, ranks, scalings = KINDS[name]
    spec = check_adapter(EXAMPLES / "adapters" / name, base, Limits())
    assert (spec.max_rank, spec.target_modules, spec.dtype) == (max_rank, targets, "BF16")
    assert {module.rank for module in spec.modules} == ranks
    assert {module.scaling for module in spec.modules} == scalings
    assert spec.size_bytes < 6_000_000


def test_shout_has_a_lower_rank_in_the_first_ten_layers_only(base: BaseShape) -> None:
    spec = check_adapter(EXAMPLES / "adapters" / "shout", base, Limits())
    ranks = {module.layer: module.rank for module in spec.modules if module.module == "self_attn.q_proj"}
    assert ranks == {layer: 4 if layer < 10 else 8 for layer in range(30)}


def test_the_demo_adapters_differ(base: BaseShape) -> None:
    digests = {check_adapter(EXAMPLES / "adapters" / name, base, Limits()).digest for name in KINDS}
    assert len(digests) == len(KINDS)


def test_the_broken_adapter_is_refused_for_all_its_faults(base: BaseShape, tmp_path: Path) -> None:
    make = runpy.run_path(str(EXAMPLES / "make_broken_adapter.py"))["make_broken_adapter"]
    with pytest.raises(AdapterRefused) as refused:
        check_adapter(make(tmp_path / "broken"), base, Limits())
    assert sorted(problem.code for problem in refused.value.problems) == [
        "config_unsupported",
        "non_finite",
        "tensor_shape_wrong",
        "tensor_unmatched",
    ]
