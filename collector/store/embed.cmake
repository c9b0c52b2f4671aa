# SPDX-License-Identifier: Apache-2.0
# Writes the files of schema/ into a C file, in order: cmake -DOUT=… -DDIR=… -P embed.cmake
# A file is named NNN_what.sql. The first makes a new database of version NNN; the numbers of the others follow without a gap, as file n
# brings version n-1 to version n, while no view is there. views.sql makes the views of the last version.
set(c "#include \"internal.h\"\n\n")
# Appends the bytes of a file to the C file, as an array of that name.
function(append_bytes file name)
  file(READ ${DIR}/${file} hex HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "((0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,))" "\\1\n" bytes "${bytes}")
  string(APPEND c "// ${file}\nstatic const unsigned char ${name}[] = {${bytes}0};\n\n")
  set(c "${c}" PARENT_SCOPE)
endfunction()

file(GLOB files RELATIVE ${DIR} ${DIR}/*.sql)
list(REMOVE_ITEM files views.sql)
list(SORT files)
set(table "")
string(REGEX MATCH "[1-9][0-9]*" first "${files}")
set(n ${first})
foreach(file ${files})
  if(NOT file MATCHES "^0*${n}_.*\\.sql$")
    message(FATAL_ERROR "schema/${file}: expected number ${n}")
  endif()
  append_bytes(${file} sql_${n})
  string(APPEND table "    {${n}, (const char *)sql_${n}},\n")
  math(EXPR n "${n} + 1")
endforeach()
append_bytes(views.sql sql_views)
file(READ ${DIR}/views.sql views)
string(REGEX MATCHALL "CREATE VIEW [a-z0-9_]+" views "${views}")
set(drops "")
foreach(view ${views})
  string(REPLACE "CREATE VIEW" "DROP VIEW IF EXISTS" drop "${view}")
  string(APPEND drops "    \"${drop};\"\n")
endforeach()
math(EXPR last "${n} - 1")
math(EXPR count "${n} - ${first}")
string(APPEND c "const struct migration store_migrations[] = {\n${table}};\nconst int store_migration_count = ${count};\n"
                "const int store_first_version = ${first};\nconst int store_schema_version = ${last};\n"
                "const struct views store_views = {\n${drops}    , (const char *)sql_views};\n")
file(WRITE ${OUT} "${c}")
