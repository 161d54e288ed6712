"""How the results of `label`, `split` and `consent` read on the screen."""

from gapless.cli.output import Printer
from gapless.cli.show import show as show
from gapless.core import results

MAX_LISTED = 20  # disagreements, and artefacts, that are listed on the screen


@show.register
def _(result: results.LabelResult, console: Printer) -> None:
    if result.said_by is not None:
        said = [result.outcome, result.failed_in and f"in {result.failed_in}", result.reason]
        said += [*(f"{key}={value}" for key, value in result.conditions.items()), *result.tags]
        console.print(f"{_count(result.inputs)}, by {result.said_by}: {', '.join(text for text in said if text)}")
        return
    if not result.agreements:
        console.print("no two people said the outcome of the same episode: label some with another --by")
        return
    rows: list[tuple[str, ...]] = []
    for one in result.agreements:
        kappa = one.kappa
        value = f"{kappa.value:.2f}" if kappa.value == kappa.value else "cannot tell"
        interval = f"{kappa.low:.2f} .. {kappa.high:.2f}"
        rows.append((one.first, one.second, str(one.num_common), str(len(one.disagreements)), value, interval))
    header = ("first", "second", ">episodes of both", ">said differently", ">kappa", ">95 % interval")
    console.print_table(header, rows)
    for one in result.agreements:
        for differ in one.disagreements[:MAX_LISTED]:
            said = f"{one.first} {differ.first_said}, {one.second} {differ.second_said}"
            console.print(f"{differ.episode} ({differ.id[:8]}): {said}")
        if len(one.disagreements) > MAX_LISTED:
            console.print(f"and {len(one.disagreements) - MAX_LISTED} more: --json writes all")


@show.register
def _(result: results.SplitResult, console: Printer) -> None:
    if not result.splits:
        console.print("no splits yet: gapless split DIR NAME --where SQL")
        return
    rows = [(s.name, s.purpose, str(s.num_episodes), str(s.num_copies), s.frozen_at[:19]) for s in result.splits]
    console.print_table(("split", "purpose", ">episodes", ">copies, or made from them", "frozen (UTC)"), rows)


@show.register
def _(result: results.ConsentResult, console: Printer) -> None:
    rows = [(c.person, c.scope or "-", c.until or "-", c.state, str(c.num_episodes)) for c in result.consents]
    if rows:
        console.print_table(("person", "scope", "until", "state", ">episodes"), rows)
    else:
        console.print("nobody agreed to anything yet: gapless consent DIR EPISODE... --person P --scope research")
    if result.deleted:
        console.print(f"deleted from the disk: {_count(result.deleted)}")
    if result.hidden:
        console.print(f"{_count(result.hidden)} hidden; --compact deletes them from the disk now")
    if result.made_from:
        console.print("made from hidden episodes, so make it anew and delete it:", style="bold")
        for one in result.made_from[:MAX_LISTED]:
            console.print(f"  {one.kind}  {one.created_at[:19]}  {one.path}")
        if len(result.made_from) > MAX_LISTED:
            console.print(f"  and {len(result.made_from) - MAX_LISTED} more: --json writes all")


def _count(ids: tuple[str, ...]) -> str:
    return f"{len(ids)} episode{'s' if len(ids) != 1 else ''}"
