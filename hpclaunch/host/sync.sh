# The steps of a copy of the user's code on another machine, for bash: the first word names a function below.
set -e

# $1: the folder of this source's trees; $2: the tree that is made; $3: the tree it begins as, if any;
# stdin: the files of that tree to remove. A tree that is used is touched: see finish_tree. Trees of any
# source that were left half-made are removed after a day.
begin_tree() {
  mkdir -p "$1"
  find "$1/.." -mindepth 2 -maxdepth 2 -name 'new-*' -mmin +1440 -exec rm -rf {} +
  cd "$1"
  mkdir "$2"
  if [ "$3" ]; then touch "$3"; cp -al "$3/files" "$2/files"; else mkdir "$2/files"; fi
  cd "$2/files"
  xargs -0 -r rm -f --
  find . -mindepth 1 -depth -type d -empty -delete
}

# $3: the name of the complete tree; stdin: its manifest. Trees that were not used for a day are removed.
finish_tree() {
  cd "$1"
  cat > "$2/manifest"
  mv -T "$2" "$3" 2> /dev/null || rm -rf "$2"
  touch "$3"
  ln -s "$3" "$2.link"
  mv -T "$2.link" current
  find . -mindepth 1 -maxdepth 1 ! -name "$3" ! -name current -mmin +1440 -exec rm -rf {} +
}

# $1: the complete tree; $2: the job's copy.
copy_tree() {
  [ ! -d "$2" ] || exit 0
  made=$2.new.$$
  trap 'rm -rf "$made"' EXIT
  touch "$1"
  cp -a "$1/files" "$made"
  mv -T "$made" "$2"
}

# $1: the new folder; stdin: a tar archive of its files.
unpack() {
  [ ! -d "$1" ] || exit 0
  made=$1.new.$$
  trap 'rm -rf "$made"' EXIT
  mkdir -p "$made"
  tar -x -p --no-same-owner -C "$made" -f -
  mv -T "$made" "$1"
}

"$@"
