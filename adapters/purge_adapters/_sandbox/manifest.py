"""The manifest of the sandbox, written so that a newcomer learns the format from it."""

from __future__ import annotations

from typing import Final

MANIFEST: Final = """\
# What purge knows about this memory: where it lies, and what was made from what.
# Everything that is remembered here can be forgotten here. Nothing outside is touched:
# paths are relative to this file and may not leave its folder.

purge: 1                        # the version of this format
name: kettle
timezone: Asia/Tokyo            # for the dates in reports

safety:
  min_phrase_width: 12          # a shorter phrase would meet too much (in columns; 漢 takes two)
  max_records: 25               # a request that would remove more stops, unless you say --expect N

sites:

  # Where it begins: what was said. One JSON record a line; the oldest day is already gzipped.
  raw-logs:
    adapter: jsonl
    path: data/logs
    id: uuid                    # the field that names a record
    text: [message.content]     # a dotted path to what was said
    time: timestamp
    scope: {project: project}   # for --scope project=cafe
    subject: user               # for --subject: whom a record is about

  # What people wrote down. A section, from one heading to the next, is the unit of removal.
  notes:
    adapter: markdown
    path: data/notes
    record: section
    scope: {project: project}   # from the front matter

  # What the assistant extracted from the logs, in SQLite with a full-text index.
  memories:
    adapter: sql
    url: sqlite:///data/memories.db
    table: memories
    id: id
    text: [content]
    time: created_at
    scope: {project: project}
    derived_from:
      raw-logs: source_id       # this column holds the uuid of the log record

  # One vector for each memory, in Chroma. Deleting a record there leaves its text and its
  # vector in the files; purge takes them out, and looks again.
  embeddings:
    adapter: chroma
    path: data/chroma
    collections: [memories]
    scope: {project: project}
    derived_from:
      memories: memory_id       # this metadata key holds the id of the memory

  # What was made from memories. A line says at its end which memory it was made from. A line
  # that does not say can be found by its words alone.
  summaries:
    adapter: markdown
    path: data/summaries
    record: block               # the smallest unit: a paragraph, a bullet, a quote
    scope: {project: project}
    derived_from:
      memories: derived_from
    action: blank               # keep the place, drop the words, leave a dated line
"""

SERVICES: Final = """\

  # Answers that were computed once, in Redis. One that was made from a purged memory goes,
  # whatever else it was made from: it can be computed again.
  cache:
    adapter: redis
    url: "${REDIS_URL}"
    keys: "answer:*"
    text: [answer]
    derived_from:
      memories: ids
    when_source_purged: delete

  # What is exported to S3 every week: JSON lines in a bucket that keeps old versions.
  exports:
    adapter: s3
    bucket: kettle-exports
    prefix: memories/
    format: jsonl
    id: id
    text: [content]
    endpoint_url: "${S3_ENDPOINT_URL}"
    region_name: us-east-1
    aws_access_key_id: "${AWS_ACCESS_KEY_ID}"
    aws_secret_access_key: "${AWS_SECRET_ACCESS_KEY}"
    addressing_style: path
    versions: keep              # an old version with records that only it has is left, and said
    derived_from:
      memories: $id             # an exported record has the id of its memory

  # The nightly backups, in restic. They are left to age out, and the report says until when.
  # For that it has to know what runs by itself: what is kept, and when the rest is dropped.
  backups:
    adapter: restic
    repository: backups
    password_file: backups.password
    cache_dir: cache
    covers: [raw-logs, notes, memories, embeddings, summaries]
    policy: wait                # or rewrite: takes the item out of the snapshots
    keep: {daily: 10}           # as in 'restic forget --keep-daily 10'
    schedule: {backup: "03:00", forget: "03:30", prune: "03:40"}    # every night
    max_unused: 0               # so that prune leaves nothing of what was dropped
"""

SERVICES_README: Final = """\
| `redis` | the files of the cache: answers that were made from memories |
| `s3` | the files of the S3 server, with a weekly export in two versions |
| `backups` | ten nights of `data`, in a restic repository |

What else lies here belongs to them: their logs, a key for S3 in `s3.json`, the password and the
cache of restic. The servers run only while they are needed: `./with-services COMMAND` starts
them, runs a command in this folder and stops them again, for instance
`./with-services purge check`. It also says to the command where they are, in the environment
variables that the manifest names.
"""

WITH_SERVICES: Final = """\
#!/bin/sh
# Runs a command with the sandbox's Redis and S3 server beside it, and stops them afterwards.
folder=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
PATH={programs}:$PATH
export PATH
exec {python} -m purge_adapters._sandbox "$folder" "$@"
"""

README: Final = """\
# Kettle, a café that does not exist

This folder is a sandbox of `purge`: the memory of an assistant that three invented people
share. Nothing in it is real, and you can break whatever you like.

The story: on the first day Edwin told the assistant something about the staging database
that he had not looked into. It became `mem-0042`, a pinned lesson, and was put in front of
every turn. On the fourth day the cause came out, and the lesson was wrong. A correction did
not help, for a search returned both.

| folder | what it is |
|---|---|
| `data/logs` | what was said: five days, three languages, one file a day |
| `data/notes` | what the three wrote down |
| `data/memories.db` | what the assistant extracted, with a full-text index |
| `data/chroma` | the vectors of that |
| `data/summaries` | what it wrote from its memories; the handover does not say from which |
| `purge.yaml` | the manifest: start reading here |
"""
