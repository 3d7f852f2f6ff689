"""The pretended cluster: runs inside the judge's sandbox, with the standard library alone."""
