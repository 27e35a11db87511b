# SPDX-License-Identifier: Apache-2.0
# Small kernels that test the tiles of cl_kernels/lib alone; they are checked like the library's own and not embedded.
set(kernels
    "tests/kernels/tile_products.cl|DTYPE=0|ALIGNED=0|FEATURES=22|COLUMNS_OUT=14|WG_X=16"
    "tests/kernels/cpu_panels.cl|DTYPE=1|VECTOR_WIDTH=4,16|VECTORS=2|FEATURES=13"
    "tests/kernels/mma_products.cl|DTYPE=0,1,2|FEATURES=37,40|COLUMNS=24|WG_X=64|${TESSERA_NVIDIA_PTX}"
    "tests/kernels/hopper_products.cl|DTYPE=1,2|FEATURES=128|WG_X=128|${TESSERA_NVIDIA_PTX}")
tessera_check_opencl("${CMAKE_CURRENT_LIST_DIR}" "${kernels}")
