"""What outcomes say, in sentences that a person can check."""

from collections.abc import Sequence

from gapless.diagnose.outcomes.factors import RunFactors
from gapless.diagnose.outcomes.records import FactorLevel, FailureFactor, FailurePhase
from gapless.diagnose.outcomes.vocabulary import TREND, condition_dimensions

MIN_MATTERS = 0.5  # probability from which a factor or phase is said to matter
MIN_UNDECIDED = 0.2  # from here it is said to be undecided
MIN_LEVEL_RUNS = 5  # below which a level says little
MAX_CERTAIN = 0.95  # probability above which a factor needs no more runs
MAX_NAMED = 4  # levels named in one sentence


def describe_factors(factors: Sequence[FailureFactor]) -> list[str]:
    """Returns what is known of conditions, the most probable first."""
    found, named = list[str](), set[str]()
    for factor in factors:
        if factor.name in named:
            continue
        if factor.confounded_with and factor.group_probability >= MIN_MATTERS:
            group = (factor.name, *factor.confounded_with)
            named.update(group)
            text = f"{' and '.join(group)} changed together: probability that one of them matters"
            found.append(f"{_count_runs(factor)}; {text} {factor.group_probability:.2f}")
        elif factor.probability >= MIN_MATTERS:
            found.append(f"{_count_runs(factor)}; probability that {factor.name} matters {factor.probability:.2f}")
            if not factor.speaks_for:
                found.append(f"{factor.name} is what was run, not where: it speaks for no dimension")
            elif not factor.known_word:
                found.append(f"what {factor.name} stands for is not known: it counts, weakly, for environment")
    if found:
        return found
    looked = f"{len(factors)} condition{'s' if len(factors) != 1 else ''} looked at"
    hints = [f"{f.name} {f.probability:.2f}" for f in factors if f.probability >= MIN_UNDECIDED]
    undecided = f"; undecided: {', '.join(hints[:MAX_NAMED])}" if hints else ""
    return [f"no condition concentrates failures beyond chance ({looked}){undecided}"]


def _count_runs(factor: FailureFactor) -> str:
    """Returns the runs behind a factor: `9 of 12 runs with light=dim failed, 2 of 30 otherwise: 75 % [47, 91] ...`."""
    if factor.name.startswith(TREND):
        first, last = factor.levels[0], factor.levels[-1]
        way = "rise" if last.failure.value > first.failure.value else "fall"
        unit = factor.name.removeprefix(TREND).strip()
        return (
            f"failures {way} over the {unit}: {_count_failures(first)} runs failed in the first third of the time, "
            f"{_count_failures(last)} in the last: {first.failure.percent()} against {last.failure.percent()}"
        )
    level = factor.strongest_level
    others = [other for other in factor.levels if other is not level]
    failures, runs = sum(other.num_failures for other in others), sum(other.num_runs for other in others)
    return (
        f"{_count_failures(level)} runs with {factor.name}={level.value} failed, {failures} of {runs} otherwise: "
        f"{level.failure.percent()} against {level.otherwise.percent()}"
    )


def _count_failures(level: FactorLevel) -> str:
    return f"{level.num_failures} of {level.num_runs}"


def describe_phases(phases: Sequence[FailurePhase]) -> list[str]:
    """Returns where failures concentrate."""
    if not phases:
        return []
    total = phases[0].share.n
    found: list[str] = []
    for phase in (p for p in phases if p.probability >= MIN_MATTERS):
        unknown = "" if phase.speaks_for else f"; what {phase.name} speaks for is not known"
        found.append(
            f"{phase.num_failures} of {total} failures are in {phase.name}: {phase.share.percent()} where "
            f"{100 * phase.expected:.0f} % would be expected of equally likely phases; probability that it "
            f"concentrates them {phase.probability:.2f}{unknown}"
        )
    return found or [f"no phase concentrates failures beyond chance ({total} failures name one)"]


def suggest_recordings(factors: Sequence[FailureFactor], runs: RunFactors) -> tuple[str, ...]:
    """Returns which recordings would show what these do not."""
    found, named = list[str](), set[str]()
    for factor in factors:
        if factor.confounded_with and factor.name not in named:
            named.update((factor.name, *factor.confounded_with))
            found.append(_suggest_separation((factor.name, *factor.confounded_with), runs))
    for factor in factors:
        thin = [level for level in factor.levels if level.num_runs < MIN_LEVEL_RUNS]
        if not thin or factor.name.startswith(TREND) or factor.probability > MAX_CERTAIN:
            continue
        values = ", ".join(f"{level.value} ({level.num_runs})" for level in thin[:MAX_NAMED])
        more = f" and {len(thin) - MAX_NAMED} more" if len(thin) > MAX_NAMED else ""
        have = f"{'have' if len(thin) > 1 else 'has'} fewer than {MIN_LEVEL_RUNS} runs"
        found.append(f"{factor.name}: {values}{more} {have}: record {MIN_LEVEL_RUNS} of each")
    varied = [text for text in runs.constant if condition_dimensions(text.split("=")[0])[0]]
    found += [f"{text} in every run: record another, or it cannot be judged" for text in varied[:MAX_NAMED]]
    found += [f"{name} differs in every run: repeat some of its values" for name in runs.unique[:MAX_NAMED]]
    return tuple(found)


def _suggest_separation(names: Sequence[str], runs: RunFactors) -> str:
    text = f"{' and '.join(names)} changed together: record them separately"
    one, other = (next(column for column in runs.columns if column.name == name) for name in names[:2])
    both = one.known & other.known
    seen = set(zip(one.level[both], other.level[both], strict=True))
    if TREND in one.name + other.name:
        return text
    for i, value in enumerate(one.values):
        for j, instead in enumerate(other.values):
            if (i, j) not in seen:
                return f"{text}, such as {one.name}={value} with {other.name}={instead}"
    return text
