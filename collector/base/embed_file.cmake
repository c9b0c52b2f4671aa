# SPDX-License-Identifier: Apache-2.0
# Writes a file into a C file, as a struct embedded (base/embedded.h) of this name:
#   cmake -DOUT=… -DFILE=… -DNAME=… [-DGZIP=the program] -P embed_file.cmake
function(bytes_of file bytes_variable size_variable)
  file(SIZE ${file} size)
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "(................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  set(${bytes_variable} "${bytes}" PARENT_SCOPE)
  set(${size_variable} ${size} PARENT_SCOPE)
endfunction()

# The bytes of a sum in hexadecimal digits, as base64.
function(base64_of hex variable)
  set(digits ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
  set(text "")
  string(LENGTH "${hex}" length)
  math(EXPR last "${length} - 1")
  foreach(at RANGE 0 ${last} 6)
    string(SUBSTRING "${hex}" ${at} 6 three)
    string(LENGTH "${three}" nibbles)
    string(SUBSTRING "${three}00000" 0 6 three)
    foreach(shift 18 12 6 0)
      if(shift GREATER_EQUAL 12 OR (shift EQUAL 6 AND nibbles GREATER 2) OR (shift EQUAL 0 AND nibbles GREATER 4))
        math(EXPR digit "(0x${three} >> ${shift}) & 63")
        string(SUBSTRING ${digits} ${digit} 1 character)
        string(APPEND text ${character})
      else()
        string(APPEND text =)
      endif()
    endforeach()
  endforeach()
  set(${variable} ${text} PARENT_SCOPE)
endfunction()

bytes_of(${FILE} bytes size)
file(SHA256 ${FILE} sum)
base64_of(${sum} sha256)
set(gzipped_name NULL)
set(gzipped_size 0)
if(GZIP)
  get_filename_component(folder ${OUT} DIRECTORY)
  file(MAKE_DIRECTORY ${folder}) # make does not, as ninja does
  execute_process(COMMAND ${GZIP} -9 -n -c ${FILE} OUTPUT_FILE ${OUT}.gz COMMAND_ERROR_IS_FATAL ANY)
  bytes_of(${OUT}.gz gzipped gzipped_size)
  set(gzipped "static const char gzipped[] = {${gzipped}};\n")
  set(gzipped_name gzipped)
endif()
file(WRITE ${OUT} "#include \"base/embedded.h\"\n"
  "static const char bytes[] = {${bytes}0};\n${gzipped}"
  "extern const struct embedded ${NAME};\n"
  "const struct embedded ${NAME} = {bytes, ${size}, ${gzipped_name}, ${gzipped_size}, \"${sha256}\"};\n")
