"""The environment a scheduler's command runs in: without what an outer job or launcher left behind."""

from __future__ import annotations

from collections.abc import Mapping

# These pick the scheduler, and hold no state of a job.
_KEPT = frozenset(
    "SLURM_CONF SLURM_CONF_SERVER SLURM_JWT PBS_CONF_FILE PBS_SERVER PBS_DEFAULT PBS_EXEC PBS_HOME".split()
)
_PREFIXES = (
    *("SLURM_", "SLURMD_", "SBATCH_", "SRUN_", "SALLOC_", "SQUEUE_", "SACCT_", "SCANCEL_", "SINFO_", "SCONTROL_"),
    *("PBS_", "PMI_", "PMI2_", "PMIX_", "OMPI_", "PRTE_", "ORTE_", "PALS_", "HYDRA_", "HYDI_"),
    *("MPI_LOCAL", "I_MPI_HYDRA", "MV2_COMM_WORLD_", "MPIRUN_", "FLUX_", "ALPS_", "TORCHELASTIC_", "PARSL_WORKER_"),
)
_NAMES = frozenset(
    (
        "RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE NODE_RANK GROUP_RANK GROUP_WORLD_SIZE ROLE_RANK ROLE_NAME"
        " ROLE_WORLD_SIZE MASTER_ADDR MASTER_PORT NCPUS"
        # of a Maple job
        " MAPLE_JOB_ID MAPLE_RUN_ID MAPLE_RUN_DIR MAPLE_WORK_DIR MAPLE_ATTEMPT MAPLE_ATTEMPT_DIR MAPLE_RESUME"
        " MAPLE_TASK MAPLE_SAMPLE MAPLE_TASKS MAPLE_LOCAL_SIZE MAPLE_LOCAL_INDEX MAPLE_LOCAL_RANK MAPLE_LOCAL_ID"
        " MAPLE_RANK_VARS MAPLE_LOCAL_VARS MAPLE_SIZE_VARS MAPLE_NODE_VARS MAPLE_ONE_DEVICE MAPLE_VISIBLE_NAME"
        " MAPLE_VISIBLE_DEVICES MAPLE_POLL_LIMIT MAPLE_HOSTFILE MAPLE_MINIAPP"
    ).split()
)
_DEVICES = frozenset(
    "CUDA_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES HIP_VISIBLE_DEVICES ZE_AFFINITY_MASK GPU_DEVICE_ORDINAL".split()
)


def submission_environment(environ: Mapping[str, str], *, here: bool = False) -> dict[str, str]:
    """What is left of an environment for a scheduler's command, and so for the job that it starts.

    Slurm gives a job the submitting shell's variables, and its options' variables (``SBATCH_ACCOUNT``,
    ``SLURM_NTASKS``) win over the script: a job submitted from inside another one would take over that
    job's shape, ranks and devices.

    Args:
        environ: the environment to clean; it is not changed.
        here: the job runs on this machine, whose visible devices are then the user's own choice.
    """

    outer = [environ[name] for name in ("SLURM_JOB_ID", "PBS_JOBID") if environ.get(name)]

    def stays(name: str) -> bool:
        if name in _KEPT:
            return True
        if name == "TMPDIR" and any(job_id in environ[name] for job_id in outer):
            return False  # a folder that goes with the outer job
        if name in _NAMES or name.startswith(_PREFIXES):
            return False
        return here or name not in _DEVICES

    return {name: value for name, value in environ.items() if stays(name)}
