# xxHash: hashes that are fast and no proof against intent.
#
# Defines    Xxhash::xxhash

find_path(Xxhash_INCLUDE xxhash.h)
find_library(Xxhash_LIBRARY xxhash)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Xxhash REQUIRED_VARS Xxhash_LIBRARY Xxhash_INCLUDE)

if(Xxhash_FOUND AND NOT TARGET Xxhash::xxhash)
  add_library(Xxhash::xxhash UNKNOWN IMPORTED)
  set_target_properties(Xxhash::xxhash PROPERTIES
    IMPORTED_LOCATION "${Xxhash_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${Xxhash_INCLUDE}")
endif()
