"""gapless: find out why a policy that works in simulation fails on the robot, and close that gap.

Each verb of the command line is one function of the same name in `gapless.verbs`.
"""

__version__ = "0.1.0"
