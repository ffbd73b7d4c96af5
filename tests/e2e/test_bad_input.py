"""Bad input gets a clear error each, and nothing else is disturbed. (A KV-event batch with one bad event is in
tests/component: it needs an engine that sends one.)"""

import json
import pathlib
import socket
import subprocess
import tempfile
import unittest
import urllib.parse

import client
import harness
from client import RawNats, chat_body
from harness import BINARY, MODEL, Stack, wait_until
from load import Load

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
HELLO = [{"role": "user", "content": "Hello"}]

# path, body, status, `param` of the error (None: null), a word of the message.
BAD_BODIES = [
    (CHAT, b'{"model":', 400, None, "JSON"),
    (CHAT, b"", 400, None, "empty"),
    (CHAT, b"hello", 400, None, "JSON"),
    (CHAT, b'\xff\xfe{"model":1}', 400, None, "JSON"),
    (CHAT, b'{"model":"sim/llama","messages":[{"role":"user","content":"a"}]} x', 400, None, "JSON"),
    (CHAT, b"[1,2]", 400, None, "object"),
    (CHAT, b"[" * 100_000, 400, None, ""),
    (CHAT, {"messages": HELLO}, 400, "model", "missing"),
    (CHAT, {"model": 5, "messages": HELLO}, 400, "model", "string"),
    (CHAT, {"model": MODEL}, 400, "messages", "missing"),
    (CHAT, {"model": MODEL, "messages": []}, 400, "messages", "empty"),
    (CHAT, {"model": MODEL, "messages": "Hello"}, 400, "messages", "array"),
    (CHAT, {"model": MODEL, "messages": ["Hello"]}, 400, "messages", "object"),
    (CHAT, {"model": MODEL, "messages": HELLO, "stream": "yes"}, 400, "stream", "true or false"),
    (CHAT, {"model": MODEL, "messages": HELLO, "max_tokens": "ten"}, 400, "max_tokens", "integer"),
    (CHAT, {"model": MODEL, "messages": HELLO, "max_tokens": -1}, 400, "max_tokens", "between"),
    (CHAT, {"model": MODEL, "messages": HELLO, "n": 0}, 400, "n", "between"),
    (CHAT, {"model": MODEL, "messages": HELLO, "stream_options": 1}, 400, "stream_options", "object"),
    (CHAT, {"model": "no-such-model", "messages": HELLO}, 404, "model", "no-such-model"),
    (COMPLETIONS, {"model": MODEL}, 400, "prompt", "missing"),
    (COMPLETIONS, {"model": MODEL, "prompt": {"text": "x"}}, 400, "prompt", "prompt"),
    (COMPLETIONS, {"model": MODEL, "prompt": []}, 400, "prompt", "empty"),
    (COMPLETIONS, {"model": MODEL, "prompt": [1, "two"]}, 400, "prompt", "array"),
    # The engine's own refusals come through as they are.
    (COMPLETIONS, {"model": MODEL, "prompt": "word " * 40_000, "max_tokens": 4}, 400, None, "context"),
]

MISTAKEN_CONFIG = """\
gateway:
  port: web
  timout: 5s
  router: bsu
simulator:
  block_size: 0
  kv_events:
    encoding: xml
"""
# line, column, path, a word of the message
MISTAKES = [(2, 9, "gateway.port", "web"), (3, 3, "gateway.timout", "timeout"), (4, 11, "gateway.router", "embedded"),
            (6, 15, "simulator.block_size", "between 1"), (8, 15, "simulator.kv_events.encoding", "map")]


