# For sh: the samples of jobs' folders, which are the arguments, from which the report is made.

# LIMIT: bytes of one folder's share. NUL ends each name and each file; of larger files only each N-th look is read.
read_samples() {
  for folder; do
    set -- "$folder"/samples/*
    [ -e "$1" ] || continue
    for file; do
      size=$(wc -c < "$file") || continue
      share=$((LIMIT / $#))
      printf '%s\000' "$file"
      awk -v every=$((size / (share > 1000 ? share : 1000) + 1)) '
        $1 == "node" { look++ }
        every == 1 || $1 == "rank" || $1 == "start" || $1 == "end" || look % every == 1' "$file" | tr -d '\000'
      printf '\000'
    done
  done
  return 0
}

"$@"
