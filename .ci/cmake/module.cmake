# Every folder is a module of two targets: NAME_core (pure) and NAME (shell, links its core).
#   infernex_module(NAME CORE files... CORE_LINK targets... SHELL files... SHELL_LINK targets... ALONE files...)
# ALONE: files that are not compiled together with others.
#
# The headers that most files need are precompiled twice in all, instead of parsed for every file: for cores by
# messages, for shells and tests by the runtime.
function(infernex_share_pch target owner)
  if(INFERNEX_PCH AND NOT target STREQUAL owner)
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
endfunction()

# Most of a file's time goes into parsing the same headers as its neighbours do: the files of a target are compiled
# eight together, but for those listed after ALONE (anonymous names that meet, or a long build of their own).
function(infernex_compile_together target)
  cmake_parse_arguments(T "" "SIZE" "ALONE" ${ARGN})
  if(INFERNEX_UNITY)
    if(NOT T_SIZE)
      set(T_SIZE 8)
    endif()
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${T_SIZE})
    if(T_ALONE)
      set_source_files_properties(${T_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endif()
endfunction()

function(infernex_module name)
  cmake_parse_arguments(M "" "" "CORE;CORE_LINK;SHELL;SHELL_LINK;ALONE" ${ARGN})
  set(core infernex_${name}_core)
  if(M_CORE)
    add_library(${core} STATIC ${M_CORE})
    target_include_directories(${core} PUBLIC ${PROJECT_SOURCE_DIR})
    target_link_libraries(${core} PUBLIC ${M_CORE_LINK})
    infernex_share_pch(${core} infernex_messages_core)
    infernex_compile_together(${core} ALONE ${M_ALONE})
  else()
    add_library(${core} INTERFACE)
    target_include_directories(${core} INTERFACE ${PROJECT_SOURCE_DIR})
    target_link_libraries(${core} INTERFACE ${M_CORE_LINK})
  endif()
  if(M_SHELL)
    add_library(infernex_${name} STATIC ${M_SHELL})
    target_link_libraries(infernex_${name} PUBLIC ${core} ${M_SHELL_LINK})
    infernex_share_pch(infernex_${name} infernex_runtime)
    infernex_compile_together(infernex_${name} ALONE ${M_ALONE})
  endif()
endfunction()
