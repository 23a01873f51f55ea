// SPDX-License-Identifier: Apache-2.0
#include "forge/comments.h"

namespace forge {

int64_t UserIdAt(const codec::Json& json, const char* name) {
  const codec::Json* user = json.Find(name);
  return user == nullptr ? 0 : user->IntegerAt("id");
}

bool Viewer::Wrote(int64_t author_id, const std::string& author_login) const {
  if (id != 0) return author_id == id;
  return author_login == login;  // "[bot]" is in it, and in no person's login.
}

}  // namespace forge
