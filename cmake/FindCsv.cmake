# libcsv: values separated by commas.
#
# Defines    Csv::csv

find_path(Csv_INCLUDE csv.h)
find_library(Csv_LIBRARY csv)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Csv REQUIRED_VARS Csv_LIBRARY Csv_INCLUDE)

if(Csv_FOUND AND NOT TARGET Csv::csv)
  add_library(Csv::csv UNKNOWN IMPORTED)
  set_target_properties(Csv::csv PROPERTIES
    IMPORTED_LOCATION "${Csv_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${Csv_INCLUDE}")
endif()
