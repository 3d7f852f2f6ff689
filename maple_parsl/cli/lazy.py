"""A command group that imports a verb's module only when that verb is used."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from maple_parsl.errors import UnknownNameError


class LazyGroup(TyperGroup):
    """Verbs by name, each in a module that has a Typer ``app`` or a function ``command``.

    The group itself knows only one line of help per verb, so that ``--help`` imports nothing.
    """

    verbs: Mapping[str, tuple[str, str]] = {}
    _listing = False

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.verbs)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.verbs:
            raise UnknownNameError("command", cmd_name, self.verbs, "(maple --help lists them)")
        module, summary = self.verbs[cmd_name]
        if self._listing:
            return TyperCommand(cmd_name, help=summary)
        return load(cmd_name, module)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False


def load(name: str, module: str) -> Any:
    """The command of a verb's module."""
    found = import_module(module)
    app = getattr(found, "app", None)
    if not isinstance(app, typer.Typer):
        app = typer.Typer(add_completion=False)
        app.command(name)(found.command)
    command = get_command(app)
    command.name = name
    return command
