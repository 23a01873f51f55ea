// SPDX-License-Identifier: Apache-2.0
// The wire formats of the scripted model: Anthropic's Messages, OpenAI's Responses and Chat Completions,
// Gemini. A protocol: match(method, pathname), parse(body, pathname) -> conversation, stream(reply) ->
// [[event, data]], whole(reply) -> object, error(status, message) -> object.
import { randomBytes } from 'node:crypto';

export const id = (prefix) => prefix + randomBytes(12).toString('hex');
const pieces = (s, n) => s.match(new RegExp(`[^]{1,${n}}`, 'g')) ?? [];
const schemaProperties = (schema) => schema?.properties;
const textOf = (content) =>
  typeof content === 'string' ? content : (content ?? []).map((p) => p.text ?? p.content ?? '').filter((t) => typeof t === 'string').join('\n');

const anthropic = {
  ids: ['msg_', 'toolu_'],
  match: (method, p) => method === 'POST' && /\/v1\/messages$/.test(p),
  parse(body) {
    const blocks = (body.messages ?? []).flatMap((m) => (Array.isArray(m.content) ? m.content : []));
    return {
      model: body.model,
      stream: body.stream === true,
      tools: (body.tools ?? []).map((t) => ({ name: t.name, properties: schemaProperties(t.input_schema) })),
      toolResults: blocks.filter((b) => b.type === 'tool_result').length,
      text: [textOf(body.system), ...(body.messages ?? []).map((m) => textOf(m.content))].join('\n'),
    };
  },
  usage: (u) => ({
    input_tokens: u.input, cache_creation_input_tokens: u.cacheWrite, cache_read_input_tokens: u.cacheRead, output_tokens: u.output,
  }),
  content: (r) => [
    ...(r.text ? [{ type: 'text', text: r.text }] : []),
    ...(r.call ? [{ type: 'tool_use', id: r.callId, name: r.call.name, input: r.call.input }] : []),
  ],
  envelope(r, content, stopReason, usage) {
    return { id: r.id, type: 'message', role: 'assistant', model: r.model, content, stop_reason: stopReason, stop_sequence: null, usage };
  },
  stopReason: (r) => (r.call ? 'tool_use' : 'end_turn'),
  whole(r) {
    return this.envelope(r, this.content(r), this.stopReason(r), this.usage(r.usage));
  },
  stream(r) {
    const events = [['message_start', { message: this.envelope(r, [], null, { ...this.usage(r.usage), output_tokens: 1 }) }]];
    this.content(r).forEach((block, index) => {
      const isText = block.type === 'text';
      events.push(['content_block_start', { index, content_block: isText ? { type: 'text', text: '' } : { ...block, input: {} } }]);
      const whole = isText ? block.text : JSON.stringify(block.input);
      for (const piece of pieces(whole, r.chunk)) {
        const delta = isText ? { type: 'text_delta', text: piece } : { type: 'input_json_delta', partial_json: piece };
        events.push(['content_block_delta', { index, delta }]);
      }
      events.push(['content_block_stop', { index }]);
    });
    events.push(['message_delta', { delta: { stop_reason: this.stopReason(r), stop_sequence: null }, usage: this.usage(r.usage) }]);
    events.push(['message_stop', {}]);
    return events.map(([type, data]) => [type, { type, ...data }]);
  },
  error: (status, message) => ({
    type: 'error',
    error: {
      type: { 400: 'invalid_request_error', 401: 'authentication_error', 403: 'permission_error', 404: 'not_found_error', 429: 'rate_limit_error', 529: 'overloaded_error' }[status] ?? 'api_error',
      message,
    },
  }),
};

const openaiError = (status, message) => ({ error: { message, type: status >= 500 ? 'server_error' : 'invalid_request_error', param: null, code: status === 401 ? 'invalid_api_key' : null } });

