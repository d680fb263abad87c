# Headers of libfabric. The library itself is loaded when it is asked for, so nothing is linked.
#
# Defines    Libfabric_INCLUDE

find_path(Libfabric_INCLUDE rdma/fi_tagged.h)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Libfabric REQUIRED_VARS Libfabric_INCLUDE)
