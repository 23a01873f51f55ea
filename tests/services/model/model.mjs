// SPDX-License-Identifier: Apache-2.0
// A scripted model that speaks Anthropic's Messages API, streaming and not.
//
// usage: node model.mjs [--port N] [--host 127.0.0.1] [--scenario FILE] [--require-key KEY]
//                       [--log FILE] [--port-file FILE]
//
// A scenario is a list of turns. The turn is picked by the number of tool results that are in the
// conversation already, so the server keeps no state and retries do not disturb it:
//
//   { "turns":  [ {"text": "...", "action": {"run": {"command": "make"}}}, {"text": "Done."} ],
//     "usage":  {"input": 1200, "cacheRead": 300, "cacheWrite": 50, "output": 40},
//     "faults": [ {"nth": 1, "count": 2, "status": 529, "headers": {"retry-after": "1"}},
//                 {"nth": 4, "cutAfter": 3}, {"nth": 5, "hang": true} ] }
//
// An action is `run`, `read_file`, `write_file`, `edit_file` (with paths relative to the agent's
// working directory), or `tool` with a name and an input. `nth` counts requests for the model from 1;
// a fault holds for `count` of them, for ever when that is -1. The log has one JSON object a request;
// no credential is in it.
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';

const USAGE = { input: 1200, cacheRead: 300, cacheWrite: 50, output: 40 };
const PIECE = 12;  // Characters of a streamed piece: texts and inputs arrive in several.

const id = (prefix) => prefix + randomBytes(12).toString('hex');

// Action -> the tool of Claude Code that does it, and its input.
const TOOLS = {
  run: (a) => ['Bash', { command: a.command, description: a.why ?? 'run a command' }],
  read_file: (a, at) => ['Read', { file_path: at(a.path) }],
  write_file: (a, at) => ['Write', { file_path: at(a.path), content: a.content }],
  edit_file: (a, at) => ['Edit', { file_path: at(a.path), old_string: a.old, new_string: a.new }],
  tool: (a) => [a.name, a.input],
};

const textOf = (content) =>
  typeof content === 'string' ? content : (content ?? []).map((part) => part.text ?? '').join('\n');

// The directory the agent works in, as its own prompt states it.
function workingDirectory(body) {
  const text = [textOf(body.system), ...(body.messages ?? []).map((m) => textOf(m.content))].join('\n');
  return /[Ww]orking directory(?: is)?\W{0,6}?(\/[^\s<"'`,]+)/.exec(text)?.[1].replace(/[.)]+$/, '') ?? '/';
}

function planReply(scenario, body) {
  const reply = { id: id('msg_'), model: body.model, usage: { ...USAGE, ...scenario.usage }, text: 'ok' };
  const tools = (body.tools ?? []).map((tool) => tool.name);
  if (tools.length === 0) return reply;  // A side request: a title, a summary.
  const blocks = (body.messages ?? []).flatMap((m) => (Array.isArray(m.content) ? m.content : []));
  const results = blocks.filter((block) => block.type === 'tool_result').length;
  const turns = scenario.turns ?? [{ text: 'Done.' }];
  const turn = turns[Math.min(results, turns.length - 1)];
  reply.text = turn.text;
  if (!turn.action) return reply;
  const [kind, argument] = Object.entries(turn.action)[0];
  const [name, input] = TOOLS[kind](argument, (file) => path.resolve(workingDirectory(body), file));
  if (tools.includes(name)) reply.call = { type: 'tool_use', id: id('toolu_'), name, input };
  else reply.text = `The agent offers no tool ${name}.`;
  return reply;
}

const usageOf = (u) => ({
  input_tokens: u.input, cache_creation_input_tokens: u.cacheWrite,
  cache_read_input_tokens: u.cacheRead, output_tokens: u.output,
});
const contentOf = (reply) =>
  [...(reply.text ? [{ type: 'text', text: reply.text }] : []), ...(reply.call ? [reply.call] : [])];
const stopReason = (reply) => (reply.call ? 'tool_use' : 'end_turn');
const message = (reply, content, stop, usage) => ({
  id: reply.id, type: 'message', role: 'assistant', model: reply.model, content, stop_reason: stop,
  stop_sequence: null, usage,
});

// The reply as server-sent events: [[type, data]].
function eventsOf(reply) {
  const usage = usageOf(reply.usage);
  const events = [['message_start', { message: message(reply, [], null, { ...usage, output_tokens: 1 }) }]];
  contentOf(reply).forEach((block, index) => {
    const isText = block.type === 'text';
    events.push(['content_block_start',
                 { index, content_block: isText ? { type: 'text', text: '' } : { ...block, input: {} } }]);
    const whole = isText ? block.text : JSON.stringify(block.input);
    for (let at = 0; at < whole.length; at += PIECE) {
      const piece = whole.slice(at, at + PIECE);
      const delta = isText ? { type: 'text_delta', text: piece }
                           : { type: 'input_json_delta', partial_json: piece };
      events.push(['content_block_delta', { index, delta }]);
    }
    events.push(['content_block_stop', { index }]);
  });
  events.push(['message_delta', { delta: { stop_reason: stopReason(reply), stop_sequence: null }, usage }]);
  events.push(['message_stop', {}]);
  return events;
}

const ERRORS = {
  400: 'invalid_request_error', 401: 'authentication_error', 403: 'permission_error',
  404: 'not_found_error', 429: 'rate_limit_error', 529: 'overloaded_error',
};
const failure = (status, what) =>
  ({ type: 'error', error: { type: ERRORS[status] ?? 'api_error', message: what } });

const sendJson = (res, status, value, headers = {}) =>
  res.writeHead(status, { 'content-type': 'application/json', 'request-id': id('req_'), ...headers })
    .end(JSON.stringify(value));

function sendEvents(res, events, cutAfter) {
  res.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'request-id': id('req_') });
  for (const [type, data] of events.slice(0, cutAfter)) {
    res.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
  }
  // A cut: what was written arrives, and then the connection is gone.
  if (cutAfter !== undefined) setTimeout(() => res.destroy(), 50);
  else res.end();
}

