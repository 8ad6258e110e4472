#!/usr/bin/env bash
# Runs every fuzz test of the module for a time, one after the other.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-30s}
grep -rlE '^func Fuzz' --include='*_test.go' . | while read -r file; do
	sed -nE 's/^func (Fuzz[A-Za-z0-9_]+)\(.*/\1/p' "$file" | while read -r name; do
		echo "$name in $(dirname "$file")"
		go test -run '^$' -fuzz "^$name\$" -fuzztime "$time" "$(dirname "$file")"
	done
done
