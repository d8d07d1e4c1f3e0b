"""A program that brings the small shop up to date, for tests that kill it or start it twice."""

from __future__ import annotations

import sys
from pathlib import Path

from kgrag_assets.cli.place import Place, dagster_home, open_instance
from kgrag_assets.cli.running import bring_up_to_date
from kgrag_assets.lake.lake import Lake
from kgrag_assets_tests.pipeline.workshop import TASK, WordEmbedder, settings_for


def main(root: Path) -> None:
    """Run in ``root``; print each job as it starts, then the number of steps that ran."""
    settings = settings_for(root)
    with open_instance(dagster_home(settings.lake)) as instance:
        place = Place(settings, Lake.at(settings.lake), instance, {"embedder": WordEmbedder()})
        report = bring_up_to_date(place, TASK, lambda job, partition: print(job, partition, flush=True))
    print("steps", len(report.steps), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
