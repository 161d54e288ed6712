"""A small project with what targets can be about: an arm with servos and a motor, and a box that it may push."""

from pathlib import Path

from gapless.core.distribution import Correlation, Range, ranges_from_text
from gapless.project.load import load_project
from gapless.randomize.export.job import ExportJob
from gapless.sim.blueprint import CompiledProject, compile_project
from gapless.sim.ranges import distribution_of

MODEL = """
<mujoco model="arm">
  <option timestep="0.005"/>
  <worldbody>
    <geom name="floor" type="plane" size="2 2 .1" friction=".6 .005 .0001"/>
    <body name="upper" pos="0 0 .5">
      <joint name="shoulder" type="hinge" axis="0 1 0" damping=".4" armature=".02" frictionloss=".1"/>
      <geom name="upper" type="capsule" fromto="0 0 0 .3 0 0" size=".03" mass="1.2" contype="0" conaffinity="0"/>
      <body name="fore" pos=".3 0 0">
        <joint name="elbow" type="hinge" axis="0 1 0" damping=".2" armature=".01" stiffness=".5"/>
        <geom name="fore" type="capsule" fromto="0 0 0 .25 0 0" size=".025" mass=".6"/>
        <site name="hand" pos=".25 0 0"/>
        <body name="wrist" pos=".25 0 0">
          <joint name="wrist" type="hinge" axis="0 0 1" damping=".1"/>
          <geom name="wrist" type="box" size=".02 .02 .02" mass=".2" pos=".02 0 0"/>
        </body>
      </body>
    </body>
    <body name="box" pos=".8 0 .05">
      <freejoint name="box"/>
      <geom name="box" type="box" size=".05 .05 .05" mass=".5" friction=".6 .005 .0001"/>
    </body>
  </worldbody>
  <actuator>
    <position name="shoulder" joint="shoulder" kp="60" kv="4" forcerange="-20 20"/>
    <position name="elbow" joint="elbow" kp="40" kv="2" gear="2" forcerange="-15 15"/>
    <motor name="wrist" joint="wrist"/>
  </actuator>
</mujoco>
"""
PROJECT = """
gapless: 1
name: arm
model: robot.xml
rate_hz: 50
commands:
  cmd_shoulder: {actuator: shoulder}
  cmd_elbow: {actuator: elbow}
  cmd_wrist: {actuator: wrist}
measurements:
  q_shoulder: {joint: shoulder, quantity: position}
  q_elbow: {joint: elbow, quantity: position}
  box_x: {body: box, quantity: x}
logs: logs
parameters: auto
"""
EVERYTHING = """
joint/shoulder/damping       uniform 0.2 .. 0.8 per robot
joint/*/damping              uniform 0.5 .. 1.5
joint/shoulder/frictionloss  normal 0.1 +- 0.02 within 0.04 .. 0.16
joint/elbow/armature         log-uniform 0.005 .. 0.02
joint/elbow/stiffness        uniform 0.4 .. 0.6
joint/elbow/load             uniform -0.1 .. 0.1
joint/shoulder/offset        normal 0.01 +- 0.004 within 0.002 .. 0.018 per robot
joint/elbow/backlash         uniform 0 .. 0.01
joint/shoulder/creep         uniform 0.5 .. 1
actuator/shoulder/kp         normal 60 +- 5 within 50 .. 70
actuator/shoulder/kd         uniform 3 .. 5
actuator/wrist/gain          beta 1 +- 0.1 within 0.7 .. 1.3
actuator/elbow/limit         uniform 10 .. 15
actuator/*/delay             uniform 0 .. 0.03
actuator/elbow/lag           uniform 0 .. 0.02
body/fore/mass               log-normal 0.6 +- 20 % within 0.3 .. 1.2
body/box/mass                uniform 0.3 .. 0.8
body/box/com/x               uniform -0.01 .. 0.01
body/box/com/z               normal 0 +- 0.004 within -0.008 .. 0.008
body/upper/inertia           uniform 0.8 .. 1.2
body/wrist/payload           uniform 0 .. 0.1
body/box/spread/x            uniform 0.8 .. 1.2
geom/box/friction            normal 0.5 +- 0.1 within 0.3 .. 0.7
geom/wrist/stiffness         uniform 1000 .. 4000
geom/box/restitution         uniform 0.1 .. 0.4
geom/wrist/size/x            uniform 0.018 .. 0.022
world/gravity                uniform 9.7 .. 9.9
world/tilt/y                 uniform -0.02 .. 0.02
measurement/q_elbow/bias     mixture 0.7: -0.01 +- 0.002, 0.3: 0.01 +- 0.002 within -0.02 .. 0.02
measurement/box_x/scale      uniform 0.98 .. 1.02
measurement/box_x/delay      uniform 0 .. 0.05 per step
correlation joint/shoulder/frictionloss geom/box/friction 0.5
"""


def arm_folder(folder: Path, model: str = MODEL) -> Path:
    """Writes the project into a folder and returns it."""
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    (folder / "robot.xml").write_text(model)
    (folder / "gapless.yaml").write_text(PROJECT)
    return folder


def arm(folder: Path) -> CompiledProject:
    """Returns the compiled project."""
    return compile_project(load_project(arm_folder(folder)))


def job(folder: Path, text: str, model: str = MODEL) -> ExportJob:
    """Returns ranges, given as text, for the arm."""
    ranges, correlations = ranges_from_text(text)
    return make_job(compile_project(load_project(arm_folder(folder, model))), ranges, correlations)


def make_job(blueprint: CompiledProject, ranges: tuple[Range, ...], correlations: tuple[Correlation, ...]) -> ExportJob:
    """Returns ranges of any project as a job."""
    return ExportJob(blueprint, distribution_of(ranges, correlations, blueprint, "test"), "test")
