"""A small training on the bundled balance example."""

from gapless.learn.train import TrainConfig

SMALL = TrainConfig(num_steps=2048, num_worlds=32, rollout_steps=32, num_trials=20, layers=(16,), history_s=0.06)
