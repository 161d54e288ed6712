"""The commands about episodes in the catalogue: what people say of them, which are for tests, who agreed."""

from typing import Annotated, Any, Literal

from typer import Argument, Option

from gapless import verbs
from gapless.cli.commands import Directory, Json, Texts, app
from gapless.core.errors import InputError

Episodes = Annotated[
    Texts, Argument(metavar="EPISODE...", help="ids, beginnings of ids, names, or patterns such as 'reach_*'")
]
WHERE_HELP = "SQL over the columns of episodes, in place of names: \"conditions->>'light' = 'dim'\""
Where = Annotated[str | None, Option(metavar="SQL", help=WHERE_HELP)]


@app.command()
def label(
    directory: Directory,
    episodes: Episodes = None,
    by: Annotated[str | None, Option(metavar="WHO", help="who says it: a name or a number")] = None,
    outcome: Annotated[Literal["success", "failure"] | None, Option(help="whether the task succeeded")] = None,
    failed_in: Annotated[str | None, Option(metavar="PHASE", help="phase in which it failed")] = None,
    reason: Annotated[str | None, Option(metavar="TEXT", help="why, in your words")] = None,
    condition: Annotated[Texts, Option(metavar="KEY=VALUE", help="circumstance (may be repeated)")] = None,
    tag: Annotated[Texts, Option(metavar="TAG", help="word to find it by (may be repeated)")] = None,
    where: Where = None,
    agreement: Annotated[bool, Option("--agreement", help="only tell how far people agree on the outcome")] = False,
    json: Json = None,
) -> None:
    """Say how episodes went: outcome, phase of failure, reason, conditions, tags. What was said before is kept.

    Try: gapless label DIR 'reach_*' --outcome failure --failed-in lift --reason "it slipped" --by ana

    Then: gapless query DIR "SELECT * FROM labels", and after a second person did: gapless label DIR --agreement
    """
    said: dict[str, Any] = {"outcome": outcome, "failed_in": failed_in, "reason": reason, "where": where}
    said |= {"conditions": _parse_pairs(condition or ()), "tags": tag or ()}
    if agreement:
        if given := [name for name, value in {**said, "episodes": episodes, "by": by}.items() if value]:
            text = f"--agreement is about all that was said: leave out {', '.join(given)}"
            raise InputError(text)
        _publish(verbs.measure_agreement(directory), json)
        return
    _publish(verbs.label(directory, episodes or (), by=by or "", **said), json)


def _parse_pairs(texts: Any) -> dict[str, str]:
    """Returns key -> value of texts such as `light=dim`."""
    pairs: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise InputError(f"--condition {text}: write KEY=VALUE, such as light=dim")
        if key.strip() in pairs:
            raise InputError(f"--condition {key.strip()} is given twice: keep one")
        pairs[key.strip()] = value.strip()
    return pairs


@app.command()
def split(
    directory: Directory,
    name: Annotated[str | None, Argument(metavar="[NAME]", help="of the split; without one, all are listed")] = None,
    episodes: Episodes = None,
    where: Where = None,
    purpose: Annotated[
        Literal["test", "train", "validation"], Option(help="test: its episodes are never fitted or trained on")
    ] = "test",
    json: Json = None,
) -> None:
    """Freeze a set of episodes by their content. Nothing is fitted to or trained on those of a test split.

    Nor on the same recording under another name, nor on what was made from it. A frozen split never changes.

    Try: gapless split DIR final --where "source = 'real' AND recorded_at > '2026-10'"; list: gapless split DIR
    """
    _publish(verbs.split(directory, name, episodes or (), where=where, purpose=purpose), json)


@app.command()
def consent(
    directory: Directory,
    episodes: Episodes = None,
    person: Annotated[str | None, Option(metavar="P", help="who agrees, or withdraws: a name or a number")] = None,
    scope: Annotated[str | None, Option(metavar="SCOPE", help="what to, such as research")] = None,
    until: Annotated[str | None, Option(metavar="DAY", help="last day, such as 2027-01-01; default: no end")] = None,
    withdraw: Annotated[bool, Option("--withdraw", help="the person withdraws all that they agreed to")] = False,
    compact: Annotated[bool, Option("--compact", help="delete from the disk now what is withdrawn or over")] = False,
    by: Annotated[str | None, Option(metavar="WHO", help="who writes it down")] = None,
    where: Where = None,
    json: Json = None,
) -> None:
    """Who agreed that their data is used, for what and until when. Withdrawn data is shown nowhere, at once.

    Name the episodes that a person takes part in, where the episodes themselves do not say so.

    Try: gapless consent DIR 'session3_*' --person P07 --scope research --until 2027-01-01

    Then: gapless consent DIR --withdraw --person P07 (lists what was made from it);
    everyone: gapless consent DIR
    """
    grant: dict[str, Any] = {"person": person, "scope": scope, "until": until, "where": where}
    _publish(verbs.consent(directory, episodes or (), **grant, withdraw=withdraw, compact=compact, by=by), json)


def _publish(result: Any, json: str | None) -> None:
    """Prints a result and writes it as JSON."""
    from gapless.cli.output import open_console, write_json
    from gapless.cli.show_data import show

    show(result, open_console(json))
    write_json(result, json)
