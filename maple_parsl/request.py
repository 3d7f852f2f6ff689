"""Request: what the user stated, and nothing else. An absent field is absent, never a default."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator

from maple_parsl.directive import fault
from maple_parsl.errors import RequestError, shortened
from maple_parsl.walltime import Walltime

MODELS = ("bert", "gpt", "resnet", "unet", "vit")
PARADIGMS = ("ddp", "fsdp", "tp", "pp", "zero", "3d")

# Parsl pastes account and queue unquoted into a shell command, and schedulers accept no more than this.
_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]*\Z")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_MEMORY = re.compile(r"(\d+)\s*([KMGT])(?:i?B)?\Z", re.I)
_SECRET = re.compile(r"(TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_KEY|PRIVATE_KEY|CREDENTIAL)", re.I)
_CONTROL = re.compile(r"[\x00-\x1f\x7f\u0085\u2028\u2029]")


def _text(value: str) -> str:
    if found := _CONTROL.search(value):
        raise ValueError(f"has a control character ({found.group()!r}); write it on one line")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("is not valid text (a broken character)") from None
    return value


def _filled(value: str) -> str:
    if not _text(value).strip():
        raise ValueError("is empty")
    return value


def _identifier(value: str) -> str:
    if not _IDENTIFIER.match(_filled(value)) or len(value) > 200:
        raise ValueError(
            f"{value!r} is not a name a scheduler takes: letters, digits and . _ @ + - only, no leading sign"
        )
    return value


def _not_option(value: str) -> str:
    if _filled(value).startswith("-"):
        raise ValueError(f"{value!r} starts with '-', so the program it is handed to would read an option")
    if value.startswith("~") and value != "~" and not value.startswith("~/"):
        raise ValueError(f"{value!r} names the home of somebody else; write the whole path")
    return value


Text = Annotated[str, AfterValidator(_text)]
Filled = Annotated[str, AfterValidator(_filled)]
Identifier = Annotated[str, AfterValidator(_identifier)]
Path = Annotated[str, AfterValidator(_not_option)]
Count = Annotated[int, Field(ge=1, le=1_000_000, strict=True)]


class Part(BaseModel):
    """Base of the request's parts: immutable, unknown fields refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class SoftwareEnvironment(Part):
    """Where the program's Python comes from.

    Attributes:
        modules: environment modules to load, in order.
        venv, conda: path of a virtual environment; name or path of a conda environment. A leading ``~`` or
            ``$NAME`` (``$SCRATCH/venv``) is expanded in the job.
        container: image (a path, or a reference the engine understands). binds: ``host[:inside[:mode]]``.
        engine: container engine. Absent: the site's.
        python: the interpreter to call. Absent: ``python3`` of the environment.
    """

    modules: tuple[Path, ...] = ()
    venv: Path | None = None
    conda: Path | None = None
    container: Path | None = None
    engine: Literal["apptainer", "singularity", "shifter", "podman-hpc"] | None = None
    binds: tuple[Path, ...] = ()
    python: Path | None = None

    @property
    def stated(self) -> bool:
        """Whether anything was stated that replaces the site's own framework."""
        return bool(self.modules or self.venv or self.conda or self.container or self.python)


class Parallelism(Part):
    """Degrees of 3-D parallelism; their product is the world size. ZeRO's stage."""

    dp: Count | None = None
    tp: Count | None = None
    pp: Count | None = None
    zero_stage: Literal[1, 2, 3] | None = None


