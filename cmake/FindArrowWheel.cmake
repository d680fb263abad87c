# Arrow's C++ libraries, with Parquet, from Python's package pyarrow: Debian 12 has none.
#
# Looks in   TRIREME_ARROW_DIR, else .venv of this repository.
# Defines    Arrow::parquet; ArrowWheel_VERSION; TRIREME_ARROW_RPATH, where libraries that are installed look for Arrow's.

set(_arrow_hints ${TRIREME_ARROW_DIR})
if(SKBUILD AND NOT _arrow_hints)  # a wheel: the pyarrow of the Python that builds it
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c
            "import importlib.util as u; s = u.find_spec('pyarrow'); print(s.submodule_search_locations[0] if s else '')"
    OUTPUT_VARIABLE _arrow_hints OUTPUT_STRIP_TRAILING_WHITESPACE)
elseif(NOT _arrow_hints)
  file(GLOB _arrow_hints "${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/pyarrow")
endif()

find_path(ArrowWheel_ROOT NAMES include/parquet/arrow/reader.h PATHS ${_arrow_hints} NO_DEFAULT_PATH NO_CACHE)
set(ArrowWheel_VERSION "")
if(ArrowWheel_ROOT)
  set(_arrow_config "${ArrowWheel_ROOT}/include/arrow/util/config.h")
  file(STRINGS "${_arrow_config}" _arrow_version REGEX "ARROW_VERSION_STRING")
  string(REGEX REPLACE ".*\"(.*)\".*" "\\1" ArrowWheel_VERSION "${_arrow_version}")
  file(STRINGS "${_arrow_config}" _arrow_so REGEX "ARROW_SO_VERSION")
  string(REGEX REPLACE ".*\"(.*)\".*" "\\1" _arrow_so "${_arrow_so}")
  file(GLOB ArrowWheel_ARROW "${ArrowWheel_ROOT}/libarrow.so.${_arrow_so}")
  file(GLOB ArrowWheel_PARQUET "${ArrowWheel_ROOT}/libparquet.so.${_arrow_so}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  ArrowWheel
  REQUIRED_VARS ArrowWheel_ROOT ArrowWheel_ARROW ArrowWheel_PARQUET
  VERSION_VAR ArrowWheel_VERSION
  REASON_FAILURE_MESSAGE "no pyarrow: Parquet and Arrow files will not be read")

set(TRIREME_ARROW_RPATH "${ArrowWheel_ROOT}")
if(SKBUILD)
  set(TRIREME_ARROW_RPATH "$ORIGIN/../../pyarrow")  # from trireme/lib
endif()

if(ArrowWheel_FOUND AND NOT TARGET Arrow::parquet)
  foreach(_arrow_name IN ITEMS arrow parquet)
    string(TOUPPER ${_arrow_name} _arrow_upper)
    add_library(Arrow::${_arrow_name} SHARED IMPORTED GLOBAL)
    set_target_properties(
      Arrow::${_arrow_name} PROPERTIES IMPORTED_LOCATION "${ArrowWheel_${_arrow_upper}}"
                                       INTERFACE_INCLUDE_DIRECTORIES "${ArrowWheel_ROOT}/include")
  endforeach()
  target_link_libraries(Arrow::parquet INTERFACE Arrow::arrow)
endif()
