"""The real base model, for what needs its vocabulary."""

from tests.engine.conftest import base_model  # noqa: F401  # pytest finds it here
