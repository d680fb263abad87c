#pragma once

#include <memory>

#include "trireme/data/table_file.h"

namespace trireme::data {

/// A file of Arrow's IPC, with a footer or as a stream, which is mapped. Errors of TableLibrary::open.
///
/// A stream has no footer: who wrote it must have closed it, which puts a mark at its end. Columns that are encoded by a dictionary are not read of one.
std::unique_ptr<const TableFile> open_ipc(int descriptor);

}  // namespace trireme::data
