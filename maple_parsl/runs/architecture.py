"""For which kind of processor a program or a container image was made: read from the file itself."""

from __future__ import annotations

from pathlib import Path

from maple_parsl.runs.files import open_regular

# ELF: e_machine. SIF: the two digits behind magic and version (github.com/apptainer/sif, pkg/sif/arch.go).
_ELF = {62: "x86_64", 183: "aarch64", 21: "ppc64le"}
_SIF = {b"02": "x86_64", b"04": "aarch64", b"06": "ppc64le"}
_SIF_MAGIC = 32


def of_file(path: Path) -> str | None:
    """``x86_64``, ``aarch64`` or ``ppc64le``; None where the file is absent, or of another form."""
    try:
        with open_regular(path) as file:
            head = file.read(64)
    except OSError:
        return None
    if head[:4] == b"\x7fELF" and len(head) >= 20:
        order = "big" if head[5] == 2 else "little"
        return _ELF.get(int.from_bytes(head[18:20], order))  # type: ignore[arg-type]
    if head[_SIF_MAGIC : _SIF_MAGIC + 9] == b"SIF_MAGIC":
        return _SIF.get(head[_SIF_MAGIC + 13 : _SIF_MAGIC + 15])
    return None
