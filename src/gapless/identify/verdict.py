"""One verdict on a fit, with its reasons, from everything that was found about it."""

from collections.abc import Sequence
from dataclasses import dataclass

from gapless.core.results import FitErrors, FittedParameter, HorizonErrors, Verdict
from gapless.fit.scatter.estimate import ScatterEstimate
from gapless.sim.blueprint import CompiledProject
from gapless.sim.targets import driven_joint

MAX_RESIDUAL_TO_NOISE = 3.0  # what a good fit may leave, in multiples of what noise explains,
MAX_ERROR_SHARE = 0.05  # or of how far each column moves within the project's horizon; judgement, not measured
MIN_DRIVE_SHARE = 0.5  # of a joint's inertia, from which on its forces rest on the drive's inertia
_STRENGTHS = ("/gain", "/kp", "/motorconst")


@dataclass(frozen=True)
class FitFindings:
    """What was found about a fit and its data."""

    refusal: str | None  # why no parameter was fitted to predictions; None where some were
    parameters: Sequence[FittedParameter]  # the fitted parameters
    combinations: Sequence[str]  # what is determined where single parameters are not
    train: FitErrors  # errors on the episodes that were fitted
    held_out: FitErrors  # errors on the others
    scatter: Sequence[ScatterEstimate] = ()  # parameters that were estimated from how runs scatter
    faults: Sequence[str] = ()  # mistakes in the data: no fit of these data can be called good
    remarks: Sequence[str] = ()  # what the fitted values rest on
    assumptions: Sequence[str] = ()  # what predictions assume of states that no column shows
    # errors of predictions as long as the project asks for, or of whole runs where none is that long
    horizon: HorizonErrors | None = None


def judge_fit(found: FitFindings) -> tuple[Verdict, tuple[str, ...]]:
    """Returns the verdict on a fit and its reasons: mistakes in the data first, assumptions near the end."""
    about_scatter = _describe_scatter(found.scatter)
    identified = [one for one in found.scatter if one.parameter.identifiable]
    if found.refusal is None:
        word, reasons = _judge_predictions(found)
    elif identified:
        word, reasons = "good", []
    else:
        word, reasons = "refused", [] if found.scatter else [found.refusal]
    if word == "good" and (found.faults or not all(one.explains_logs for one in identified)):
        word = "poor"
    return word, (*found.faults, *reasons, *found.remarks, *found.assumptions, *about_scatter)


def _judge_predictions(found: FitFindings) -> tuple[Verdict, list[str]]:
    """Returns the verdict on parameters that were fitted to predictions."""
    parameters, held_out = found.parameters, found.held_out
    if not any(p.identifiable for p in parameters):
        return "refused", [_why_none_is_identifiable(parameters, found.combinations)]
    judged, where = (held_out, "held-out") if held_out.after is not None else (found.train, "fitted")
    reasons: list[str] = []
    faults: list[str] = []
    if judged.before is not None and judged.after is not None:
        change = judged.after / judged.before
        reasons.append(f"{where} error is {change:.2f} of the model's as written")
        if change > 1.0:
            faults.append("the fit predicts new motions worse than the model as written")
    left = judged.residual_to_noise
    if left is not None and left > MAX_RESIDUAL_TO_NOISE:
        text = f"what is left is {left:.1f} times what noise explains"
        share = None if found.horizon is None else found.horizon.worst_share
        if share is not None and share <= MAX_ERROR_SHARE and found.horizon is not None:
            after = f"{found.horizon.horizon_s:g} s" if found.horizon.horizon_s else "whole runs"
            reasons.append(f"{text}, yet at most {100 * share:.2g} % of how far each column moves in {after}")
        else:
            faults.append(f"{text}: the model lacks something")
    at_bound = [p.target for p in parameters if p.at_bound and p.identifiable]
    if at_bound:
        faults.append(f"at a bound: {', '.join(at_bound)}: widen its range, or something else is wrong")
    reasons += faults
    open_ones = [p.target for p in parameters if not p.identifiable]
    if open_ones:
        reasons.append(f"not identifiable from these logs: {', '.join(open_ones)}")
    if held_out.after is None:
        reasons.append("nothing was held out: record at least two logs")
    return ("poor" if faults or held_out.after is None else "good"), reasons


def _why_none_is_identifiable(parameters: Sequence[FittedParameter], combinations: Sequence[str]) -> str:
    """Returns why no parameter is identifiable, and what to do."""
    at_bound = [p.target for p in parameters if p.at_bound]
    if at_bound:
        return f"none is identifiable; at a bound: {', '.join(at_bound)}: widen its range, or something else is wrong"
    if combinations:
        return "these logs determine combinations only: know one parameter of each, and leave it out of `parameters`"
    return "these logs determine none of the parameters: record a motion that moves more"


def _describe_scatter(estimates: Sequence[ScatterEstimate]) -> list[str]:
    """Returns what is known of the parameters that show only in how runs scatter."""
    known = [one for one in estimates if one.parameter.identifiable]
    texts = {
        "estimated from how runs scatter: {}": known,
        "not identifiable from how these logs scatter: {}": [one for one in estimates if one not in known],
        "runs simulated with it do not look like the logs: {}": [one for one in known if not one.explains_logs],
        "at a bound: {}: widen its range": [one for one in known if one.parameter.at_bound],
    }
    return [text.format(", ".join(one.parameter.target for one in some)) for text, some in texts.items() if some]


def describe_force_reference(blueprint: CompiledProject, parameters: Sequence[FittedParameter]) -> str | None:
    """Returns which mass the fitted forces and masses are relative to; None where forces are known or not fitted.

    Without a measured force, logs show accelerations only: twice all forces on twice all masses is the same motion.
    Then one mass has to be taken as written, and whatever was fitted is as right as that mass. Where most of what a
    drive moves is its own rotor, the forces of that joint rest on the rotor's inertia instead.
    """
    project, model = blueprint.project, blueprint.model
    fitted = {p.target for p in parameters if p.identifiable}
    driven = [item.actuator for item in project.commands]
    fitted_forces = all(any(f"actuator/{name}{ending}" in fitted for ending in _STRENGTHS) for name in driven)
    measured = any(item.element in ("actuator", "sensor") or item.quantity == "effort" for item in project.measurements)
    moving = [k for k in range(1, model.nbody) if model.body_weldid[k] != 0 and model.body_mass[k] > 0]
    unfitted = [body for body in moving if f"body/{model.body(body).name}/mass" not in fitted]
    if not driven or not fitted_forces or measured or not unfitted:
        return None
    heaviest = max(unfitted, key=lambda body: float(model.body_mass[body]))
    reason = (
        "no force is measured, so forces and masses are known only relative to each other: all of them hold if "
        f"{model.body(heaviest).name or f'body {heaviest}'} weighs {model.body_mass[heaviest]:.3g} kg, as in the model"
    )
    heavy = [name for name in _find_heavy_drives(blueprint) if f"joint/{name}/armature" not in fitted]
    if heavy:
        reason += f", and those of {', '.join(heavy)} if the inertia of their drives (armature) is as written there"
    return reason


def _find_heavy_drives(blueprint: CompiledProject) -> list[str]:
    """Returns the driven joints most of whose inertia, as written, is that of the drive."""
    model, found = blueprint.model, list[str]()
    for item in blueprint.project.commands:
        joint = driven_joint(model, model.actuator(item.actuator).id)
        if joint is None:
            continue
        dof = int(model.jnt_dofadr[joint])
        if model.dof_armature[dof] > MIN_DRIVE_SHARE * model.dof_M0[dof]:
            found.append(model.joint(joint).name or f"joint {joint}")
    return found
