"""Views of what people said, and the view `episodes` with it; see `Catalogue.query`."""

import duckdb

INTERNAL_VIEWS = ("recorded_episodes", "hidden_episodes", "events")  # that users are not shown
# Rows are about episodes that may be shown. `said_at || label` orders labels: those said at one moment by their ids.
_EVENT_VIEWS = """
CREATE TEMP VIEW labels AS SELECT * FROM (
    SELECT id AS label, unnest(episodes) AS episode, said_at, said_by, said->>'outcome' AS outcome,
        said->>'failed_in' AS failed_in, said->>'reason' AS reason, CAST(said->'conditions' AS VARCHAR) AS conditions,
        CAST(said->'tags' AS VARCHAR[]) AS tags
    FROM events WHERE kind = 'label'
) WHERE episode NOT IN (SELECT id FROM hidden_episodes);
CREATE TEMP VIEW splits AS SELECT * FROM (
    SELECT name, said->>'purpose' AS purpose, said_at AS frozen_at, unnest(episodes) AS episode FROM events
    WHERE kind = 'split'
) WHERE episode NOT IN (SELECT id FROM hidden_episodes);
CREATE TEMP VIEW consents AS SELECT name AS person, said->>'what' AS what, said->>'scope' AS scope,
    said->>'until' AS until, said_at, said_by FROM events WHERE kind = 'consent';
CREATE TEMP VIEW episodes AS WITH verdicts AS (
    SELECT episode, arg_max({'outcome': outcome, 'failed_in': failed_in, 'reason': reason, 'said_by': said_by},
        said_at || label) AS newest
    FROM labels WHERE outcome IS NOT NULL GROUP BY episode
), joined AS (
    SELECT episode, list_reduce(list(CAST(conditions AS JSON) ORDER BY said_at, label),
        lambda earlier, later: json_merge_patch(earlier, later)) AS conditions
    FROM labels GROUP BY episode
), tagged AS (
    SELECT episode, list_sort(list_distinct(flatten(list(tags)))) AS tags
    FROM (SELECT episode, said_by, arg_max(tags, said_at || label) AS tags FROM labels WHERE len(tags) > 0 GROUP BY ALL)
    GROUP BY episode
)
SELECT recorded_episodes.* REPLACE (
    coalesce(newest.outcome, outcome) AS outcome,
    CASE WHEN newest IS NULL THEN failed_in ELSE newest.failed_in END AS failed_in,
    CASE WHEN joined.conditions IS NULL THEN recorded_episodes.conditions
    ELSE CAST(json_merge_patch(recorded_episodes.conditions, joined.conditions) AS VARCHAR) END AS conditions
), newest.reason AS reason, newest.said_by AS labelled_by, coalesce(tags, []) AS tags
FROM recorded_episodes LEFT JOIN verdicts ON verdicts.episode = recorded_episodes.id
LEFT JOIN joined ON joined.episode = recorded_episodes.id LEFT JOIN tagged ON tagged.episode = recorded_episodes.id
WHERE recorded_episodes.id NOT IN (SELECT id FROM hidden_episodes);
"""
# While nobody said anything, so that nothing is joined.
_NO_EVENT_VIEWS = """
CREATE TEMP VIEW episodes AS SELECT *, NULL::VARCHAR AS reason, NULL::VARCHAR AS labelled_by, []::VARCHAR[] AS tags
FROM recorded_episodes;
"""


def create_event_views(connection: duckdb.DuckDBPyConnection, hidden: tuple[str, ...], has_events: bool) -> None:
    """Makes `labels`, `splits`, `consents` and `episodes` from the views `events` and `recorded_episodes`.

    `hidden` are the ids of the episodes that nothing shows.
    """
    connection.execute("CREATE TEMP TABLE hidden_episodes AS SELECT unnest($1::VARCHAR[]) AS id", (list(hidden),))
    views, own = _EVENT_VIEWS.split("CREATE TEMP VIEW episodes", 1)
    connection.execute(views + ("CREATE TEMP VIEW episodes" + own if has_events else _NO_EVENT_VIEWS))
