# SPDX-License-Identifier: Apache-2.0
# Sourced by newer.sh and vendors.sh: packages of a newer release of Debian, unpacked in a private folder. Nothing is
# installed, no root is needed, and apt checks signatures and sums as always. The script that sources this sets
#   folder    where parts are kept, each in a folder of its own name
#   patience  seconds that one command of apt may take
#   unwanted  patterns of files that are left out, one a line
#   finish    a function: makes of the unpacked $work/root what it needs there. $loader and $library_path are those of the
#             new release at the place where the part will be, $place.
release=sid

say() { echo "tools/$(basename "$0"): $*" >&2; }

# apt with a state of its own: no package is installed as far as it knows, so it fetches all that a part depends on.
private_apt() {
  command=$1
  shift
  timeout "$patience" "$command" -qq -oDir::Etc::SourceList="$work/sources.list" -oDir::Etc::SourceParts=/dev/null \
    -oDir::State="$work" -oDir::State::Status="$work/status" -oDir::Cache="$work" -oAPT::Sandbox::User= \
    -oAcquire::Languages=none -oAcquire::http::Timeout=10 -oAcquire::Retries=1 -oDebug::NoLocking=1 "$@"
}

fetch() {
  keys=/usr/share/keyrings/debian-archive-keyring.gpg
  if ! command -v apt-get > /dev/null 2>&1 || [ ! -f $keys ]; then
    say "this is no Debian system"
    return 1
  fi
  # The mirror that this system takes its packages from has the other releases, too.
  mirror=$(apt-get indextargets --format '$(SITE) $(COMPONENT)' 2> /dev/null | sed -n '/security/d; s/ main$//p' | head -n 1)
  if [ -z "$mirror" ]; then
    say "apt names no mirror of Debian"
    return 1
  fi
  mkdir -p "$work/lists/partial" "$work/archives/partial" "$work/debs" "$work/root"
  : > "$work/status"
  echo "deb [signed-by=$keys] $mirror $release main" > "$work/sources.list"
  private_apt apt-get update -oAPT::Update::Error-Mode=any || return 1
  # A line is "Inst PACKAGE (VERSION ...)".
  needed=$(private_apt apt-get install --simulate --no-install-recommends "$@" | sed -n 's/^Inst \([^ ]*\) .*/\1/p')
  [ -n "$needed" ] || return 1
  (cd "$work/debs" && private_apt apt-get download $needed) || return 1
  printf '%s\n' ./usr/share/doc ./usr/share/locale '*/gconv' "$unwanted" > "$work/unwanted"
  for deb in "$work"/debs/*.deb; do
    dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$work/root" --exclude-from="$work/unwanted" || return 1
  done
}

# get_part PART PACKAGE...
get_part() {
  part=$1
  shift
  place=$folder/$part loader=''
  [ ! -d "$place" ] || return 0
  mkdir -p "$folder"
  work=$(mktemp -d "$folder/$part.XXXXXX")
  if fetch "$@" > "$work/log" 2>&1; then
    loader=$(find "$work/root" -name 'ld-linux*.so.*' -type f | head -n 1)
    library_path=$place$(dirname "${loader#"$work/root"}")
    loader=$place${loader#"$work/root"}
    mkdir "$work/root/bin"
    finish >> "$work/log" 2>&1 || loader=''
  fi
  if [ -z "$loader" ]; then
    say "Debian's newer $part can't be had here; what needs it is left out. $(tail -n 1 "$work/log")"
    rm -rf "$work"
    return 1
  fi
  # Everything is moved at once, so that two of these don't meet.
  mv -T "$work/root" "$place" 2> /dev/null || true # another one was first
  rm -rf "$work"
  say "unpacked Debian's newer $part in $place"
}
