"""Judge: run a launch script in a pretended cluster, and say whether what it starts is what a case demands.

It shares no code with what writes and checks scripts, and has a table of sites of its own. Begin at
:mod:`maple_parsl.judge.judging`; ``inside`` runs in the sandbox, so nothing is imported here.
"""
