// SPDX-License-Identifier: Apache-2.0
// usage: node serve.mjs --port-file FILE [--repository OWNER/NAME] [--pull-request N] [--token TOKEN]
//                       [--modules NODE_MODULES]
// Serves until it is ended; the address is in FILE once it listens. Needs no package without --modules,
// and then judges nothing. GET /_test/state gives {comments, requests, violations}.
import fs from 'node:fs';
import { ACTIONS_BOT, GitHubService } from './service.mjs';

const options = new Map();
for (let i = 2; i < process.argv.length; i += 2) options.set(process.argv[i], process.argv[i + 1]);
const known = ['--port-file', '--repository', '--pull-request', '--token', '--modules'];
for (const name of options.keys()) {
  if (!known.includes(name)) {
    console.error(`serve.mjs: unknown option ${name}; one of ${known.join(' ')}`);
    process.exit(64);
  }
}
const modules = options.get('--modules');
const contract = modules ? (await import('./contract.mjs')).Contract.load(modules) : null;
const service = new GitHubService({
  repository: options.get('--repository') ?? 'acme/site',
  pullRequests: [Number(options.get('--pull-request') ?? 7)],
  contract,
});
if (options.has('--token')) service.allow(options.get('--token'), ACTIONS_BOT, { installation: true });
service.exposeState = true;
await service.start();
const file = options.get('--port-file');
if (file) {
  fs.writeFileSync(`${file}.new`, `${service.url}\n`);
  fs.renameSync(`${file}.new`, file);
} else {
  console.log(service.url);
}
