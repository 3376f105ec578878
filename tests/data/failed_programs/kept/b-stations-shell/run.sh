#!/usr/bin/env bash
# Monthly means of the station files; every task takes one station and
# checks at the end that its neighbour is there as well.
set -uo pipefail
cd "$(dirname "$0")"
. lib/common.sh

id=$(task_id)
n=$(task_count)
next=$(( (id + 1) % n ))
out=out/$(run_key)
mkdir -p "$out"
rm -f "$out/station-$id.mean" "$out/station-$id.log"

note "station $id: decoding"
gzip -dc "in/station-$id.csv.gz" 2> "$out/station-$id.log" \
    | awk -F, -f lib/means.awk > "$out/station-$id.tmp" || exit 4
mv "$out/station-$id.tmp" "$out/station-$id.mean"
note "station $id: $(wc -l < "$out/station-$id.mean") months"

wait_for "$out/station-$next.mean" 15 || die "station $next has no means, the composite would be wrong"
note "station $id: composite with station $next ok"
