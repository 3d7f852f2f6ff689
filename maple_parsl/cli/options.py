"""The options that state a launch, the same for every verb that takes one, and the request they make."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from maple_parsl.errors import RequestError

if TYPE_CHECKING:
    from maple_parsl.request import Request

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="The cost is confirmed.")]
MaxNodeHours = Annotated[
    float | None, typer.Option("--max-node-hours", help="Refuse a job that could cost more.", metavar="H")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check everything, write the files, submit nothing.")]
RunRoot = Annotated[
    str | None, typer.Option("--run-root", help="Folder for run directories, seen by all nodes.", metavar="DIR")
]
Wait = Annotated[bool | None, typer.Option("--wait/--no-wait", help="Wait for the end (local: unless told not to).")]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Show the log while it is written.")]
RunId = Annotated[str, typer.Argument(metavar="ID", help="A run's id, or the beginning of it or of its last part.")]
_ARGS = "maple.args"


def _text(help: str, *names: str, metavar: str = "TEXT") -> Any:
    return Annotated[str | None, typer.Option(*names, help=help, metavar=metavar)]


def _many(help: str, *names: str, metavar: str) -> Any:
    return Annotated[list[str] | None, typer.Option(*names, help=help, metavar=metavar)]


def _count(help: str, *names: str) -> Any:
    return Annotated[int | None, typer.Option(*names, help=help, metavar="N")]


def _flag(help: str, name: str) -> Any:
    return Annotated[bool, typer.Option(name, help=help)]


# Parameter name -> annotation. Names of request fields where nothing else is said below.
_OPTIONS: Mapping[str, Any] = {
    "words": Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODEL] [PARADIGM] [SITE]", help="The three words; or one argument: the request in plain words."
        ),
    ],
    "model": _text("Model family, instead of the first word.", "--model"),
    "paradigm": _text("Parallel paradigm, instead of the second word.", "--paradigm"),
    "site": _text("Site, instead of the third word: name, alias or path of a site file.", "--site"),
    "script": _text("Your program; MODEL and PARADIGM are then optional. Its arguments follow --.", "--script"),
    "nodes": _count("Nodes.", "--nodes", "-N"),
    "gpus_per_node": _count("Devices used on each node.", "--gpus-per-node"),
    "whole_gpus": _flag("Count physical GPUs where each is several devices.", "--whole-gpus"),
    "node_kind": _text("Kind of node, where the site has several.", "--node-kind"),
    "walltime": _text("Time limit, such as 30m, 2h or 1-00:00:00.", "--walltime", "-t", metavar="TIME"),
    "account": _text("Account (project, allocation) to charge.", "--account", "-A"),
    "queue": _text("Queue, partition or QOS.", "--queue", "-q"),
    "name": _text("Name of the launch.", "--name"),
    "template": _text("How the framework starts, such as torchrun or accelerate.", "--template"),
    "precision": _text("fp32, bf16 or fp16.", "--precision"),
    "dp": _count("Degree of data parallelism (3d).", "--dp"),
    "tp": _count("Degree of tensor parallelism (3d).", "--tp"),
    "pp": _count("Degree of pipeline parallelism (3d).", "--pp"),
    "zero_stage": _count("Stage of ZeRO: 1, 2 or 3.", "--zero-stage"),
    "module": _many("Environment module to load; repeat for more.", "--module", metavar="NAME"),
    "venv": _text("Virtual environment of your program (~ and '$SCRATCH' are the job's).", "--venv", metavar="PATH"),
    "conda": _text("Conda environment of your program.", "--conda", metavar="NAME|PATH"),
    "container": _text("Container image.", "--container", metavar="IMAGE"),
    "bind": _many("Folder visible in the container: HOST[:INSIDE[:MODE]]; repeat.", "--bind", metavar="PATH"),
    "engine": _text("apptainer, singularity, shifter or podman-hpc.", "--engine"),
    "python": _text("Python interpreter to call.", "--python", metavar="PATH"),
    "setup": _many("Shell line to run before the launch; repeat.", "--setup", metavar="LINE"),
    "env": _many("Variable for every process; repeat.", "--env", metavar="NAME=VALUE"),
    "secret": _many(
        "Variable that is written nowhere: from your shell, or a private FILE.", "--secret", metavar="NAME[=FILE]"
    ),
    "input": _many("File or folder the program reads; tested first; repeat.", "--input", metavar="PATH"),
    "cpus": _count("Cores per process.", "--cpus"),
    "memory": _text("Host memory per node, such as 64G.", "--memory"),
    "directive": _many("Scheduler option, as it stands behind #SBATCH or #PBS; repeat.", "--directive", metavar="OPT"),
    "launcher_arg": _many("Option for the site's launcher; repeat.", "--launcher-arg", metavar="OPT"),
    "exclusive": Annotated[bool | None, typer.Option("--exclusive/--no-exclusive", help="Whole nodes.")],
    "requeue": _flag("Start again after preemption, or at the walltime.", "--requeue"),
    "preflight": _text(
        "Test of the launch in the allocation: stop (default on several nodes), warn or off.", "--preflight"
    ),
    "watchdog": _text(
        "Report a job that stands still for so long (log, metrics, heartbeat).", "--watchdog", metavar="TIME"
    ),
    "watchdog_action": _text("With --watchdog: report, or stop the job too.", "--watchdog-action"),
    "snapshot": _flag("Copy the working tree, so that later edits do not change the job.", "--snapshot"),
}
_FALSE = {"whole_gpus", "requeue", "snapshot"}
_RENAMED = {"directive": "directives", "launcher_arg": "launcher_args", "input": "inputs"}
_ENVIRONMENT = {
    "module": "modules",
    "bind": "binds",
    "venv": "",
    "conda": "",
    "container": "",
    "engine": "",
    "python": "",
}
_DEGREES = ("dp", "tp", "pp", "zero_stage")


class LaunchCommand(TyperCommand):
    """A verb whose words after ``--`` are the program's arguments, never its own."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        cut = args.index("--") if "--" in args else len(args)
        ctx.meta[_ARGS] = tuple(args[cut + 1 :])
        return list(super().parse_args(ctx, args[:cut]))


