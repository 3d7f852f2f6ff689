"""Runs at a site that is not this machine: the same records and the same rules, the files and the scheduler there.

What a job leaves in its run directory is copied, when it changes, to a mirror in the store; from there on a run
elsewhere is resolved like one here. The scheduler's commands run at the site, and are read here.
"""
