// SPDX-License-Identifier: Apache-2.0
/* libgit2's regular expressions, on those of the C library, in place of its own file for PCRE2: those would be half a megabyte
 * of the program. Used for the names of functions behind "@@" in a patch; libgit2 can be built so, too. */
#include <git2/errors.h>
#include <regex.h>
#include <stdlib.h>
#include <sys/types.h>

/* As the callers have it in a build with PCRE2: a pointer. */
typedef regex_t *git_regexp;
typedef struct {
  ssize_t start;
  ssize_t end;
} git_regmatch;

int git_regexp_compile(git_regexp *made, const char *pattern, int flags);
void git_regexp_dispose(git_regexp *one);
int git_regexp_match(const git_regexp *one, const char *text);
int git_regexp_search(const git_regexp *one, const char *text, size_t count, git_regmatch *matches);

int git_regexp_compile(git_regexp *made, const char *pattern, int flags) {
  const int ignore_case = 1;
  regex_t *compiled = malloc(sizeof *compiled);
  if (compiled == NULL) return GIT_ERROR;
  int error = regcomp(compiled, pattern, REG_EXTENDED | ((flags & ignore_case) != 0 ? REG_ICASE : 0));
  if (error == 0) {
    *made = compiled;
    return 0;
  }
  char why[256];
  regerror(error, compiled, why, sizeof why);
  git_error_set_str(GIT_ERROR_REGEX, why);
  free(compiled);
  return GIT_EINVALIDSPEC;
}

void git_regexp_dispose(git_regexp *one) {
  if (*one != NULL) regfree(*one);
  free(*one);
  *one = NULL;
}

int git_regexp_match(const git_regexp *one, const char *text) { return git_regexp_search(one, text, 0, NULL); }

int git_regexp_search(const git_regexp *one, const char *text, size_t count, git_regmatch *matches) {
  regmatch_t *found = count == 0 ? NULL : calloc(count, sizeof *found);
  if (count != 0 && found == NULL) return GIT_ERROR;
  int error = regexec(*one, text, count, found, 0);
  for (size_t i = 0; error == 0 && i < count; ++i) {
    matches[i].start = found[i].rm_so;
    matches[i].end = found[i].rm_eo;
  }
  free(found);
  if (error == 0) return 0;
  return error == REG_NOMATCH ? GIT_ENOTFOUND : GIT_ERROR;
}
