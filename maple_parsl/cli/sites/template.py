"""The text of a new site file. Placeholders are marked EDIT and dated 1970, so that ``check`` finds them."""

from __future__ import annotations

_UNCHECKED = 'source = "EDIT: the document, page or command that states this"\nchecked_on = 1970-01-01'

# What the batch system itself documents, the same at every site that runs it.
_LAUNCHERS = {
    "slurm": """\
command = "srun"
dialect = "slurm"
rank = ["SLURM_PROCID"]
local_rank = ["SLURM_LOCALID"]
world_size = ["SLURM_NTASKS"]
node_rank = ["SLURM_NODEID"]""",
    "pbs": """\
command = "mpiexec"                     # EDIT
dialect = "openmpi"                     # EDIT: openmpi, hydra (MPICH, Intel MPI) or pals (HPE Cray)
rank = ["OMPI_COMM_WORLD_RANK"]         # EDIT with the dialect; PALS sets PALS_RANKID, hydra PMI_RANK
local_rank = ["OMPI_COMM_WORLD_LOCAL_RANK"]
world_size = ["OMPI_COMM_WORLD_SIZE"]""",
}
_LIMITS = {"slurm": "scontrol show partition", "pbs": "qstat -Qf"}
_QUEUE = {"slurm": '"partition", or "qos"', "pbs": '"queue"'}
_GPU = {"slurm": "gpus-per-node, gpus or gres", "pbs": "select-ngpus"}
_PLACE = {
    "slurm": '# constraint = ""\n# gres_type = ""',
    "pbs": '# select = ""                          # one chunk, after the count\n# select_unit = "node"',
}
_DETECT = {
    "slurm": '# slurm_cluster = ""                   # scontrol show config | grep ClusterName',
    "pbs": '# pbs_server = ""                      # qstat -B',
}


def new_site(name: str, scheduler: str) -> str:
    """A whole site: the least that can be read; all else is commented out, because it is not known."""
    return f'''\
# The site {name}, as facts. Fill in what is marked EDIT. Take the # from a line when you know its value;
# leave out what you do not know: Maple never guesses it. For every group, say where the facts are stated
# (source) and on which day you compared them (checked_on). `maple sites check` lists what is left to do.
format = 1
name = "{name}"
title = "EDIT: {name}"
# aliases = []
# organization = ""
# documentation = "https://"

[scheduler]
{_UNCHECKED}
kind = "{scheduler}"
account = "optional"                    # EDIT: "required" where each job must name an account
# queue_option = {_QUEUE[scheduler]}
# limits_command = "{_LIMITS[scheduler]}"
# shebang = "#!/bin/bash -l"             # where modules need a login shell
# min_walltime = ""
# default_walltime = ""

[directives]
{_UNCHECKED}
gpu_request = "none"                    # EDIT: {_GPU[scheduler]}; none where nodes are given whole
# memory = "whole-node"                  # forbidden, unneeded, whole-node or required
# always = []
# forbidden = []

# One table per kind of node. This placeholder has no GPU.
[kinds.default]                         # EDIT: a short name, such as gpu or a100
{_UNCHECKED}
title = "EDIT: one {name} node"
vendor = "none"                         # EDIT: nvidia, amd, intel or none
gpus = 0                                # EDIT: physical GPUs per node
devices = 1                             # EDIT: devices a framework sees per node; 1 on a CPU node
backend = "gloo"                        # EDIT: nccl (NVIDIA and AMD), xccl (Intel) or gloo (CPU)
torch_device = "cpu"                    # EDIT: cuda (NVIDIA and AMD), xpu (Intel) or cpu
# nodes =
# cores =                                # usable physical cores per node
# hw_threads =
# memory_gib =
# device_memory_gib =
# device_map = [{{ cores = "" }}]          # one entry per device, in index order: the cores closest to it
{_PLACE[scheduler]}

[launchers.default]
{_UNCHECKED}
{_LAUNCHERS[scheduler]}
# flags = []

[environments.default]
{_UNCHECKED}
# base = ["module load ..."]             # lines every job needs
# framework = ["module load ..."]        # lines that bring the site's own PyTorch
# own = ["module load ..."]              # lines a venv or conda environment needs after it, such as a network plugin
# outbound = "none"                      # whether compute nodes reach the internet: direct, proxy or none

[environments.default.network]
# NCCL_SOCKET_IFNAME = ""

[rendezvous]
{_UNCHECKED}
# interface = ""                         # for NCCL_SOCKET_IFNAME on jobs of several nodes

# Queues, partitions or QOS, in the order a person would try them.
# [queues]
# source = ""
# checked_on =
#
# [[queues.entry]]
# name = ""
# kinds = ["default"]
# max_nodes =
# max_walltime = "24:00:00"
# default = true

# How to tell that a process runs here. Never by how a host name begins.
# [detect]
# source = ""
# checked_on =
# env = {{ }}                              # a variable that this site sets, and its value
{_DETECT[scheduler]}
# domain = []                            # the end of the fully qualified host name

# Your own: these stay out of the catalogue.
# [defaults]
# account = ""
# queue = ""
# walltime = ""                          # such as 30m, where a request states none
# run_root = ""                          # on a file system that all nodes see
'''


def own_changes(name: str) -> str:
    """A person's changes to a known site."""
    return f'''\
# Your own changes to {name}. Only what stands here differs from the site as Maple knows it: tables and
# queues of the same name are merged, other values replaced. See maple sites show {name} --origins
extends = "{name}"

[defaults]
# account = ""
# queue = ""
# walltime = ""                          # such as 30m, where a request states none
# run_root = ""                          # on a file system that all nodes see
# max_node_hours =                       # refuse jobs above
# ask_above_node_hours =                 # ask before jobs above

# A fact that is different for you, or wrong:
# [[queues.entry]]
# name = ""
# max_nodes =
'''
