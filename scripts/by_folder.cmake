# SPDX-License-Identifier: Apache-2.0
# With TUTTI_COMPILE_BY_FOLDER (the preset release) the files of one folder are compiled as one. The headers are most of
# the time, and are then read once for each folder. So a name in an anonymous namespace is used once in a folder. The
# other presets compile each file alone, as its author meant it.

# What includes impl/types/status.h and the schedule reads these.
set(TUTTI_STANDARD_HEADERS <algorithm> <array> <functional> <memory> <span> <string> <variant> <vector> <fmt/format.h>)

option(TUTTI_COMPILE_BY_FOLDER "compile the files of a folder as one: quick from nothing, slow after a change" OFF)

# A folder is large for GCC, which then spends much time on looking for memory to use again. Where it does not begin
# below 1 GB, programs compile faster and take a little more memory.
if(TUTTI_COMPILE_BY_FOLDER AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(--param=ggc-min-expand=1000 --param=ggc-min-heapsize=1000000)
endif()

# More files than this of a folder are several units: the compiler needs 100 MB for each, and an edit compiles all of one.
set(TUTTI_FILES_OF_A_UNIT 10)

# Does so for a target. EACH: folders in which, and below which, every file stays alone, because they define the same
# names. TOGETHER: folders, separated by spaces, that are one unit with all below them, because their names do not clash.
# HEADERS: what nearly all of its files read, compiled beforehand, so that even those that stay alone read it once.
# HEADERS_OF: the target whose HEADERS it takes.
function(tutti_compile_by_folder target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "HEADERS_OF" "EACH;TOGETHER;HEADERS")
  if(NOT TUTTI_COMPILE_BY_FOLDER)
    return()
  endif()
  if(arg_HEADERS)
    target_precompile_headers(${target} PRIVATE ${arg_HEADERS})
  endif()
  if(arg_HEADERS_OF)
    target_precompile_headers(${target} REUSE_FROM ${arg_HEADERS_OF})
  endif()
  list(JOIN arg_EACH "|" apart)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE name)
    cmake_path(RELATIVE_PATH name BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    cmake_path(GET name PARENT_PATH folder)
    if(NOT apart OR NOT folder MATCHES "^(${apart})(/|$)")
      foreach(folders IN LISTS arg_TOGETHER)
        string(REPLACE " " "|" any ${folders})
        if(folder MATCHES "^(${any})(/|$)")
          set(folder ${folders})
          break()
        endif()
      endforeach()
      string(MAKE_C_IDENTIFIER "of_${folder}" group)
      math(EXPR ${group}_files "${${group}_files} + 1")
      math(EXPR unit "(${${group}_files} - 1) / ${TUTTI_FILES_OF_A_UNIT}")
      if(unit GREATER 0)
        string(APPEND group _${unit})
      endif()
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
