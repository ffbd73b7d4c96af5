"""The parity probe against simulated engines: those that are as believed pass; of each that is not, the announcement,
the log and the metrics name what is wrong."""

import http.server
import json
import pathlib
import re
import tempfile
import threading
import unittest

import client
import harness
from client import metric
from harness import BINARY, Stack, end_process, free_port, start_process, wait_until
from kv import await_fleet
from watch import Watch

BLOCK, BLOCKS = 16, 4_096
CONFIG = {"simulator": {"speed": 100, "block_size": BLOCK, "total_blocks": BLOCKS}}
FAULTS = ("none", "not_probed", "wrong_block_size", "no_events", "tokenizer_differs", "template_differs",
          "cached_tokens_missing", "cached_tokens_fewer")
# The number of blocks taken for the size of one, as a metric's label mistaken for another does it.
WRONG_METRICS = """agent:
  metrics:
    - metric: vllm:cache_config_info
      meaning: block_size
      label: num_gpu_blocks
"""


class Misled:
    """An engine behind a proxy that changes the tokens told by one path: what its tokenizer, or its chat template,
    would be if render came from another version of the model."""

    def __init__(self, engine, path, change):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def pass_on(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0))) or None
                answer = client.call(self.command, engine + self.path, body)
                if self.path == path:
                    said = answer.json()
                    told = said[0] if isinstance(said, list) else said
                    told["token_ids"] = change(told["token_ids"])
                    answer.body = json.dumps(said).encode()
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.headers["Content-Type"])
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

            do_GET = do_POST = pass_on

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class Agent:
    """An agent of its own for engines that `up` does not know: name -> URL and endpoints of the KV events."""

    def __init__(self, nats_url, engines, config=""):
        self.nats_url, self.engines, self.config = nats_url, engines, config

    def __enter__(self):
        self.dir = tempfile.TemporaryDirectory(prefix="infernex-e2e-")
        folder = pathlib.Path(self.dir.name)
        (folder / "config.yaml").write_text(self.config)
        port = free_port()
        self.url, self.err_file = f"http://127.0.0.1:{port}", folder / "stderr"
        command = [BINARY, "agent", "--config", str(folder / "config.yaml"), "--nats", self.nats_url]
        command += ["--admin-port", str(port)]
        for name, (url, events) in self.engines.items():
            command += ["--engine", f"{name},{url},{events}"]
        with open(self.err_file, "wb") as err:
            self.process = start_process(command, stderr=err)
        return self

    def __exit__(self, kind, *_):
        try:
            code = end_process(self.process)
            if kind is not None:
                print(self.log()[-4000:])
            else:
                assert code == 0, f"the agent ended with exit code {code}"
        finally:
            self.dir.cleanup()

    def log(self):
        return self.err_file.read_text(errors="replace")


def faults(admin, instance):
    """What the last probe of an engine found, by the agent's metrics; nothing while none has ended."""
    try:
        return [name for name in FAULTS if metric(admin, "infernex_agent_parity", instance=instance, fault=name)]
    except client.BROKEN:
        return []


class Parity(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = cls.enterClassContext(Stack(engines=2, config=CONFIG))
        keep = lambda seen: seen.kind == "EngineAnnounce"
        cls.watch = cls.enterClassContext(Watch(cls.stack.nats_url, "ix.v1.engine.>", keep))
        # From here on no engine is sent anything but what the agents of the tests send.
        await_fleet(cls.stack)
        agent = cls.stack.admin_url("agent")
        for instance in cls.stack.engine_names():
            wait_until(lambda: faults(agent, instance), 40, f"a verdict on {instance}")

    def engine(self, index):
        """URL, and endpoints of the KV events and their replay, of an engine of the stack."""
        endpoint = lambda option: self.stack.option(f"engine-{index}", option)
        return self.stack.engine_url(index), f"{endpoint('--kv-events')},{endpoint('--kv-replay')}"

    def verdict(self, admin, log, instance):
        """Fault, and the announced problem; the log has to say the same."""
        found = wait_until(lambda: faults(admin, instance), 40, f"a verdict on {instance}")
        self.assertEqual(len(found), 1, found)
        told = self.watch.await_message(lambda seen: seen.body["instance"] == instance and (
            found == ["none"] or seen.body.get("parity_problem")), 10, f"the verdict on {instance} announced")
        problem = told.body.get("parity_problem") or ""
        line = f'parity probe: {problem}' if problem else "parity probe finds nothing wrong"
        lines = [one for one in log().splitlines() if line in one and f"instance={instance}" in one]
        self.assertEqual(len(lines), 1, f"{line!r} in the log")
        self.assertIn(" warn " if problem else " info ", lines[0])
        return found[0], problem

    def test_engines_as_believed_pass(self):
        for instance in self.stack.engine_names():
            verdict = self.verdict(self.stack.admin_url("agent"), self.stack.log, instance)
            self.assertEqual(verdict, ("none", ""))
            since = self.watch.latest("EngineAnnounce", instance).at
            later = lambda seen: seen.body["instance"] == instance
            after = self.watch.await_message(later, 10, "the next announcement", since + 0.001)
            self.assertFalse(after.body.get("parity_problem"))
        # A second agent, as after a restart of the first: it must not ask what the engine has cached by now.
        with Agent(self.stack.nats_url, {"engine-0-again": self.engine(0)}) as agent:
            self.assertEqual(self.verdict(agent.url, agent.log, "engine-0-again"), ("none", ""))

    def test_another_block_size_than_the_metrics_say(self):
        with Agent(self.stack.nats_url, {"other-blocks": self.engine(0)}, WRONG_METRICS) as agent:
            fault, problem = self.verdict(agent.url, agent.log, "other-blocks")
        self.assertEqual(fault, "wrong_block_size")
        self.assertEqual(problem, f"parity: KV events have blocks of {BLOCK} tokens, the engine's metrics say {BLOCKS}")

    def test_another_tokenizer_another_template_and_the_events_of_another_engine(self):
        (url, events), (_, others_events) = self.engine(0), self.engine(1)
        changed = lambda ids: ids[:20] + [ids[20] + 1] + ids[21:]
        prefixed = lambda ids: [7] * 5 + ids
        with Misled(url, "/v1/completions/render", changed) as tokenizer, \
                Misled(url, "/v1/chat/completions/render", prefixed) as template:
            engines = {"other-tokens": (tokenizer.url, events), "other-template": (template.url, events),
                       "other-events": (url, others_events)}
            with Agent(self.stack.nats_url, engines) as agent:
                found = {name: self.verdict(agent.url, agent.log, name) for name in engines}
        fault, problem = found["other-tokens"]
        self.assertEqual(fault, "tokenizer_differs", problem)
        said = re.fullmatch(r"parity: the tokenizer differs: the engine has other prompt tokens than its "
                            r"/v1/completions/render says; first at position 20: (\d+), not (\d+)", problem)
        self.assertTrue(said, problem)
        self.assertEqual(int(said.group(1)) + 1, int(said.group(2)))
        fault, problem = found["other-template"]
        self.assertEqual(fault, "template_differs")
        said = re.fullmatch(r"parity: the chat template differs: the engine has (\d+) prompt tokens, not (\d+); "
                            r"first at position 0: \d+, not 7", problem)
        self.assertTrue(said, problem)
        self.assertEqual(int(said.group(1)) + 5, int(said.group(2)))
        fault, problem = found["other-events"]
        self.assertEqual((fault, problem), ("no_events", "parity: no KV events of a prompt within 5000 ms"))


if __name__ == "__main__":
    harness.main(deadline=240)
