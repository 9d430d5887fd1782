#!/usr/bin/env bash
# Runs the tests of one thing, as `make try` does: try.sh AQM TRANSPORT NAME, of which two are empty.
# Cargo builds for --workspace, so that what `make test` has built is not built again.
set -euo pipefail
cd "$(dirname "$0")/.."
aqm=$1 transport=$2 name=$3

fail() {
  echo "error: $*" >&2
  exit 2
}
programs() { cargo test --workspace --locked --quiet "$@"; }
unit() { cargo test --locked --quiet --package "$1" --lib "${@:2}"; }

if [[ -n $aqm ]]; then
  export BLUEWATER_ONLY=$aqm # the laws, the naive models and the pinned scenarios leave out the others
  unit bluewater-aqm
  programs --test laws --test oracle
  programs --test golden
elif [[ -n $transport ]]; then
  export BLUEWATER_ONLY=$transport
  unit bluewater-sim transport::
  programs --test golden
elif [[ -n $name ]]; then
  found=
  for folder in crates/*/; do
    if grep --recursive --quiet --include='*.rs' "^ *fn [a-z0-9_]*$name" "$folder"; then
      found=rust
      cargo test --locked --quiet --package "$(sed -n 's/^name = "\(bluewater-.*\)"/\1/p' "$folder/Cargo.toml")" "$name"
    fi
  done
  if grep --quiet "^def test_[a-z0-9_]*$name" python/tests/*.py || [[ -e python/tests/$name.py ]]; then
    found=python
    make --no-print-directory .venv/any-core.stamp .venv/dev.stamp
    .venv/bin/python -m pytest --quiet -k "$name"
  fi
  [[ -n $found ]] || fail "no Rust or Python test has '$name' in its name"
else
  fail "make try AQM=blue, TRANSPORT=cubic or TEST=name"
fi
