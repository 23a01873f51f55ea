// SPDX-License-Identifier: Apache-2.0
// GitHub's objects with every member its description requires.

export function simpleUser(base, { id, login, type = 'User' }) {
  const url = `${base}/users/${encodeURIComponent(login)}`;
  return {
    login, id, node_id: `U_${id}`, avatar_url: `${base}/avatars/${id}`, gravatar_id: '', url,
    html_url: `https://github.com/${encodeURIComponent(login)}`, followers_url: `${url}/followers`,
    following_url: `${url}/following`, gists_url: `${url}/gists`, starred_url: `${url}/starred`,
    subscriptions_url: `${url}/subscriptions`, organizations_url: `${url}/orgs`,
    repos_url: `${url}/repos`, events_url: `${url}/events`,
    received_events_url: `${url}/received_events`, type, site_admin: false,
  };
}

export function fullUser(base, who) {
  return {
    ...simpleUser(base, who), name: null, company: null, blog: null, location: null, email: null,
    hireable: null, bio: null, public_repos: 0, public_gists: 0, followers: 0, following: 0,
    created_at: '2020-01-01T00:00:00Z', updated_at: '2020-01-01T00:00:00Z',
  };
}

export function issueComment(base, repository, number, { id, author, body, created, updated }) {
  return {
    id, node_id: `IC_${id}`, url: `${base}/repos/${repository}/issues/comments/${id}`,
    html_url: `https://github.com/${repository}/pull/${number}#issuecomment-${id}`,
    issue_url: `${base}/repos/${repository}/issues/${number}`, body,
    user: author === null ? null : simpleUser(base, author), created_at: created,
    updated_at: updated, author_association: 'NONE', performed_via_github_app: null,
  };
}

export function failure(status, message) {
  return { message, documentation_url: 'https://docs.github.com/rest', status: String(status) };
}

export function validationFailure(message) {
  return {
    message: 'Validation Failed', documentation_url: 'https://docs.github.com/rest',
    errors: [{ resource: 'IssueComment', code: 'unprocessable', field: 'data', message }],
  };
}
