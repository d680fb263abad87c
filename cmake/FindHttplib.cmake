# cpp-httplib: a server of HTTP.
#
# Defines    Httplib::httplib

find_path(Httplib_INCLUDE httplib.h)
find_library(Httplib_LIBRARY cpp-httplib)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Httplib REQUIRED_VARS Httplib_LIBRARY Httplib_INCLUDE)

if(Httplib_FOUND AND NOT TARGET Httplib::httplib)
  add_library(Httplib::httplib UNKNOWN IMPORTED)
  set_target_properties(Httplib::httplib PROPERTIES
    IMPORTED_LOCATION "${Httplib_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${Httplib_INCLUDE}")
endif()
