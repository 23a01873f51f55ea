# agentic_ci_embed(TARGET NAMESPACE::FUNCTION FILE...): compiles data files into TARGET, as a function
#   std::span<const EmbeddedFile> FUNCTION();   (codec/data/embedded_file.h)
# so that the binary needs nothing beside it. Each file is a raw string: at most 64 KiB of text.
function(agentic_ci_embed target function)
  string(REGEX MATCH "^(.*)::([^:]+)$" matched "${function}")
  set(namespace "${CMAKE_MATCH_1}")
  set(name "${CMAKE_MATCH_2}")
  set(entries "")
  foreach(file IN LISTS ARGN)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    file(READ "${file}" text)
    file(RELATIVE_PATH shown "${CMAKE_SOURCE_DIR}" "${file}")
    string(APPEND entries "    {\"${shown}\", R\"DATA(${text})DATA\"},\n")
  endforeach()
  set(source "${CMAKE_CURRENT_BINARY_DIR}/${name}.cc")
  file(CONFIGURE OUTPUT "${source}" @ONLY CONTENT [[
#include "codec/data/embedded_file.h"

namespace @namespace@ {

std::span<const codec::EmbeddedFile> @name@();
std::span<const codec::EmbeddedFile> @name@() {
  static constexpr codec::EmbeddedFile kFiles[] = {
@entries@  };
  return kFiles;
}

}  // namespace @namespace@
]])
  target_sources(${target} PRIVATE "${source}")
endfunction()
