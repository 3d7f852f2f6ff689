"""Sending a plan's script through its Parsl provider, and telling a refusal from a doubt."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from maple_parsl.errors import SchedulerError, SubmissionError
from maple_parsl.schedulers.commands import NotStartedError

if TYPE_CHECKING:
    from maple_parsl.plan import Plan

# After these the job may exist all the same: the request could have arrived and its answer been lost.
_IN_DOUBT = re.compile(
    r"timed? ?out|socket|connection|communicat|zero bytes|unable to contact|cannot connect|end of file"
    r"|protocol error|message receive|try again|Resource temporarily|no route|busy",
    re.I,
)
JOB_IDS = {
    "slurm": re.compile(r"\d+(?:[_+]\d+)?"),
    "pbs": re.compile(r"\d+(?:\[\d*\])?(?:\.[A-Za-z0-9._-]+)?"),
}
_TAKEN = {
    "slurm": re.compile(r"Submitted batch job \d+"),
    "pbs": re.compile(r"^\d+(?:\[\])?\.[A-Za-z0-9._-]+\s*$", re.M),
}
_ADVICE: tuple[tuple[str, str], ...] = (
    (r"invalid account|account.*(invalid|unknown|not)", "state an account that may use this queue"),
    (r"invalid partition|unknown queue|invalid queue|queue is not enabled", "state a queue of this site"),
    (r"invalid qos", "state a QOS that your account has"),
    (r"time limit|walltime|violates queue", "state a shorter walltime, or a queue that allows it"),
    (r"node configuration|node count|more processors|nodes? requested", "ask for fewer nodes or devices per node"),
    (r"unknown resource|illegal attribute|invalid (generic|feature|constraint)", "correct that directive"),
    (r"limit|quota|would exceed|maximum number", "wait until some of your jobs have ended, or ask for less"),
    (r"authentication|credential|munge|permission|not (allowed|authorized)", "ask the site: you may not submit here"),
)


def send(plan: Plan, script_file: Path) -> str:
    """Submit the script and return the scheduler's id of the job.

    Args:
        plan: what is submitted. script_file: where its script lies, as the run's record of it.

    Raises:
        SubmissionError: the scheduler refused (its words are in the message), or the file is another script.
        NotStartedError: the command to submit is not there; no job exists.
        SchedulerError: the scheduler did not answer, so that a job may exist.
    """
    script = plan.script
    try:
        if script_file.exists() and script_file.read_bytes() != script.encode():
            raise SubmissionError(f"{script_file} is not the script of this plan; nothing was submitted")
    except OSError as error:
        raise SubmissionError(f"{script_file} cannot be read: {error.strerror}; nothing was submitted") from None
    from parsl.providers.errors import SubmitException

    provider = plan.provider()
    try:
        job_id = provider.submit(":", plan.shape.tasks_per_node, job_name=plan.job_name)
    except NotStartedError:
        raise
    except SchedulerError as error:
        raise SchedulerError(f"{error}; the job may exist, look for it by its name {plan.job_name}") from None
    except SubmitException as error:
        raise judged(plan.scheduler, f"{error.stderr or ''}\n{error.stdout or ''}", error.retcode) from None
    finally:
        provider.clean()
    if not job_id:
        raise SchedulerError("the scheduler took the script and named no job; look for the job by its name")
    if not JOB_IDS[plan.scheduler].fullmatch(str(job_id)):
        raise SchedulerError(
            f"the scheduler took the script and named {str(job_id)[:100]!r}, which is no job id; look for the job by"
            f" its name {plan.job_name}"
        )
    return str(job_id)


def judged(scheduler: str, said: str, code: int | None) -> SubmissionError | SchedulerError:
    """The error for what sbatch or qsub said."""
    words = " ".join(said.split())[:600] or f"no output, exit code {code}"
    command = {"slurm": "sbatch", "pbs": "qsub"}.get(scheduler, "the submission")
    if code == 0:
        return SchedulerError(f"{command} answered what cannot be read: {words!r}; look for the job by its name")
    if _IN_DOUBT.search(words) or _TAKEN[scheduler].search(said) or not said.strip():
        # Without a word of refusal, or with the id of a job, or killed: it may have been taken all the same.
        return SchedulerError(f"{command} could not be answered in full: {words}; the job may exist, look for its name")
    advice = next((text for pattern, text in _ADVICE if re.search(pattern, words, re.I)), "correct the request")
    return SubmissionError(f"{command} refused the job: {words} ({advice})")
