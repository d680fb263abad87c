#pragma once

#include <memory>

#include "trireme/data/table_file.h"

namespace trireme::data {

/// A Parquet file by its footer. Errors of TableLibrary::open.
std::unique_ptr<const TableFile> open_parquet(int descriptor);

}  // namespace trireme::data
