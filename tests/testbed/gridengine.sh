#!/usr/bin/env bash
# Unpacks Debian's Grid Engine client and prints the folder; tests/scheduler/test_real_gridengine.py asks its qsub
# what it reads in a script. Nothing is installed: its qsub would stand in the place of a PBS' one, and its
# dependencies bring a mail server. Kept in ${XDG_CACHE_HOME:-~/.cache}/hpclaunch-tests.
set -euo pipefail

cache=${XDG_CACHE_HOME:-$HOME/.cache}/hpclaunch-tests
folder=$cache/gridengine-8.1.9
if [[ ! -e $folder/built ]]; then
    work=$(mktemp -d)
    trap 'rm -rf -- "$work"' EXIT
    packages=(gridengine-client gridengine-common libjemalloc2)
    cd "$work" # where apt-get writes
    apt-get download -qq "${packages[@]}" >&2 || { apt-get update -qq && apt-get download -qq "${packages[@]}"; } >&2
    cd - >/dev/null
    for package in "$work"/*.deb; do
        dpkg-deb -x "$package" "$work"/unpacked
    done
    touch "$work"/unpacked/built
    mkdir -p "$cache"
    rm -rf -- "$folder"
    mv -- "$work"/unpacked "$folder"
fi
printf '%s\n' "$folder"
