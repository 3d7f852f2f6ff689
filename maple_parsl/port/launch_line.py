"""What stands on the launch line beside launcher, options and program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from maple_parsl.port.names import why_of_site
from maple_parsl.shell import quote

if TYPE_CHECKING:
    from maple_parsl.port.program import Program
    from maple_parsl.script.model import Launch, Script
    from maple_parsl.site import Site

_PASSING = ("env", "genv", "x", "export")


def exports_of(script: Script, launch: Launch, source: Site | None) -> list[str]:
    """Variables set on the line (``A=1 srun …``, ``env A=1``, ``--export=ALL,A=1``), as exports."""
    made: dict[str, str] = {}
    for assignment in script.assignments:
        if assignment.how == "prefix" and assignment.place.line == launch.place.line and not assignment.place.file:
            made[assignment.name] = assignment.text
    for part in launch.chain:
        for wrapper in part.wrappers:
            if wrapper.kind == "env":
                for word in wrapper.words:
                    name, mark, value = word.text.partition("=")
                    if mark and name.isidentifier():
                        made[name] = value
        for option in part.options:
            for item in (option.value.text or "").split(",") if option.name in _PASSING else ():
                name, mark, value = item.partition("=")
                if mark and name.isidentifier():
                    made[name] = quote(value)
    return [f"export {name}={value}" for name, value in made.items() if why_of_site(name, source) is None]


def lost_on_the_line(launch: Launch, program: Program) -> list[str]:
    """Sentences on what is not carried: containers, profilers, the text around the program in ``bash -c``."""
    said = []
    for part in launch.chain:
        for wrapper in part.wrappers:
            text = " ".join(word.text for word in wrapper.words)[:80]
            if wrapper.kind == "container":
                said.append(f"the container of the old site ({text}) is not carried; name an image with --container")
            elif wrapper.kind == "profiler":
                said.append(f"the profiler ({text}) is not carried")
            elif wrapper.kind in ("script", "conda"):
                said.append(f"the wrapper {text!r} is replaced by the target's own; see that it did nothing else")
    if program.wrapper:
        said.append(f"the wrapper {program.wrapper} is replaced by the target's own; see that it did nothing else")
    if program.interpreter:
        said.append(f"the interpreter {program.interpreter} is not carried; name one with --python, --venv or --conda")
    return said
