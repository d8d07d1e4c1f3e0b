"""What every command of ``kgrag`` shares: the terminal, exit codes, and errors as a line and a code."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.text import Text

from kgrag_assets.cli.plain_text import plain

EXIT_FAILED = 1
EXIT_INPUT = 2
EXIT_STALE = 3

console = Console()
errors = Console(stderr=True)

TaskName = Annotated[str, typer.Argument(metavar="TASK", help="Name of the task: its folder below input/tasks.")]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON for a script instead of tables.")]


def fail(message: str, code: int) -> NoReturn:
    """Say what went wrong, and end."""
    errors.print(Text("error: ", style="bold red") + Text(plain(message)))
    raise typer.Exit(code)


@contextmanager
def explained() -> Iterator[None]:
    """Turn errors that say what to do into a line and an exit code."""
    # Imported here: `kgrag --help` must not load Dagster.
    from kgrag_assets.cli.exporting import ExportError
    from kgrag_assets.cli.running import RunError
    from kgrag_assets.cli.showing import ShowError
    from kgrag_assets.knowledge.errors import KnowledgeError
    from kgrag_assets.lake.files import LakeError
    from kgrag_assets.models.errors import ModelUnavailableError
    from kgrag_assets.schemas.errors import SchemaError
    from kgrag_assets.settings import SettingsError

    try:
        yield
    except (SchemaError, SettingsError, ShowError, ExportError, KnowledgeError) as error:
        fail(str(error), EXIT_INPUT)
    except (RunError, LakeError, ModelUnavailableError) as error:
        fail(str(error), EXIT_FAILED)


def print_json(value: Any) -> None:  # noqa: ANN401  (whatever JSON can hold)
    """Write a value for a script."""
    sys.stdout.write(json.dumps(value, ensure_ascii=True, indent=2, default=str) + "\n")
