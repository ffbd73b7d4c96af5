"""The official OpenAI clients work with nothing changed but the base URL, and the printed curl line works."""

import json
import pathlib
import subprocess
import unittest

import harness
from harness import MODEL, Stack, tool

CONFIG = {"simulator": {"speed": 50, "default_max_tokens": 32}}


class OpenAiClients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = cls.enterClassContext(Stack(engines=2, config=CONFIG))

    def python_client(self):
        try:
            import openai
        except ImportError:
            self.skipTest("the Python package openai is not installed")
        return openai, openai.OpenAI(base_url=self.stack.url + "/v1", api_key="unused", max_retries=0, timeout=60)

    def test_python_lists_models(self):
        _, client = self.python_client()
        self.assertEqual([model.id for model in client.models.list()], [MODEL])

    def test_python_chat(self):
        _, client = self.python_client()
        answer = client.chat.completions.create(
            model=MODEL, max_tokens=12, messages=[{"role": "user", "content": "Good morning"}])
        self.assertEqual(answer.object, "chat.completion")
        self.assertEqual(answer.model, MODEL)
        choice = answer.choices[0]
        self.assertEqual(choice.message.role, "assistant")
        self.assertTrue(choice.message.content)
        self.assertIn(choice.finish_reason, ("stop", "length"))
        self.assertLessEqual(answer.usage.completion_tokens, 12)
        self.assertEqual(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens)

    def test_python_stream_says_what_the_whole_answer_says(self):
        _, client = self.python_client()
        request = dict(model=MODEL, max_tokens=24, seed=7, messages=[{"role": "user", "content": "Count for me"}])
        whole = client.chat.completions.create(**request)
        text, finish, usage, roles = "", None, None, []
        with client.chat.completions.create(**request, stream=True, stream_options={"include_usage": True}) as events:
            for event in events:
                self.assertEqual(event.object, "chat.completion.chunk")
                if event.usage:
                    usage = event.usage
                for choice in event.choices:
                    text += choice.delta.content or ""
                    roles += [choice.delta.role] if choice.delta.role else []
                    finish = choice.finish_reason or finish
        self.assertEqual(text, whole.choices[0].message.content)
        self.assertEqual(finish, whole.choices[0].finish_reason)
        self.assertEqual(roles, ["assistant"])
        self.assertEqual(usage.prompt_tokens, whole.usage.prompt_tokens)
        self.assertEqual(usage.completion_tokens, whole.usage.completion_tokens)

    def test_python_completions(self):
        _, client = self.python_client()
        answer = client.completions.create(model=MODEL, prompt="Once upon a time", max_tokens=8)
        self.assertEqual(answer.object, "text_completion")
        self.assertTrue(answer.choices[0].text)
        streamed = client.completions.create(model=MODEL, prompt="Once upon a time", max_tokens=8, stream=True)
        self.assertEqual("".join(c.text for e in streamed for c in e.choices), answer.choices[0].text)

    def test_python_errors_have_their_classes(self):
        openai, client = self.python_client()
        messages = [{"role": "user", "content": "x"}]
        with self.assertRaises(openai.NotFoundError) as missing:
            client.chat.completions.create(model="no-such-model", messages=messages)
        self.assertEqual(missing.exception.code, "model_not_found")
        with self.assertRaises(openai.BadRequestError) as empty:
            client.chat.completions.create(model=MODEL, messages=[])
        self.assertEqual(empty.exception.param, "messages")

    def test_javascript(self):
        node = tool("node")
        modules = harness.SOURCE / "build" / "test-tools" / "node" / "node_modules"
        if not (modules / "openai").is_dir():
            self.skipTest("the JavaScript package openai is not installed")
        script = pathlib.Path(__file__).with_name("test_openai_clients.mjs")
        done = subprocess.run([node, script, self.stack.url + "/v1", MODEL, modules / "openai"],
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        print(done.stdout.strip())
        self.assertIn("5 of 5 passed", done.stdout)

    def test_printed_curl_line_works_as_printed(self):
        tool("curl")
        line = self.stack.printed_line("curl ")
        done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual(answer.get("object"), "chat.completion", answer)
        self.assertTrue(answer["choices"][0]["message"]["content"])
        status = subprocess.run(["sh", "-c", line + " -o /dev/null -w '%{http_code}'"], capture_output=True, text=True,
                                timeout=60)
        self.assertEqual(status.stdout, "200")


if __name__ == "__main__":
    harness.main(deadline=280)
