// SPDX-License-Identifier: Apache-2.0
// What a pull request changes, of a bare repository, as GitHub lists it.
import { execFileSync } from 'node:child_process';

// The files between the merge base of `base` and `head`, and `head`: {filename, status, patch}.
export function difference(bare, base, head) {
  const text = execFileSync('git', ['--git-dir', bare, 'diff', '--no-color', '--no-renames', '--no-ext-diff', `${base}...${head}`],
                            { encoding: 'utf8' });
  return text.split(/^diff --git /m).slice(1).map((part) => {
    const at = part.search(/^@@ /m);
    const [, before, after] = /^--- (?:a\/)?(.*)\n\+\+\+ (?:b\/)?(.*)$/m.exec(part) ?? [];
    const name = after === '/dev/null' ? before : after ?? /^a\/(.*?) b\//.exec(part)[1];
    const status = before === '/dev/null' ? 'added' : after === '/dev/null' ? 'removed' : 'modified';
    return { filename: name, status, patch: at < 0 ? undefined : part.slice(at).replace(/\n$/, '') };
  });
}

// Lets `object[name]` be what `read` gives whenever it is asked for.
export function follow(object, name, read) {
  Object.defineProperty(object, name, { get: read, set() {}, configurable: true, enumerable: true });
}
