"""Run a command inside a testbed: ``python -I -S enter.py HEAD NODE DIR [NAME=VALUE]... COMMAND...``.

HEAD is the host's pid of the head's first process, NODE the pid of a node's as the head sees it (0: the head
itself). Unlike nsenter it changes to DIR after entering, passes on the signals it gets, takes the command
along when it is itself killed, and ends the way the command ended. Standard library only.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PASSED_ON = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
PR_SET_PDEATHSIG = 1

libc = ctypes.CDLL(None, use_errno=True)


def enter(head: int, node: int) -> None:
    folder = f"/proc/{head}/root/proc/{node}/ns" if node else f"/proc/{head}/ns"
    try:
        spaces = [os.open(f"{folder}/{kind}", os.O_RDONLY) for kind in ("net", "uts", "ipc", "pid", "mnt")]
    except FileNotFoundError:
        sys.exit("enter: that testbed, or that node of it, is not up")
    for space in spaces:
        if libc.setns(space, 0) != 0:
            sys.exit(f"enter: setns: {os.strerror(ctypes.get_errno())}")
        os.close(space)


def watch(child: int) -> int:
    """Wait for the child, passing on the signals sent to this process; the child's wait status."""
    signals = PASSED_ON | {signal.SIGCHLD}
    while True:
        info = signal.sigwaitinfo(signals)
        if info.si_signo == signal.SIGCHLD:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid == child:
                return status
        elif info.si_code <= 0:  # sent by a process; what the terminal sends, the child gets as well
            os.kill(child, info.si_signo)


def main() -> None:
    head, node, folder, *command = sys.argv[1:]
    enter(int(head), int(node))
    os.chdir(folder)
    while command and "=" in command[0]:
        name, _, value = command.pop(0).partition("=")
        os.environ[name] = value
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON | {signal.SIGCHLD})
    child = os.fork()
    if child == 0:
        libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)
        try:
            os.execvp(command[0], command)
        except OSError as error:
            os.write(2, f"enter: {command[0]}: {error.strerror}\n".encode())
            os._exit(127)
    status = watch(child)
    if os.WIFSIGNALED(status):
        if os.WTERMSIG(status) != signal.SIGKILL:
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)
        os.kill(os.getpid(), os.WTERMSIG(status))
    sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
