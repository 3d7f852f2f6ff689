"""Batch scripts: a plan written as one, and anyone's read back."""

from maple_parsl.script.render import ScriptLine, directive_path, launch_line, lines, render

__all__ = ["ScriptLine", "directive_path", "launch_line", "lines", "render"]
