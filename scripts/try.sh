#!/usr/bin/env bash
# Runs the tests of one thing, as `make try` does: try.sh AQM TRANSPORT NAME, of which two are empty.
set -euo pipefail
cd "$(dirname "$0")/.."
aqm=$1 transport=$2 name=$3

fail() {
  echo "error: $*" >&2
  exit 2
}

# The pinned scenarios that use it.
golden() {
  local using
  using=$(cd crates/sim/tests/golden && grep --files-with-matches "= \"$1\"" ./*.toml | tr '\n' ' ' || true)
  if [[ -n $using ]]; then
    echo "pinned scenarios: $using"
  else
    echo "no pinned scenario uses $1"
  fi
}

if [[ -n $aqm ]]; then
  export BLUEWATER_ONLY=$aqm # others are left out of the laws, the naive models and the pinned scenarios
  golden "$aqm"
  cargo test --package bluewater-aqm --locked --quiet --lib
  # A naive model's test has the name of its discipline.
  cargo test --workspace --locked --quiet --test aqm-tests -- laws:: idle:: "${aqm//-/_}"
  cargo test --workspace --locked --quiet --test sim-tests -- golden::
elif [[ -n $transport ]]; then
  export BLUEWATER_ONLY=$transport
  golden "$transport"
  # The extension's package beside it, whose features its dependencies were built with.
  cargo test --package bluewater-sim --package bluewater-py --locked --quiet --tests -- transport:: golden:: "${transport//-/_}"
elif [[ -n $name ]]; then
  found=
  for folder in crates/*/; do
    if grep --recursive --quiet --include='*.rs' "^ *fn [a-z0-9_]*$name" "$folder"; then
      found=rust
      cargo test --package "$(sed -n 's/^name = "\(bluewater-.*\)"/\1/p' "$folder/Cargo.toml")" --locked --quiet --tests "$name"
    fi
  done
  if grep --quiet "^def test_[a-z0-9_]*$name" python/tests/*.py || [[ -e python/tests/$name.py ]]; then
    found=python
    make --no-print-directory .venv/any-core.stamp .venv/dev.stamp
    cargo build --workspace --locked --quiet --bin bluewater-gateway
    BLUEWATER_GATEWAY=$(realpath "${CARGO_TARGET_DIR:-target}")/debug/bluewater-gateway .venv/bin/python -m pytest --quiet -k "$name"
  fi
  [[ -n $found ]] || fail "no Rust or Python test has '$name' in its name"
else
  fail "make try AQM=blue, TRANSPORT=cubic or TEST=name"
fi
