"""`infernex sub` as a test's eyes on the bus."""

import collections
import json
import subprocess
import tempfile
import threading
import time

from harness import BINARY, end_process, start_process, wait_until

# at: time.monotonic() when the line was read; subject: of the message; kind: EngineLoad, ...; body: its fields.
Seen = collections.namedtuple("Seen", "at subject kind body")


class Watch:
    """Messages of a subject from the start of the `with` block on; `keep(seen)` says which to keep."""

    def __init__(self, nats_url, subject="ix.v1.>", keep=lambda seen: True):
        self.nats_url, self.subject, self.keep = nats_url, subject, keep
        self.seen, self.total, self.bad_lines = [], 0, []

    def __enter__(self):
        self.errors = tempfile.TemporaryFile()
        command = [BINARY, "sub", self.subject, "--nats", self.nats_url]
        self.process = start_process(command, stdout=subprocess.PIPE, stderr=self.errors, text=True)
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()
        # On the subjects that tests watch, something is said every two seconds.
        wait_until(lambda: self.total > 0, 20, f"anything on {self.subject}")
        return self

    def _read(self):
        for line in self.process.stdout:
            at = time.monotonic()
            try:
                fields = json.loads(line)
                seen = Seen(at, fields["subject"], fields["message"], fields["body"])
            except (ValueError, KeyError):
                self.bad_lines.append(line)
                continue
            self.total += 1
            if self.keep(seen):
                self.seen.append(seen)

    def __exit__(self, kind, *_):
        code = end_process(self.process)
        self.thread.join(5)
        self.process.stdout.close()
        self.errors.seek(0)
        complaints = self.errors.read().decode(errors="replace")
        self.errors.close()
        if kind is None:
            assert code == 0, f"infernex sub ended with exit code {code}: {complaints[-2000:]}"
            assert not self.bad_lines, f"not JSON: {self.bad_lines[:3]}"

    def find(self, condition, since=0.0):
        """The first kept message since then for which the condition holds, or None."""
        return next((seen for seen in list(self.seen) if seen.at >= since and condition(seen)), None)

    def await_message(self, condition, deadline=10.0, what="a message", since=0.0):
        return wait_until(lambda: self.find(condition, since), deadline, what)

    def latest(self, kind, instance):
        for seen in reversed(list(self.seen)):
            if seen.kind == kind and seen.body.get("instance") == instance:
                return seen
        return None
