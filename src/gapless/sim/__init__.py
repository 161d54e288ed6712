"""The simulation: MuJoCo on `mujoco.batch`, one row of parameters per world."""
