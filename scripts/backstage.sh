#!/usr/bin/env bash
# Makes integrations/backstage hold exactly the packages of its package-lock.json, and its module built: a Backstage to
# hold the portal against. Does nothing when it already does.
set -euo pipefail
cd "$(dirname "$0")/../integrations/backstage"

wanted=$(cat package-lock.json catalog-backend-module-quartermaster/src/*.ts catalog-backend-module-quartermaster/*.json | sha256sum | cut -d' ' -f1)
stamp=node_modules/.installed
if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
    exit 0
fi
if ! command -v npm >/dev/null || ! node -e 'process.exit(Number(parseInt(process.versions.node) < 20))' 2>/dev/null; then
    echo "Backstage needs Node 20 or newer with npm. Install both and run it again." >&2
    exit 1
fi

# Two at once must not install into one folder.
exec 9>../../.backstage.lock
flock 9
if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
    exit 0
fi
echo "backstage: installing its packages (two minutes)"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! npm ci --no-audit --no-fund >"$log" 2>&1 || ! npm run build >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    exit 1
fi
echo "$wanted" >"$stamp"
