# The toolchain of the preset arm64: Debian's cross compiler, and the libraries of build/sysroot/arm64 (tools/sysroot).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
get_filename_component(CMAKE_SYSROOT "${CMAKE_CURRENT_LIST_DIR}/../build/sysroot/arm64" ABSOLUTE)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# The cross compiler brings copies of libc and libstdc++ that get no security updates: those of the sysroot come first.
set(first "-B${CMAKE_SYSROOT}/usr/lib/gcc/aarch64-linux-gnu/12/ -B${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/")
# The sysroot's headers have the same names with ccache, which makes paths relative to build/arm64, and without.
set(first "${first} -ffile-prefix-map=../sysroot/=build/sysroot/")
set(CMAKE_C_FLAGS_INIT "${first}")
set(CMAKE_CXX_FLAGS_INIT "${first}")
