// SPDX-License-Identifier: Apache-2.0
/**
 * Sandboxes for programs: a client of `agentic-ci serve --stdio`, with what Node has.
 *
 *     const server = await Server.start();
 *     const box = await server.create({ policy: 'policy.yml', timeout: '10m' });
 *     const result = await box.exec('make test');
 *
 * The server is a child of this program and ends with it, however it ends, and so does each sandbox created here.
 */
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import type { Readable, Writable } from 'node:stream';

const LINE_BYTES_MAX = 16 << 20;
const PIECE_BYTES = 512 << 10; // Of input, in one message.
// Output of a command that may wait here to be read. None for one with input, behind which an `ack` could wait.
const WINDOW_BYTES = 1 << 20;

export type Params = Record<string, unknown>;
export type Stream = 'stdout' | 'stderr';
export interface Change {
  kind: 'created' | 'modified' | 'deleted' | 'renamed' | 'mode';
  path: string;
  old_path?: string;
}
/** How a command ended. */
export interface Result {
  status: number;
  reason: 'exit' | 'signal' | 'timeout' | 'oom' | 'output' | 'cancelled';
  changes: Change[];
  /** The requests that the policy refused meanwhile. */
  refused: Params[];
  stdout: Buffer;
  stderr: Buffer;
}
export interface ExecOptions {
  directory?: string;
  env?: Record<string, string>;
  timeout?: string;
  wait?: boolean;
  merge?: boolean;
  changes?: boolean;
}
export interface WaitOptions {
  /** Takes the output as it comes; it is not in the result then. */
  onOutput?: (stream: Stream, data: Buffer) => void;
  /** The last of standard input, of a command that was started with `input`. */
  input?: Uint8Array;
  /** Cancels the command. */
  signal?: AbortSignal;
}

/** A request that failed. */
export class AgenticCiError extends Error {
  constructor(
    message: string,
    readonly code: number,
    /** What the command line would exit with; 0 for an error of the protocol. */
    readonly exitCode = 0,
    /** 'not_found', 'usage', 'temporary', ..., or 'ended': the server has ended, and its sandboxes with it. */
    readonly kind = '',
    /** Empty, or something to type. */
    readonly hint = '',
  ) {
    super(message);
    this.name = 'AgenticCiError';
  }
}

interface Message {
  id?: number;
  method?: string;
  params?: Params;
  result?: Params;
  error?: { code: number; message: string; data?: { exit_code?: number; kind?: string; hint?: string } };
}

function ended(): AgenticCiError {
  return new AgenticCiError('the server has ended', 0, 0, 'ended');
}

function bytes(params: Params): Buffer {
  return typeof params.base64 === 'string' ? Buffer.from(params.base64, 'base64') : Buffer.from(String(params.text ?? ''));
}

/** A request that goes on: its notifications, then its answer. */
class Call {
  private queue: Message[] = [];
  private wake: (() => void) | undefined;

  constructor(
    readonly server: Server,
    readonly number: number,
  ) {}

  put(message: Message): void {
    this.queue.push(message);
    this.wake?.();
  }

  /** Gives each notification to `on`, and returns the result. */
  async result(on: (params: Params) => Promise<void> | void): Promise<Params> {
    for (;;) {
      const message = this.queue.shift();
      if (message === undefined) {
        await new Promise<void>((wake) => (this.wake = wake));
      } else if (message.method !== undefined) {
        await on(message.params ?? {});
      } else if (message.error) {
        const { code, message: text, data } = message.error;
        throw code === 0 ? ended() : new AgenticCiError(text, code, data?.exit_code, data?.kind, data?.hint);
      } else {
        return message.result ?? {};
      }
    }
  }
}

/** A command that runs. */
export class Command {
  constructor(
    private readonly call: Call,
    private readonly windowed: boolean,
  ) {}

  /** More standard input; waits while the command does not read it. */
  async write(data: Uint8Array, end = false): Promise<void> {
    for (let at = 0; at < data.length; at += PIECE_BYTES) await this.input(data.subarray(at, at + PIECE_BYTES), false);
    if (end) await this.input(new Uint8Array(), true);
  }

  /** Ends the command, whose result then has the reason 'cancelled'. */
  async cancel(): Promise<void> {
    await this.call.server.notify('cancel', { request: this.call.number });
  }

