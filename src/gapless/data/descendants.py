"""What holds the data of some episodes: their copies, and all that was made from them."""

from collections.abc import Iterable
from dataclasses import dataclass

from gapless.data.events import Select

# Keys are ids, and hashes of signals, which lead to all episodes that hold the same. A simulated or augmented episode
# comes from the artefacts that it was made with ($3: count these too); what a robot recorded is new, whatever policy
# it ran, so that only episodes are parents of it.
_DESCENDANTS = """
WITH RECURSIVE roots AS (SELECT unnest($1::VARCHAR[]) AS root, unnest($2::VARCHAR[]) AS key),
entries AS MATERIALIZED (
    SELECT id, CASE WHEN num_rows > 0 THEN signals_id END AS signals_id, parents, true AS is_episode,
        $3 AND coalesce(source, 'real') IN ('sim', 'augmented') AS by_artefacts
    FROM recorded_episodes UNION ALL SELECT id, NULL, parents, false, true FROM artefacts
), made AS (SELECT id, unnest(parents) AS parent, by_artefacts FROM entries
), edges AS MATERIALIZED (
    SELECT parent AS made_from, made.id AS key FROM made LEFT JOIN entries ON entries.id = parent
    WHERE made.by_artefacts OR coalesce(entries.is_episode, true)
    UNION ALL SELECT id, signals_id FROM entries WHERE signals_id IS NOT NULL
    UNION ALL SELECT signals_id, id FROM entries WHERE signals_id IS NOT NULL
), down(root, key) AS (
    SELECT root, key FROM roots UNION SELECT down.root, edges.key FROM edges JOIN down ON made_from = down.key
)
SELECT id, signals_id, is_episode, min(root) AS root FROM down JOIN entries ON id = down.key GROUP BY ALL ORDER BY id
"""


@dataclass(frozen=True)
class Descendants:
    """Key -> name of the root, of everything that holds the data of some roots."""

    episodes: dict[str, str]  # by id
    artefacts: dict[str, str]  # by id
    signals: dict[str, str]  # by the hash of the signals of an episode, whether it is still there or not


def find_descendants(
    select: Select, roots: Iterable[tuple[str, str]], *, through_artefacts: bool = True
) -> Descendants:
    """Returns some episodes, all that hold the same signals, and all that was made from any of these.

    Args:
        select: Runs a query over everything that was recorded.
        roots: (name, key) of each: a key is the id of an episode, or the hash of its signals.
        through_artefacts: Whether simulated episodes count that a fit or a policy of these was used for.
    """
    pairs = sorted(set(roots))
    values = ([name for name, _ in pairs], [key for _, key in pairs], through_artefacts)
    rows = select(_DESCENDANTS, values) if pairs else []
    episodes = {row["id"]: row["root"] for row in rows if row["is_episode"]}
    signals = {key: name for name, key in pairs} | {r["signals_id"]: r["root"] for r in rows if r["signals_id"]}
    artefacts = {row["id"]: row["root"] for row in rows if not row["is_episode"]}
    return Descendants(episodes, artefacts, signals)
