#pragma once

#include "trireme/error.h"

namespace trireme::record {

/// What may be no problem where the model is recorded at one batch size: recordings at several do
/// not make one graph, or forward fails at one of them.
class SizeProblem : public Error {
 public:
  explicit SizeProblem(const std::string& message) : Error(ErrorKind::kInvalidArgument, message) {}
  SizeProblem(ErrorKind kind, const std::string& message) : Error(kind, message) {}
  SizeProblem(const std::string& message, const std::exception& cause)
      : Error(ErrorKind::kInvalidArgument, message, cause) {}
};

}  // namespace trireme::record
