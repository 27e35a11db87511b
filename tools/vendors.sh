#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The compilers of GPUs that are not here, from Debian's unstable release in a private folder: Mesa's drivers with a
# library that stands in for the GPU, clang for AMD and NVIDIA, ocloc for Intel. They compile; what is launched does nothing.
#   sh tools/vendors.sh get [PART...]       unpacks mesa, amd, intel, nvidia (default: all; 60, 250, 200, 250 MB)
#   sh tools/vendors.sh run GPU PROGRAM...  runs a program that sees this GPU and no other; 77 without the part mesa
#   sh tools/vendors.sh tool NAME ARG...    runs `amd` or `nvidia` (clang for OpenCL C), or `intel` (ocloc)
#   sh tools/vendors.sh command NAME        what `tool` would run, a word to a line, for those who run it often
#   sh tools/vendors.sh version NAME        of `amd`, `nvidia` or `intel`
#   sh tools/vendors.sh path                the folder: $TESSERA_VENDORS_DIR, else tessera/vendors in the user's cache folder
# GPUs: polaris10 vega10 vega20 navi10 navi21 navi31 navi33 strix1 gfx1201 (RADV), tgl mtl dg2 lnl bmg (ANV), turing ampere
# ada blackwell (NVK). `sh tools/vendors.sh run navi31 build/ci/tessera devices -v` shows what selection is told of one.
set -eu

here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
folder=${TESSERA_VENDORS_DIR:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/tessera/vendors}
patience=600
unwanted='*/libgallium-dummy*'
clang_amd=21
clang_nvidia=22 # LLVM 21's libclc has no nvptx64 that links
. "$here/debian_parts.sh"

get() {
  case $1 in
    # The headers of libdrm are for the stand-in; the loader of OpenCL for programs that link it.
    mesa) get_part mesa mesa-vulkan-drivers mesa-drm-shim libvulkan1 ocl-icd-libopencl1 libstdc++6 libdrm-dev linux-libc-dev ;;
    amd) get_part amd "clang-$clang_amd" "rocm-device-libs-$clang_amd" ;;
    intel) get_part intel intel-ocloc libigc2 libigdfcl2 ;;
    nvidia) get_part nvidia "clang-$clang_nvidia" "libclc-$clang_nvidia" ;;
    *)
      say "what is '$1'? There are mesa, amd, intel and nvidia"
      exit 2
      ;;
  esac
}

# Debian packages libraries that stand in for GPUs of AMD and NVIDIA, and none for Intel's.
build_stand_in() { # SYSTEM_ROOT TO
  cc -O1 -Wall -shared -fPIC -I"$1/usr/include" -I"$1/usr/include/libdrm" -I"$1/usr/include/x86_64-linux-gnu" \
    "$here/intel_gpu.c" -o "$2"
}

finish() {
  [ "$part" != mesa ] || build_stand_in "$work/root" "$work/root/bin/libintel_gpu.so"
}

need() { # PART
  place=$folder/$1
  if [ ! -d "$place" ]; then
    say "skipped: 'tools/vendors.sh get $1' has not unpacked it"
    exit 77
  fi
  libraries=$(dirname "$(find "$place/usr/lib" "$place/lib" -name 'ld-linux*.so.*' 2> /dev/null | head -n 1)")
  loader=$(echo "$libraries"/ld-linux*.so.*)
}

need_compiler() { # PART
  case $1 in
    amd | intel | nvidia) need "$1" ;;
    *)
      say "which compiler is '$1'? There are amd, intel and nvidia"
      exit 2
      ;;
  esac
}

