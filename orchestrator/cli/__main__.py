"""`python -m orchestrator.cli`: the same as `stationmaster`."""

from orchestrator.cli.main import main

main()
