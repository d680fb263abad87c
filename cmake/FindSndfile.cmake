# libsndfile: WAV, FLAC, Ogg and MP3. Its package has no CMake configuration.
#
# Defines    Sndfile::sndfile

find_path(Sndfile_INCLUDE sndfile.h)
find_library(Sndfile_LIBRARY sndfile)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Sndfile REQUIRED_VARS Sndfile_LIBRARY Sndfile_INCLUDE)

if(Sndfile_FOUND AND NOT TARGET Sndfile::sndfile)
  add_library(Sndfile::sndfile UNKNOWN IMPORTED)
  set_target_properties(Sndfile::sndfile PROPERTIES
    IMPORTED_LOCATION "${Sndfile_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${Sndfile_INCLUDE}")
endif()
