// SPDX-License-Identifier: Apache-2.0
// GitHub's public OpenAPI description as a judge of single requests and answers. The fake service asks
// it about both, so neither our client nor the fake can drift from what GitHub documents.
import fs from 'node:fs';
import { createRequire } from 'node:module';

const R = '/repos/{owner}/{repo}';
// What we use. Everything else is an unknown path to the contract, and so a violation.
const OPERATIONS = {
  '/user': ['get'],
  '/installation/token': ['delete'],
  '/app/installations/{installation_id}/access_tokens': ['post'],
  [`${R}/installation`]: ['get'],
  [`${R}/pulls/{pull_number}`]: ['get', 'patch'],
  [`${R}/issues/{issue_number}/comments`]: ['get', 'post'],
  [`${R}/issues/comments/{comment_id}`]: ['get', 'patch', 'delete'],
  [`${R}/issues/comments/{comment_id}/reactions`]: ['post'],
  [`${R}/pulls/{pull_number}/files`]: ['get'],
  [`${R}/pulls/{pull_number}/reviews`]: ['post'],
  [`${R}/pulls/{pull_number}/reviews/{review_id}`]: ['put'],
  [`${R}/pulls/{pull_number}/comments`]: ['post'],
  [`${R}/pulls/comments/{comment_id}`]: ['delete'],
  [`${R}/commits/{ref}/check-runs`]: ['get'],
  [`${R}/check-runs`]: ['post'],
  [`${R}/check-runs/{check_run_id}`]: ['patch'],
  [`${R}/pulls`]: ['get', 'post'],
  [`${R}/commits`]: ['get'],
  [`${R}/contents/{path}`]: ['get'],
  [`${R}/git/ref/{ref}`]: ['get'],
  [`${R}/git/trees/{tree_sha}`]: ['get'],
  [`${R}/git/blobs/{file_sha}`]: ['get'],
  [`${R}/git/blobs`]: ['post'],
  [`${R}/git/trees`]: ['post'],
  [`${R}/git/commits`]: ['post'],
  [`${R}/git/refs`]: ['post'],
  [`${R}/git/refs/{ref}`]: ['patch'],
  [`${R}/commits/{ref}/status`]: ['get'],
  [`${R}/statuses/{sha}`]: ['post'],
  [`${R}/code-scanning/sarifs`]: ['post'],
  [`${R}/attestations`]: ['post'],
  [`${R}/attestations/{subject_digest}`]: ['get'],
  [`${R}/issues/{issue_number}/labels`]: ['get', 'post'],
  [`${R}/collaborators/{username}/permission`]: ['get'],
};
// Statuses that GitHub answers on any operation and its description leaves out.
const EVERYWHERE = new Set(['401', '403', '404', '410', '429', '500', '502', '503', '504']);
const JSON_TYPES = ['application/json', 'application/vnd.github+json'];

// OpenAPI 3.0 to JSON Schema: "nullable", and annotations ajv does not know.
function translate(value) {
  if (Array.isArray(value)) return value.map(translate);
  if (value === null || typeof value !== 'object') return value;
  const schema = {};
  for (const [key, inner] of Object.entries(value)) {
    if (['nullable', 'example', 'examples', 'discriminator', 'xml'].includes(key)) continue;
    schema[key] = key === '$ref' ? `github${inner}` : translate(inner);
  }
  if (value.nullable === true) {
    if (typeof schema.type === 'string') schema.type = [schema.type, 'null'];
    if (schema.enum && !schema.enum.includes(null)) schema.enum.push(null);
  }
  return schema;
}

export class Contract {
  #ajv;
  #compiled = new Map();  // Compiling a schema takes as long as hundreds of checks.
  #paths = [];
  #description;
  #judgeQuery;

  // `modules`: a node_modules folder that holds the packages of package.json.
  static load(modules) {
    const require = createRequire(`${modules}/x.js`);
    const file = require.resolve('@octokit/openapi/package.json')
        .replace(/package\.json$/, 'generated/api.github.com.json');
    const contract = new Contract(JSON.parse(fs.readFileSync(file)), require('ajv').default,
                                  require('ajv-formats').default);
    const { buildSchema, parse, validate } = require('graphql');
    const schema = buildSchema(fs.readFileSync(`${modules}/@octokit/graphql-schema/schema.graphql`, 'utf8'),
                               { assumeValidSDL: true });
    contract.#judgeQuery = (query) => validate(schema, parse(query)).map((error) => error.message);
    return contract;
  }

