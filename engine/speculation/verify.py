"""Which drafted tokens stand.

Every row is sampled as plain decoding would sample it: from its own logits, with the draw of its own (seed, position),
shaped by the tokens before it. A drafted token stands while it is the one that was sampled in its place; the first that
is not gives way to the sampled one, and what follows it is void. So the tokens are those of plain decoding, one for
one, at any temperature.
"""

from collections.abc import Sequence

from engine.choice import Choice
from engine.decoding.constraint import ConstraintRefused
from engine.decoding.sampler import Draw
from engine.decoding.shaping import unpacked


def leading(drafted: Sequence[int], came: Sequence[int | None]) -> int:
    """How many of the first drafted tokens are those that came."""
    pairs = zip(drafted, came, strict=False)
    return next((n for n, (guess, token) in enumerate(pairs) if guess != token), min(len(drafted), len(came)))


def verification(choice: Choice, draft: tuple[int, ...]) -> list[Draw]:
    """Of the token after the choice's own and of that after each drafted one, as far as its grammar lets the draft go.
    The grammar's state is as before. Raises ConstraintRefused where the first cannot be drawn."""
    if choice.constraint is None:
        return [choice.draw(draft[:length]) for length in range(len(draft) + 1)]
    drawn, accepted = [choice.draw()], 0
    try:
        for token in draft:
            if not _allows(drawn[-1], token):
                break
            accepted += 1
            if choice.constraint.accept(token):
                break
            drawn.append(choice.draw(draft[:accepted]))
    except ConstraintRefused:
        # Plain decoding would be told of it when it gets there, if it does.
        return drawn
    finally:
        choice.constraint.rollback(accepted)
    return drawn


def _allows(draw: Draw, token: int) -> bool:
    mask = None if draw.shape is None else draw.shape.mask
    return mask is None or bool(unpacked(mask, token + 1)[token])
