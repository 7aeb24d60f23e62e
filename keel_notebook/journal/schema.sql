-- The record file, journal.duckdb: schema version 1. Every column of `entries` is a field of an entry (DESIGN 7,
-- core/model.py) under the same name; `stamp`, `macs` and `body` are what was written around it. Only
-- `python -m keel_notebook.journal.ingest` writes here; anybody may read at any time:
--     duckdb -readonly .keel/journal.duckdb "select step, status, took_s from steps order by stamp desc limit 20"

CREATE TABLE keel_schema (version INTEGER NOT NULL);
INSERT INTO keel_schema VALUES (1);

-- Counts ingests. heads/.index holds the same number: if they differ, one of the two is older.
CREATE TABLE keel_state (generation BIGINT NOT NULL);
INSERT INTO keel_state VALUES (0);

-- How far each segment of the inbox has been taken in.
CREATE TABLE segments (run INTEGER NOT NULL, ident BLOB NOT NULL, upto BIGINT NOT NULL);

-- One row per run: one kernel's life.
CREATE TABLE kernels (
    run INTEGER NOT NULL,
    host VARCHAR NOT NULL,
    pid BIGINT NOT NULL,
    boot VARCHAR NOT NULL,
    started DOUBLE NOT NULL,
    notebook VARCHAR NOT NULL,
    cwd VARCHAR NOT NULL,
    ended VARCHAR NOT NULL,         -- open, clean, asked, died, vanished
    rss_last BIGINT NOT NULL
);

-- When each kernel was last seen to live: once a second while a step ran. Added to older files when they are written to.
CREATE TABLE last_seen (run INTEGER NOT NULL, seen_at DOUBLE NOT NULL);

-- Which notebook or name is which flow.
CREATE TABLE notebooks (flow VARCHAR NOT NULL, name VARCHAR NOT NULL, key VARCHAR NOT NULL, notebook VARCHAR NOT NULL);

-- Sizes of the objects that entries name.
CREATE TABLE objects (object VARCHAR NOT NULL, bytes BIGINT NOT NULL);

CREATE TABLE entries (
    entry VARCHAR NOT NULL,
    flow VARCHAR NOT NULL,
    run INTEGER NOT NULL,
    seq BIGINT NOT NULL,
    step VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    status VARCHAR NOT NULL,
    lane VARCHAR NOT NULL,
    occurrence BIGINT NOT NULL,
    call VARCHAR NOT NULL,
    key VARCHAR NOT NULL,
    attempt BIGINT NOT NULL,
    effect VARCHAR NOT NULL,
    idempotency_key VARCHAR NOT NULL,
    code VARCHAR,
    source VARCHAR NOT NULL,
    inputs STRUCT(name VARCHAR, digest VARCHAR, weak BOOLEAN, preview VARCHAR, producer VARCHAR, type VARCHAR)[],
    files STRUCT(path VARCHAR, role VARCHAR, digest VARCHAR, stamp BIGINT[], weak BOOLEAN)[],
    ambient JSON,
    writes STRUCT(name VARCHAR, digest VARCHAR, type VARCHAR, bytes BIGINT, preview VARCHAR)[],
    deleted VARCHAR[],
    outputs STRUCT(size BIGINT, object VARCHAR),
    not_stored STRUCT(name VARCHAR, type VARCHAR, reason VARCHAR)[],
    payload STRUCT(bytes BIGINT, head VARCHAR, buffers VARCHAR[], refs VARCHAR[]),
    started_at TIMESTAMP,           -- UTC
    ended_at TIMESTAMP,
    took_s DOUBLE,
    rss_peak BIGINT NOT NULL,
    fence BIGINT NOT NULL,
    error STRUCT(type VARCHAR, code VARCHAR),
    why VARCHAR NOT NULL,
    stamp BIGINT NOT NULL,          -- microseconds; the order in which entries were written, over all kernels
    frame_fence BIGINT NOT NULL,
    macs BLOB[] NOT NULL,           -- one per owner who sealed it
    body BLOB NOT NULL              -- the entry exactly as it was written and sealed
);

-- Every attempt at a step, and what stands for one (accept, adopt).
CREATE VIEW steps AS
SELECT * EXCLUDE (call, body, macs, frame_fence)
FROM entries WHERE kind IN ('step', 'accept', 'adopt');

-- Everything durable that happened inside steps.
CREATE VIEW calls AS
SELECT * EXCLUDE (body, macs, frame_fence)
FROM entries WHERE kind IN ('call', 'time', 'random', 'sleep', 'promise', 'undo', 'loop');

-- Runs with what they did. A run of several flows has one row for each.
CREATE VIEW runs AS
SELECT k.run, e.flow, k.notebook, k.ended, k.rss_last, k.host, k.pid, k.cwd,
       min(e.started_at) AS started_at, max(coalesce(e.ended_at, e.started_at)) AS ended_at,
       count(e.entry) FILTER (e.kind = 'step') AS steps, count(e.entry) AS entries
FROM kernels k LEFT JOIN entries e ON e.run = k.run
GROUP BY ALL;

-- Flows with the name or notebook that they belong to.
CREATE VIEW flows AS
SELECT e.flow, any_value(n.name) AS name, any_value(n.key) AS key, any_value(n.notebook) AS notebook,
       count(DISTINCT e.run) AS runs, count(DISTINCT e.step) FILTER (e.kind = 'step') AS steps,
       count(*) AS entries, min(e.started_at) AS started_at, max(coalesce(e.ended_at, e.started_at)) AS ended_at
FROM entries e LEFT JOIN notebooks n ON n.flow = e.flow
GROUP BY e.flow;

-- One row per name that a step read or wrote. Equal digests of a write and a read are an edge of the graph.
CREATE VIEW lineage AS
SELECT flow, run, entry, step, kind, status, stamp, 'read' AS edge, i.name, i.digest, i.type, i.producer
FROM (SELECT *, unnest(inputs) AS i FROM entries)
UNION ALL
SELECT flow, run, entry, step, kind, status, stamp, 'write', w.name, w.digest, w.type, NULL
FROM (SELECT *, unnest(writes) AS w FROM entries);

-- One row per object that an entry keeps on disk; `sharers` entries keep the same one.
CREATE VIEW storage AS
WITH named AS (
    SELECT flow, run, entry, step, stamp, 'payload' AS part, unnest(list_append(payload.buffers, payload.head)) AS object
    FROM entries
    UNION ALL
    SELECT flow, run, entry, step, stamp, 'outputs', outputs.object FROM entries
)
SELECT named.*, objects.bytes, count(*) OVER (PARTITION BY named.object) AS sharers
FROM named LEFT JOIN objects USING (object)
WHERE named.object IS NOT NULL;