def launch_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb the options of a launch; it gets ``request`` in place of them."""
    own = inspect.signature(function, eval_str=True, locals={"Request": object}).parameters
    mine = [parameter for name, parameter in own.items() if name != "request"]

    def verb(context: typer.Context, **values: Any) -> Any:
        from maple_parsl.cli.words import words_of

        stated = {name: values.pop(name) for name in _OPTIONS}
        if words := words_of(stated["words"]):
            return _from_words(function, words, {**stated, "words": None}, context.meta.get(_ARGS, ()), values)
        return function(request=request_of(stated, context.meta.get(_ARGS, ())), **values)

    keyword = inspect.Parameter.KEYWORD_ONLY
    theirs = [
        inspect.Parameter(name, keyword, default=False if name in _FALSE else None, annotation=annotation)
        for name, annotation in _OPTIONS.items()
    ]
    first = inspect.Parameter("context", keyword, annotation=typer.Context)
    parameters = [first, *theirs, *(parameter.replace(kind=keyword) for parameter in mine)]
    verb.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    verb.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    verb.__doc__, verb.__name__ = function.__doc__, function.__name__
    return verb


def _from_words(
    function: Callable[..., Any], words: str, stated: Mapping[str, Any], args: Sequence[str], values: dict[str, Any]
) -> Any:
    """The verb on a request in words; what options state besides them wins."""
    from maple_parsl.cli.words import answered, confirm, say, stated_fields
    from maple_parsl.dialogue import UnansweredError

    try:
        found = answered(words, stated_fields(request_of(stated, args)))
    except UnansweredError as error:
        if not values.get("json"):
            raise
        from maple_parsl.cli.output import emit_json

        emit_json(error.to_dict())
        return error.exit_code
    assert found.plan is not None
    say(found, function.__name__)
    if function.__name__ == "run" and not values.get("dry_run"):
        confirm(found.plan, values)
    return function(request=found.plan.request, **values)


def request_of(stated: Mapping[str, Any], args: Sequence[str] = ()) -> Request:
    """The request of the options.

    Raises:
        RequestError: a value is malformed, or there are more words than MODEL, PARADIGM and SITE.
    """
    from maple_parsl.request import Request

    fields: dict[str, Any] = {**_words(stated), "args": tuple(args) or None}
    for name in ("model", "paradigm", "site"):
        fields[name] = stated.get(name) or fields.get(name)
    environment = {
        field or name: value for name, field in _ENVIRONMENT.items() if (value := stated.get(name)) is not None
    }
    degrees = {name: stated[name] for name in _DEGREES if stated.get(name) is not None}
    taken = {"words", "env", "secret", *_ENVIRONMENT, *_DEGREES, "model", "paradigm", "site"}
    for name, value in stated.items():
        if name not in taken and value is not None and value is not False:
            fields[_RENAMED.get(name, name)] = value
    if stated.get("exclusive") is False:
        fields["exclusive"] = False
    return Request.of(
        **fields,
        environment={k: tuple(v) if isinstance(v, list) else v for k, v in environment.items()} or None,
        parallelism=degrees or None,
        env=_variables(stated.get("env") or ()) or None,
        secrets=_secrets(stated.get("secret") or ()) or None,
    )


def _secrets(stated: Sequence[str]) -> dict[str, str | None]:
    made: dict[str, str | None] = {}
    for text in stated:
        name, equals, file = text.partition("=")
        made[name] = file if equals else None
    return made


def _words(stated: Mapping[str, Any]) -> dict[str, str]:
    words: list[str] = list(stated.get("words") or ())
    places = [name for name in ("model", "paradigm", "site") if not stated.get(name)]
    if len(words) > len(places):
        extra = " ".join(words[len(places) :])
        raise RequestError(f"too many words: {extra!r}; arguments of your program follow --, as in -- --lr 3e-4")
    if stated.get("script"):
        places = places[len(places) - len(words) :]  # model and paradigm are optional, so the last word is the site
    return dict(zip(places, words, strict=False))


def _variables(stated: Sequence[str]) -> dict[str, str]:
    made: dict[str, str] = {}
    for text in stated:
        name, equals, value = text.partition("=")
        if not equals:
            raise RequestError(f"--env {text!r}: write NAME=VALUE")
        made[name] = value
    return made
