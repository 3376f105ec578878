# A fake of a site's module system (Lmod's answers). From the test: the arrays holds (module -> packages), defaults (name ->
# module), folder (module -> the folder that must be in use), needs (module -> those to be loaded before), envs (conda
# environment of a module -> packages).
declare -A loaded in_use
module() {
  local name full before
  while [[ ${1-} == --* ]]; do shift; done  # --quiet, --force
  case $1 in
    swap) unset "loaded[$2]"; module load "$3" ;;
    use) shift; for name; do [ "${name#-}" != "$name" ] || in_use[$name]=1; done ;;
    load | is-avail)
      for name in "${@:2}"; do
        full=${defaults[$name]:-$name}
        if [ -z "${holds[$full]+there}" ] || { [ "${folder[$full]-}" ] && [ -z "${in_use[${folder[$full]}]-}" ]; }; then
          [ "$1" = is-avail ] || echo "Lmod has detected the following error: The following module(s) are unknown: \"$name\"" >&2
          return 1
        fi
        [ "$1" = load ] || continue
        for before in ${needs[$full]-}; do
          [ "${loaded[$before]-}" ] || { echo "Lmod has detected the following error: $name needs $before" >&2; return 1; }
        done
        loaded[$full]=1 loaded[${full%%/*}]=1
        export FAKE_PACKAGES="${FAKE_PACKAGES-} ${holds[$full]}"
        FAKE_CONDA="${FAKE_CONDA-} $full"
      done ;;
    unload | purge | reset | list) ;;
    *) echo "module $1 is not faked" >&2; return 2 ;;
  esac
}
conda() {
  local full
  case $1 in
    shell.bash) ;;
    activate)
      for full in ${FAKE_CONDA-}; do
        [ -z "${envs[$full $2]+there}" ] || { export FAKE_PACKAGES="$FAKE_PACKAGES ${envs[$full $2]}"; return 0; }
      done
      echo "EnvironmentNameNotFound: Could not find conda environment: $2" >&2
      return 1 ;;
  esac
}
export -f module conda