class BadRequests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        config = {"simulator": {"speed": 50}}
        cls.stack = cls.enterClassContext(Stack(engines=2, config=config))

    def setUp(self):
        """Others go on meanwhile, and none of them may notice anything."""
        self.load = Load(self.stack.url, clients=2, pause=0.02)
        self.load.__enter__()

    def tearDown(self):
        wait_until(lambda: len(self.load.records) >= 5, 30, "five answers of the load")
        self.load.stop()
        self.assertEqual([record for record in self.load.records if not record.ok][:3], [])

    def check_error(self, answer, status, param=None, word=""):
        self.assertEqual(answer.status, status, answer)
        self.assertTrue(answer.headers["Content-Type"].startswith("application/json"), answer.headers)
        error = answer.error
        self.assertLessEqual({"message", "type", "param", "code"}, error.keys(), error)
        self.assertTrue(error["message"] and isinstance(error["type"], str), error)
        if param is not None:
            self.assertEqual(error["param"], param, error)
        self.assertIn(word, error["message"])

    def test_bad_bodies(self):
        for path, body, status, param, word in BAD_BODIES:
            with self.subTest(path=path, body=str(body)[:80]):
                self.check_error(client.call("POST", self.stack.url + path, body), status, param, word)

    def test_paths_and_methods(self):
        self.check_error(client.get(self.stack.url + "/v1/nothing"), 404, word="/v1/nothing")
        self.check_error(client.call("POST", self.stack.url + "/v1/nothing", {}), 404)
        cases = ((CHAT, "GET", "POST"), (COMPLETIONS, "DELETE", "POST"), ("/v1/models", "POST", "GET"))
        for path, method, allowed in cases:
            with self.subTest(path=path, method=method):
                answer = client.call(method, self.stack.url + path, {} if method == "POST" else None)
                self.check_error(answer, 405, word=allowed)
                self.assertIn(allowed, answer.headers.get("Allow", ""))

    def raw(self, request):
        """Sends bytes that no HTTP library would; returns what comes back until the end or a pause."""
        parts = urllib.parse.urlsplit(self.stack.url)
        with socket.create_connection((parts.hostname, parts.port), 30) as connection:
            try:
                connection.sendall(request)
            except OSError:
                pass  # the server may close before it has taken everything; what it said is what counts
            answer = b""
            try:
                while b"\r\n\r\n" not in answer or b"}" not in answer:
                    piece = connection.recv(65536)
                    if not piece:
                        break
                    answer += piece
            except OSError as failure:
                self.fail(f"no answer but {failure!r} after {answer[:200]!r}")
            return answer

    def test_a_body_of_20_mb(self):
        body = json.dumps(chat_body("x" * 20_000_000)).encode()
        head = f"POST {CHAT} HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n"
        whole = self.raw(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        self.assertIn(b" 413 ", whole.split(b"\r\n")[0], whole[:300])
        self.assertIn(b'"error"', whole)
        chunked = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in
                           (body[i:i + 65536] for i in range(0, len(body), 65536))) + b"0\r\n\r\n"
        pieces = self.raw(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + chunked)
        self.assertIn(b" 413 ", pieces.split(b"\r\n")[0], pieces[:300])

    def test_what_is_not_http(self):
        answer = self.raw(b"\x16\x03\x01\x02\x00 this is not HTTP\r\n\r\n")
        self.assertTrue(answer == b"" or b" 400 " in answer.split(b"\r\n")[0], answer[:200])

    def test_truncated_flatbuffers_on_the_bus(self):
        bad = [b"", b"\x10\0\0\0IXAN", b"\x10\0\0\0IXKD" + b"\xff" * 32, b"\x10\0\0\0IXRQ\0\0\0", b"no message at all"]
        model = "sim_2Fllama"
        subjects = [f"ix.v1.engine.{model}.engine-0.announce", f"ix.v1.engine.{model}.engine-0.load",
                    f"ix.v1.kv.{model}.engine-0.delta", f"ix.v1.kv.{model}.match", f"ix.v1.route.{model}.query",
                    f"ix.v1.request.{model}.life", f"ix.v1.kv.{model}.engine-0.snapshot"]
        parts = {name: self.stack.admin_url(name) for name in ("router", "indexer")}
        before = {name: client.metric(url, "infernex_bus_bad_messages_total") or 0 for name, url in parts.items()}
        pids = {name: self.stack.pid(name) for name in self.stack.names()}
        with RawNats(self.stack.nats_url) as nats:
            for subject in subjects:
                for data in bad:
                    nats.publish(subject, data)
                    nats.publish(subject, data, reply="_INBOX.nobody")
            nats.flush()
        for name, url in parts.items():
            counted = lambda: (client.metric(url, "infernex_bus_bad_messages_total") or 0) - before[name]
            wait_until(lambda: counted() >= 2 * len(bad), 10, f"the bad messages in the metrics of the {name}")
        self.assertEqual(client.chat(self.stack.url).status, 200)
        self.assertEqual(pids, {name: self.stack.pid(name) for name in self.stack.names()}, "a process was restarted")


class BadConfiguration(unittest.TestCase):
    def check(self, text):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "node.yaml"
            file.write_text(text)
            options = dict(cwd=folder, capture_output=True, text=True, timeout=30)
            done = subprocess.run([BINARY, "config", "check", "node.yaml"], **options)
            used = subprocess.run([BINARY, "up", "--config", "node.yaml"], **options) if done.returncode else None
            return done, used

    def test_five_mistakes_are_five_lines(self):
        done, up = self.check(MISTAKEN_CONFIG)
        self.assertEqual(done.returncode, 1)
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 5, done.stderr)
        for text, (line, column, path, word) in zip(lines, MISTAKES):
            self.assertTrue(text.startswith(f"node.yaml:{line}:{column}: {path}: "), text)
            self.assertIn(word, text)
        self.assertEqual((up.returncode, up.stderr, up.stdout), (1, done.stderr, ""), "the same where the file is used")

    def test_a_good_file_is_said_to_be_good(self):
        done, _ = self.check("gateway:\n  port: 0\n")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("no mistakes", done.stdout)

    def test_no_file_and_no_yaml(self):
        command = [BINARY, "config", "check", "/no/such/file"]
        missing = subprocess.run(command, capture_output=True, text=True, timeout=30)
        self.assertNotEqual(missing.returncode, 0)
        self.assertIn("/no/such/file", missing.stderr)
        broken, _ = self.check("gateway: [1, 2\n")
        self.assertEqual(broken.returncode, 1)
        self.assertRegex(broken.stderr, r"^node\.yaml:\d+:\d+: ")


if __name__ == "__main__":
    harness.main(deadline=240)
