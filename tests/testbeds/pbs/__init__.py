"""STAND-INS for PBS and MPI launchers: see README.md for what they do and do not prove."""