const responses = {
  ids: ['resp_', 'call_'],
  match: (method, p) => method === 'POST' && /\/responses$/.test(p),
  parse(body) {
    const items = Array.isArray(body.input) ? body.input : [];
    return {
      model: body.model,
      stream: body.stream === true,
      tools: (body.tools ?? []).flatMap((t) =>
        t.type === 'namespace'
          ? (t.tools ?? []).map((u) => ({ name: u.name, namespace: t.name, freeform: u.type === 'custom', properties: schemaProperties(u.parameters) }))
          : [{ name: t.name ?? t.type, freeform: t.type === 'custom', properties: schemaProperties(t.parameters) }]),
      toolResults: items.filter((i) => /_call_output$/.test(i.type ?? '')).length,
      text: [body.instructions ?? '', ...items.map((i) => textOf(i.content))].join('\n'),
    };
  },
  usage: (u) => ({
    input_tokens: u.input + u.cacheRead, input_tokens_details: { cached_tokens: u.cacheRead },
    output_tokens: u.output, output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: u.input + u.cacheRead + u.output,
  }),
  items(r) {
    const out = [];
    if (r.text) out.push({ type: 'message', id: id('msg_'), status: 'completed', role: 'assistant', content: [{ type: 'output_text', text: r.text, annotations: [] }] });
    if (r.call) {
      const base = { id: id('fc_'), status: 'completed', call_id: r.callId, name: r.call.name, ...(r.call.namespace ? { namespace: r.call.namespace } : {}) };
      out.push(r.call.freeform
        ? { ...base, type: 'custom_tool_call', input: r.call.input.input }
        : { ...base, type: 'function_call', arguments: JSON.stringify(r.call.input) });
    }
    return out;
  },
  envelope: (r, status, output, usage) => ({
    id: r.id, object: 'response', created_at: Math.floor(Date.now() / 1000), status, model: r.model, output, usage, error: null, incomplete_details: null,
  }),
  whole(r) {
    return this.envelope(r, 'completed', this.items(r), this.usage(r.usage));
  },
  stream(r) {
    const items = this.items(r);
    const events = [['response.created', { response: this.envelope(r, 'in_progress', [], null) }]];
    items.forEach((item, output_index) => {
      const at = { item_id: item.id, output_index };
      if (item.type === 'message') {
        const { text } = item.content[0];
        events.push(['response.output_item.added', { output_index, item: { ...item, status: 'in_progress', content: [] } }]);
        events.push(['response.content_part.added', { ...at, content_index: 0, part: { type: 'output_text', text: '', annotations: [] } }]);
        for (const delta of pieces(text, r.chunk)) events.push(['response.output_text.delta', { ...at, content_index: 0, delta }]);
        events.push(['response.output_text.done', { ...at, content_index: 0, text }]);
        events.push(['response.content_part.done', { ...at, content_index: 0, part: item.content[0] }]);
      } else {
        const [field, kind] = item.type === 'custom_tool_call' ? ['input', 'custom_tool_call_input'] : ['arguments', 'function_call_arguments'];
        events.push(['response.output_item.added', { output_index, item: { ...item, status: 'in_progress', [field]: '' } }]);
        for (const delta of pieces(item[field], r.chunk)) events.push([`response.${kind}.delta`, { ...at, delta }]);
        events.push([`response.${kind}.done`, { ...at, [field]: item[field] }]);
      }
      events.push(['response.output_item.done', { output_index, item }]);
    });
    events.push(['response.completed', { response: this.envelope(r, 'completed', items, this.usage(r.usage)) }]);
    return events.map(([type, data], sequence_number) => [type, { type, sequence_number, ...data }]);
  },
  error: openaiError,
};

