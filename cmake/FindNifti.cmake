# The library of the NIfTI committee. Its package's own CMake configuration wants programs that lie in
# another package.
#
# Defines    Nifti::nifti2

find_path(Nifti_INCLUDE nifti2_io.h PATH_SUFFIXES nifti)
find_library(Nifti_LIBRARY nifti2)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  Nifti REQUIRED_VARS Nifti_LIBRARY Nifti_INCLUDE
  REASON_FAILURE_MESSAGE "install what Debian's libnifti2-dev and libniftiio-dev hold")

if(Nifti_FOUND AND NOT TARGET Nifti::nifti2)
  add_library(Nifti::nifti2 UNKNOWN IMPORTED)
  set_target_properties(Nifti::nifti2 PROPERTIES
    IMPORTED_LOCATION "${Nifti_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${Nifti_INCLUDE}")
endif()
