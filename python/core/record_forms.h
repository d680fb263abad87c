#pragma once

#include <string>

#include "trireme/data.h"

namespace trireme::python {

/// A form of records by its name in Python: `tar`, `json_lines`; `by_name`.
///
/// Errors   kInvalidArgument, with the names that there are.
data::RecordForm form_of(const std::string& name);

}  // namespace trireme::python
