"""Tables of archived messages in a folder: Parquet files, and how batches get there exactly once.

A lake is a folder, here or wherever `pyarrow.fs` reaches:

| | |
|---|---|
| `archive.json` | the format, the version and the columns |
| `day=2026-11-16/queue=alpha%5Cprivate%24%5Corders/*.parquet` | the messages |
| `_staging/` | files of a batch that is not committed: nobody reads folders that begin with `_` |
| `_commits/WRITER/BATCH.json` | which files a batch consists of: with it the batch is committed |
| `_compacting/` | a compaction that is under way |
| `_checkpoints/NAME/` | how far a query is, as Spark keeps it |
| `_replays/NAME/` | what a replay sends, and how far it is |

`folder` touches files, `description` is `archive.json`, `days` adds the column that messages do not
have, `committing` makes batches part of the lake, `tables` are the formats (with `delta` and
`iceberg`), `compacting` joins small files, and `reading` gives the rows back.
"""
