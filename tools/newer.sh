#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs of Debian's unstable release beside this system's own ones, in a private folder. Nothing is installed, no root
# is needed, and apt checks signatures and sums as always.
#   sh tools/newer.sh get PART...      unpacks `glslc` (with spirv-val) unless the system's knows enough, or `lavapipe`
#   sh tools/newer.sh run PROGRAM...   runs a program of this system with unstable's libraries and lavapipe; 77 without
#   sh tools/newer.sh path             the folder: $TESSERA_NEWER_DIR, else tessera/newer in the user's cache folder
# CMake takes the glslc of that folder before the system's. What can't be had is said and left out.
set -eu

folder=${TESSERA_NEWER_DIR:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/tessera/newer}
release=sid
extensions="GL_KHR_cooperative_matrix GL_NV_cooperative_matrix2 GL_EXT_bfloat16"

say() { echo "tools/newer.sh: $*" >&2; }

# Whether the system's glslc knows what the shaders ask for.
knows_enough() {
  command -v glslc > /dev/null 2>&1 || return 1
  for extension in $extensions; do
    printf '#version 450\n#extension %s : require\nvoid main() {}\n' "$extension" |
      glslc -fshader-stage=compute --target-env=vulkan1.3 -o /dev/null - > /dev/null 2>&1 || return 1
  done
}

# apt with a state of its own: no package is installed as far as it knows, so it fetches all that PART depends on.
private_apt() {
  command=$1
  shift
  timeout 120 "$command" -qq -oDir::Etc::SourceList="$work/sources.list" -oDir::Etc::SourceParts=/dev/null \
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
  for deb in "$work"/debs/*.deb; do
    dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$work/root" --exclude=./usr/share/doc --exclude=./usr/share/locale \
      --exclude='*/gconv' --exclude='*/libvulkan_[!l]*.so' || return 1
  done
}

get() {
  part=$1
  [ ! -d "$folder/$part" ] || return 0
  case $part in
    glslc) packages="glslc spirv-tools" ;;
    lavapipe) packages=mesa-vulkan-drivers ;;
    *)
      say "what is '$part'? There are glslc and lavapipe"
      exit 2
      ;;
  esac
  if [ "$part" = glslc ] && knows_enough; then return 0; fi
  mkdir -p "$folder"
  work=$(mktemp -d "$folder/$part.XXXXXX")
  if fetch $packages > "$work/log" 2>&1; then
    loader=$(find "$work/root" -name 'ld-linux*.so.*' -type f | head -n 1)
    library_path=$(dirname "$loader")
  fi
  if [ -z "${loader:-}" ]; then
    say "Debian's newer $part can't be had here; what needs it is left out. $(tail -n 1 "$work/log")"
    rm -rf "$work"
    return 1
  fi
  # Everything is moved at once, so that two of these don't meet.
  place=$folder/$part
  loader=$place${loader#"$work/root"} library_path=$place${library_path#"$work/root"}
  mkdir "$work/root/bin"
  case $part in
    glslc)
      for program in glslc spirv-val; do
        printf '#!/bin/sh\nexec %s --library-path %s %s "$@"\n' "$loader" "$library_path" "$place/usr/bin/$program" \
          > "$work/root/bin/$program"
      done
      ;;
    lavapipe)
      sed "s|\"library_path\": \".*\"|\"library_path\": \"$library_path/libvulkan_lvp.so\"|" \
        "$work"/root/usr/share/vulkan/icd.d/lvp_icd*.json > "$work/root/driver.json"
      printf '#!/bin/sh\nVK_DRIVER_FILES=%s exec %s --library-path %s "$@"\n' "$place/driver.json" "$loader" \
        "$library_path" > "$work/root/bin/run"
      ;;
  esac
  chmod +x "$work"/root/bin/*
  mv -T "$work/root" "$place" 2> /dev/null || true # another one was first
  rm -rf "$work"
  say "unpacked Debian's newer $part in $place"
}

case ${1:-} in
  path) echo "$folder" ;;
  get)
    shift
    for part; do get "$part"; done
    ;;
  run)
    shift
    if [ ! -x "$folder/lavapipe/bin/run" ]; then
      say "skipped: 'tools/newer.sh get lavapipe' has not unpacked Debian's newer lavapipe"
      exit 77
    fi
    exec "$folder/lavapipe/bin/run" "$@"
    ;;
  *)
    sed -n '3,9s/^# //p' "$0" >&2
    exit 2
    ;;
esac
