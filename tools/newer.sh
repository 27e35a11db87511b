#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs of Debian's unstable release beside this system's own ones, in a private folder. Nothing is installed, no root
# is needed, and apt checks signatures and sums as always.
#   sh tools/newer.sh get PART...      unpacks `glslc` (with spirv-val) unless the system's knows enough, `lavapipe`, or for
#                                      OpenCL `pocl` or `rusticl` (Mesa's, on llvmpipe)
#   sh tools/newer.sh run PROGRAM...   runs a program of this system with unstable's libraries and lavapipe; 77 without
#   sh tools/newer.sh on PART PROGRAM...   the same with another part
#   sh tools/newer.sh path             the folder: $TESSERA_NEWER_DIR, else tessera/newer in the user's cache folder
# CMake takes the glslc of that folder before the system's. What can't be had is said and left out.
set -eu

folder=${TESSERA_NEWER_DIR:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/tessera/newer}
patience=300
unwanted='*/libvulkan_[!l]*.so'
extensions="GL_KHR_cooperative_matrix GL_NV_cooperative_matrix2 GL_EXT_bfloat16"

. "$(dirname "$0")/debian_parts.sh"

# Whether the system's glslc knows what the shaders ask for.
knows_enough() {
  command -v glslc > /dev/null 2>&1 || return 1
  for extension in $extensions; do
    printf '#version 450\n#extension %s : require\nvoid main() {}\n' "$extension" |
      glslc -fshader-stage=compute --target-env=vulkan1.3 -o /dev/null - > /dev/null 2>&1 || return 1
  done
}

finish() {
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
    pocl | rusticl)
      mkdir "$work/root/vendors"
      find "$work/root/usr/lib" -name 'libpocl.so.2.*.*' -o -name libRusticlOpenCL.so.1 | head -n 1 |
        sed "s|^$work/root|$place|" > "$work/root/vendors/$part.icd"
      [ -s "$work/root/vendors/$part.icd" ] || return 1
      # rusticl looks for its library of built-ins in one folder of the system: here that is file 9, a name as long.
      [ "$part" = pocl ] || find "$work/root/usr/lib" -name 'libRusticlOpenCL.so.1*' -type f \
        -exec env LC_ALL=C sed -i 's|/usr/lib/clc/spirv|/dev/fd/9////spirv|g' {} +
      # And for clang's headers beside the folder of its library.
      (cd "$work/root/usr/lib" && ln -sfn llvm-*/lib lib)
      printf '#!/bin/sh\nOCL_ICD_VENDORS=%s RUSTICL_ENABLE=llvmpipe exec %s --library-path %s "$@" 9< %s\n' "$place/vendors" \
        "$loader" "$library_path" "$place/usr/lib/$([ "$part" = pocl ] || echo clc)" > "$work/root/bin/run"
      ;;
  esac
  chmod +x "$work"/root/bin/*
}

get() {
  case $1 in
    glslc) knows_enough || get_part glslc glslc spirv-tools ;;
    lavapipe) get_part lavapipe mesa-vulkan-drivers ;;
    pocl) get_part pocl pocl-opencl-icd ocl-icd-libopencl1 libvulkan1 libstdc++6 ;;
    rusticl) get_part rusticl mesa-opencl-icd ocl-icd-libopencl1 libvulkan1 libstdc++6 ;;
    *)
      say "what is '$1'? There are glslc, lavapipe, pocl and rusticl"
      exit 2
      ;;
  esac
}

run_on() { # PART PROGRAM...
  part=$1
  shift
  if [ ! -x "$folder/$part/bin/run" ]; then
    say "skipped: 'tools/newer.sh get $part' has not unpacked Debian's newer $part"
    exit 77
  fi
  exec "$folder/$part/bin/run" "$@"
}

case ${1:-} in
  path) echo "$folder" ;;
  get)
    shift
    for part; do get "$part"; done
    ;;
  run)
    shift
    run_on lavapipe "$@"
    ;;
  on)
    shift
    run_on "$@"
    ;;
  *)
    sed -n '3,11s/^# //p' "$0" >&2
    exit 2
    ;;
esac
