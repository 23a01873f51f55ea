# Warnings are errors; sections are collected at link time, since the binary is downloaded by every run.
add_compile_options(
  -Wall -Wextra -Wpedantic -Wshadow -Werror
  -ffunction-sections -fdata-sections -fstack-protector-strong
  # The second is what ccache makes of the first, seen from build/release: the same names with it and without.
  "-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=" "-ffile-prefix-map=../../=")
# g++ 12 sees overlapping copies in std::string that are not there (GCC bug 105651).
add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -D_FORTIFY_SOURCE=2")
set(CMAKE_C_FLAGS_RELEASE "-O2 -D_FORTIFY_SOURCE=2")

# For programs that run for a blink: compiling them is what they cost.
set(AGENTIC_CI_UNOPTIMISED -O0 -U_FORTIFY_SOURCE)
function(agentic_ci_test_program target)
  target_compile_options(${target} PRIVATE ${AGENTIC_CI_UNOPTIMISED})
endfunction()

if(AGENTIC_CI_SANITIZE)
  # -O0: the unit tests are quick in any case, and compiling is nearly all of what this build costs.
  # Null pointers fault in any case, and both machines we run on read unaligned words: together these two
  # checks are a third of that.
  add_compile_options(-O0 -g1 -fsanitize=address,undefined -fno-sanitize=null,alignment
    -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
  find_program(GOLD ld.gold)
  if(GOLD)
    add_link_options(-fuse-ld=gold)  # Links the sixty programs in half the time of the default.
  endif()
endif()

find_program(CCACHE ccache)
if(CCACHE)
  # What one checkout compiled serves another in a folder of another name.
  set(CMAKE_C_COMPILER_LAUNCHER env "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})  # ccache(1), "Precompiled headers", as the next.
  add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>")
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_C_COMPILER_LAUNCHER})
endif()
