-- The rows of a flow as the first source keeps them, as far as these journals need them.
CREATE TABLE flows (flow_id TEXT PRIMARY KEY, entrypoint TEXT, args_hash TEXT, code_hash TEXT, status TEXT,
    lease_holder TEXT, lease_expires INTEGER, created_at INTEGER, updated_at INTEGER);
CREATE TABLE steps (flow_id TEXT, seq INTEGER, step_key TEXT, kind TEXT, attempt INTEGER, outcome TEXT, payload BLOB,
    error_class TEXT, started_at INTEGER, ended_at INTEGER, PRIMARY KEY (flow_id, seq));