  constructor(description, Ajv, addFormats) {
    this.#description = description;
    this.#ajv = new Ajv({ strict: false, allErrors: true });
    addFormats(this.#ajv);
    this.#ajv.addSchema({ $id: 'github', components: translate(description.components) });
    const deref = (v) => v?.$ref ? v.$ref.slice(2).split('/').reduce((o, k) => o[k], description) : v;
    for (const [path, methods] of Object.entries(OPERATIONS)) {
      const pattern = new RegExp(`^${path.replace(/\{path\}/, '(.+)').replace(/\{[^}]+\}/g, '([^/]+)')}$`);
      const names = [...path.matchAll(/\{([^}]+)\}/g)].map((m) => m[1]);
      for (const method of methods) {
        const operation = description.paths[path][method];
        const parameters = [...(description.paths[path].parameters ?? []),
                            ...(operation.parameters ?? [])].map(deref);
        this.#paths.push({ method, pattern, names, operation, parameters, deref, path });
      }
    }
  }

  #check(schema, value, where) {
    if (!this.#compiled.has(schema)) this.#compiled.set(schema, this.#ajv.compile(translate(schema)));
    const validate = this.#compiled.get(schema);
    if (validate(value)) return [];
    return validate.errors.slice(0, 5).map((e) => `${where}${e.instancePath} ${e.message}`);
  }

  #find(method, path) {
    for (const entry of this.#paths) {
      const match = entry.method === method.toLowerCase() && entry.pattern.exec(path);
      if (match) return { ...entry, values: match.slice(1).map(decodeURIComponent) };
    }
    return null;
  }

  // The violations of one request, as texts. `url` is the request target.
  request(method, url, headers, body) {
    const { pathname, searchParams } = new URL(url, 'http://x');
    const found = this.#find(method, pathname);
    if (!found) return [`no operation ${method} ${pathname}`];
    const errors = [];
    const typed = (schema, text) => schema?.type === 'integer' && /^-?\d+$/.test(text) ? Number(text) : text;
    for (const parameter of found.parameters) {
      const at = found.names.indexOf(parameter.name);
      const text = parameter.in === 'path' ? found.values[at] : searchParams.get(parameter.name);
      if (text === null || text === undefined) {
        if (parameter.required) errors.push(`missing parameter ${parameter.name}`);
        continue;
      }
      errors.push(...this.#check(parameter.schema, typed(parameter.schema, text), parameter.name));
    }
    for (const name of searchParams.keys()) {
      if (!found.parameters.some((p) => p.in === 'query' && p.name === name)) {
        errors.push(`unknown query parameter ${name}`);
      }
    }
    const wanted = found.operation.requestBody;
    if (wanted) {
      if (!JSON_TYPES.includes(headers['content-type'])) errors.push('content-type is not JSON');
      let value;
      try { value = JSON.parse(body); } catch { return [...errors, 'the body is not JSON']; }
      const schema = found.deref(wanted).content['application/json'].schema;
      errors.push(...this.#check(schema, value, 'body'));
    } else if (body !== '') {
      errors.push('a body where none belongs');
    }
    if (headers.accept !== 'application/vnd.github+json') errors.push('accept is not vnd.github+json');
    if (!/^\d{4}-\d\d-\d\d$/.test(headers['x-github-api-version'] ?? '')) errors.push('no API version');
    if (!headers['user-agent']) errors.push('no user-agent');  // GitHub answers 403 without one.
    return errors;
  }

  // The violations of one GraphQL request, by GitHub's public schema.
  graphql({ query, variables = {}, ...rest }) {
    if (typeof query !== 'string') return ['no query'];
    const unknown = Object.keys(rest).map((name) => `unknown member ${name}`);
    const named = [...query.matchAll(/\$(\w+):/g)].map((m) => m[1]);
    const stray = Object.keys(variables).filter((name) => !named.includes(name));
    return [...this.#judgeQuery(query), ...unknown, ...stray.map((name) => `variable ${name} is not declared`)];
  }

  // The description's own example of an answer: an object with every member.
  example(method, path, status) {
    const deref = (v) => v?.$ref ? v.$ref.slice(2).split('/').reduce((o, k) => o[k], this.#description) : v;
    const { examples } = deref(this.#description.paths[path][method].responses[String(status)])
        .content['application/json'];
    return deref(Object.values(examples)[0]).value;
  }

  // The violations of one answer of the fake.
  answer(method, url, status, body) {
    const found = this.#find(method, new URL(url, 'http://x').pathname);
    if (!found) return [];
    const described = found.deref(found.operation.responses[String(status)]);
    if (!described) return EVERYWHERE.has(String(status)) ? [] : [`${status} is not described`];
    const schema = described.content?.['application/json']?.schema;
    if (!schema) return body === '' ? [] : [`${status} has a body`];
    let value;
    try { value = JSON.parse(body); } catch { return [`the ${status} answer is not JSON`]; }
    return this.#check(schema, value, `${status}`);
  }
}
