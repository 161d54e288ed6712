"""Curricula: ranges that grow with the policy's ability while it trains."""

from typing import Literal, get_args

from gapless.core.distribution import Distribution
from gapless.learn.curriculum.adr import Adr
from gapless.learn.curriculum.growth import Curriculum
from gapless.learn.curriculum.max_entropy import MaxEntropy

Name = Literal["none", "adr", "max-entropy"]
CURRICULA: tuple[Name, ...] = get_args(Name)


def make_curriculum(name: Name, limits: Distribution) -> Curriculum | None:
    """Returns a curriculum that begins at the centre of ranges and may grow to their ends; None for `none`.

    A parameter begins at the `mean` of its range; those of `uniform` kinds begin at the model's own value.
    """
    if name == "none":
        return None
    return Adr(limits) if name == "adr" else MaxEntropy(limits)
