// The official OpenAI client for JavaScript against a running gateway.
// Arguments: base URL, model, folder of the `openai` package.
import assert from "node:assert/strict";
import { createRequire } from "node:module";

const [base, model, folder] = process.argv.slice(2);
const { default: OpenAI } = createRequire(import.meta.url)(folder);
const client = new OpenAI({ baseURL: base, apiKey: "unused", maxRetries: 0, timeout: 60_000 });
const messages = [{ role: "user", content: "Good morning" }];

const cases = {
  async "lists models"() {
    const ids = [];
    for await (const one of await client.models.list()) ids.push(one.id);
    assert.deepEqual(ids, [model]);
  },
  async "chat"() {
    const answer = await client.chat.completions.create({ model, messages, max_tokens: 12 });
    assert.equal(answer.object, "chat.completion");
    assert.ok(answer.choices[0].message.content);
    assert.equal(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens);
  },
  async "streamed chat with usage"() {
    const whole = await client.chat.completions.create({ model, messages, max_tokens: 12, seed: 7 });
    const stream = await client.chat.completions.create({
      model, messages, max_tokens: 12, seed: 7, stream: true, stream_options: { include_usage: true },
    });
    let text = "", usage = null;
    for await (const event of stream) {
      text += event.choices[0]?.delta?.content ?? "";
      usage = event.usage ?? usage;
    }
    assert.equal(text, whole.choices[0].message.content);
    assert.equal(usage.completion_tokens, whole.usage.completion_tokens);
  },
  async "completions"() {
    const answer = await client.completions.create({ model, prompt: "Once upon a time", max_tokens: 8 });
    assert.equal(answer.object, "text_completion");
    assert.ok(answer.choices[0].text);
  },
  async "errors have their classes"() {
    const wrong = client.chat.completions.create({ model: "no-such-model", messages });
    await assert.rejects(wrong, (error) => error instanceof OpenAI.NotFoundError && error.code === "model_not_found");
  },
};

let passed = 0;
for (const [name, run] of Object.entries(cases)) {
  try {
    await run();
    passed += 1;
  } catch (error) {
    console.error(`JavaScript client, ${name}: ${error.stack}`);
  }
}
console.log(`JavaScript client: ${passed} of ${Object.keys(cases).length} passed`);
process.exit(passed === Object.keys(cases).length ? 0 : 1);