  async wait(options: WaitOptions = {}): Promise<Result> {
    const streams: Record<Stream, Buffer[]> = { stdout: [], stderr: [] };
    const abort = (): void => void this.cancel().catch(() => {});
    if (options.signal?.aborted) abort();
    options.signal?.addEventListener('abort', abort);
    const written = options.input ? this.write(options.input, true).catch(() => {}) : undefined;
    try {
      const raw = await this.call.result(async (params) => {
        const data = bytes(params);
        const stream = params.stream as Stream;
        if (options.onOutput) options.onOutput(stream, data);
        else streams[stream].push(data);
        if (this.windowed) await this.call.server.notify('ack', { request: this.call.number, bytes: data.length });
      });
      void written;
      return { ...(raw as unknown as Result), stdout: Buffer.concat(streams.stdout), stderr: Buffer.concat(streams.stderr) };
    } finally {
      options.signal?.removeEventListener('abort', abort);
    }
  }

  private async input(data: Uint8Array, end: boolean): Promise<void> {
    const base64 = Buffer.from(data).toString('base64');
    await this.call.server.notify('input', { request: this.call.number, base64, end });
  }
}

/** A sandbox, by its name. */
export class Sandbox {
  constructor(
    private readonly server: Server,
    readonly name: string,
  ) {}

  /** Starts a script for the sandbox's shell, or a program and its arguments. With `input`, its input comes by `write`. */
  async start(command: string | string[], options: ExecOptions & { input?: boolean } = {}): Promise<Command> {
    const { input, ...more } = options;
    const what = typeof command === 'string' ? { script: command } : { command };
    const streams = input ? { stdin: { text: '', end: false } } : { window: WINDOW_BYTES };
    return new Command(
      await this.server.start('exec', { sandbox: this.name, ...what, ...streams, ...more }),
      !input,
    );
  }

  /** Runs a command to its end. */
  async exec(command: string | string[], options: ExecOptions & WaitOptions = {}): Promise<Result> {
    const { onOutput, input, signal, ...more } = options;
    const started = await this.start(command, { ...more, input: input !== undefined });
    return started.wait({ ...(onOutput && { onOutput }), ...(input && { input }), ...(signal && { signal }) });
  }

  /** Writes a file of at most 8 MiB; its directories are made. */
  async put(target: string, content: string | Uint8Array, executable = false): Promise<void> {
    const data = typeof content === 'string' ? { text: content } : { base64: Buffer.from(content).toString('base64') };
    await this.call('put', { target, executable, ...data });
  }

  /** The content of a file; with `archive`, a tar archive of a file or directory. */
  async get(source: string, archive = false): Promise<Buffer> {
    return (await this.server.collect('get', { sandbox: this.name, source, archive })).data;
  }

  /** Copies a file or directory of the host, as `agentic-ci sandbox put` does. */
  async upload(source: string, target: string): Promise<void> {
    await this.call('put', { source: resolve(source), target });
  }

  /** Copies a file or directory to the host, as `agentic-ci sandbox get` does. */
  async download(source: string, target: string): Promise<void> {
    await this.call('get', { source, target: resolve(target) });
  }

  /** What has changed in the checkout: a list of files, and a patch. */
  async diff(): Promise<{ changes: Change[]; patch: Buffer }> {
    const { result, data } = await this.server.collect('diff', { sandbox: this.name });
    return { changes: result.changes as Change[], patch: data.length ? data : Buffer.from(String(result.patch ?? '')) };
  }

  /** Applies the changes to the checkout, if the gates let them pass. */
  apply(): Promise<Params> {
    return this.call('apply');
  }

  /** Keeps everything written in the sandbox. */
  snapshot(options: { tag?: string; output?: string } = {}): Promise<Params> {
    return this.call('snapshot', options);
  }

  /** Puts the sandbox where a snapshot was taken: a tag, a digest, or oci:DIRECTORY. */
  restore(snapshot: string, options: { key?: string } = {}): Promise<Params> {
    return this.call('restore', { snapshot, ...options });
  }

  /** Puts the sandbox back to its beginning. */
  reset(): Promise<Params> {
    return this.call('reset');
  }

