# SPDX-License-Identifier: Apache-2.0
# How files get into programs, and TypeScript into bundles. Included by collector/CMakeLists.txt.
#
# Debian's esbuild makes bundles, in a moment and without npm or node. Without it all else is built just the same, and the place of a
# bundle has without_esbuild.js, which says what is missing.
find_program(KPROF_ESBUILD esbuild)
find_program(KPROF_GZIP gzip)
set(KPROF_PAGE ${CMAKE_CURRENT_SOURCE_DIR}/web/page)
file(GLOB_RECURSE KPROF_PAGE_SOURCES CONFIGURE_DEPENDS ${KPROF_PAGE}/*.ts ${KPROF_PAGE}/*.css ${KPROF_PAGE}/*.json ${KPROF_PAGE}/*.js)

# kprof_embed(TARGET NAME FILE): puts a file, of the source or of the build, into a library, as `const struct embedded NAME`
# (base/embedded.h).
function(kprof_embed target name file)
  set(out ${CMAKE_BINARY_DIR}/embedded/${name}.c)
  set(script ${CMAKE_CURRENT_SOURCE_DIR}/base/embed_file.cmake)
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DFILE=${file} -DNAME=${name} "-DGZIP=$<$<BOOL:${KPROF_GZIP}>:${KPROF_GZIP}>" -P ${script}
    DEPENDS ${file} ${script} VERBATIM)
  target_sources(${target} PRIVATE ${out})
endfunction()

# kprof_bundle(NAME SCRIPT STYLE): makes build/page/NAME.js of web/page/SCRIPT, and build/page/NAME.css of STYLE, each with all that it
# imports, small.
function(kprof_bundle name script style)
  set(out ${CMAKE_BINARY_DIR}/page/${name})
  if(KPROF_ESBUILD)
    set(flags --bundle --minify --target=es2020 --charset=utf8 --log-level=warning)
    add_custom_command(OUTPUT ${out}.js ${out}.css
      COMMAND ${KPROF_ESBUILD} ${KPROF_PAGE}/${script} ${flags} --format=iife --legal-comments=inline --outfile=${out}.js
      COMMAND ${KPROF_ESBUILD} ${KPROF_PAGE}/${style} ${flags} --legal-comments=inline --outfile=${out}.css
      DEPENDS ${KPROF_PAGE_SOURCES} VERBATIM)
  else()
    message(STATUS "${name}.js will say that it is missing: no esbuild (Debian: esbuild)")
    add_custom_command(OUTPUT ${out}.js ${out}.css
      COMMAND ${CMAKE_COMMAND} -E copy ${KPROF_PAGE}/without_esbuild.js ${out}.js
      COMMAND ${CMAKE_COMMAND} -E touch ${out}.css
      DEPENDS ${KPROF_PAGE_SOURCES} VERBATIM)
  endif()
endfunction()
