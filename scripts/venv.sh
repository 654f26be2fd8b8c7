#!/usr/bin/env bash
# Makes .venv hold exactly the hashed packages of requirements/$1.txt; does nothing when it already does.
set -euo pipefail
cd "$(dirname "$0")/.."
name=$1

wanted=$(sha256sum <"requirements/$name.txt" | cut -d' ' -f1)
stamp=.venv/.installed-$name
if [ -x .venv/bin/python ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
    exit 0
fi

python=$(scripts/python.sh)

# Two makes at once must not install into one environment.
exec 9>.venv.lock
flock 9
if [ ! -x .venv/bin/python ]; then
    echo "venv: creating .venv with $("$python" --version)"
    "$python" -m venv .venv
fi
total=$(grep -cE '^[A-Za-z0-9]' "requirements/$name.txt")
echo "venv: installing $total packages of requirements/$name.txt (about a minute the first time)"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
SECONDS=0
# The file pins everything, so there is nothing to resolve. The pip of Python 3.11 would ask for the newest release of
# what another package wants with an extra, and refuse it for the hash that it lacks, on the day that it is published.
.venv/bin/python -m pip install --progress-bar off --disable-pip-version-check --no-input --no-deps --require-hashes \
    -r "requirements/$name.txt" >"$log" 2>&1 &
pip=$!
# What a person who waits wants to know, every few seconds, in a terminal and in a log alike.
while kill -0 "$pip" 2>/dev/null; do
    sleep 3
    if grep -q '^Installing collected packages' "$log"; then
        echo "venv: $total of $total packages are here and are put in place, $SECONDS s"
    else
        here=$(grep -cE '^(Collecting|Requirement already satisfied)' "$log" || true)
        echo "venv: $here of $total packages, $SECONDS s"
    fi
done
if ! wait "$pip"; then
    tail -n 20 "$log" >&2
    exit 1
fi
if ! .venv/bin/python -m pip check >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
fi
# The project's own packages are importable from everywhere, as after an editable installation.
site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
pwd >"$site/quartermaster.pth"
echo "$wanted" >"$stamp"
# The development set holds the demo's set; the demo's set alone says nothing of the development set.
if [ "$name" = dev ]; then
    sha256sum <requirements/sandbox.txt | cut -d' ' -f1 >.venv/.installed-sandbox
fi
