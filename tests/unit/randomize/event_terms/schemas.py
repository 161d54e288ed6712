"""What functions of other stacks take, noted down from their sources: facts, for tests where they are not installed.

mjlab 1.6.0 (module mjlab.envs.mdp.dr), Isaac Lab 2.3.2 (module isaaclab.envs.mdp.events). Every function also takes
`env` and `env_ids` from its manager.
"""

import ast
from typing import Any

FIELD = {"ranges", "asset_cfg", "distribution", "operation", "axes", "shared_random"}
MJLAB = {
    "joint_damping": FIELD,
    "joint_friction": FIELD,
    "joint_armature": FIELD,
    "joint_stiffness": FIELD,
    "geom_friction": FIELD,
    "geom_size": FIELD,
    "body_mass": FIELD,
    "body_com_offset": FIELD,
    "pseudo_inertia": {"alpha_range", "d_range", "t_range", "distribution", "asset_cfg"},
    "pd_gains": {"kp_range", "kd_range", "asset_cfg", "distribution", "operation"},
    "effort_limits": {"effort_limit_range", "asset_cfg", "distribution", "operation"},
    "encoder_bias": {"bias_range", "asset_cfg"},
}
MJLAB_NEEDED = {name: {"ranges"} for name in MJLAB} | {
    "pseudo_inertia": set(),
    "pd_gains": {"kp_range", "kd_range"},
    "effort_limits": {"effort_limit_range"},
    "encoder_bias": {"bias_range"},
}
MJLAB_MODES = {"startup", "reset", "interval", "step"}
PROPERTY = {"asset_cfg", "operation", "distribution"}
ISAACLAB = {
    "randomize_rigid_body_material": {
        "static_friction_range",
        "dynamic_friction_range",
        "restitution_range",
        "num_buckets",
        "asset_cfg",
        "make_consistent",
    },
    "randomize_rigid_body_mass": PROPERTY | {"mass_distribution_params", "recompute_inertia", "min_mass"},
    "randomize_rigid_body_com": {"com_range", "asset_cfg"},
    "randomize_physics_scene_gravity": {"gravity_distribution_params", "operation", "distribution"},
    "randomize_actuator_gains": PROPERTY | {"stiffness_distribution_params", "damping_distribution_params"},
    "randomize_joint_parameters": PROPERTY
    | {
        "friction_distribution_params",
        "armature_distribution_params",
        "lower_limit_distribution_params",
        "upper_limit_distribution_params",
    },
}
ISAACLAB_NEEDED = {
    "randomize_rigid_body_material": ISAACLAB["randomize_rigid_body_material"] - {"make_consistent"},
    "randomize_rigid_body_mass": {"asset_cfg", "mass_distribution_params", "operation"},
    "randomize_rigid_body_com": {"com_range", "asset_cfg"},
    "randomize_physics_scene_gravity": {"gravity_distribution_params", "operation"},
    "randomize_actuator_gains": {"asset_cfg"},
    "randomize_joint_parameters": {"asset_cfg"},
}
ISAACLAB_MODES = {"prestartup", "startup", "reset", "interval"}
DISTRIBUTIONS = {"uniform", "log_uniform", "gaussian"}


def calls(text: str, name: str) -> list[dict[str, Any]]:
    """Returns function, mode, params and interval of every event term in a Python text."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == name:
            words = {word.arg: word.value for word in node.keywords}
            params = words["params"]
            assert isinstance(params, ast.Dict)
            keys = [ast.literal_eval(key) for key in params.keys if key is not None]
            said = dict(zip(keys, params.values, strict=True))
            found.append({"func": ast.unparse(words["func"]), "mode": ast.literal_eval(words["mode"]), "params": said})
            found[-1]["interval"] = words.get("interval_range_s")
    return found
