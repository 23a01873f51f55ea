// SPDX-License-Identifier: Apache-2.0
// What a scenario asks for, as the tool that an agent offers for it: `run`, `read_file`, `write_file`,
// `edit_file` (with paths relative to the agent's working directory), or `tool` with a name and an input.
import path from 'node:path';

const quote = (s) => `'${String(s).replaceAll("'", `'\\''`)}'`;
const writeCommand = ({ path: p, content }) => `printf %s ${quote(content)} > ${quote(p)}`;
const absolute = (p, cwd) => (cwd ? path.resolve(cwd, p) : p);

const addFilePatch = ({ path: p, content }) =>
  ['*** Begin Patch', `*** Add File: ${p}`, ...content.replace(/\n$/, '').split('\n').map((l) => '+' + l), '*** End Patch', ''].join('\n');

// Each entry: the tool's name as an agent offers it -> a function making its input from the abstract action.
const toolTranslations = {
  write_file: {
    Write: (a, c) => ({ file_path: absolute(a.path, c), content: a.content }),               // claude
    write_file: (a, c) => ({ file_path: absolute(a.path, c), content: a.content }),          // gemini
    write: (a, c) => ({ filePath: absolute(a.path, c), path: a.path, content: a.content }),  // opencode, pi
    create: (a, c) => ({ path: absolute(a.path, c), file_text: a.content }),                 // copilot
    apply_patch: (a) => ({ input: addFilePatch(a), patchText: addFilePatch(a) }),            // codex, opencode
  },
  edit_file: {
    Edit: (a, c) => ({ file_path: absolute(a.path, c), old_string: a.old, new_string: a.new }),
  },
  read_file: {
    Read: (a, c) => ({ file_path: absolute(a.path, c) }),
    read_file: (a, c) => ({ file_path: absolute(a.path, c), absolute_path: absolute(a.path, c) }),
    read: (a, c) => ({ filePath: absolute(a.path, c), path: a.path }),
    view: (a, c) => ({ path: absolute(a.path, c) }),
  },
  run: {
    Bash: (a) => ({ command: a.command, description: 'run a command' }),
    bash: (a) => ({ command: a.command, description: 'run a command' }),
    run_shell_command: (a) => ({ command: a.command, description: 'run a command' }),
    exec_command: (a) => ({ cmd: a.command }),
    shell_command: (a) => ({ command: a.command }),
    shell: (a) => ({ command: ['bash', '-lc', a.command] }),
  },
};

const inShell = {
  write_file: (a) => ({ command: writeCommand(a) }),
  read_file: (a) => ({ command: `cat ${quote(a.path)}` }),
};

// Picks an offered tool for the action; falls back to the agent's shell tool.
export function resolveAction(action, tools, cwd) {
  const [kind, args] = Object.entries(action)[0];
  if (kind === 'tool') return { name: args.name, input: args.input };
  const offered = new Map(tools.map((t) => [t.name, t]));
  const attempt = (k, a) => {
    for (const [name, make] of Object.entries(toolTranslations[k] ?? {})) {
      const tool = offered.get(name);
      if (tool) return { name, input: keepKnown(make(a, cwd), tool), freeform: tool.freeform, namespace: tool.namespace };
    }
  };
  return attempt(kind, args) ?? (inShell[kind] && attempt('run', inShell[kind](args)));
}

const keepKnown = (input, { properties }) =>
  properties ? Object.fromEntries(Object.entries(input).filter(([k]) => k in properties)) : input;

// The directory the agent works in, as its own prompt states it.
export function workingDirectory(text) {
  for (const words of ['[Ww]orking directory(?: is| has changed to)?', '<cwd>', '[Cc]wd', '[Ww]orkspace [Dd]irector(?:y|ies)']) {
    const found = new RegExp(`(?:${words})[^\\w<]{0,6}?(/[^\\s<"'\`,]+)`).exec(text);
    if (found) return found[1].replace(/[.)]+$/, '');
  }
  return undefined;
}
