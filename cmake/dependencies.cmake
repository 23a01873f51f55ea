# Everything we link. All of it is Debian's, as archives, except libcurl: Debian's build of it needs
# libraries that exist only as shared objects, so it is built here from Debian's source package.
include(ExternalProject)

set(CURL_SOURCE "${CMAKE_SOURCE_DIR}/build/curl-source" CACHE PATH "libcurl's source, put there by tools/install")
# A second configuration can take the first one's: it is not instrumented in any of them.
set(CURL_PREFIX "" CACHE PATH "where libcurl.a was built and installed by another configuration")
set(deps "${CMAKE_BINARY_DIR}/deps")
if(CURL_PREFIX)
  set(deps "${CURL_PREFIX}")
endif()
file(MAKE_DIRECTORY "${deps}/include")

if(NOT CURL_PREFIX)
string(REPLACE ";" "|" curl_launcher "${CMAKE_C_COMPILER_LAUNCHER}")
set(curl_toolchain "")
if(CMAKE_TOOLCHAIN_FILE)
  set(curl_toolchain "-DCMAKE_TOOLCHAIN_FILE=${CMAKE_TOOLCHAIN_FILE}")
endif()
ExternalProject_Add(curl_build
  LIST_SEPARATOR "|"
  SOURCE_DIR "${CURL_SOURCE}"
  BUILD_BYPRODUCTS "${deps}/lib/libcurl.a"
  CMAKE_ARGS
    ${curl_toolchain}
    -DCMAKE_INSTALL_PREFIX=${deps} -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_BUILD_TYPE=None
    "-DCMAKE_C_FLAGS=${CMAKE_C_FLAGS_INIT} -Os -fno-asynchronous-unwind-tables -ffunction-sections -fdata-sections -ffile-prefix-map=${CURL_SOURCE}/= -ffile-prefix-map=../../../../curl-source/="
    -DCMAKE_POSITION_INDEPENDENT_CODE=ON
    "-DCMAKE_C_COMPILER_LAUNCHER=${curl_launcher}"
    -DBUILD_SHARED_LIBS=OFF -DBUILD_CURL_EXE=OFF -DBUILD_TESTING=OFF -DENABLE_MANUAL=OFF
    -DPICKY_COMPILER=OFF -DHTTP_ONLY=ON -DENABLE_ARES=ON -DENABLE_THREADED_RESOLVER=OFF
    -DCURL_USE_OPENSSL=ON -DCURL_DISABLE_OPENSSL_AUTO_LOAD_CONFIG=ON -DUSE_NGHTTP2=ON
    -DCURL_ZSTD=OFF -DCURL_BROTLI=OFF -DCURL_USE_LIBPSL=OFF -DUSE_LIBIDN2=OFF
    -DCURL_USE_LIBSSH2=OFF -DCURL_USE_LIBSSH=OFF -DCURL_USE_GSSAPI=OFF -DCURL_DISABLE_NETRC=ON
    -DCURL_DISABLE_NTLM=ON -DCURL_DISABLE_HSTS=ON -DCURL_DISABLE_ALTSVC=ON
    -DCURL_DISABLE_COOKIES=ON -DCURL_DISABLE_DOH=ON -DCURL_CA_BUNDLE=none -DCURL_CA_PATH=none)
endif()

add_library(dep_curl STATIC IMPORTED)
set_target_properties(dep_curl PROPERTIES
  IMPORTED_LOCATION "${deps}/lib/libcurl.a"
  INTERFACE_INCLUDE_DIRECTORIES "${deps}/include"
  INTERFACE_COMPILE_DEFINITIONS CURL_STATICLIB
  INTERFACE_LINK_LIBRARIES "nghttp2;cares;ssl;crypto;z")
if(TARGET curl_build)
  add_dependencies(dep_curl curl_build)
endif()

# libgit2 reads repositories here and never speaks to a network: its transports stay out of the
# static link (cmake/static/git2_no_network.c), and with them mbedtls, libssh2 and gssapi. PCRE2 stays out, too
# (cmake/static/git2_posix_regex.c cmake/static/zstd_no_legacy.c).
add_library(dep_git2 INTERFACE)
target_link_libraries(dep_git2 INTERFACE git2)
if(AGENTIC_CI_STATIC)
  target_link_libraries(dep_git2 INTERFACE http_parser mbedcrypto z)
  add_library(static_stubs OBJECT cmake/static/no_name_service.c cmake/static/git2_no_network.c
    cmake/static/git2_plain_files.c cmake/static/git2_posix_regex.c cmake/static/cgroup_memset.c
    cmake/static/terminate.cc)
  target_compile_options(static_stubs PRIVATE -Wno-unused-parameter -Wno-nonnull-compare)
endif()

# Tables for unwinding through libraries of C would be a twentieth of the binary. No exception passes through them: they are
# linked from copies without.
if(AGENTIC_CI_STATIC)
  file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/plain")
  foreach(name crypto ssl git2 http_parser mbedcrypto z zstd nghttp2 cares seccomp cgroup ncursesw tinfo)
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} --sysroot=${CMAKE_SYSROOT} -print-file-name=lib${name}.a
      OUTPUT_VARIABLE archive OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    set(renamed "")
    if(name STREQUAL cgroup)
      set(renamed --redefine-sym memset=cgroup_memset)  # cmake/static/cgroup_memset.c
    endif()
    execute_process(COMMAND ${CMAKE_OBJCOPY} -D --remove-section=.eh_frame --remove-section=.rela.eh_frame ${renamed}
      "${archive}" "${CMAKE_BINARY_DIR}/plain/lib${name}.a" COMMAND_ERROR_IS_FATAL ANY)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${archive}")
  endforeach()
endif()

# Relocations as a bitmap make the file a twentieth smaller. Debian 12's linker knows them on x86 alone.
set(packed_relocations "")
if(CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
  set(packed_relocations -Wl,-z,pack-relative-relocs)
endif()

# Terminals that programs on a screen know without the host's files, as infocmp(1) writes them in a variable TERMINFO.
set(AGENTIC_CI_TERMINALS "")
foreach(kind xterm xterm-256color screen screen-256color tmux-256color linux vt100)
  set(file "${CMAKE_SOURCE_DIR}/build/terminals/${kind}")
  execute_process(COMMAND infocmp -A /lib/terminfo -0 -q -Q2 ${kind} OUTPUT_VARIABLE described COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCH "b64:[^\n]+" described "${described}")
  file(CONFIGURE OUTPUT "${file}" CONTENT "${described}" @ONLY)
  list(APPEND AGENTIC_CI_TERMINALS "${file}")
endforeach()

# Links a program the way this configuration asks for. Stubs are objects: they must be seen before libc.
function(agentic_ci_link target)
  if(AGENTIC_CI_STATIC)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:static_stubs>)
    target_link_options(${target} PRIVATE "-L${CMAKE_BINARY_DIR}/plain" -static-pie -Wl,--gc-sections -Wl,--fatal-warnings
      -Wl,-z,relro,-z,now -Wl,-z,noexecstack ${packed_relocations}
      -Wl,--wrap=dlopen,--wrap=dlsym,--wrap=dlclose,--wrap=dlerror,--wrap=dladdr
      -Wl,--wrap=p_open)
  endif()
endfunction()
