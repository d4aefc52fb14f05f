# SPDX-License-Identifier: Apache-2.0
# Hardening of release builds: what dpkg-buildflags asks for, so that packages need no flags of their own. Debug builds,
# sanitizers and fuzzers leave it out: _FORTIFY_SOURCE hides calls from them. None of these options changes a
# floating-point result. FEDKT_HARDENING=OFF measures what they cost.
option(FEDKT_HARDENING "stack protector, _FORTIFY_SOURCE, full RELRO and the like in builds other than Debug" ON)
include(CheckCCompilerFlag)
include(CheckPIESupported)
check_pie_supported(LANGUAGES C)

# __FILE__ and debug information name files relative to the repository, so no binary says where it was built. A Debug
# build keeps the paths of its debug information: a debugger needs them.
set(prefix_map $<IF:$<CONFIG:Debug>,-fmacro-prefix-map,-ffile-prefix-map>)
add_library(fedkt_paths INTERFACE)
target_compile_options(fedkt_paths INTERFACE ${prefix_map}=${CMAKE_BINARY_DIR}/=build/
                       ${prefix_map}=${PROJECT_SOURCE_DIR}/=)

add_library(fedkt_hardening INTERFACE)
target_link_libraries(fedkt_hardening INTERFACE fedkt_paths)
if(FEDKT_HARDENING AND NOT FEDKT_SANITIZE AND NOT FEDKT_FUZZ)
  foreach(flag -fstack-protector-strong -fstack-clash-protection -fcf-protection)
    string(MAKE_C_IDENTIFIER "HAVE${flag}" have)
    check_c_compiler_flag(${flag} ${have})
    if(${have})
      target_compile_options(fedkt_hardening INTERFACE $<$<NOT:$<CONFIG:Debug>>:${flag}>)
    endif()
  endforeach()
  target_compile_options(fedkt_hardening INTERFACE
                         $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE> $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=2>)
  target_link_options(fedkt_hardening INTERFACE $<$<NOT:$<CONFIG:Debug>>:LINKER:-z,relro,-z,now>)
endif()
