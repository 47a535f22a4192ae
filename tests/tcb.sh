#!/usr/bin/env bash
# Counts the trusted base: tcb.sh PROGRAM. Lines of code are those that are neither blank nor only a comment. Fails when the
# program needs more than libc and libsodium at run time, or when the base grows beyond what it has come down to.
set -euo pipefail
goal=2000 limit=2401
program=$(realpath "$1")
cd "$(dirname "$0")/.."
total=0
for file in enforcer/*.cpp enforcer/*.hpp; do
  lines=$(grep -vcE '^[[:space:]]*($|//)' "$file" || true)
  printf '%6d  %s\n' "$lines" "$file"
  total=$((total + lines))
done
printf '%6d  lines of code in all; the goal is %d, the limit of this test %d\n\n' "$total" "$goal" "$limit"
needed=$(readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/  \1/p' | sort)
printf 'needs at run time:\n%s\n' "$needed"
stripped=$(mktemp)
trap 'rm -f "$stripped"' EXIT
strip -o "$stripped" "$program"
printf 'stripped size: %d bytes\n' "$(stat -c %s "$stripped")"
printf 'symbols imported: %d\n' "$(nm -D --undefined-only "$program" | wc -l)"
nm -D --undefined-only "$program" | awk '{print $NF}' | sed 's/@.*//' | sort | paste -sd' ' | fold -sw 110 | sed 's/^/  /'

others=$(grep -vE '^  (libc\.so|libsodium\.so|ld-linux)' <<<"$needed" || true)
[ -z "$others" ] || { printf 'the enforcer needs more than libc and libsodium:\n%s\n' "$others" >&2; exit 1; }
[ "$total" -le "$limit" ] || { printf 'enforcer/ has %d lines of code; the limit is %d: what can leave it?\n' "$total" "$limit" >&2; exit 1; }
