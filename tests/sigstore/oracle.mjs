// What npm's @sigstore/verify says of the bundles that stdin names: [{name, bundle, root, artifact, key,
// identity, issuer}], paths and texts. Prints {name: null, or why not}.
// usage: MODULES=NODE_MODULES node oracle.mjs
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createPublicKey } from 'node:crypto';

const require = createRequire(process.env.MODULES + '/');
const { bundleFromJSON } = require('@sigstore/bundle');
const { TrustedRoot } = require('@sigstore/protobuf-specs');
const { Verifier, toSignedEntity, toTrustMaterial } = require('@sigstore/verify');

const json = (path) => JSON.parse(readFileSync(path, 'utf8'));

// Most cases have the same root, and reading one is what takes long.
const roots = new Map();
function trust(path, findKey) {
  const text = readFileSync(path, 'utf8');
  if (!roots.has(text)) roots.set(text, toTrustMaterial(TrustedRoot.fromJSON(JSON.parse(text))));
  return { ...roots.get(text), publicKey: findKey };
}

function verify({ bundle, root, artifact, key, identity, issuer }) {
  const der = key && createPublicKey(readFileSync(key)).export({ type: 'spki', format: 'der' });
  const material = trust(root, () => {
    if (!der) throw new Error('no key');
    return { publicKey: createPublicKey({ key: der, type: 'spki', format: 'der' }), validFor: () => true };
  });
  // A bare key's bundle needs no time, as with ours.
  const verifier = new Verifier(material, key ? { timestampThreshold: 0, tlogThreshold: 0 } : {});
  // The policy's identity is a regular expression, unanchored.
  const whole = '^' + identity?.replace(/[.*+?^${}()|[\]\\]/g, '\\$&') + '$';
  const policy = key ? undefined : { subjectAlternativeName: whole, extensions: { issuer } };
  verifier.verify(toSignedEntity(bundleFromJSON(json(bundle)), readFileSync(artifact)), policy);
}

const said = {};
for (const one of JSON.parse(readFileSync(0, 'utf8'))) {
  try {
    verify(one);
    said[one.name] = null;
  } catch (error) {
    said[one.name] = `${error.code ?? error.name}: ${error.message}`;
  }
}
console.log(JSON.stringify(said));
