"""The schema, as the numbered steps that led to it. Never change a step that was released: add one.

`user_version` holds the number of steps a file has seen. Each step is applied in one transaction together with that number.

Nothing here grows with the length of an agent's work but `event`, a row per fact: what agents say and read lies in
trajectory files, and the output of checks is cut before it is stored (`eventlog.OUTPUT_LIMIT`).
"""

from __future__ import annotations

_TASKS = (
    """
    CREATE TABLE task (
        seq             INTEGER PRIMARY KEY AUTOINCREMENT,  -- the order of submission
        id              TEXT NOT NULL UNIQUE,
        spec            TEXT NOT NULL,                      -- JSON of task.TaskSpec; a retry by hand moves its base commit
        priority        INTEGER NOT NULL,
        state           TEXT NOT NULL,                      -- written by moves.move only
        state_at        REAL NOT NULL,
        activity        TEXT,
        attempt         INTEGER NOT NULL DEFAULT 0,         -- the newest attempt's number; 0 before the first claim
        faults          INTEGER NOT NULL DEFAULT 0,         -- attempts used up by faults of agent or task
        setbacks        INTEGER NOT NULL DEFAULT 0,         -- failures of engine, host or workspace since the last completed step
        fence           INTEGER NOT NULL DEFAULT 0,         -- rises with every claim
        owner           TEXT,                               -- the incarnation that holds the lease
        lease_until     REAL,
        not_before      REAL,
        forgiven        INTEGER NOT NULL DEFAULT 0,         -- 1: the next resumption is not counted (planned stop, engine down)
        approved_commit TEXT,
        changed_seq     INTEGER NOT NULL DEFAULT 0,         -- the newest event of the task
        CHECK ((owner IS NULL) = (lease_until IS NULL))
    ) STRICT
    """,
    "CREATE UNIQUE INDEX task_id_folded ON task (id COLLATE NOCASE)",  # ids name folders
    "CREATE INDEX task_turn ON task (priority DESC, seq) WHERE state IN ('queued', 'interrupted')",
    "CREATE INDEX task_state ON task (state)",
    "CREATE INDEX task_changed ON task (changed_seq)",
    """
    CREATE TABLE dependency (
        task  TEXT NOT NULL REFERENCES task (id),
        needs TEXT NOT NULL REFERENCES task (id),
        PRIMARY KEY (task, needs)
    ) STRICT, WITHOUT ROWID
    """,
)

_ATTEMPTS = (
    """
    CREATE TABLE attempt (
        task             TEXT NOT NULL REFERENCES task (id),
        number           INTEGER NOT NULL,
        base_commit      TEXT NOT NULL,                     -- the task's at that time: a retry may begin elsewhere
        started_at       REAL NOT NULL,
        ended_at         REAL,
        outcome          TEXT,
        failure_kind     TEXT,
        failure_message  TEXT,
        resumptions      INTEGER NOT NULL DEFAULT 0,
        idle_resumptions INTEGER NOT NULL DEFAULT 0,        -- those since the last completed step
        workspace        TEXT,
        branch           TEXT,
        step             INTEGER,                           -- at work now
        steps            INTEGER NOT NULL DEFAULT 0,        -- completed
        input_tokens     INTEGER,                           -- sums over the replies; NULL until one was reported
        cached_tokens    INTEGER,
        output_tokens    INTEGER,
        decode_s         REAL,
        last_tool        TEXT,
        snapshot_commit  TEXT,
        files_changed    INTEGER,
        insertions       INTEGER,
        deletions        INTEGER,
        PRIMARY KEY (task, number)
    ) STRICT
    """,
    """
    CREATE TABLE check_result (
        id        INTEGER PRIMARY KEY,
        task      TEXT NOT NULL,
        attempt   INTEGER NOT NULL,
        command   TEXT NOT NULL,
        exit_code INTEGER,                                  -- NULL: out of time
        seconds   REAL NOT NULL,
        output    TEXT NOT NULL,
        UNIQUE (task, attempt, command),
        FOREIGN KEY (task, attempt) REFERENCES attempt (task, number)
    ) STRICT
    """,
)

_FACTS = (
    """
    CREATE TABLE event (
        seq     INTEGER PRIMARY KEY AUTOINCREMENT,
        at      REAL NOT NULL,
        task    TEXT REFERENCES task (id),                  -- NULL for the station's own
        attempt INTEGER,
        type    TEXT NOT NULL,
        fact    TEXT NOT NULL                               -- JSON of events.AnyFact
    ) STRICT
    """,
    "CREATE INDEX event_task ON event (task, seq)",
    """
    CREATE TABLE message (
        id          INTEGER PRIMARY KEY,
        task        TEXT NOT NULL REFERENCES task (id),
        said_at     REAL NOT NULL,
        text        TEXT NOT NULL,
        taken_fence INTEGER,                                -- the claim that it was handed to
        heard_at    REAL                                    -- set when a step was completed after that
    ) STRICT
    """,
    "CREATE INDEX message_unheard ON message (task) WHERE heard_at IS NULL",
)

_REVIEW = (
    """
    CREATE TABLE merge (
        id              INTEGER PRIMARY KEY,
        task            TEXT NOT NULL REFERENCES task (id),
        begun_at        REAL NOT NULL,
        target          TEXT NOT NULL,
        snapshot_commit TEXT NOT NULL,
        target_commit   TEXT,
        merge_commit    TEXT,
        state           TEXT NOT NULL CHECK (state IN ('begun', 'prepared', 'landed', 'refused')),
        reason          TEXT NOT NULL DEFAULT ''
    ) STRICT
    """,
    "CREATE INDEX merge_task ON merge (task, id)",
    """
    CREATE TABLE look (
        task            TEXT PRIMARY KEY REFERENCES task (id),
        snapshot_commit TEXT NOT NULL,
        at              REAL NOT NULL
    ) STRICT
    """,
    "CREATE TABLE setting (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT",
)

MIGRATIONS: tuple[tuple[str, ...], ...] = ((*_TASKS, *_ATTEMPTS, *_FACTS, *_REVIEW),)
"""The statements of each step; step n brings a file from `user_version` n - 1 to n."""

SCHEMA_VERSION = len(MIGRATIONS)
