"""The batch system: what it asks of a job, and its queues."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from maple_parsl.site.base import Amount, Count, Expression, Facts, Model, Name, Names, Option
from maple_parsl.walltime import Walltime


class Scheduler(Facts):
    """The batch system and what it asks of every job.

    Attributes:
        kind: batch system; ``none`` runs on this machine; ``lsf`` only describes retired sites.
        shebang: first line of the script; PBS sites with modules need a login shell.
        account: whether a job must name an account (project, allocation).
        account_hint: the form of account names, shown when one is missing; never appended silently.
        account_pattern: regular expression the account must match, where the site enforces one.
        queue_option: what the queue's name is called here: a partition, a QOS or a PBS queue.
        min_walltime, default_walltime: shortest accepted; what a job gets that states none.
        max_array: most elements in one job array.
        poll_seconds: shortest interval between status queries, seconds.
        requeue: whether a job may be requeued by its owner. Absent: unknown.
        chain: whether jobs may wait for one another (dependencies). Absent: unknown.
        signal: whether the scheduler can signal the script before the limit (Slurm's --signal).
        limits_command: prints the live limits.
        clusters: value for Slurm's --clusters, where several clusters share a login node.
    """

    kind: Literal["slurm", "pbs", "lsf", "none"]
    version: str | None = None
    shebang: Literal["#!/bin/bash", "#!/bin/bash -l"] = "#!/bin/bash"
    account: Literal["required", "optional"] = "required"
    account_hint: str | None = None
    account_pattern: Expression | None = None
    queue_option: Literal["partition", "qos", "queue"] | None = None
    min_walltime: Walltime | None = None
    default_walltime: Walltime | None = None
    max_array: Count | None = None
    poll_seconds: Count = 60
    requeue: bool | None = None
    chain: bool | None = None
    signal: bool = False
    limits_command: str | None = None
    clusters: Names | None = None


class Directives(Facts):
    """How a job's resources are written at this site.

    Attributes:
        always: directives added to every script, without the ``#SBATCH``/``#PBS`` prefix.
        gpu_request: how GPUs are asked for. ``none``: whole nodes, never written. ``gpus-per-node``,
            ``gpus`` (the job's total), ``gres`` (Slurm), ``select-ngpus`` (in the PBS chunk).
        tasks: how tasks are written: ``ntasks-per-node``, ``ntasks`` (the total), or ``none``.
        cpus_per_task: whether --cpus-per-task is written (Slurm).
        memory: ``forbidden``, ``unneeded`` (whole nodes), ``whole-node`` (``--mem=0`` unless stated), or
            ``required`` (the user must state it or the node kind gives it).
        exclusive: ask for whole nodes explicitly (Slurm ``--exclusive``), where nodes are shared by default.
        forbidden: option names the site rejects, such as ``--gres``.
        forbidden_note: what happens with a forbidden option.
    """

    always: tuple[Option, ...] = ()
    gpu_request: Literal["none", "gpus-per-node", "gpus", "gres", "select-ngpus"]
    tasks: Literal["ntasks-per-node", "ntasks", "none"] = "ntasks-per-node"
    cpus_per_task: bool = True
    memory: Literal["forbidden", "unneeded", "whole-node", "required"] = "unneeded"
    exclusive: bool = False
    forbidden: tuple[str, ...] = ()
    forbidden_note: str | None = None


class Band(Model):
    """Limits that hold for a range of node counts (routing queues, bins)."""

    min_nodes: Count = 1
    max_nodes: Count
    max_walltime: Walltime
    via: str | None = None


class Queue(Model):
    """A queue, partition or QOS as the user names it.

    Attributes:
        kinds: the node kinds it offers, its default first.
        min_nodes, max_nodes, max_walltime: per job. Absent: unknown (or, for max_nodes, no cap: see note).
        bands: limits by node count, where they differ; they win over max_walltime.
        partition, qos: what is really written, where it differs from the name.
        max_gpus: devices of one job in total; ``max_gpus_per_node`` per node.
        shared: nodes are shared with other jobs, so a job may ask for a part of one.
        exclusive: whole nodes are given and charged, whatever is asked.
        batch: scripts may be submitted (false: interactive only).
        open: anyone may use it (false: by request).
        default: what a job gets that names no queue.
        charge: node-hours charged per node-hour used. Absent: unknown.
        directives: extra directives for jobs in this queue.
    """

    name: Name
    kinds: tuple[Name, ...] = Field(min_length=1)
    min_nodes: Count | None = None
    max_nodes: Count | None = None
    max_walltime: Walltime | None = None
    bands: tuple[Band, ...] = ()
    partition: Names | None = None
    qos: Names | None = None
    max_gpus: Count | None = None
    max_gpus_per_node: Count | None = None
    shared: bool = False
    exclusive: bool = False
    batch: bool = True
    open: bool = True
    default: bool = False
    preemptible: bool = False
    charge: Amount | None = None
    directives: tuple[Option, ...] = ()
    note: str | None = None

    @model_validator(mode="after")
    def _least_and_most(self) -> Queue:
        for least, most in ((self.min_nodes, self.max_nodes), *((b.min_nodes, b.max_nodes) for b in self.bands)):
            if least is not None and most is not None and least > most:
                raise ValueError(f"queue {self.name}: min_nodes is {least} and max_nodes is {most}")
        return self


class Queues(Facts):
    """The site's queues, in the order a person would try them."""

    entry: tuple[Queue, ...] = Field(min_length=1)
