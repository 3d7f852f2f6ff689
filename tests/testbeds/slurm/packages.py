"""What the testbed needs on the machine, and how to say that it is missing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping

# program -> the Debian package that has it
BASIC: Mapping[str, str] = {
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "sbatch": "slurm-client",
    "munged": "munge",
    "ip": "iproute2",
    "nsenter": "util-linux",
}
ACCOUNTING: Mapping[str, str] = {
    "slurmdbd": "slurmdbd",
    "mariadbd": "mariadb-server",
    "mariadb-install-db": "mariadb-server",
}
PLUGIN_FOLDERS = ("/usr/lib/x86_64-linux-gnu/slurm-wlm", "/usr/lib/aarch64-linux-gnu/slurm-wlm")
PLUGINS: Mapping[str, str] = {"job_submit_lua.so": "slurm-wlm-basic-plugins"}
ACCOUNTING_PLUGINS: Mapping[str, str] = {"accounting_storage_mysql.so": "slurm-wlm-mysql-plugin"}
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def find_program(name: str) -> str | None:
    """Where a program is; the system's sbin folders count even when the caller's PATH lacks them."""
    return shutil.which(name) or shutil.which(name, path=SYSTEM_PATH)


def missing_packages(accounting: bool = False) -> list[str]:
    """The Debian packages to install first, sorted; empty when the testbed can start."""
    programs = {**BASIC, **(ACCOUNTING if accounting else {})}
    plugins = {**PLUGINS, **(ACCOUNTING_PLUGINS if accounting else {})}
    missing = {package for name, package in programs.items() if find_program(name) is None}
    for name, package in plugins.items():
        if not any(os.path.exists(f"{folder}/{name}") for folder in PLUGIN_FOLDERS):
            missing.add(package)
    return sorted(missing)


def why_not(accounting: bool = False) -> str | None:
    """One sentence that says why no testbed can start here, with the remedy; None when one can."""
    missing = missing_packages(accounting)
    if missing:
        line = "apt-get install -y --no-install-recommends " + " ".join(missing)
        return f"the Slurm testbed needs packages that are not installed; run: {line}"
    if os.geteuid() != 0:
        return "the Slurm testbed makes namespaces and must be run as root"
    return None
