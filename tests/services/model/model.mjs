// SPDX-License-Identifier: Apache-2.0
// A scripted model that speaks Anthropic's Messages, OpenAI's Responses and Chat Completions, and
// Gemini's API, streaming and not.
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
// tools.mjs says what an action is. `nth` counts requests for the model from 1; a fault holds for `count`
// of them, for ever when that is -1. The log has one JSON object a request; no credential is in it.
import fs from 'node:fs';
import http from 'node:http';
import { promisify } from 'node:util';
import zlib from 'node:zlib';

import { id, protocols } from './protocols.mjs';
import { resolveAction, workingDirectory } from './tools.mjs';

const USAGE = { input: 1200, cacheRead: 300, cacheWrite: 50, output: 40 };
const PIECE = 12;  // Characters of a streamed piece: texts and inputs arrive in several.

function planReply(scenario, conversation, protocol) {
  const reply = {
    id: id(protocol.ids[0]), callId: id(protocol.ids[1]), model: conversation.model, chunk: PIECE,
    usage: { ...USAGE, ...scenario.usage }, silentAboutUsage: conversation.silentAboutUsage, text: 'ok',
  };
  if (conversation.tools.length === 0) return reply;  // A side request: a title, a summary.
  const turns = scenario.turns ?? [{ text: 'Done.' }];
  const turn = turns[Math.min(conversation.toolResults, turns.length - 1)];
  reply.text = turn.text;
  if (!turn.action) return reply;
  reply.call = resolveAction(turn.action, conversation.tools, workingDirectory(conversation.text));
  if (!reply.call) reply.text = `The agent offers no tool for ${Object.keys(turn.action)[0]}.`;
  return reply;
}

const sendJson = (res, status, value, headers = {}) =>
  res.writeHead(status, { 'content-type': 'application/json', 'request-id': id('req_'), ...headers })
    .end(JSON.stringify(value));

function sendEvents(res, events, cutAfter) {
  res.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'request-id': id('req_') });
  for (const [type, data] of events.slice(0, cutAfter)) {
    res.write(`${type ? `event: ${type}\n` : ''}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`);
  }
  // A cut: what was written arrives, and then the connection is gone.
  if (cutAfter !== undefined) setTimeout(() => res.destroy(), 50);
  else res.end();
}

async function readBody(req) {
  const chunks = [];
  for await (const chunk of req) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  const coding = req.headers['content-encoding'];
  const decode = { gzip: zlib.gunzip, deflate: zlib.inflate, br: zlib.brotliDecompress }[coding];
  return (decode ? await promisify(decode)(body) : body).toString();
}

const keyOf = (headers) =>
  headers['x-api-key'] ?? headers['x-goog-api-key'] ?? headers['api-key'] ?? headers.authorization?.replace(/^Bearer /, '');

// Answers beside those of the model.
function answerBeside(method, pathname) {
  if (pathname === '/') return {};
  if (pathname.endsWith('/count_tokens')) return { input_tokens: 1000 };
  if (pathname.endsWith(':countTokens')) return { totalTokens: 1000 };
  if (method === 'GET' && pathname.endsWith('/models')) return { object: 'list', data: [] };
  return undefined;
}

class Model {
  #requests = 0;

  constructor(scenario, requiredKey, log) {
    this.scenario = scenario;
    this.requiredKey = requiredKey;
    this.log = log;
  }

  cut(res, entry, text) {
    this.log({ ...entry, status: 200 });
    res.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
    res.write(text.slice(0, text.length / 2), () => res.destroy());
  }

  async answer(req, res) {
    const text = await readBody(req);
    const { pathname } = new URL(req.url, 'http://x');
    const key = keyOf(req.headers);
    const entry = { method: req.method, path: pathname, key: key ? key === this.requiredKey ? 'right' : 'other' : 'absent' };
    const json = (status, value, headers) => {
      this.log({ ...entry, status });
      sendJson(res, status, value, headers);
    };
    const beside = answerBeside(req.method, pathname);
    if (beside) return json(200, beside);
    const protocol = protocols.find((one) => one.match(req.method, pathname));
    if (!protocol) return json(404, protocols[0].error(404, 'no such path'));

    entry.nth = ++this.#requests;
    if (this.requiredKey && key !== this.requiredKey) return json(401, protocol.error(401, 'wrong API key'));
    const fault = (this.scenario.faults ?? []).find(
      ({ nth = 1, count = 1 }) => entry.nth >= nth && (count < 0 || entry.nth < nth + count));
    if (fault?.hang) return this.log({ ...entry, fault: 'hang' });
    if (fault?.status) return json(fault.status, protocol.error(fault.status, 'scripted failure'), fault.headers);

    const conversation = protocol.parse(JSON.parse(text), pathname);
    entry.tools = conversation.tools.map((tool) => tool.name);
    const reply = planReply(this.scenario, conversation, protocol);
    if (!conversation.stream && fault?.cutAfter === undefined) return json(200, protocol.whole(reply));
    if (!conversation.stream) return this.cut(res, entry, JSON.stringify(protocol.whole(reply)));
    this.log({ ...entry, status: 200 });
    sendEvents(res, protocol.stream(reply), fault?.cutAfter);
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
    else sendJson(res, 500, protocols[0].error(500, String(error)));
  });
});
server.listen(Number(options.port), options.host, () => {
  const { port } = server.address();
  if (!options['port-file']) return console.log(`http://${options.host}:${port}`);
  fs.writeFileSync(`${options['port-file']}.new`, `${port}\n`);
  fs.renameSync(`${options['port-file']}.new`, options['port-file']);
});
