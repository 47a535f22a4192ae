#!/usr/bin/env bash
# Counts the trusted base: tcb.sh PROGRAM. Lines of code are those that are neither blank nor only a comment.
set -euo pipefail
program=$1
source=$(cd "$(dirname "$0")/.." && pwd)
cd "$source"
total=0
while read -r file; do
  lines=$(grep -vcE '^[[:space:]]*($|//)' "$file" || true)
  printf '%6d  %s\n' "$lines" "$file"
  total=$((total + lines))
done < <(git ls-files 'enforcer/*.cpp' 'enforcer/*.hpp')
printf '%6d  lines of code in all; the budget is 2000\n\n' "$total"
echo "needs at run time:"
readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/  \1/p'
stripped=$(mktemp)
trap 'rm -f "$stripped"' EXIT
strip -o "$stripped" "$program"
printf 'stripped size: %d bytes\n' "$(stat -c %s "$stripped")"
printf 'symbols imported: %d\n' "$(nm -D --undefined-only "$program" | wc -l)"
nm -D --undefined-only "$program" | awk '{print $NF}' | sed 's/@.*//' | sort | paste -sd' ' | fold -sw 110 | sed 's/^/  /'
