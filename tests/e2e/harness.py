"""Runs `infernex up` for a test and makes sure that nothing of it is left.

Every test file is a plain script: `python3 test_NAME.py`. Exit code 0: passed, 1: failed, 77: skipped in
whole or in part for want of a tool (a line `SKIP: why` says which). Where CI=true a missing tool is a
failure. Environment: INFERNEX_BIN (the executable), INFERNEX_SOURCE (the source folder).
"""

import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE = pathlib.Path(os.environ.get("INFERNEX_SOURCE") or pathlib.Path(__file__).resolve().parents[2])
BINARY = os.environ.get("INFERNEX_BIN") or str(SOURCE / "build" / "infernex")
IN_CI = os.environ.get("CI") == "true"
MODEL = "sim/llama"

# Deadlines are for the slow case: a debug build under ASan, on two cores that others use too.
START_DEADLINE = 60.0
STOP_DEADLINE = 30.0


class DeadlineExceeded(Exception):
    pass


def wait_until(condition, deadline=10.0, what="the condition", every=0.01):
    """Polls until condition() is true, and returns what it returned."""
    until = time.monotonic() + deadline
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > until:
            raise DeadlineExceeded(f"{what} did not come about within {deadline:g} s")
        time.sleep(every)


def tool(name, variable=None):
    """The path of a tool of the tests (environment variable, build/test-tools, PATH), or a skip."""
    for candidate in (os.environ.get(variable or ""), SOURCE / "build" / "test-tools" / name, shutil.which(name)):
        if candidate and os.access(candidate, os.X_OK) and not os.path.isdir(candidate):
            return str(candidate)
    raise unittest.SkipTest(f"{name} is not installed")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def gone(pid):
    """No such process any more (one that only waits to be reaped counts as gone)."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG: nothing outlives a test that is killed


def start_process(command, **options):
    return subprocess.Popen(command, preexec_fn=die_with_parent, **options)


def end_process(process, deadline=STOP_DEADLINE):
    """SIGTERM, and the exit code; SIGKILL and an exception after the deadline."""
    if process.poll() is None:
        process.terminate()
    try:
        return process.wait(deadline)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise DeadlineExceeded(f"process {process.args[:2]} did not end within {deadline:g} s of SIGTERM") from None


def yaml_lines(mapping, indent=""):
    """A mapping of mappings and scalars, with plain scalars: a quoted `"2s"` would be a text, not a duration."""
    for key, value in mapping.items():
        if isinstance(value, dict):
            yield f"{indent}{key}:"
            yield from yaml_lines(value, indent + "  ")
        else:
            yield f"{indent}{key}: {value if isinstance(value, str) else json.dumps(value)}"


class Stack:
    """`infernex up`, as a context manager. The configuration is a dict."""

    def __init__(self, engines=4, config=None, args=(), wait_ready=True, port=0, ready_deadline=START_DEADLINE):
        self.engines, self.config, self.args = engines, config or {}, list(args)
        self.wait_ready, self.port, self.ready_deadline = wait_ready, port, ready_deadline
        self.url = f"http://127.0.0.1:{port}"
        self.checks_exit = True

    def __enter__(self):
        self.dir = tempfile.TemporaryDirectory(prefix="infernex-e2e-")
        folder = pathlib.Path(self.dir.name)
        self.config_file = folder / "config.yaml"
        self.config_file.write_text("".join(line + "\n" for line in yaml_lines(self.config)))
        self.out_file, self.err_file = folder / "stdout", folder / "stderr"
        command = [BINARY, "up", "--engines", str(self.engines), "--port", str(self.port)]
        command += ["--config", str(self.config_file), *self.args]
        with open(self.out_file, "wb") as out, open(self.err_file, "wb") as err:
            self.process = start_process(command, stdout=out, stderr=err, stdin=subprocess.DEVNULL)
        try:
            if self.wait_ready:
                self.await_ready()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, kind, value, trace):
        try:
            if kind is not None:
                print(f"--- last lines of infernex up\n{self.log()[-6000:]}\n---", file=sys.stderr)
                self.checks_exit = False
            self.stop()
        finally:
            self.dir.cleanup()

    def stop(self, number=signal.SIGTERM):
        """Ends the stack and checks that it ended as promised: exit code 0 and nothing left."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            code = self.process.wait(STOP_DEADLINE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            code = "none within the deadline"
        left = [(name, pid) for name, pid in self.started() if not gone(pid)]
        for _, pid in left:
            os.kill(pid, signal.SIGKILL)
        if not self.checks_exit:
            return
        self.checks_exit = False
        log = self.log()
        reports = [line for line in log.splitlines() if re.search(r"ERROR: \w+Sanitizer|runtime error:", line)]
        if code != 0 or left or reports:
            print(log[-6000:], file=sys.stderr)
        assert code == 0, f"exit code of infernex up: {code}"
        assert not left, f"processes left by infernex up: {left}"
        assert not reports, f"sanitizer reports: {reports[:3]}"

    # --- what it printed ---

    def output(self):
        return self.out_file.read_text(errors="replace")

    def log(self):
        return self.err_file.read_text(errors="replace")

    def await_ready(self):
        def line():
            if self.process.poll() is not None:
                raise AssertionError(f"infernex up ended with exit code {self.process.returncode}")
            return re.search(r"^ready (http://\S+)$", self.output(), re.M)

        self.url = wait_until(line, self.ready_deadline, "the ready line").group(1)

    def printed_line(self, start):
        """The copy-paste line that starts so."""
        found = lambda: next((l.strip() for l in self.output().splitlines() if l.strip().startswith(start)), None)
        return wait_until(found, 5, f"a printed line that starts with {start!r}")

    # --- its processes ---

    def started(self):
        """(name, pid) of every process ever started, oldest first."""
        return [(n, int(p)) for n, p in re.findall(r" process started name=(\S+) pid=(\d+)", self.log())]

    def pid(self, name):
        """Of the process that runs now, or None."""
        pids = [pid for started, pid in self.started() if started == name]
        return pids[-1] if pids and not gone(pids[-1]) else None

    def names(self):
        return list(dict(self.started()))

    def kill(self, name, number=signal.SIGKILL):
        pid = self.pid(name)
        assert pid, f"{name} does not run"
        os.kill(pid, number)
        return pid

    def option(self, name, option):
        """An option on the command line of a running process: how to find ports without asking for them."""
        def value():
            pid = self.pid(name)
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_text().split("\0") if pid else []
            return words[words.index(option) + 1] if option in words else None

        return wait_until(value, 10, f"{option} of {name}")

    def engine_url(self, index):
        return f"http://127.0.0.1:{self.option(f'engine-{index}', '--port')}"

    def engine_names(self):
        return [f"engine-{i}" for i in range(self.engines)]

    def admin_url(self, name):
        return f"http://127.0.0.1:{self.option(name, '--admin-port')}"

    @property
    def nats_url(self):
        if "--nats" in self.args:
            return self.args[self.args.index("--nats") + 1]
        return f"nats://127.0.0.1:{self.option('nats-server', '-p')}"


def main(deadline):
    """Runs the test cases of the calling script, all in all within `deadline` seconds."""
    def expired(*_):
        raise DeadlineExceeded(f"the whole test took longer than {deadline} s")

    signal.signal(signal.SIGALRM, expired)
    signal.alarm(deadline)
    if not os.access(BINARY, os.X_OK):
        sys.exit(f"no executable at {BINARY}: set INFERNEX_BIN")
    program = unittest.main(module="__main__", exit=False, verbosity=2)
    signal.alarm(0)
    for case, why in program.result.skipped:
        print(f"SKIP: {why} ({case.id()})")
    if not program.result.wasSuccessful() or (program.result.skipped and IN_CI):
        sys.exit(1)
    sys.exit(77 if program.result.skipped else 0)
