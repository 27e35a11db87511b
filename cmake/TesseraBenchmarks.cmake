# SPDX-License-Identifier: Apache-2.0
# benchmarks/*.cpp: one Google Benchmark program.
file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/benchmarks/*.cpp")
tessera_filter_sources(sources ${sources})
if(sources)
  find_package(benchmark QUIET)
  tessera_require(benchmark_FOUND "Google Benchmark" libbenchmark-dev)
  add_executable(tessera_benchmarks ${sources})
  target_link_libraries(tessera_benchmarks PRIVATE tessera_internal benchmark::benchmark)
endif()
