# liburing: many requests to files at a time (io_uring).
#
# Defines    Uring::uring

find_path(Uring_INCLUDE liburing.h)
find_library(Uring_LIBRARY uring)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Uring REQUIRED_VARS Uring_LIBRARY Uring_INCLUDE)

if(Uring_FOUND AND NOT TARGET Uring::uring)
  add_library(Uring::uring UNKNOWN IMPORTED)
  set_target_properties(Uring::uring PROPERTIES
    IMPORTED_LOCATION "${Uring_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${Uring_INCLUDE}")
endif()