run() { # GPU PROGRAM...
  gpu=$1
  shift
  need mesa
  # What ANV's GPU is: PCI device, slices, sub-slices per slice, execution units per sub-slice, v: memory of its own.
  case $gpu in
    tgl) driver=intel which=9a49:1:6:16 ;;
    mtl) driver=intel which=7d55:2:4:16 ;;
    dg2) driver=intel which=56a0:8:4:16:v ;;
    lnl) driver=intel which=64a0:2:4:8 ;;
    bmg) driver=intel which=e20b:5:4:8:v ;;
    turing) driver=nouveau which=0x164 ;;
    ampere) driver=nouveau which=0x172 ;;
    ada) driver=nouveau which=0x192 ;;
    blackwell) driver=nouveau which=0x1b2 ;;
    polaris* | vega* | raven* | renoir | navi* | vangogh | phoenix | strix1 | gfx*) driver=radeon which=$gpu ;;
    *)
      say "which GPU is '$gpu'?"
      exit 2
      ;;
  esac
  case $driver in
    intel)
      export TESSERA_INTEL_GPU=$which
      preloaded=$place/bin/libintel_gpu.so
      if [ "$here/intel_gpu.c" -nt "$preloaded" ]; then
        build_stand_in "$place" "$preloaded.$$"
        mv "$preloaded.$$" "$preloaded"
      fi
      ;;
    nouveau)
      export NOUVEAU_CHIPSET=$which
      preloaded=$libraries/libnouveau_noop_drm_shim.so
      ;;
    radeon)
      export AMDGPU_GPU_ID=$which
      preloaded=$libraries/libamdgpu_noop_drm_shim.so
      ;;
  esac
  described=$place/bin/$driver.json
  if [ ! -f "$described" ]; then
    sed "s|\"library_path\": \".*\"|\"library_path\": \"$libraries/libvulkan_$driver.so\"|" \
      "$place/usr/share/vulkan/icd.d/${driver}_icd.json" > "$described.$$"
    mv "$described.$$" "$described"
  fi
  # The shader cache of the user stays out of it: what came from there says nothing of registers.
  export VK_DRIVER_FILES="$described" OCL_ICD_VENDORS=/nonexistent MESA_SHADER_CACHE_DISABLE=true
  exec "$loader" --preload "$preloaded" --library-path "$libraries" "$@"
}

llvm() { # VERSION PROGRAM...
  version=$1
  shift
  $launch "$loader" --library-path "$libraries:$place/usr/lib/llvm-$version/lib" "$place/usr/lib/llvm-$version/bin/clang" "$@"
}

launch=exec
tool() {
  name=$1
  shift
  need_compiler "$name"
  case $name in
    amd)
      resources=$place/usr/lib/llvm-$clang_amd/lib/clang/$clang_amd
      llvm $clang_amd -target amdgcn-amd-amdhsa -resource-dir "$resources" \
        --rocm-device-lib-path="$resources/amdgcn/bitcode" "$@"
      ;;
    nvidia)
      llvm $clang_nvidia -target nvptx64-nvidia-nvcl -resource-dir \
        "$place/usr/lib/llvm-$clang_nvidia/lib/clang/$clang_nvidia" \
        -Xclang -mlink-builtin-bitcode -Xclang "$place/usr/lib/clc/nvptx64--nvidiacl.bc" "$@"
      ;;
    intel) $launch "$loader" --library-path "$libraries" "$(find "$place/usr/bin" -name 'ocloc-*' | head -n 1)" "$@" ;;
  esac
}

# Of the compiler, as allowances.json records it; Mesa's drivers tell theirs in the profile.
version() {
  need_compiler "$1"
  case $1 in
    amd | nvidia) llvm_version=$(tool "$1" --version | sed -n 's/.*clang version \([^ ]*\).*/\1/p') ;;
  esac
  case $1 in
    amd) echo "clang $llvm_version" ;;
    nvidia) echo "clang $llvm_version, ptxas $(ptxas --version | sed -n 's/.*release \([^,]*\),.*/\1/p')" ;;
    intel) basename "$(find "$place/usr/bin" -name 'ocloc-*' | head -n 1)" ;;
  esac
}

case ${1:-} in
  path) echo "$folder" ;;
  get)
    shift
    [ $# -gt 0 ] || set -- mesa amd intel nvidia
    missing=0
    for name; do get "$name" || missing=1; done
    exit $missing
    ;;
  run | tool)
    [ $# -ge 3 ] || exit 2
    "$@"
    ;;
  command)
    [ $# -eq 2 ] || exit 2
    launch='printf %s\n'
    tool "$2"
    ;;
  version)
    [ $# -eq 2 ] || exit 2
    "$@"
    ;;
  *)
    sed -n '3,13s/^# //p' "$0" >&2
    exit 2
    ;;
esac
