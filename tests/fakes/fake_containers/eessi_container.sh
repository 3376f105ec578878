#!/bin/bash
# A fake of EESSI's eessi_container.sh: its options, its way with the image and with binds, without CernVM-FS.
# It does not bind its folder at /tmp, where the tests have their files.
set -eu
container=docker://ghcr.io/eessi/build-node:debian12 resume='' more=()
while [ $# -gt 0 ]; do
  case $1 in
    --mode) [ "$2" = exec ]; shift 2 ;;
    --repository) [ "$2" = software.eessi.io ]; shift 2 ;;
    --nvidia) [ "$2" = run ]; more+=(--nv); shift 2 ;;
    --pass-through) more+=("$2"); shift 2 ;;
    --container) container=$2; shift 2 ;;
    --resume) resume=$2; shift 2 ;;
    --) shift; break ;;
    *) echo "unknown option $1" >&2; exit 2 ;;
  esac
done
own=${resume:-$(mktemp -d)}
image=$own/${container##*/}
if [ ! -x "$image" ]; then
  case $container in
    *://*) singularity pull "$image" "$container" ;;
    *) echo "copied $container" >> "$FAKE_CONTAINER_LOG"; cp -a "$container" "$image" ;;
  esac
fi
export SINGULARITY_BIND=${SINGULARITY_BIND:+$SINGULARITY_BIND,}$own:/var/lib/cvmfs
singularity -q exec ${more[@]+"${more[@]}"} "$image" "$@"