class Request(Part):
    """A launch as the user stated it.

    Attributes:
        model, paradigm: workload family and parallel paradigm; with ``script`` both are optional.
        site: name, alias, or path of a site file.
        script, args: the user's program and its arguments.
        nodes, gpus_per_node: shape. ``whole_gpus``: count physical GPUs where a GPU is several devices.
        node_kind: which kind of node, where the site has several.
        walltime, account, queue: limits and charging. name: job name.
        template: how the framework starts, where the default for the site is not wanted.
        precision: passed to the mini-app, or to a launcher that takes it.
        environment, setup, env: software, shell lines run before the launch, variables exported.
        secrets: variables whose values are nowhere written: from a file that only the user can read, or (no file)
            from the shell that submits.
        inputs: files and folders the program reads; tested before anything queues.
        cpus: cores per process. memory: host memory per node, such as ``64G``.
        directives: raw scheduler directives, without ``#SBATCH``/``#PBS``; launcher_args: raw launcher options.
        exclusive: whole nodes, also where nodes are shared by default. requeue: restart after preemption or at
            the walltime. snapshot: copy the working tree into the run directory.
        watchdog: report a job whose log, metrics and heartbeat files stand still for so long; ``watchdog_action``:
            ``stop`` ends it too. Absent: no watchdog.
        preflight: a test of the launch in the allocation, before the program: ``stop`` ends the job where it finds
            that the launch cannot train (also True), ``warn`` only says so, ``off`` (False) leaves it out, ``only``
            runs nothing else. Absent: ``stop`` for several nodes of a scheduler, else ``off``.
    """

    model: Filled | None = None
    paradigm: Filled | None = None
    site: Filled | None = None
    script: Path | None = None
    args: tuple[Text, ...] = ()
    nodes: Count | None = None
    gpus_per_node: Count | None = None
    whole_gpus: bool = False
    node_kind: Identifier | None = None
    walltime: Walltime | None = None
    account: Identifier | None = None
    queue: Identifier | None = None
    name: Identifier | None = None
    template: Identifier | None = None
    precision: Literal["fp32", "bf16", "fp16"] | None = None
    parallelism: Parallelism = Parallelism()
    environment: SoftwareEnvironment = SoftwareEnvironment()
    setup: tuple[Filled, ...] = ()
    env: dict[str, Text] = {}
    secrets: dict[str, Path | None] = {}
    inputs: tuple[Path, ...] = ()
    cpus: Count | None = None
    memory: str | None = None
    directives: tuple[Filled, ...] = ()
    launcher_args: tuple[Filled, ...] = ()
    exclusive: bool | None = None
    requeue: bool = False
    snapshot: bool = False
    preflight: Literal["stop", "warn", "off", "only"] | None = None
    watchdog: Walltime | None = None
    watchdog_action: Literal["report", "stop"] = "report"

    @field_validator("preflight", mode="before")
    @classmethod
    def _preflight_flag(cls, value: Any) -> Any:
        return {True: "stop", False: "off"}[value] if isinstance(value, bool) else value

    @field_validator("env")
    @classmethod
    def _env_names(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            if not _VARIABLE.match(name):
                raise ValueError(f"{name!r} is not a variable name")
            if _SECRET.search(name) and value[name]:
                raise ValueError(
                    f"{name} looks like a secret; it would stand readable in the script. Name it as a secret:"
                    f" --secret {name}, or --secret {name}=FILE with a file that only you can read"
                )
        return value

    @field_validator("secrets")
    @classmethod
    def _secret_names(cls, value: dict[str, str | None]) -> dict[str, str | None]:
        for name in value:
            if not _VARIABLE.match(name):
                raise ValueError(f"{name[:20]!r} is not a variable name; a secret is NAME, or NAME=FILE")
        return value

    @field_validator("memory")
    @classmethod
    def _memory_form(cls, value: str | None) -> str | None:
        if value is None:
            return None
        match = _MEMORY.match(value.strip())
        if not match or int(match[1]) == 0:
            raise ValueError(f"{value!r} is not a memory size; write it like 64G")
        return f"{int(match[1])}{match[2].upper()}"

    @field_validator("directives")
    @classmethod
    def _directive_form(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for directive in value:
            if wrong := fault(directive):
                raise ValueError(wrong)
        return value

    @classmethod
    def of(cls, **fields: Any) -> Request:
        """Build a request; malformed values raise :class:`RequestError` in plain words.

        The fields of ``environment`` and ``parallelism`` may stand by themselves, as on the command line:
        ``conda="my-env"``, ``modules=["cuda"]``, ``tp=4``.
        """
        given = {key: value for key, value in fields.items() if value is not None}
        for part, kind in (("environment", SoftwareEnvironment), ("parallelism", Parallelism)):
            own = {key: given.pop(key) for key in kind.model_fields if key in given}
            if own and part in given:
                raise RequestError(f"{part}: state either {part}= or {', '.join(f'{key}=' for key in own)}, not both")
            if own:
                given[part] = own
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            raise RequestError(explain(error)) from None


def _nearest(name: str) -> str:
    from difflib import get_close_matches

    known = [*Request.model_fields, *SoftwareEnvironment.model_fields, *Parallelism.model_fields]
    close = [field for field in known if name in field] or get_close_matches(name, known, 3)
    return f"; did you mean {' or '.join(close)}?" if close else ""


def explain(error: ValidationError) -> str:
    """A pydantic error as one line per fault: field, what is wrong, what was given."""
    lines: list[str] = []
    for item in error.errors(include_url=False):
        place = ".".join(str(part) for part in item["loc"]) or "request"
        if item["type"] == "extra_forbidden":
            lines.append(f"{place}: no such field{_nearest(str(item['loc'][-1]))}")
            continue
        message = item["msg"].removeprefix("Value error, ")
        given = repr(item["input"])
        if given[:60] not in message and item["loc"][:1] != ("env",):  # it may be the secret that was refused
            message += f" (given: {given[:60]})"
        lines.append(f"{place}: {shortened(message)}")
    return "; ".join(lines)
