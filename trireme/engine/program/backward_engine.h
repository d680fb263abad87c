#pragma once

#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/variable.h>

#include <cstdint>
#include <exception>
#include <string>

namespace trireme::program {

/// A function of a backward that threw.
class FailedFunction : public std::exception {
 public:
  FailedFunction(std::string name, std::uint64_t sequence, std::exception_ptr cause)
      : name_(std::move(name)), sequence_(sequence), cause_(std::move(cause)) {}

  const char* what() const noexcept override { return name_.c_str(); }

  /// As torch calls it: `AddmmBackward0`.
  const std::string& name() const { return name_; }

  /// The number that torch gave it when the forward made it, counted by thread.
  std::uint64_t sequence() const { return sequence_; }

  /// What it threw.
  const std::exception_ptr& cause() const { return cause_; }

 private:
  std::string name_;
  std::uint64_t sequence_;
  std::exception_ptr cause_;
};

/// Runs a backward by torch's engine, from `roots` with their gradients to wherever edges end; what
/// the forward saved is freed on the way.
///
/// Errors   FailedFunction. Costs nothing while all goes well.
/// Threads  as torch's: on the CPU all of it runs on the caller's.
void run_backward(const torch::autograd::edge_list& roots,
                  const torch::autograd::variable_list& gradients);

}  // namespace trireme::program
