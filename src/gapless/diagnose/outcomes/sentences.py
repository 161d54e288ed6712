"""What outcomes say, in sentences that a person can check."""

from collections.abc import Sequence

from gapless.core.interval import Interval
from gapless.diagnose.outcomes.design import Design
from gapless.diagnose.outcomes.judge import either_matters
from gapless.diagnose.outcomes.model import Posterior
from gapless.diagnose.outcomes.records import Factor, Level, Phase
from gapless.diagnose.outcomes.words import TREND, condition_dimensions

MATTERS = 0.5  # probability from which a factor or phase is said to matter
HINT = 0.2  # from here it is said to be undecided
THIN = 5  # runs below which a level says little
MAX_NAMED = 4  # levels named in one sentence


def condition_sentences(factors: Sequence[Factor], posterior: Posterior) -> tuple[str, ...]:
    """Returns what is known of conditions, the most probable first."""
    found, told = [], set()
    for factor in factors:
        if factor.name in told:
            continue
        group = (factor.name, *factor.confounded_with)
        members = [k for k, f in enumerate(factors) if f.name in group]
        either = either_matters(posterior, members)
        if len(group) > 1 and either >= MATTERS:
            told.update(group)
            names = " and ".join(group)
            found.append(
                f"{counts(factor)}; {names} changed together: probability that one of them matters {either:.2f}"
            )
        elif factor.probability >= MATTERS:
            found.append(f"{counts(factor)}; probability that {factor.name} matters {factor.probability:.2f}")
            if not factor.speaks_for:
                found.append(f"{factor.name} is what was run, not where: it speaks for no dimension")
            elif not factor.known_word:
                found.append(f"what {factor.name} stands for is not known: it counts, weakly, for environment")
    if found:
        return tuple(found)
    looked = f"{len(factors)} condition{'s' if len(factors) != 1 else ''} looked at"
    hints = [f"{f.name} {f.probability:.2f}" for f in factors if f.probability >= HINT]
    undecided = f"; undecided: {', '.join(hints[:MAX_NAMED])}" if hints else ""
    return (f"no condition concentrates failures beyond chance ({looked}){undecided}",)


def counts(factor: Factor) -> str:
    """Returns the runs behind a factor: `9 of 12 runs with light=dim failed, 2 of 30 otherwise: 75 % [47, 91] ...`."""
    if factor.name.startswith(TREND):
        first, last = factor.levels[0], factor.levels[-1]
        way = "rise" if last.failure.value > first.failure.value else "fall"
        unit = factor.name.removeprefix(TREND).strip()
        return (
            f"failures {way} over the {unit}: {_of(first)} runs failed in the first third of the time, {_of(last)} in "
            f"the last: {first.failure.percent()} against {last.failure.percent()}"
        )
    level = factor.most_telling
    others = [other for other in factor.levels if other is not level]
    failures, runs = sum(other.num_failures for other in others), sum(other.num_runs for other in others)
    return (
        f"{_of(level)} runs with {factor.name}={level.value} failed, {failures} of {runs} otherwise: "
        f"{level.failure.percent()} against {level.otherwise.percent()}"
    )


def _of(level: Level) -> str:
    return f"{level.num_failures} of {level.num_runs}"


def phase_sentences(phases: Sequence[Phase], given: bool) -> tuple[str, ...]:
    """Returns where failures concentrate; given: the expectation is the caller's, not uniform."""
    if not phases:
        return ()
    total = phases[0].share.n
    why = "would be expected from the reference" if given else "would be expected of equally likely phases"
    found = []
    for phase in (p for p in phases if p.probability >= MATTERS):
        text = f"{phase.num_failures} of {total} failures are in {phase.name}: {phase.share.percent()}"
        text += f" where {100 * phase.expected:.0f} % {why}; probability that it concentrates them"
        text += f" {phase.probability:.2f}"
        text += "" if phase.speaks_for else f"; what {phase.name} speaks for is not known"
        found.append(text)
    return tuple(found) or (f"no phase concentrates failures beyond chance ({total} failures name one)",)


def suggestions(factors: Sequence[Factor], groups: Sequence[Sequence[str]], design: Design) -> tuple[str, ...]:
    """Returns which recordings would tell what these cannot."""
    found = [_apart(group, design) for group in groups]
    for factor in factors:
        thin = [level for level in factor.levels if level.num_runs < THIN]
        if not thin or factor.name.startswith(TREND) or factor.probability > 0.95:
            continue
        named = ", ".join(f"{level.value} ({level.num_runs})" for level in thin[:MAX_NAMED])
        more = f" and {len(thin) - MAX_NAMED} more" if len(thin) > MAX_NAMED else ""
        have = "have" if len(thin) > 1 else "has"
        found.append(f"{factor.name}: {named}{more} {have} fewer than {THIN} runs: record {THIN} of each")
    varied = [text for text in design.constant if condition_dimensions(text.split("=")[0])[0]]
    found += [f"{text} in every run: record another, or it cannot be judged" for text in varied[:MAX_NAMED]]
    found += [f"{name} differs in every run: repeat some of its values" for name in design.unique[:MAX_NAMED]]
    return tuple(found)


def _apart(names: Sequence[str], design: Design) -> str:
    text = f"{' and '.join(names)} changed together: record them apart"
    one, other = (next(column for column in design.columns if column.name == name) for name in names[:2])
    both = one.known & other.known
    seen = set(zip(one.level[both], other.level[both], strict=True))
    for i in range(len(one.values)):
        for j in range(len(other.values)):
            if (i, j) not in seen and not (one.name + other.name).count(TREND):
                return f"{text}, such as {one.name}={one.values[i]} with {other.name}={other.values[j]}"
    return text


def overall(num_failures: int, num_runs: int, share: Interval) -> str:
    """Returns the first sentence: how many runs failed."""
    return f"{num_failures} of {num_runs} runs failed: {share.percent()}"
