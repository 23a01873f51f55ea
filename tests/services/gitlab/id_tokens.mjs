// SPDX-License-Identifier: Apache-2.0
// A GitLab instance's ID tokens: its key, as it publishes it, and what it signs of a job. The claims are those of
// GitLab 18.3 (lib/gitlab/ci/jwt.rb and jwt_v2.rb).
import crypto from 'node:crypto';

const encoded = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');

export class IdTokens {
  #pair = crypto.generateKeyPairSync('rsa', { modulusLength: 2048 });
  #kid = crypto.randomUUID();

  // The answer to GET /oauth/discovery/keys.
  get keys() {
    return { keys: [{ ...this.#pair.publicKey.export({ format: 'jwk' }), kid: this.#kid, use: 'sig', alg: 'RS256' }] };
  }

  sign(claims) {
    const text = `${encoded({ typ: 'JWT', alg: 'RS256', kid: this.#kid })}.${encoded(claims)}`;
    return `${text}.${crypto.sign('sha256', Buffer.from(text), this.#pair.privateKey).toString('base64url')}`;
  }

  // Of the job that has these variables; `more` replaces claims, and takes away those that are undefined.
  of(variables, more = {}) {
    const now = Math.floor(Date.now() / 1000);
    return this.sign({
      project_id: variables.CI_MERGE_REQUEST_SOURCE_PROJECT_ID || variables.CI_PROJECT_ID,
      job_project_id: variables.CI_PROJECT_ID,
      pipeline_id: variables.CI_PIPELINE_ID,
      pipeline_source: variables.CI_PIPELINE_SOURCE,
      job_id: variables.CI_JOB_ID,
      ref: variables.CI_COMMIT_REF_NAME,
      ref_protected: variables.CI_COMMIT_REF_PROTECTED || 'false',
      sha: variables.CI_COMMIT_SHA,
      iss: variables.CI_SERVER_URL,
      aud: 'agentic-ci',
      iat: now, nbf: now - 5, exp: now + 3600,
      ...more,
    });
  }
}
