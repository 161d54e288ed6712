"""Ranges that grow with the policy's ability while it trains."""

from gapless.learn.curriculum.curriculum import CURRICULA, Curriculum, Name, make_curriculum

__all__ = ["CURRICULA", "Curriculum", "Name", "make_curriculum"]
