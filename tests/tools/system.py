"""Install the Debian packages that the tests need and that are missing. Nothing is started or configured."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

# command that shows it is there -> package
NEEDED = {
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "sbatch": "slurm-client",
    "munged": "munge",
    "slurmdbd": "slurmdbd",
    "mariadbd": "mariadb-server",
    "ip": "iproute2",
    "rabbitmq-server": "rabbitmq-server",
    "sshd": "openssh-server",
    "curl": "curl",
    "pgrep": "procps",
    "ssh": "openssh-client",
    "setpriv": "util-linux",
    "nsenter": "util-linux",
    "dash": "dash",
    "shellcheck": "shellcheck",
    "chromium": "chromium",
}
PLUGINS = {
    "/usr/lib/*/slurm-wlm/select_cons_tres.so": "slurm-wlm-basic-plugins",
    "/usr/lib/*/slurm-wlm/accounting_storage_mysql.so": "slurm-wlm-mysql-plugin",
}


def missing() -> list[str]:
    """Packages whose command or plugin is not on this machine."""
    import glob

    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    lacking = [package for command, package in NEEDED.items() if not shutil.which(command, path=path)]
    lacking += [package for pattern, package in PLUGINS.items() if not glob.glob(pattern)]
    # Debian's Python makes environments only with this; the endpoints' one is made from it
    python = shutil.which("python3", path="/usr/bin")
    if (
        python is None
        or subprocess.run([python, "-c", "import ensurepip"], capture_output=True, check=False).returncode
    ):
        lacking.append("python3-venv")
    return list(dict.fromkeys(lacking))


def main() -> int:
    lacking = missing()
    if not lacking:
        return 0
    line = f"apt-get install -y --no-install-recommends {' '.join(lacking)}"
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        print(f"These tests need packages that are missing. As root on Debian or Ubuntu:\n  {line}", file=sys.stderr)
        return 1 if os.environ.get("CI") == "true" else 0
    # No service may start: packages would start a database and a scheduler of their own.
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    print(f"installing {' '.join(lacking)}")
    for command in (["apt-get", "update", "-qq"], [*line.split(), "-qq"]):
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            print(done.stdout[-3000:], file=sys.stderr)
            return done.returncode
    still = missing()
    if still:
        print(f"still missing after installation: {' '.join(still)}", file=sys.stderr)
    return 1 if still else 0


if __name__ == "__main__":
    sys.exit(main())
