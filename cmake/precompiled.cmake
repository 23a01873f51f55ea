# Headers that nearly every file reads, read once: half of what an unoptimised compilation costs.
# A program, since those are compiled with other flags than libraries.
add_executable(test_headers EXCLUDE_FROM_ALL cmake/precompiled/test_headers.cc)
target_compile_options(test_headers PRIVATE ${AGENTIC_CI_UNOPTIMISED})
target_precompile_headers(test_headers PRIVATE cmake/precompiled/test.h)
if(AGENTIC_CI_SANITIZE)
  add_library(std_headers STATIC cmake/precompiled/empty.cc)
  target_precompile_headers(std_headers PRIVATE cmake/precompiled/std.h)
endif()

# A unit test program.
function(agentic_ci_test_program target)
  target_compile_options(${target} PRIVATE ${AGENTIC_CI_UNOPTIMISED})
  target_precompile_headers(${target} REUSE_FROM test_headers)
  # ccache gave objects of other headers than those of the day where some are precompiled.
  set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "")
endfunction()
