// SPDX-License-Identifier: Apache-2.0
// GitLab's own client in Go as a judge of single requests and answers: its source declares each operation with its method, its
// path, and the members of what is sent and received. (GitLab's OpenAPI description is in no package.) It does not say which
// members are required: REQUIRED does, as GitLab's documentation has it.
import fs from 'node:fs';
import path from 'node:path';

const REQUIRED = {
  'POST projects/%s/merge_requests/%d/notes': ['body'],
  'PUT projects/%s/merge_requests/%d/notes/%d': ['body'],
  'POST projects/%s/merge_requests/%d/discussions': ['body'],
  'PUT projects/%s/merge_requests/%d/discussions/%s': ['resolved'],
  'POST projects/%s/statuses/%s': ['state'],
  'POST projects/%s/repository/commits': ['branch', 'commit_message', 'actions'],
  'POST projects/%s/merge_requests': ['source_branch', 'target_branch', 'title'],
  'GET projects/%s/repository/compare': ['from', 'to'],
  'GET projects/%s/repository/files/%s': ['ref'],
};
const SCALARS = { string: 'string', bool: 'boolean', int: 'integer', int64: 'integer', float64: 'number', 'time.Time': 'string', ISOTime: 'string' };

// The fields of a struct whose first line is before `lines[at]`: {members: Map of JSON name to {type, query}, embedded}, and the
// line after it.
function parseStruct(lines, at) {
  const struct = { members: new Map(), embedded: [] };
  for (; at < lines.length; ++at) {
    const line = lines[at].trim();
    const end = /^\}(?:\s*`(.*)`)?$/.exec(line);
    if (end) return { struct, tags: end[1] ?? '', next: at + 1 };
    const nested = /^(\w+)\s+((?:\*|\[\]|map\[\w+\])*)struct \{$/.exec(line);
    if (nested) {
      const inner = parseStruct(lines, at + 1);
      const name = /json:"([^",]+)/.exec(inner.tags)?.[1];
      if (name) struct.members.set(name, { type: nested[2], struct: inner.struct, query: name });
      at = inner.next - 1;
      continue;
    }
    const field = /^(\w+)\s+(\S+)\s+`(.*)`/.exec(line);
    const name = field && /json:"([^",]+)/.exec(field[3])?.[1];
    if (name && name !== '-') struct.members.set(name, { type: field[2], query: /url:"([^",]+)/.exec(field[3])?.[1] ?? name });
    const embedded = /^\*?([A-Z]\w+)(?:\s+`.*`)?$/.exec(line);
    if (embedded) struct.embedded.push(embedded[1]);
  }
  throw new Error('a struct without an end');
}

export class GitLabContract {
  static #one;
  #types = new Map();  // Name to {struct}, or to {alias: TYPE}.
  #values = new Map();  // Type of a string to the values that it has.
  #operations = [];

  // `directory`: the client's source; empty: there is no judge.
  static load(directory) {
    if (!directory) return null;
    return GitLabContract.#one ??= new GitLabContract(directory);
  }

  constructor(directory) {
    for (const name of fs.readdirSync(directory)) {
      if (name.endsWith('.go') && !name.endsWith('_test.go')) this.#read(fs.readFileSync(path.join(directory, name), 'utf8'));
    }
  }