async function readBody(req) {
  const chunks = [];
  for await (const chunk of req) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

class Model {
  #requests = 0;

  constructor(scenario, requiredKey, log) {
    this.scenario = scenario;
    this.requiredKey = requiredKey;
    this.log = log;
  }

  async answer(req, res) {
    const text = await readBody(req);
    const { pathname } = new URL(req.url, 'http://x');
    const key = req.headers['x-api-key'] ?? req.headers.authorization?.replace(/^Bearer /, '');
    const entry = { method: req.method, path: pathname, key: key ? key === this.requiredKey ? 'right' : 'other' : 'absent' };
    const json = (status, value, headers) => {
      this.log({ ...entry, status });
      sendJson(res, status, value, headers);
    };
    if (pathname === '/') return json(200, {});
    if (pathname === '/v1/messages/count_tokens') return json(200, { input_tokens: 1000 });
    if (req.method !== 'POST' || pathname !== '/v1/messages') return json(404, failure(404, 'no such path'));

    entry.nth = ++this.#requests;
    if (this.requiredKey && key !== this.requiredKey) return json(401, failure(401, 'wrong API key'));
    const fault = (this.scenario.faults ?? []).find(
      ({ nth = 1, count = 1 }) => entry.nth >= nth && (count < 0 || entry.nth < nth + count));
    if (fault?.hang) return this.log({ ...entry, fault: 'hang' });
    if (fault?.status) return json(fault.status, failure(fault.status, 'scripted failure'), fault.headers);

    const body = JSON.parse(text);
    const reply = planReply(this.scenario, body);
    if (!body.stream) return json(200, message(reply, contentOf(reply), stopReason(reply), usageOf(reply.usage)));
    this.log({ ...entry, status: 200 });
    sendEvents(res, eventsOf(reply), fault?.cutAfter);
  }
}

function readOptions(argv) {
  const options = { port: '0', host: '127.0.0.1' };
  const known = ['port', 'host', 'scenario', 'require-key', 'log', 'port-file'];
  for (let i = 0; i < argv.length; i += 2) {
    const name = argv[i].replace(/^--/, '');
    if (!known.includes(name) || argv[i + 1] === undefined) {
      console.error(`usage: model.mjs ${known.map((option) => `[--${option} VALUE]`).join(' ')}`);
      process.exit(64);
    }
    options[name] = argv[i + 1];
  }
  return options;
}

const options = readOptions(process.argv.slice(2));
const scenario = options.scenario ? JSON.parse(fs.readFileSync(options.scenario, 'utf8')) : {};
const log = (entry) => options.log && fs.appendFileSync(options.log, JSON.stringify(entry) + '\n');
const model = new Model(scenario, options['require-key'], log);
const server = http.createServer((req, res) => {
  model.answer(req, res).catch((error) => {
    log({ error: String(error) });
    if (res.headersSent) res.destroy();
    else sendJson(res, 500, failure(500, String(error)));
  });
});
server.listen(Number(options.port), options.host, () => {
  const { port } = server.address();
  if (!options['port-file']) return console.log(`http://${options.host}:${port}`);
  fs.writeFileSync(`${options['port-file']}.new`, `${port}\n`);
  fs.renameSync(`${options['port-file']}.new`, options['port-file']);
});
