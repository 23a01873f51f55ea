# Stands for a formatter or a linter: removes blanks at the ends of lines, and finds fault with tabs.
find . -name '*.txt' -exec sed -i 's/[[:blank:]]*$//' {} +
grep -rn --include='*.txt' "$(printf '\t')" . | while IFS=: read -r file line _; do
  printf '%s{"rule": "tab", "severity": "warning", "message": "A tab.", "path": "%s", "line": %s}' \
    "${comma:-}" "${file#./}" "$line"
  comma=,
done | sed '1s/^/{"findings": [/; $s/$/]}/' >"$AGENTIC_CI_FINDINGS"
