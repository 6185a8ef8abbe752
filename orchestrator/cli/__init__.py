"""The command line: `stationmaster`. Each command's module is imported only when it is asked for."""
