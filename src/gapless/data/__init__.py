"""The catalogue of a project: every episode and artefact, where it came from, and SQL over them.

It lies in the project's folder `.gapless`:

    tables/episodes/   Delta: a row per episode, in a folder per source; says where the samples lie
    tables/artefacts/  Delta: a row per fit, policy, report, ...; storing one again adds a row
    tables/events/     Delta: what people say of episodes (labels, splits, consent); made with the first of it
    samples/           chunks: Parquet files, each with the samples of the episodes of one commit
    samples/joined.json  which larger file holds a chunk now that was small; without it, each is a file of its own
    media/XX/HASH.mp4  videos, each kept once under the hash of its content
    artefacts/ID/      the files of an artefact
    temporary/         what is not finished; deleted when a week old

A row of a chunk is a segment: some values of one column of one episode, and their times. Samples, videos and files
are in place before the row is committed that names them, so that a killed process leaves nothing half done.

What cannot be stored, read or found raises `CatalogueError`, with a message of one line that says what to do.
"""
