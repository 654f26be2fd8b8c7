#!/bin/sh
# Rebuild static/ into a temporary directory and fail when a committed file differs.
set -eu
cd "$(dirname "$0")"
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
node build.mjs "$fresh"
status=0
for file in $(cd "$fresh" && find . -type f | sort); do
  cmp -s "$fresh/$file" "../static/$file" || { echo "static/${file#./} is not what the build makes: npm run build"; status=1; }
done
exit $status
