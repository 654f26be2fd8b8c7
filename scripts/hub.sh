#!/usr/bin/env bash
# Makes .hub hold exactly the hashed packages of requirements/hub.txt and the proxy of sandbox/jupyterhub/proxy: a
# JupyterHub of its own, whose packages never meet those of .venv. Does nothing when it already does.
set -euo pipefail
cd "$(dirname "$0")/.."
proxy=sandbox/jupyterhub/proxy

wanted=$(cat requirements/hub.txt "$proxy/package-lock.json" | sha256sum | cut -d' ' -f1)
stamp=.hub/.installed
if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
    exit 0
fi
python=$(scripts/python.sh)
if ! command -v npm >/dev/null || ! node -e 'process.exit(Number(parseInt(process.versions.node) < 20))' 2>/dev/null; then
    echo "The sandbox's JupyterHub needs Node 20 or newer with npm, for its proxy. Install both and run it again." >&2
    exit 1
fi

# Two at once must not install into one environment.
exec 9>.hub.lock
flock 9
if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
    exit 0
fi
rm -rf .hub
echo "hub: creating .hub with $("$python" --version) (a minute and a half)"
"$python" -m venv .hub
log=$(mktemp)
trap 'rm -f "$log"' EXIT
SECONDS=0

# What a person who waits wants to know, every few seconds; the log of what went wrong.
follow() {
    local process=$1 what=$2
    while kill -0 "$process" 2>/dev/null; do
        sleep 3
        echo "hub: $what, $SECONDS s"
    done
    if ! wait "$process"; then
        tail -n 20 "$log" >&2
        exit 1
    fi
}

total=$(grep -cE '^[A-Za-z0-9]' requirements/hub.txt)
# As in venv.sh: everything is pinned, so that nothing is resolved.
.hub/bin/python -m pip install --progress-bar off --disable-pip-version-check --no-input --no-deps --require-hashes \
    -r requirements/hub.txt >"$log" 2>&1 &
follow $! "installing $total packages of requirements/hub.txt"
.hub/bin/python -m pip check >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
mkdir -p .hub/proxy
cp "$proxy/package.json" "$proxy/package-lock.json" .hub/proxy/
npm ci --prefix .hub/proxy --omit=dev --ignore-scripts --no-audit --no-fund >"$log" 2>&1 &
follow $! "installing the proxy"
echo "$wanted" >"$stamp"
