"""Where everything in the lake lies, declared once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

MAX_TASK_NAME = 80
# File names have at most 255 bytes; the name of a table and the ending of a lock stand beside it.
_MAX_ENCODED = 200


def name_problem(name: str) -> str | None:
    """Say why ``name`` cannot be a task's or graph's name, or return None where it can.

    A name is a folder name and a Dagster partition key: printable, at most 80 characters, without
    slashes, not starting with a dot, and without the ``...`` by which Dagster writes ranges.
    """
    encoded = len(quote(name, safe="", errors="replace"))
    checks = (
        (not name or name != name.strip(), "a name must not be empty or begin or end with a space"),
        (len(name) > MAX_TASK_NAME, f"a name has at most {MAX_TASK_NAME} characters, this one has {len(name)}"),
        (encoded > _MAX_ENCODED, f"a name takes at most {_MAX_ENCODED} characters in percent-encoding, not {encoded}"),
        (name.startswith("."), "a name must not begin with a dot"),
        ("/" in name or "\\" in name, "a name must not contain a slash: use a folder directly below the input folder"),
        ("..." in name or "," in name, "a name must not contain '...' or a comma: they separate partitions in Dagster"),
        (not name.isprintable(), "a name must be printable"),
    )
    return next((problem for wrong, problem in checks if wrong), None)


@dataclass(frozen=True)
class LakePaths:
    """Paths below the lake's root; nothing here touches the disk."""

    root: Path

    @property
    def tasks(self) -> Path:
        """Folder of task folders, filled by people."""
        return self.root / "input" / "tasks"

    @property
    def knowledge_graphs(self) -> Path:
        """Folder of knowledge graph folders, filled by people."""
        return self.root / "input" / "knowledge_graphs"

    @property
    def ledger(self) -> Path:
        """SQLite file of answered model calls."""
        return self.root / "ledger" / "llm_calls.sqlite"

    @property
    def snapshot(self) -> Path:
        """The published DuckDB file."""
        return self.root / "kgrag.duckdb"

    @property
    def exports(self) -> Path:
        """Folder of exported mappings."""
        return self.root / "exports"

    def stage(self, table_name: str) -> Path:
        """Folder of one stage."""
        return self.root / "stages" / table_name

    def partition(self, table_name: str, partition: str | None) -> Path:
        """Folder of one partition of a stage; the partition's name is percent-encoded, never a path."""
        # quote() leaves "." alone: a leading one is already refused by name_problem, but a path must
        # not depend on a check made elsewhere.
        safe = "all" if partition is None else "p_" + quote(partition, safe="")
        return self.stage(table_name) / safe

    def rows(self, table_name: str, partition: str | None) -> Path:
        """Parquet file of one partition of a stage."""
        return self.partition(table_name, partition) / "rows.parquet"

    def arrays(self, name: str) -> Path:
        """Folder of a graph's or index's files (memory-mapped arrays, FAISS files, manifest)."""
        return self.root / "stages" / name / "all"
