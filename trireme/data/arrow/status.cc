#include "trireme/data/arrow/status.h"

#include <arrow/util/io_util.h>

#include "trireme/error.h"

namespace trireme::data {

void throw_status(const arrow::Status& status, const std::string& action) {
  ErrorKind kind = ErrorKind::kCorruptData;
  if (arrow::internal::ErrnoFromStatus(status) != 0) kind = ErrorKind::kIo;
  if (status.IsOutOfMemory()) kind = ErrorKind::kResourceExhausted;
  if (status.IsNotImplemented()) kind = ErrorKind::kInvalidArgument;
  throw Error(kind, "cannot be " + action + ": " + status.message());
}

}  // namespace trireme::data