  #read(text) {
    const lines = text.split('\n');
    for (let at = 0; at < lines.length; ++at) {
      const struct = /^\s*(?:type )?(\w+) struct \{$/.exec(lines[at]);
      if (struct) {
        const parsed = parseStruct(lines, at + 1);
        this.#types.set(struct[1], { struct: parsed.struct });
        at = parsed.next - 1;
        continue;
      }
      const alias = /^\s*type (\w+) (?:= )?([\w.*[\]]+)$/.exec(lines[at]);
      if (alias) this.#types.set(alias[1], { alias: alias[2] });
    }
    for (const [, type, value] of text.matchAll(/^\s*\w+\s+(\w+)\s+= "([^"]*)"$/gm)) {
      this.#values.set(type, [...this.#values.get(type) ?? [], value]);
    }
    const functions = /^func \(s \*\w+Service\) \w+\(([^)]*)\) \((\S+),[^{]*\{\n([^]*?)^\}/gm;
    for (const [, parameters, result, body] of text.matchAll(functions)) {
      const place = /withPath\("([^"]+)"/.exec(body)?.[1];
      if (!place) continue;
      const pattern = place.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replaceAll('%s', '[^/]+').replaceAll('%d', '\\d+');
      this.#operations.push({
        method: (/http\.Method(\w+)/.exec(body)?.[1] ?? 'Get').toUpperCase(), place, pattern: new RegExp(`^/api/v4/${pattern}$`),
        options: /\bopt \*(\w+)/.exec(parameters)?.[1], result: result === '*Response' ? null : result,
      });
    }
  }

  #find(method, pathname) { return this.#operations.find((one) => one.method === method && one.pattern.test(pathname)); }

  #members(struct) {
    const members = new Map(struct.members);
    for (const name of struct.embedded) {
      const inner = this.#types.get(name)?.struct;
      if (inner) for (const [key, member] of this.#members(inner)) members.set(key, member);
    }
    return members;
  }

  #checkStruct(struct, value, where) {
    if (typeof value !== 'object' || Array.isArray(value)) return [`${where} is not an object`];
    const members = this.#members(struct);
    return Object.entries(value).flatMap(([name, inner]) => {
      const member = members.get(name);
      return member ? this.#check(member.type, inner, `${where}.${name}`, member.struct) : [`${where}.${name} is unknown`];
    });
  }

  #check(type, value, where, struct = null) {
    if (value === null || value === undefined) return [];
    if (type.startsWith('*')) return this.#check(type.slice(1), value, where, struct);
    if (type.startsWith('[]')) {
      if (!Array.isArray(value)) return [`${where} is not a list`];
      return value.flatMap((one, index) => this.#check(type.slice(2), one, `${where}[${index}]`, struct));
    }
    if (struct) return this.#checkStruct(struct, value, where);
    if (type.startsWith('map[')) return typeof value === 'object' ? [] : [`${where} is not an object`];
    if (SCALARS[type]) {
      const is = typeof value === 'number' && Number.isInteger(value) ? ['integer', 'number'] : [typeof value];
      return is.includes(SCALARS[type]) ? [] : [`${where} is not of type ${SCALARS[type]}`];
    }
    if (type === 'LabelOptions') return typeof value === 'string' ? [] : [`${where} is not labels between commas`];
    const named = this.#types.get(type);
    if (named?.struct) return this.#checkStruct(named.struct, value, where);
    const values = this.#values.get(type);
    if (values && !values.includes(value)) return [`${where} is '${value}', not one of ${values.join(', ')}`];
    return named ? this.#check(named.alias, value, where) : [];
  }

  // The violations of one request, as texts. `body`: of JSON, parsed.
  request(method, url, body) {
    const { pathname, searchParams } = new URL(url, 'http://x');
    const operation = this.#find(method, pathname);
    if (!operation) return [`no operation ${method} ${pathname}`];
    const given = { ...Object.fromEntries(searchParams), ...body };
    const errors = (REQUIRED[`${method} ${operation.place}`] ?? []).filter((name) => given[name] === undefined)
        .map((name) => `${name} is missing`);
    const struct = this.#types.get(operation.options)?.struct ?? { members: new Map(), embedded: [] };
    const members = this.#members(struct);
    const known = new Map([...members.values()].map((member) => [member.query, member]));
    for (const [name, text] of searchParams) {
      const type = known.get(name)?.type.replace('*', '');
      if (!type) errors.push(`the parameter ${name} is unknown`);
      if (type?.startsWith('int') && !/^\d+$/.test(text)) errors.push(`the parameter ${name} is not a number`);
      if (type === 'bool' && !/^(true|false)$/.test(text)) errors.push(`the parameter ${name} is not true or false`);
    }
    return [...errors, ...this.#checkStruct(struct, body ?? {}, 'body')];
  }

  // The violations of one answer that says that all is well.
  answer(method, url, body) {
    const operation = this.#find(method, new URL(url, 'http://x').pathname);
    if (!operation) return [];
    if (!operation.result) return body === undefined ? [] : ['an answer where none belongs'];
    if (body === undefined) return ['no answer'];
    if (operation.result === '[]byte') return [];  // It does not look into it.
    return this.#check(operation.result, body, 'answer');
  }
}
