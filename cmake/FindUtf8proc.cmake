# Imports utf8proc from the system, whose package has no CMake configuration.
#
# Defines    utf8proc::utf8proc

find_path(Utf8proc_INCLUDE utf8proc.h)
find_library(Utf8proc_LIBRARY utf8proc)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  Utf8proc
  REQUIRED_VARS Utf8proc_LIBRARY Utf8proc_INCLUDE
  REASON_FAILURE_MESSAGE "install what Debian's libutf8proc-dev holds")

if(Utf8proc_FOUND AND NOT TARGET utf8proc::utf8proc)
  add_library(utf8proc::utf8proc UNKNOWN IMPORTED)
  set_target_properties(utf8proc::utf8proc PROPERTIES
    IMPORTED_LOCATION "${Utf8proc_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${Utf8proc_INCLUDE}")
endif()