  /** Gives each request to `on` as it is judged, as a record of OCSF, until it is aborted or the sandbox ends. */
  async events(on: (record: Params) => void, signal?: AbortSignal): Promise<void> {
    const call = await this.server.start('events', { sandbox: this.name });
    const abort = (): void => void this.server.notify('cancel', { request: call.number }).catch(() => {});
    signal?.addEventListener('abort', abort);
    try {
      await call.result((params) => on(params.event as Params));
    } finally {
      signal?.removeEventListener('abort', abort);
    }
  }

  /** Ends the sandbox; with `apply`, applies the changes that pass the gates. */
  delete(apply = false): Promise<Params> {
    return this.call('delete', { apply });
  }

  private call(method: string, params: Params = {}): Promise<Params> {
    return this.server.call(method, { sandbox: this.name, ...params });
  }
}

/** A running `agentic-ci serve --stdio`. */
export class Server {
  private readonly calls = new Map<number, Call>();
  private readonly process: ChildProcessByStdio<Writable, Readable, null>;
  private readonly exited: Promise<unknown>;
  private last = 0;
  private over = false;

  private constructor(program: string, cwd?: string) {
    this.process = spawn(program, ['serve', '--stdio'], { stdio: ['pipe', 'pipe', 'inherit'], cwd });
    this.exited = once(this.process, 'close').catch(() => {});
    this.process.stdin.on('error', () => {}); // Each request says it.
    let pieces: Buffer[] = [];
    this.process.stdout.on('data', (piece: Buffer) => {
      for (let end = piece.indexOf(10); end >= 0; end = piece.indexOf(10)) {
        this.take(Buffer.concat([...pieces, piece.subarray(0, end)]).toString());
        pieces = [];
        piece = piece.subarray(end + 1);
      }
      pieces.push(piece);
    });
    const end = (): void => {
      this.over = true;
      for (const call of this.calls.values()) call.put({ error: { code: 0, message: '' } });
      this.calls.clear();
    };
    this.process.on('error', end);
    this.process.stdout.on('close', end);
  }

  /** Starts the server: a program's path or its name on the PATH. */
  static async start(program = 'agentic-ci', cwd?: string): Promise<Server> {
    const server = new Server(program, cwd);
    await server.call('initialize', { protocol: 1, client: { name: 'agentic-ci-client' } });
    return server;
  }

  /** Ends the server and the sandboxes that were created here. */
  async close(): Promise<void> {
    this.process.stdin.end();
    await this.exited;
  }

  /** A sandbox, with the options of `agentic-ci sandbox create` by their names. */
  async create(options: Params = {}): Promise<Sandbox> {
    return new Sandbox(this, String((await this.call('create', options)).name));
  }

  /** The result of any method of the protocol. */
  async call(method: string, params: Params = {}): Promise<Params> {
    return (await this.collect(method, params)).result;
  }

  /** The result, and what comes as data before it. */
  async collect(method: string, params: Params): Promise<{ result: Params; data: Buffer }> {
    const call = await this.start(method, params);
    const pieces: Buffer[] = [];
    const result = await call.result((note) => void pieces.push(bytes(note)));
    return { result, data: Buffer.concat(pieces) };
  }

  async start(method: string, params: Params): Promise<Call> {
    const call = new Call(this, ++this.last);
    this.calls.set(call.number, call);
    try {
      await this.send({ id: call.number, method, params });
    } catch (error) {
      this.calls.delete(call.number);
      throw error;
    }
    return call;
  }

  async notify(method: string, params: Params): Promise<void> {
    if (this.calls.has(Number(params.request))) await this.send({ method, params });
  }

  private async send(message: object): Promise<void> {
    const line = JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n';
    if (Buffer.byteLength(line) > LINE_BYTES_MAX) throw new RangeError('the request is longer than 16 MiB');
    if (this.over) throw ended();
    await new Promise<void>((done, fail) =>
      this.process.stdin.write(line, (error) => (error ? fail(ended()) : done())),
    );
  }

  private take(line: string): void {
    const message = JSON.parse(line) as Message;
    const number = message.method === undefined ? message.id : Number(message.params?.request);
    const call = this.calls.get(number ?? 0);
    if (message.method === undefined) this.calls.delete(number ?? 0);
    call?.put(message);
  }
}
