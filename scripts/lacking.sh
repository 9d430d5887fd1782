#!/usr/bin/env bash
# Prints, in one line, what some tests need and this machine lacks, with the commands that install it.
# Prints nothing if everything is there. `--packages` prints only the names of the Debian packages.
set -euo pipefail
cd "$(dirname "$0")/.."

have() { command -v "$1" >/dev/null || [[ -x /usr/sbin/$1 ]]; }

packages=() commands=()
have make || packages+=(make)
have cc || packages+=(gcc libc6-dev)
python3 -c 'import ensurepip, venv' 2>/dev/null || packages+=(python3-venv)
have valgrind || packages+=(valgrind) # counts the instructions that a packet costs
# Real packets in network namespaces.
have ip || packages+=(iproute2)
have unshare && have nsenter || packages+=(util-linux)
have nft || packages+=(nftables) # the way out of a shell
have pasta || packages+=(passt)  # the way out without root
# Readers of the captures that the gateway writes.
have tcpdump || packages+=(tcpdump)
have tshark || packages+=(tshark)
have lintian || packages+=(lintian) # of the gateway's Debian package
# The gateway's live page, the playground, the report on a phone.
have chromium || have chromium-browser || have chrome || packages+=(chromium)

if [[ ${1-} == --packages ]]; then
  echo "${packages[@]}"
  exit
fi

target() { [[ -d $(rustc --print target-libdir --target "$1") ]]; }
target wasm32-unknown-unknown || commands+=("rustup target add wasm32-unknown-unknown")
scripts/portable.sh --there || commands+=("scripts/portable.sh --get")
((${#packages[@]})) && commands=("apt-get install ${packages[*]}" "${commands[@]}")
((${#commands[@]} == 0)) && exit
printf -v all '; %s' "${commands[@]}"
echo "Some checks were left out. To have them all:${all#;}" >&2
