#pragma once

#include <cstdint>
#include <string>

#include "trireme/model.h"

namespace trireme::metrics {

/// [4, 3], as messages have shapes.
std::string shape_text(const at::Tensor& tensor);

/// The output of that name. Throws kInvalidArgument, naming those there are and what to do.
const at::Tensor& output_of(const Batch& outputs, const std::string& name);

/// As i64, since u8 would take -100 for 156. Throws kInvalidArgument where one is not whole.
at::Tensor labels_of(const Batch& outputs, const std::string& name);

/// Throws kInvalidArgument, naming the first label that is not from 0 to num_classes - 1.
void check_labels(const at::Tensor& labels, std::int64_t num_classes, const std::string& name);

/// Throws kInvalidArgument: output 'scores' has shape [4, 3] and 'labels' [4, 1]; `wanted`.
[[noreturn]] void refuse_shapes(const Batch& outputs, const std::string& first,
                                const std::string& second, const std::string& wanted);

}  // namespace trireme::metrics