const chat = {
  ids: ['chatcmpl-', 'call_'],
  match: (method, p) => method === 'POST' && /\/chat\/completions$/.test(p),
  parse(body) {
    return {
      model: body.model,
      stream: body.stream === true,
      tools: (body.tools ?? []).map((t) => ({ name: t.function?.name, properties: schemaProperties(t.function?.parameters) })),
      toolResults: (body.messages ?? []).filter((m) => m.role === 'tool').length,
      silentAboutUsage: !body.stream_options?.include_usage,
      text: (body.messages ?? []).map((m) => textOf(m.content)).join('\n'),
    };
  },
  usage: (u) => ({
    prompt_tokens: u.input + u.cacheRead, completion_tokens: u.output, total_tokens: u.input + u.cacheRead + u.output,
    prompt_tokens_details: { cached_tokens: u.cacheRead },
  }),
  finish: (r) => (r.call ? 'tool_calls' : 'stop'),
  toolCall: (r, args) => ({ id: r.callId, type: 'function', function: { name: r.call.name, arguments: args } }),
  envelope: (r, object, choice, extra) => ({ id: r.id, object, created: Math.floor(Date.now() / 1000), model: r.model, choices: choice ? [{ index: 0, ...choice }] : [], ...extra }),
  whole(r) {
    const message = { role: 'assistant', content: r.text || null, ...(r.call ? { tool_calls: [this.toolCall(r, JSON.stringify(r.call.input))] } : {}) };
    return this.envelope(r, 'chat.completion', { message, finish_reason: this.finish(r) }, { usage: this.usage(r.usage) });
  },
  stream(r) {
    const chunk = (delta, finish_reason = null) => [null, this.envelope(r, 'chat.completion.chunk', { delta, finish_reason })];
    const events = [chunk({ role: 'assistant', content: '' })];
    for (const piece of pieces(r.text ?? '', r.chunk)) events.push(chunk({ content: piece }));
    if (r.call) {
      events.push(chunk({ tool_calls: [{ index: 0, ...this.toolCall(r, '') }] }));
      for (const piece of pieces(JSON.stringify(r.call.input), r.chunk)) {
        events.push(chunk({ tool_calls: [{ index: 0, function: { arguments: piece } }] }));
      }
    }
    events.push(chunk({}, this.finish(r)));
    // As OpenAI's own service, only when it is asked to.
    if (!r.silentAboutUsage) events.push([null, this.envelope(r, 'chat.completion.chunk', null, { usage: this.usage(r.usage) })]);
    events.push([null, '[DONE]']);
    return events;
  },
  error: openaiError,
};

const gemini = {
  ids: ['', ''],
  match: (method, p) => method === 'POST' && /:(streamGenerateContent|generateContent)$/.test(p),
  parse(body, pathname) {
    const parts = (body.contents ?? []).flatMap((c) => c.parts ?? []);
    return {
      model: /models\/([^:]+):/.exec(pathname)?.[1],
      stream: pathname.endsWith(':streamGenerateContent'),
      tools: (body.tools ?? []).flatMap((t) => t.functionDeclarations ?? []).map((f) => ({ name: f.name, properties: schemaProperties(f.parametersJsonSchema ?? f.parameters) })),
      toolResults: parts.filter((p) => p.functionResponse).length,
      text: [textOf(body.systemInstruction?.parts), textOf(parts)].join('\n'),
    };
  },
  envelope: (r, parts, finishReason) => ({
    candidates: [{ index: 0, content: { role: 'model', parts }, ...(finishReason ? { finishReason } : {}) }],
    usageMetadata: {
      promptTokenCount: r.usage.input + r.usage.cacheRead, cachedContentTokenCount: r.usage.cacheRead,
      candidatesTokenCount: r.usage.output, totalTokenCount: r.usage.input + r.usage.cacheRead + r.usage.output,
    },
    modelVersion: r.model, responseId: r.id,
  }),
  callPart: (r) => ({ functionCall: { id: r.callId, name: r.call.name, args: r.call.input } }),
  whole(r) {
    return this.envelope(r, [...(r.text ? [{ text: r.text }] : []), ...(r.call ? [this.callPart(r)] : [])], 'STOP');
  },
  stream(r) {
    const events = pieces(r.text ?? '', r.chunk).map((text) => [null, this.envelope(r, [{ text }])]);
    if (r.call) events.push([null, this.envelope(r, [this.callPart(r)])]);
    events.push([null, this.envelope(r, [{ text: '' }], 'STOP')]);
    return events;
  },
  error: (status, message) => ({
    error: { code: status, message, status: { 400: 'INVALID_ARGUMENT', 401: 'UNAUTHENTICATED', 403: 'PERMISSION_DENIED', 404: 'NOT_FOUND', 429: 'RESOURCE_EXHAUSTED', 503: 'UNAVAILABLE' }[status] ?? 'INTERNAL' },
  }),
};

export const protocols = [anthropic, responses, chat, gemini];
